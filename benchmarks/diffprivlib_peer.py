"""diffprivlib's logistic regression, run in an environment of its own: it does not work with scikit-learn 1.8."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cvxpriv.numerics.arrays import Array

SCRIPT = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
data, asked = np.load(sys.argv[1]), json.loads(sys.argv[2])
def fitted(weight):
    model = LogisticRegression(epsilon=asked["epsilon"], data_norm=1.0, C=weight, fit_intercept=False, max_iter=1000)
    return model.fit(data["x"], data["y"]).coef_[0].tolist()
print(json.dumps([[fitted(weight) for _ in range(asked["runs"])] for weight in asked["weights"]]))
"""


def fits(
    python: Path, x: Array, y: Array, epsilon: float, weights: Sequence[float], runs: int
) -> dict[float, list[Array]]:
    """Return the coefficients of several runs at each C; pure epsilon, rows of norm at most 1, no intercept."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, x=x, y=y)
        asked = json.dumps({"epsilon": epsilon, "runs": runs, "weights": list(weights)})
        done = subprocess.run([str(python), "-c", SCRIPT, str(path), asked], capture_output=True, text=True, check=True)
    found = zip(weights, json.loads(done.stdout), strict=True)
    return {weight: [np.array(one) for one in thetas] for weight, thetas in found}

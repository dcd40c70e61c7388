"""Five small hospitals and a registry, made from random numbers: each hospital knows other things of the same patients.

Nobody's data are in them. A patient's risk depends on columns of several hospitals, so that no hospital alone predicts
it as well as all of them together.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["RANGES", "write_tables"]

#: The columns of each hospital with their public ranges.
RANGES = {
    "cardiology": {"pressure": (80, 220), "pulse": (40, 140)},
    "laboratory": {"glucose": (50, 300), "cholesterol": (100, 350), "iron": (10, 200)},
    "radiology": {"density": (0, 1), "lesions": (0, 12)},
    "pharmacy": {"medicines": (0, 20), "refills": (0, 40)},
    "practice": {"age": (18, 100), "visits": (0, 50)},
}
WEIGHTS = (2.0, -0.5, 2.5, 1.0, -1.0, 1.5, 2.0, 1.0, -0.5, 3.0, 0.5)


def write_tables(folder: Path, patients: int = 400, seed: int = 0) -> list[str]:
    """Write one table for each hospital and the registry's labels; return the hospitals' names.

    Each hospital has most of the patients, in an order of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    people = np.array([f"patient-{number:04d}" for number in range(patients)])
    x = rng.uniform(size=(patients, len(WEIGHTS)))
    score = 3.0 * (x - 0.5) @ np.array(WEIGHTS) + rng.logistic(size=patients)
    registry = pd.DataFrame({"patient": people, "readmitted": np.where(score > 0.0, "yes", "no")})
    registry.to_csv(folder / "registry.csv", index=False)
    first = 0
    for name, ranges in RANGES.items():
        low, high = np.array(list(ranges.values()), dtype=float).T
        own = pd.DataFrame(low + (high - low) * x[:, first : first + len(ranges)], columns=list(ranges)).round(2)
        own.insert(0, "patient", people)
        own.iloc[rng.permutation(patients)[: round(0.97 * patients)]].to_csv(folder / f"{name}.csv", index=False)
        first += len(ranges)
    return list(RANGES)

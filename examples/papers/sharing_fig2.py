"""SHARING Fig. 2: ADMM sharing against SGD on many columns, three parties of 2000, 2000 and 1000.

    python examples/papers/sharing_fig2.py --folder mnist/ --out out/
    python examples/papers/sharing_fig2.py --fast      # fewer epochs; without --folder MNIST is fetched

The paper has Gisette, which is not to be had by a stable address. The set here is *like* it: 6000 rows of MNIST's 4 and
9, 2500 pixels and products of pixels, 2500 probes (`cvxpriv.datasets.load_gisette_like` has the recipe). `--folder` is
where MNIST's four files lie (train-images-idx3-ubyte.gz ...), or mnist49.npz. With neither a folder nor a network the
script says so and draws nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sharing_case import compare, gisette_like

from cvxpriv.errors import DataError

#: Among the best of .001, .003, .01, .03; as printed it explodes at .003.
RHOS = {"averaged": 0.003, "gauss_seidel": 0.001, "printed": 0.03}


def main() -> int:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the four files of MNIST lie; without it they are fetched")
    parser.add_argument("--fast", action="store_true", help="10 epochs and one step of SGD")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the pictures")
    options = parser.parse_args()
    try:
        case = gisette_like(options.folder)
    except DataError as error:
        print(f"nothing is drawn: {error}", file=sys.stderr)
        return 1
    steps, epochs = ((0.3,), 10) if options.fast else ((0.1, 0.3, 1.0, 3.0), 50)
    compare(case, RHOS, steps, epochs, options.out / "sharing_fig2.png", tol=1e-5)
    return 0


if __name__ == "__main__":
    sys.exit(main())

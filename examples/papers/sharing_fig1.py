"""SHARING Fig. 1: ADMM sharing against SGD on a9a, two parties of 66 and 57 columns.

    python examples/papers/sharing_fig1.py --out out/
    python examples/papers/sharing_fig1.py --fast

Logistic regression, lam = 1, the loss summed. The penalties of ADMM and the step of SGD are the best of small grids:
the paper names neither. What the pictures show stands in the README of this folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sharing_case import a9a, compare
from verdicts import Verdict

VERDICTS = (
    Verdict(
        "Fig. 1: a9a",
        "agrees",
        shows="ADMM is slightly slower than SGD, with the same test log loss in the end.",
        found=(
            "The same. SGD is within 1.7 % of the optimum after one epoch (326 minibatches) and at .3262; ADMM "
            "needs 5 to 10 epochs. All end at .3241; the first party alone has .3494. From then on SGD wanders at "
            "1e-3 of the optimum; averaged ADMM stops at 6e-5, where only lam tells one split of the constant "
            "between the parties from another; with Anderson's combination it goes on to 1e-10."
        ),
        why="As printed ADMM works here for rho >= .15 and oscillates at .075, with two parties.",
        pictures=("sharing_fig1.png",),
    ),
)

#: Among the best of .0375, .075, .1, .15, .3; as printed it oscillates below .15.
RHOS = {"averaged": 0.1, "gauss_seidel": 0.0375, "printed": 0.15}


def main() -> None:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="20 epochs and one step of SGD")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the pictures")
    options = parser.parse_args()
    steps, epochs = ((1.0,), 20) if options.fast else ((0.1, 0.3, 1.0, 3.0, 10.0), 100)
    compare(a9a(), RHOS, steps, epochs, options.out / "sharing_fig1.png")


if __name__ == "__main__":
    main()

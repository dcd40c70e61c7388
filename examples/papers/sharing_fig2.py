"""SHARING Fig. 2: ADMM sharing against SGD on many columns, three parties of 2000, 2000 and 1000.

    python examples/papers/sharing_fig2.py --folder mnist/ --out out/
    python examples/papers/sharing_fig2.py --fast      # fewer epochs; without --folder MNIST is fetched
    CVXPRIV_CACHE=mnist/ python examples/papers --only sharing_fig2    # `make papers` alone leaves it out

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
from verdicts import Verdict

from cvxpriv.errors import DataError

VERDICTS = (
    Verdict(
        "Fig. 2: Gisette",
        "not reproducible",
        shows="ADMM is at .08 after a few epochs, SGD at .1 after many more.",
        found=(
            "On another set of many columns the same gap: averaged ADMM is at .057 after 5 epochs, SGD at .101 "
            "then and at .070 after 50; the first party alone has .079."
        ),
        why=(
            "Gisette has no stable address, and the picture is not of it: the set of the script is made of MNIST's 4 "
            "and 9, whose files it asks for, so `make papers` leaves it out. As printed ADMM explodes at the others' "
            "penalty (three parties). At ten times as much it has the lowest test loss at first (.047) and is the "
            "farthest ADMM from the optimum in the end (2 % after 50)."
        ),
        pictures=("sharing_fig2.png",),
    ),
    Verdict(
        "Figs. 2 and 3(b): ADMM ahead of scikit-learn",
        "the paper is wrong",
        shows="ADMM beats scikit-learn on all features.",
        found="Averaged ADMM passes .057 on its way to the optimum's .060.",
        why=(
            "Wrong in what it concludes: ADMM is stopped early, which is no better optimum. At lam = 1 these fits "
            "are a little too loose."
        ),
    ),
)

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

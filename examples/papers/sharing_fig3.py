"""SHARING Fig. 3: what privacy costs on a9a, with noise that has a guarantee and the epsilon that goes with it.

    python examples/papers/sharing_fig3.py --out out/
    python examples/papers/sharing_fig3.py --fast

The paper draws test loss against the standard deviation of its noise D_m xi, which gives no differential privacy at any
level (docs/errata.md). Here the noise is isotropic and the axis is the epsilon of the whole run, at delta = 1e-6, by
exact composition. Two relations: a person's row in both parties replaced, and the part of it in one party. Beside them
stand the first party alone, all columns without privacy, and what needs no exchange at all when labels are public: half
the sum of the parties' own fits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from cvxpriv_models.admm_sharing.baselines import pooled
from cvxpriv_models.admm_sharing.problem import Part
from drawn import save
from scipy.stats import rankdata
from sharing_case import Case, a9a
from verdicts import Verdict

from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import LOSSES
from cvxpriv.reports.pictures import COLOURS, MARKERS, blank, styled

VERDICTS = (
    Verdict(
        "Fig. 3: noise",
        "the paper is wrong",
        shows="Moderate noise still beats the first party alone.",
        found=(
            "With noise that has a guarantee, mean log loss .342 at epsilon = 1, .340 at 4 (first party .349, no "
            "privacy .324; delta = 1e-6, a person's row over both parties); at .5 as good as the first party, at "
            ".25 worse: .372. By AUC both .895, above the first party's .885 but **below half the sum of the "
            "parties' own fits, .898, which exchanges nothing**."
        ),
        why=(
            "Wrong in its axis: the levels are standard deviations of D_m xi, which protects at no level (Theorem "
            "1). The axis here is the epsilon of the whole run."
        ),
        pictures=("sharing_fig3.png",),
    ),
)

DELTA = 1e-6
#: Chosen on these data, for epsilon = 1 to 4: noise asks for a larger lam than the 1 of the fits without it.
LAM = 30.0
#: Public: by adult.names a person has at most 8 and 6 features of value 1 in the two parties.
ROW_BOUND = (np.sqrt(8.0), np.sqrt(6.0))
RELATIONS = {"replace-one": "a person's row, both parties", "party-row": "a person's row in one party"}


def scores(margin: Array, y: Array) -> tuple[float, float]:
    """Return the mean log loss and the area under the ROC curve."""
    ranks, positive = rankdata(margin), y > 0.0
    count = int(positive.sum())
    above = float(ranks[positive].sum()) - count * (count + 1) / 2.0
    return float(LOSSES["logistic"].value(margin, y).mean()), above / (count * (y.size - count))


def alone(case: Case, parties: tuple[int, ...]) -> Array:
    """Return the test margins of scikit-learn's fit on the columns of some parties, lam = 1."""
    fitted = pooled(case.model().problem, parties)
    return fitted.decision_function([case.test[m] for m in parties])


def private_scores(case: Case, epsilons: list[float], runs: int) -> pd.DataFrame:
    """Return one row a run: relation, epsilon, loss, auc. The noise has seeds, so that the figure can be redrawn."""
    model, test, rows = case.model(LAM), list[Part](case.test), []
    for relation in RELATIONS:
        for epsilon in epsilons:
            for seed in range(runs):
                run = model.solve_private(
                    epsilon=epsilon, delta=DELTA, adjacency=relation, row_bound=ROW_BOUND, noise_seed=seed
                )
                rows.append([relation, epsilon, *scores(run.not_private.decision_function(test), case.y_test)])
    return pd.DataFrame(rows, columns=["relation", "epsilon", "loss", "auc"])


@styled
def draw(found: pd.DataFrame, references: dict[str, tuple[float, float]], path: Path) -> Path:
    """Draw mean and range over the runs, and the references as lines."""
    figure = blank(9.6, 4.2)
    for i, (panel, figure_name) in enumerate(zip(figure.subplots(1, 2), ("loss", "auc"), strict=True)):
        for (relation, words), colour, marker in zip(RELATIONS.items(), COLOURS, MARKERS, strict=False):
            runs = found[found["relation"] == relation].groupby("epsilon")[figure_name]
            low, mean, high = runs.min(), runs.mean(), runs.max()
            panel.plot(mean.index, mean, color=colour, marker=marker, label=f"private: {words}")
            panel.fill_between(mean.index, low, high, color=colour, alpha=0.15, linewidth=0)
        for (name, level), dash in zip(references.items(), ("--", ":", "-."), strict=True):
            panel.axhline(level[i], color="#666666", linestyle=dash, linewidth=1.2, zorder=1, label=name)
        if figure_name == "loss":
            top = found.groupby(["relation", "epsilon"])["loss"].mean().max()
            panel.set_ylim(top=1.05 * max(top, *(loss for loss, _ in references.values())))
        panel.set_xscale("log", base=2)
        ticks = sorted(found["epsilon"].unique())
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.set_xlabel(f"epsilon of the whole run, delta = {DELTA:g}")
        panel.set_title("test log loss in nats" if figure_name == "loss" else "test AUC")
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return save(figure, path)


def main() -> None:
    """Draw the figure and print its numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="two epsilons and two runs")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the pictures")
    options = parser.parse_args()
    epsilons, runs = ([1.0, 4.0], 2) if options.fast else ([0.25, 0.5, 1.0, 2.0, 4.0, 8.0], 10)
    case = a9a()
    first, second = (alone(case, (m,)) for m in (0, 1))
    references = {
        "first party alone": scores(first, case.y_test),
        "all columns, no privacy": scores(alone(case, (0, 1)), case.y_test),
        "half the sum of own fits, nothing exchanged": scores(0.5 * (first + second), case.y_test),
    }
    found = private_scores(case, epsilons, runs)
    for name, (loss, auc) in references.items():
        print(f"{name:45s} log loss {loss:.4f}, AUC {auc:.4f}")
    print(found.groupby(["relation", "epsilon"])[["loss", "auc"]].mean().to_string(float_format="{:.4f}".format))
    print(draw(found, references, options.out / "sharing_fig3.png"))


if __name__ == "__main__":
    main()

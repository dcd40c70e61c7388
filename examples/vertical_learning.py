"""Two offices know different things about the same people: fit one model together, and see what privacy costs.

    python examples/vertical_learning.py          # needs scikit-learn: pip install "cvxpriv[learn]"

The registry knows age and sex, the school board years of education; who earns over 50,000 dollars is known to both. In
each pass an office sends one number a person, and no column. The people are the 32,561 of the embedded Adult table.
With so few columns the private fit ranks people better than either office alone does, and its log loss is no better:
noise in every share costs what a third column gives.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from cvxpriv_models import VerticalLogisticRegression

from cvxpriv import datasets
from cvxpriv.learning.encoding import Encoding
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.learning.scores import scores_of

OFFICES = {"registry": ["age", "sex"], "school board": ["education_num"]}


def people() -> pd.DataFrame:
    """One row a person: age group, sex, years of education, income."""
    counts = datasets.load_table("adult")
    return counts.loc[counts.index.repeat(counts["count"])].drop(columns="count").reset_index(drop=True)


def main() -> None:
    """Fit alone, together, and together with privacy; score people who were held out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise-seed", type=int, help="Make the noise repeatable; never for real data.")
    noise_seed = parser.parse_args().noise_seed
    if noise_seed is not None:
        warnings.simplefilter("ignore")

    rows = people()
    held_out = np.random.default_rng(0).random(len(rows)) < 0.3
    income = np.where(rows["income"] == rows["income"].max(), 1, -1)

    # What everyone knows of the columns before anyone looks at a row: the bounds that privacy rests on.
    columns = [name for names in OFFICES.values() for name in names]
    ages = sorted(rows["age"].unique())  # the age groups of the published table
    encoding = Encoding.of(
        rows, columns, ranges={"education_num": (1, 16)}, categories={"age": ages, "sex": ["Female", "Male"]}
    )
    encoding.require_public()
    x = encoding.encode(rows)
    groups = [encoding.positions(names).tolist() for names in OFFICES.values()]
    bounds = [encoding.row_bound(names) for names in OFFICES.values()]
    print(
        f"{(~held_out).sum():,} people to learn from, {held_out.sum():,} held out; "
        f"the parts of a row have norms of at most {bounds[0]:.3f} and {bounds[1]:g}\n"
    )

    def told(name: str, model: VerticalLogisticRegression, chosen: np.ndarray) -> None:
        model.fit(x[~held_out][:, chosen], income[~held_out])
        scores = scores_of(income[held_out], model.decision_function(x[held_out][:, chosen]))
        print(f"{name:<28} log loss {scores.log_loss:.4f}   AUC {scores.auc:.4f}")

    everything = np.arange(x.shape[1])
    for office, group in zip(OFFICES, groups, strict=True):
        told(f"{office} alone", VerticalLogisticRegression(1), np.array(group))
    told("together", VerticalLogisticRegression(groups), everything)
    for epsilon in (4.0, 1.0):
        private = VerticalLogisticRegression(
            groups,
            lam=300.0,
            epsilon=epsilon,
            delta=1e-6,
            max_iter=32,
            row_bound=bounds,
            schema=PublicSchema(classes=(-1, 1)),
            noise_seed=noise_seed,
        )
        told(f"together, epsilon = {epsilon:g}", private, everything)
    print(f"\n{private.accounting_}\n\nWhat this does not cover:")
    for line in private.warnings_:
        print(f"  - {line}")


if __name__ == "__main__":
    main()

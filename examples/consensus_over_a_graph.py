"""Eight offices in a ring, each with its own people: agree on one model, and see what half a pass for free is worth.

    python examples/consensus_over_a_graph.py          # needs scikit-learn: pip install "cvxpriv[learn]"

No office shows a person to another one; in each pass neighbours exchange coefficients. The people are the 32,561 of
the embedded Adult table, with age, sex and years of education; who earns over 50,000 dollars is predicted. Recycled
ADMM has a second half of every pass that follows from what was published, and so runs twice as many iterations as
conventional ADMM for the same epsilon.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from cvxpriv_models import DecentralizedLogisticRegression

from cvxpriv import datasets
from cvxpriv.learning.encoding import Encoding
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.learning.scores import scores_of

OFFICES = 8


def people() -> pd.DataFrame:
    """One row a person: age group, sex, years of education, income."""
    counts = datasets.load_table("adult")
    return counts.loc[counts.index.repeat(counts["count"])].drop(columns="count").reset_index(drop=True)


def main() -> None:
    """Fit by consensus, without privacy and with it; score people who were held out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise-seed", type=int, help="Make the noise repeatable; never for real data.")
    noise_seed = parser.parse_args().noise_seed
    if noise_seed is not None:
        warnings.simplefilter("ignore")

    rows = people()
    rng = np.random.default_rng(0)
    held_out, office = rng.random(len(rows)) < 0.3, rng.integers(OFFICES, size=len(rows))
    income = np.where(rows["income"] == rows["income"].max(), 1, -1)

    # What everyone knows of the columns before anyone looks at a row; rows are scaled to a norm of at most 1.
    ages = sorted(rows["age"].unique())  # the age groups of the published table
    encoding = Encoding.of(
        rows,
        ["age", "sex", "education_num"],
        ranges={"education_num": (1, 16)},
        categories={"age": ages, "sex": ["Female", "Male"]},
        scaled=True,
    )
    encoding.require_public()
    x = encoding.encode(rows)

    def told(name: str, **options: object) -> DecentralizedLogisticRegression:
        model = DecentralizedLogisticRegression(
            graph="ring", random_state=0, schema=PublicSchema(classes=(-1, 1)), **options
        )
        model.fit(x[~held_out], income[~held_out], groups=office[~held_out])
        scores = scores_of(income[held_out], model.decision_function(x[held_out]))
        apart = np.linalg.norm(model.node_coef_ - model.coef_, axis=1).max()
        print(f"{name:<28} log loss {scores.log_loss:.4f}   AUC {scores.auc:.4f}   farthest office {apart:.2f}")
        return model

    told("consensus", tol=1e-4)
    for epsilon in (4.0, 1.0):
        private = told(f"10 passes, ({epsilon:g}, 1e-6)-DP", epsilon=epsilon, delta=1e-6, noise_seed=noise_seed)
    pure = told("3 passes, 1-DP", epsilon=1.0, noise_seed=noise_seed)
    print(f"\n{private.accounting_}\n\n{pure.accounting_}")
    print(
        f"\nConventional ADMM would spend {2 * pure.accounting_.epsilon:g} in place of {pure.accounting_.epsilon:g} on "
        "as many iterations as those 3 passes have."
    )


if __name__ == "__main__":
    main()

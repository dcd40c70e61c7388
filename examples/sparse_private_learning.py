"""Publish a model with few coefficients, and a promise to every person in the data.

    python examples/sparse_private_learning.py          # needs scikit-learn: pip install "cvxpriv[learn]"

Twenty questions were asked; four of them matter. The penalty (MCP) drops the others without pulling the four towards
zero, and noise in every gradient keeps the answers of each person hidden. The less epsilon is, the more noise.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from cvxpriv_models import PrivateSparseLogisticRegression

from cvxpriv.learning.schema import PublicSchema
from cvxpriv.learning.scores import scores_of
from cvxpriv.models import ISTDP

QUESTIONS, PEOPLE = 20, 20_000
MATTER = {2: 3.0, 7: -2.5, 11: 2.0, 16: -1.5}
PENALTY = "mcp:0.01:10"


def survey(people: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Answers between -1/2 and 1/2, and what is to be predicted; invented."""
    rng = np.random.default_rng(seed)
    answers = rng.uniform(-0.5, 0.5, size=(people, QUESTIONS))
    log_odds = answers[:, list(MATTER)] @ np.array(list(MATTER.values()))
    return answers, np.where(rng.random(people) < 1.0 / (1.0 + np.exp(-log_odds)), 1, -1)


def main() -> None:
    """Fit without privacy and at three budgets; score other people."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise-seed", type=int, help="Make the noise repeatable; never for real data.")
    noise_seed = parser.parse_args().noise_seed
    if noise_seed is not None:
        warnings.simplefilter("ignore")

    answers, outcome = survey(PEOPLE, seed=0)
    others, theirs = survey(PEOPLE, seed=1)
    print(f"{PEOPLE:,} people, {QUESTIONS} questions; those that matter: {list(MATTER)}\n")

    print("epsilon   largest coefficients            of them matter   AUC on other people")
    clear = ISTDP(answers, outcome, penalty=PENALTY, intercept=True).solve()
    show("none", clear.coefficients, scores_of(theirs, clear.decision_function(others)).auc)
    for epsilon in (8.0, 2.0, 0.5):
        model = PrivateSparseLogisticRegression(
            penalty=PENALTY,
            epsilon=epsilon,
            delta=1e-6,
            max_iter=50,
            clip=1.0,
            schema=PublicSchema(classes=(-1, 1), ranges=(-0.5, 0.5), columns=QUESTIONS, rows=PEOPLE),
            noise_seed=noise_seed,
        ).fit(answers, outcome)
        show(f"{epsilon:g}", model.coef_[0], scores_of(theirs, model.decision_function(others)).auc)

    print(f"\nThe last one:\n{model.accounting_}")


def show(name: str, coefficients: np.ndarray, auc: float | None) -> None:
    """Print the four largest coefficients by question, and how many of the four matter."""
    largest = np.sort(np.argsort(-np.abs(coefficients))[: len(MATTER)])
    text = ", ".join(f"{place}: {coefficients[place]:.1f}" for place in largest)
    print(f"{name:<8}  {text:<36}  {len(set(largest.tolist()) & set(MATTER)):>6}           {auc:.4f}")


if __name__ == "__main__":
    main()

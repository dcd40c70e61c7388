"""A constraint of your own on a published method, with ready ones beside it, and one too many.

    python examples/prototype_a_constraint.py

The same clinic as in `bring_your_own_divergence.py`: Y is a symptom score from 0 to 5, S one of three diseases, and the
server sees U. The paper knows a floor on p(u|y) and nothing else. Here a reviewer asks for more: no answer may make the
rarest disease much more likely than it is. The constraint is five lines of cvxpy, and certified like the rest.
"""

from __future__ import annotations

import argparse

import cvxpy as cp
import numpy as np

import cvxpriv as cpv
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.models import InferenceAsService

SIZE_U = 6
RAREST = 2


def table() -> np.ndarray:
    """P(S, Y): three diseases, six values of a symptom score, invented."""
    score = np.arange(6.0)
    rows = np.stack([np.exp(-((score - centre) ** 2) / 2.0) for centre in (1.0, 2.5, 4.0)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True) * np.array([[0.5], [0.3], [0.2]]))


def no_stigma(factor: float) -> Constraint:
    """P(rarest disease | u) <= factor * P(rarest disease), for every u: linear in the mechanism."""

    def constraint(mechanism: cp.Expression, known: cpv.Known) -> cp.Constraint:
        # p(u, rarest) = sum_y p(y) p(rarest|y) p(u|y), and the same without S: their quotient is the posterior.
        with_it = (known.prior * known.p_s_given_input[RAREST]) @ mechanism
        return with_it <= factor * known.p_s[RAREST] * (known.prior @ mechanism)

    return constraint


def worst_rise(inference: InferenceAsService, mechanism: np.ndarray) -> float:
    """The largest P(rarest | u) / P(rarest) among symbols that are sent, straight from Bayes' rule."""
    joint = inference.problem.table.probabilities @ mechanism
    sent = joint.sum(axis=0) > 1e-6
    return float((joint[RAREST, sent] / joint[:, sent].sum(axis=0)).max() / joint[RAREST].sum())


def main() -> None:
    """Add constraints one by one, and see what each costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()

    free = InferenceAsService(table(), beta=0.1, divergence="jensen-shannon", size_u=SIZE_U)
    fair = free.constrain("no stigma", no_stigma(1.5))
    private = fair.constrain("local privacy", cpv.constraints.local_differential_privacy(1.5))
    capped = private.constrain("no busy symbol", lambda mechanism, known: known.prior @ mechanism <= 0.3)

    print(f"{'constraints':<42} I(S;U)   leakage   F        worst rise of the rarest disease")
    for inference in (free, fair, private, capped):
        run = inference.solve(starts=3, seed=0)
        names = " + ".join(name for name, _ in inference.constraints) or "none"
        print(
            f"{names:<42} {run.accuracy:.4f}   {run.leakage:.4f}    {run.objective:.4f}   "
            f"{worst_rise(inference, run.mechanism):.3f}"
        )

    print("\nThe last one's blocks, by every solver, each with its worst verdict:")
    for name, verdict in run.certify(("CLARABEL", "ECOS", "SCS")).verdicts.items():
        print(f"  {name:<12} {verdict.verdict:<8} {verdict.reason}")

    print("\nOne constraint too many: the server also asks that symbol 0 be kept for score 0, and sent then.")
    kept = {(score, 0): 0.0 for score in range(1, 6)} | {(0, 0): 0.9}
    try:
        private.constrain("symbol 0 means score 0", cpv.constraints.fixed(kept)).solve(starts=2)
    except cpv.ModelError as error:
        print(f"  {error}")


if __name__ == "__main__":
    main()

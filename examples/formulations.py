"""Three ways of writing the funnel's u block, at a point that the algorithm really reaches (heart failure, 16 x 17).

    python examples/formulations.py                       # the comparison, on the screen
    python examples/formulations.py --out formulations.html

printed   as PF (5) prints it: every cell, sum u log u as -entr, and a linear term in phi + log r
pruned    the library's block: relative entropy to a prior of the size of u, without cells below 1e-9 of their row
merged    u and r together: relative entropy to exp(phi) r, which at a fixed point has the same value

The three have one value, but not one answer: at such a point the printed form spans hundreds of digits.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import cvxpy as cp
import numpy as np
from cvxpriv_models.privacy_funnel import blocks
from cvxpriv_models.privacy_funnel.problem import Problem

from cvxpriv import datasets
from cvxpriv.blocks.declaration import Declaration
from cvxpriv.certify.check import Case, case_of_block
from cvxpriv.certify.formulations import compare_formulations
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.arrays import Values

SOLVERS = ("CLARABEL", "ECOS", "SCS")


def printed(problem: Problem, state: Values) -> cp.Problem:
    """Return PF's u block as the paper prints it: minimise sum u (log u - phi - log r) subject to (5b), (5d)."""
    u = cp.Variable(state["phi"].shape, name="u")
    linear = state["phi"] + state["log_r"]
    constraints = [cp.sum(u, axis=1) == problem.p_x, cp.sum(cp.multiply(state["log_w"], u)) >= problem.target, u >= 0]
    return cp.Problem(cp.Minimize(-cp.sum(cp.entr(u)) - cp.sum(cp.multiply(linear, u))), constraints)


def shifted(case: Case, constant: float) -> Case:
    """Return a case without its exact update, and with a constant added to its objective."""

    def declare() -> Declaration:
        declaration = case.declare()
        return replace(declaration, objective=cp.Minimize(declaration.objective.args[0] + constant))

    return replace(case, declare=declare, exact=None)


def formulations(problem: Problem, state: Values) -> dict[str, cp.Problem | Case]:
    """Return the three, with the constants by which their objectives differ."""
    p, phi = problem.p_x, state["phi"]
    exponent = phi + state["log_r"]
    top = exponent.max(axis=1)
    # pruned = printed - sum p log A-normaliser; merged = printed + sum p max phi.
    normaliser = np.log(np.exp(exponent - top[:, None]).sum(axis=1)) + top
    pruned = shifted(case_of_block(blocks.mechanism(problem), state), float(p @ (np.log(p) - normaliser)))
    merged = shifted(case_of_block(blocks.mechanism_and_marginal(problem), state), float(-(p @ phi.max(axis=1))))
    return {"printed": printed(problem, state), "pruned": pruned, "merged": merged}


def main() -> None:
    """Solve the funnel, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="also write a page to this file")
    arguments = parser.parse_args()
    funnel = PrivacyFunnel(datasets.heart_failure(), rate=0.8)
    run = funnel.solve(starts=4, seed=0, method="aem", accelerate="none", max_iter=2000)
    cells = run.state["log_u"]
    print(f"u from e^{cells.max():.0f} down to e^{cells.min():.0f}; KKT residual {run.kkt.largest:.1e}\n")
    found = compare_formulations(formulations(funnel.problem, run.state), SOLVERS)
    print(found)
    if arguments.out:
        print(
            f"\nWritten to {found.to_html(arguments.out, 'The u block of the privacy funnel, written in three ways')}"
        )


if __name__ == "__main__":
    main()

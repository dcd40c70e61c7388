"""From one line of text to a certified mechanism: a divergence of your own.

    python examples/bring_your_own_divergence.py
    python examples/bring_your_own_divergence.py --f "exp(-t) - exp(-1)"

A clinic's app sends U in place of a symptom score Y; a server infers the disease S from it. How much U tells about Y is
measured by sum p f(q/p), p = p(u|y) and q = p(u), with an f that no library has. The steps: verify f, design the
mechanism, let every solver check every block of it, and compare the ways of writing f as a convex program.
"""

from __future__ import annotations

import argparse

import numpy as np

import cvxpriv as cpv
from cvxpriv.divergences.formulations import formulations
from cvxpriv.models import InferenceAsService

SOLVERS = ("CLARABEL", "ECOS", "SCS")
OWN = "(t - 1)**2/(t + 2)"
# Looks like a distance, and is none: concave for t > 4.
WRONG = "(t - 1)**2/(t + 1)**1.5"


def table() -> cpv.JointTable:
    """P(S, Y): three diseases, six values of a symptom score, invented."""
    score = np.arange(6.0)
    rows = np.stack([np.exp(-((score - centre) ** 2) / 2.0) for centre in (1.0, 2.5, 4.0)])
    p_sy = rows / rows.sum(axis=1, keepdims=True) * np.array([[0.5], [0.3], [0.2]])
    return cpv.JointTable.from_array(p_sy)


def design(f: cpv.FDivergence, beta: float) -> None:
    """Print the mechanism that f leads to, and what every solver says of its blocks."""
    inference = InferenceAsService(table(), beta=beta, divergence=f)
    run = inference.solve(starts=5, seed=0)
    everything = inference.problem.accuracy(np.eye(6))
    print(f"beta = {beta}: U tells {run.accuracy:.4f} nats of the {everything:.4f} that Y tells about S,")
    print(f"at a leakage of {run.leakage:.4f}; KKT residual {run.kkt.largest:.0e}")
    used = np.flatnonzero(run.mechanism.max(axis=0) > 1e-6)
    print(f"P(U|Y) on the {used.size} symbols that are sent:")
    print(np.array2string(run.mechanism[:, used], precision=3, suppress_small=True))
    threshold = inference.beta_critical()
    print(f"from beta = {threshold.searched:.3f} on, saying nothing is best")
    print("\nThe blocks at this answer, by solver:")
    for name, verdict in run.certify(SOLVERS).verdicts.items():
        print(f"  {name:<12} {verdict.verdict:<8} {verdict.reason}")


def main() -> None:
    """Verify, design, certify, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--f", default=OWN, help="f in t = q/p, with f(1) = 0")
    parser.add_argument("--beta", type=float, default=0.3, help="the weight of privacy")
    options = parser.parse_args()

    print(f"1. Is {WRONG} a divergence?\n")
    for finding in cpv.verify(WRONG, solvers=SOLVERS).failed:
        print(f"{finding.check}: fails at {finding.where}. {finding.meaning}")
    print(f"\n2. Is {options.f}?\n")
    found = cpv.verify(options.f, solvers=SOLVERS)
    print(found)
    found.raise_if_failed()
    f = cpv.FDivergence.parse(options.f)

    print("\n3. The mechanism\n")
    design(f, options.beta)

    print("\n4. The same f, written in different but equivalent ways\n")
    print(formulations(f, size=6, solvers=SOLVERS))


if __name__ == "__main__":
    main()

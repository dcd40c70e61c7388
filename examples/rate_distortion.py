"""Rate-distortion by the alternation of Blahut (1972) and Arimoto (1972), written as one cvxpy problem.

Minimise I(X;Y) + price E[d(X,Y)] over the channel P(Y|X) and a distribution r of Y: the relative entropy of the joint
from p(x) r(y) is jointly convex, and least at Y's own r. Alternation finds the global optimum; so does one solve.
Known: R(D) = h(p) - h(D) for a binary source with Hamming distortion, R(D) = log m - h(D) - D log(m-1) for a uniform
one of m symbols, with D/(1-D) = exp(-price) for both (Cover and Thomas, section 10.3).

python examples/rate_distortion.py
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import cvxpriv as cpv


def entropy(*p: float) -> float:
    """In nats."""
    return float(-sum(x * np.log(x) for x in p if x > 0.0))


def curve_point(p: np.ndarray, price: float) -> tuple[cpv.AlternationRun, float, float]:
    """The run, the rate in nats and the distortion at a price of errors."""
    symbols, ones = len(p), np.ones((len(p), 1))
    joint, r = cp.Variable((symbols, symbols), name="joint"), cp.Variable(symbols, name="r")
    errors = cp.sum(cp.multiply(1.0 - np.eye(symbols), joint))
    apart = cp.sum(cp.rel_entr(joint, cp.multiply(p[:, None], ones @ cp.reshape(r, (1, symbols), order="C"))))
    problem = cp.Problem(cp.Minimize(apart + price * errors), [cp.sum(joint, axis=1) == p, cp.sum(r) == 1])

    def channel(held: cpv.Values) -> dict[str, np.ndarray]:  # r(y) exp(-price d), rows to p(x)
        weight = held["r"] * np.exp(-price * (1.0 - np.eye(symbols)))
        return {"joint": p[:, None] * weight / weight.sum(axis=1, keepdims=True)}

    updates = {"joint": channel, "r": lambda held: {"r": held["joint"].sum(axis=0)}}
    uniform = {"joint": np.full((symbols, symbols), 1.0 / symbols**2), "r": np.full(symbols, 1.0 / symbols)}
    run = cpv.alternate(problem, [[joint], [r]], init=uniform, updates=updates, tol=1e-7, max_iter=2000)
    found = run.values["joint"]
    distortion = float(found.sum() - np.trace(found))
    return run, run.objective - price * distortion, distortion


def main() -> None:
    """Two sources, each against its formula."""
    for p in (np.array([0.3, 0.7]), np.full(4, 0.25)):
        for price in (1.5, 3.0):
            run, rate, distortion = curve_point(p, price)
            more = len(p) - 1
            known = entropy(*p) - entropy(distortion, 1.0 - distortion) - distortion * np.log(more)
            print(
                f"{len(p)} symbols, price {price}: D = {distortion:.6f}, R = {rate:.6f} nats, formula {known:.6f}, "
                f"{'converged' if run.converged else 'NOT converged'}, off by {abs(rate - known):.0e}"
            )


if __name__ == "__main__":
    main()

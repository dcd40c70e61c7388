"""The information bottleneck (Tishby, Pereira and Bialek, 1999) by alternation, against a curve that is known.

Find P(T|X) of least I(X;T) - beta I(T;Y) for the Markov chain Y - X - T. With r(t) and a decoder q(y|t) as variables of
their own the function is convex in the channel, and in these two; each block has its exact update. For a fair bit Y
through a binary symmetric channel of crossover e the curve is known (Wyner and Ziv, 1973): T is X through another
symmetric channel of crossover a, with I(X;T) = log 2 - h(a) and I(T;Y) = log 2 - h(a(1-e) + (1-a)e).

python examples/information_bottleneck.py
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, rel_entr

import cvxpriv as cpv

CROSSOVER = 0.1


def bottleneck(p_xy: np.ndarray, beta: float, symbols: int, starts: int = 2) -> cpv.AlternationRun:
    """The best of several starts for a joint table of X, in rows, and Y."""
    p, y_given_x = p_xy.sum(axis=1), p_xy / p_xy.sum(axis=1, keepdims=True)
    joint = cp.Variable((len(p), symbols), nonneg=True, name="joint")
    r, decoder = cp.Variable(symbols, name="r"), cp.Variable((symbols, p_xy.shape[1]), name="decoder")
    spread = np.ones((len(p), 1)) @ cp.reshape(r, (1, symbols), order="C")
    told = cp.sum(cp.multiply(joint.T @ y_given_x, cp.log(decoder)))
    cost = cp.sum(cp.rel_entr(joint, cp.multiply(p[:, None], spread))) - beta * told
    sums = [cp.sum(joint, axis=1) == p, cp.sum(r) == 1, cp.sum(decoder, axis=1) == 1]

    def channel(held: cpv.Values) -> dict[str, np.ndarray]:  # r(t) exp(beta sum_y p(y|x) log q(y|t)), rows to p(x)
        weight = held["r"] * np.exp(beta * y_given_x @ np.log(held["decoder"]).T)
        return {"joint": p[:, None] * weight / weight.sum(axis=1, keepdims=True)}

    def server(held: cpv.Values) -> dict[str, np.ndarray]:
        shares = held["joint"].sum(axis=0)
        return {"r": shares, "decoder": held["joint"].T @ y_given_x / shares[:, None]}

    rng, inits = np.random.default_rng(0), []
    for _ in range(starts):
        state = {"joint": p[:, None] * rng.dirichlet(np.ones(symbols), size=len(p))}
        inits.append({**state, **server(state)})
    updates = {"joint": channel, "r, decoder": server}
    problem = cp.Problem(cp.Minimize(cost), sums)
    return cpv.alternate(problem, [[joint], [r, decoder]], init=inits, updates=updates, tol=1e-6, max_iter=2000)


def information(joint: np.ndarray) -> float:
    """Mutual information of a joint table, in nats."""
    independent = joint.sum(axis=1, keepdims=True) @ joint.sum(axis=0, keepdims=True)
    return float(rel_entr(joint, independent).sum())


def known(beta: float) -> tuple[float, float]:
    """I(X;T) and I(T;Y) at the optimum for the symmetric bit."""

    def pair(a: float) -> tuple[float, float]:
        through = a * (1.0 - CROSSOVER) + (1.0 - a) * CROSSOVER
        return tuple(float(np.log(2.0) - entr(q) - entr(1.0 - q)) for q in (a, through))

    best = minimize_scalar(lambda a: pair(a)[0] - beta * pair(a)[1], bounds=(1e-9, 0.5), options={"xatol": 1e-12})
    return pair(float(best.x))


def main() -> None:
    """Points of the curve for the symmetric bit."""
    p_xy = 0.5 * np.array([[1.0 - CROSSOVER, CROSSOVER], [CROSSOVER, 1.0 - CROSSOVER]])
    for beta in (2.0, 3.0, 6.0):
        run = bottleneck(p_xy, beta, symbols=2)
        joint = run.values["joint"]
        found, right = (information(joint), information(joint.T @ (p_xy / 0.5))), known(beta)
        print(
            f"beta {beta:g}: I(X;T) = {found[0]:.6f}, I(T;Y) = {found[1]:.6f} nats, known {right[0]:.6f} and "
            f"{right[1]:.6f}, {'converged' if run.converged else 'NOT converged'}, "
            f"off by {max(abs(a - b) for a, b in zip(found, right, strict=True)):.0e}"
        )


if __name__ == "__main__":
    main()

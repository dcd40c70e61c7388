"""Problems whose feasible set has no room, or whose optimum has no multipliers, with closed-form answers."""

import cvxpy as cp
import numpy as np

from cvxpriv.certify.corpus.known import Known, at, least, most

OFF = 1e-3
"""Relative error of a false answer's value."""


def pinned_entries(rng: np.random.Generator) -> Known:
    """Minimise a chain of entries of which the first is pinned by two inequalities, in rows scaled by 1e-3 to 1e9."""
    n = int(rng.integers(2, 6))
    first, scale = float(rng.uniform(-5, 5)), 10.0 ** float(rng.uniform(-3, 9))
    x, gaps = cp.Variable(n, name="x"), np.append(0.0, rng.uniform(0, 2, n - 1))
    rows = [scale * x[0] >= scale * first, scale * x[0] <= scale * first, x[1:] >= x[:-1] + gaps[1:]]
    truth = first + np.cumsum(gaps)
    lie = truth + np.append(np.zeros(n - 1), OFF * max(1.0, abs(truth[-1])))
    return Known(least(x[-1], rows), value=truth[-1], answers=at(x, truth=truth, lie=lie))


def no_multipliers(rng: np.random.Generator) -> Known:
    """Pose optima that no multipliers prove: a cone's boundary, or curves that touch, hold the answer alone."""
    a, kind = float(rng.uniform(0.5, 3)), int(rng.integers(5))
    if kind == 0:
        x = cp.Variable(3, name="x")
        cone = cp.SOC(a * x[0], cp.hstack([a * x[1], x[2]]))
        return Known(most(x[2], [cone, x[0] == x[1]]), value=0.0)
    if kind == 1:
        X = cp.Variable((3, 3), name="X", symmetric=True)
        return Known(least(X[0, 0], [X >> 0, X[1, 1] == 0, X[0, 0] + 2 * X[1, 2] == a]), value=a)
    x = cp.Variable(2, name="x")
    disc, other = cp.sum_squares(x) <= a * a, cp.sum_squares(x - np.array([2 * a, 0])) <= a * a
    rows: list[cp.Constraint] = [disc, other] if kind == 2 else [cp.exp(x[0]) <= 1, a * cp.square(x[1]) <= x[0]]
    if kind == 4:
        rows = [cp.norm(x) <= a, x[0] >= a]
    truth = np.array([0.0 if kind == 3 else a, 0.0])
    answers = at(x, truth=truth, outside=truth - np.array([0.0, 0.1]))
    return Known(least(x[1], rows), value=0.0, answers=answers)


def singular_fraction(rng: np.random.Generator) -> Known:
    """Minimise ``b' S^-1 b`` over semidefinite S of a given trace: the best S is ``b b' / b'b``, of rank one."""
    n = int(rng.integers(2, 5))
    b, room = rng.normal(size=n), float(rng.uniform(0.5, 3))
    S = cp.Variable((n, n), name="S", PSD=True)
    problem = least(cp.matrix_frac(b, S), [cp.trace(S) <= room])
    truth = room * np.outer(b, b) / (b @ b)
    answers = at(S, truth=truth, lie=(1 - 2 * OFF) * truth)
    return Known(problem, value=float(b @ b) / room, answers=answers)


def ends_of_domains(rng: np.random.Generator) -> Known:
    """Pin an atom to the end of its domain, where its value is a limit: a scale of zero, a matrix of rank one."""
    x, s, t, r = (
        cp.Variable(name="x"),
        cp.Variable(name="s", nonneg=True),
        cp.Variable(name="t"),
        float(rng.uniform(1, 3)),
    )
    recessions = ((cp.square, 0, 0), (cp.exp, -1, 0), (cp.abs, 1, 1), (cp.logistic, 1, 1), (cp.inv_pos, 0.5, 0))
    ends = [(cp.perspective(f(x), s), place, value) for f, place, value in recessions]
    ends += [(cp.quad_over_lin(x, s), 0, 0), (cp.rel_entr(x, s), 0, 0), (cp.kl_div(s, x), 1, 1)]
    atom, place, value = ends[int(rng.integers(len(ends)))]
    truth = {x: np.array(r * place), s: np.array(0.0), t: np.array(r * value)}
    pinned = [x == r * place, s <= 0]
    if rng.integers(4) == 0:
        q, X = rng.normal(size=3), cp.Variable((3, 3), name="X", symmetric=True)
        atom, truth = -cp.von_neumann_entr(X), {X: np.outer(q, q) / (q @ q), t: np.array(0.0)}
        pinned = [truth[X] == X]
    lie, outside = {**truth, t: truth[t] + 100 * OFF}, {**truth, t: truth[t] - 100 * OFF}
    answers = {"truth": truth, "lie": lie, "outside": outside}
    return Known(least(t, [atom <= t, *pinned]), value=float(truth[t]), answers=answers)


FAMILIES = (pinned_entries, no_multipliers, singular_fraction, ends_of_domains)

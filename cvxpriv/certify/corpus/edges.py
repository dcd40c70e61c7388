"""Problems at the edges of what solvers and cvxpy are made for, with closed-form answers.

Domains' ends, ties, flat directions, limits that no point attains, numbers sixteen decades apart, whole numbers,
complex matrices, and atoms that cvxpy compiles approximately. The points that come with them are right, or off by a
little: 1e-4 in the value or 1e-5 in a constraint.
"""

from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.certify.corpus.known import INFEASIBLE, UNBOUNDED, UNKNOWN, Known, at, least, most

VALUE, ROW = 1e-4, 1e-5
"""Relative error of a false answer's value, and violation of a constraint."""
CLOSE = 1e-5
"""Relative distance to the optimum from which a value is not right in problems of ordinary size."""


def _known(problem: cp.Problem, value: Any, **more: Any) -> Known:
    return Known(problem, value=float(value), far=CLOSE, **more)


def flat_valley(rng: np.random.Generator) -> Known:
    """Minimise a fourth power or a dead zone of one combination: all other directions are flat and free."""
    n = int(rng.integers(2, 6))
    a, x = rng.normal(size=n), cp.Variable(n, name="x")
    truth = rng.normal(size=n)
    miss = a @ x - float(a @ truth)
    fourth = bool(rng.integers(2))
    cost = cp.power(miss, 4) + 1 if fourth else cp.pos(cp.abs(miss) - 1) + 1
    off = truth + (0.11 if fourth else 1 + 2 * VALUE) * a / (a @ a)
    return _known(least(cost), 1, answers=at(x, truth=truth, lie=off))


def bounded_entries(rng: np.random.Generator) -> Known:
    """Minimise the trace of a semidefinite matrix above a rank-one one, entry by entry: most multipliers are free."""
    n, form = int(rng.integers(2, 5)), int(rng.integers(3))
    b = rng.uniform(0.5, 2, n)
    X = cp.Variable((n, n), name="X", PSD=form == 0, symmetric=form == 1)
    rows = [np.outer(b, b) <= X, *([X >> 0] if form else []), *([X == X.T] if form == 2 else [])]
    truth, dent = np.outer(b, b), ROW * (np.ones((n, n)) - np.eye(n))
    answers = at(X, truth=truth, lie=truth * (1 + VALUE), outside=truth - 10 * dent)
    return _known(least(cp.trace(X), rows), b @ b, answers=answers)


def near_boundary(rng: np.random.Generator) -> Known:
    """Maximise a log-determinant, or entropies, of which some entries are held next to zero."""
    n = int(rng.integers(2, 5))
    d = 10.0 ** rng.uniform(-6, 2, n)
    if rng.integers(2):
        X = cp.Variable((n, n), name="X", symmetric=True)
        problem = most(cp.log_det(X), [X << np.diag(d)])
        value = float(np.log(d).sum())
        answers = at(X, truth=np.diag(d), lie=np.diag(d) * np.exp(-VALUE * max(1, abs(value)) / n))
        return _known(problem, value, answers=answers)
    x = cp.Variable(n, name="x")
    u = 10.0 ** rng.uniform(-10, -1, n)
    answer = np.minimum(u, np.exp(-1))
    value = float(-(answer * np.log(answer)).sum())
    return _known(most(cp.sum(cp.entr(x)), [x <= u]), value, answers=at(x, truth=answer, outside=answer + 2 * ROW))


def vanishing_denominator(rng: np.random.Generator) -> Known:
    """Minimise a quadratic over a denominator that is held below 1e-6 to 1."""
    room, x, y = 10.0 ** float(rng.uniform(-6, 0)), cp.Variable(name="x"), cp.Variable(name="y")
    if rng.integers(2):
        problem = least(cp.quad_over_lin(x, y) + cp.square(x - 1), [y <= room])
        answer, value = room / (1 + room), 1 / (1 + room)
    else:
        problem = least(cp.quad_over_lin(x, y), [y <= room, x >= 1])
        answer, value = 1.0, 1 / room
    truth = {x: np.array(answer), y: np.array(room)}
    lie = {x: np.array(answer), y: np.array(room * 0.99)} if answer == 1.0 else {x: np.array(0.02), y: np.array(room)}
    lie = lie if abs(answer - 0.02) > 0.01 else {x: np.array(answer + 0.1), y: np.array(room)}
    return _known(problem, value, unit=max(1.0, value), answers={"truth": truth, "lie": lie})


def wide_exponents(rng: np.random.Generator) -> Known:
    """Minimise exp(a x) - b x, or the soft maximum of it and a line, with a over four and b over six decades."""
    n = int(rng.integers(1, 4))
    a, b = 10.0 ** rng.uniform(-2, 2, n), 10.0 ** rng.uniform(-3, 3, n)
    x = cp.Variable(n, name="x")
    answer = np.log(b / a) / a
    value = float((b / a * (1 - np.log(b / a))).sum())
    unit = float((b / a * (1 + np.abs(np.log(b / a)))).sum())
    problem = least(cp.sum(cp.exp(cp.multiply(a, x))) - b @ x)
    return _known(problem, value, unit=max(1.0, unit), answers=at(x, truth=answer, lie=answer + 0.1 / a))


def mean_at_zero(rng: np.random.Generator) -> Known:
    """Maximise a weighted geometric mean over a simplex, with an entry that is zero or a weight that is."""
    n, kind = int(rng.integers(2, 5)), int(rng.integers(3))
    weights = rng.integers(1, 5, n).astype(float)
    if kind == 1:
        weights[0] = 0.0
    p, c, x = weights / weights.sum(), rng.uniform(0.5, 2, n), cp.Variable(n, name="x")
    rows = [c @ x <= 1, *([x[0] <= 0] if kind == 0 else [])]
    answer = np.zeros(n) if kind == 0 else p / c
    value = 0.0 if kind == 0 else float(np.prod(answer**p))
    lie = answer.copy()
    lie[-1] += 1e-4 if kind == 0 else 0.01  # a row is missed
    lie[0] += 1e-4 if kind == 0 else 0.0
    return _known(most(cp.geo_mean(x, list(weights)), rows), value, answers=at(x, truth=answer, outside=lie))


def only_a_limit(rng: np.random.Generator) -> Known:
    """Pose a limit of zero that no point attains: exponentials, soft maxima, hyperbolas and products."""
    x, y = cp.Variable(name="x"), cp.Variable(name="y")
    problems = (
        least(cp.exp(-x), [x >= 0]),
        least(cp.logistic(-x)),
        least(cp.norm(cp.hstack([x, 1])) - x),
        least(y, [cp.geo_mean(cp.hstack([x, y])) >= 1]),
        least(cp.inv_pos(x)),
        least(cp.exp(-x) + cp.inv_pos(y)),
    )
    kind = int(rng.integers(len(problems)))
    return Known(problems[kind], value=0.0)


def by_a_hair(rng: np.random.Generator) -> Known:
    """Contradict by 1e-9, which solvers cannot see: either claim may stand, but not both; or leave that much room."""
    n, hair = int(rng.integers(1, 4)), float(rng.choice([-1e-9, 1e-9, 1e-8]))
    a, x = rng.uniform(0.5, 2, n), cp.Variable(n, name="x")
    problem = least(cp.sum_squares(x), [a @ x >= 1, a @ x <= 1 + hair])
    if hair < 0:
        return Known(problem, UNKNOWN)
    answer = a / (a @ a)
    return _known(problem, 1 / (a @ a), answers=at(x, truth=answer, outside=answer * (1 + 2 * ROW)))


def repeated_equalities(rng: np.random.Generator) -> Known:
    """Find the least norm under equalities that are repeated, added up, and scaled."""
    n, m = int(rng.integers(3, 7)), int(rng.integers(1, 3))
    A = rng.normal(size=(m, n))
    answer = A.T @ rng.normal(size=m)
    along = np.linalg.svd(A)[2][-1] * np.sqrt(VALUE) * np.linalg.norm(answer) * 1.1
    mix = np.vstack([np.eye(m), rng.normal(size=(3, m)), 1e4 * np.eye(m)])
    x = cp.Variable(n, name="x")
    problem = least(cp.sum_squares(x), [(mix @ A) @ x == mix @ (A @ answer), A @ x == A @ answer])
    short = answer * (1 - 10 * ROW * max(1.0, 1.0 / float(np.linalg.norm(answer))))
    answers = at(x, truth=answer, lie=answer + along, outside=short)
    return _known(problem, answer @ answer, answers=answers)


def whole_numbers(rng: np.random.Generator) -> Known:
    """Pose whole numbers with bounds of 1e9, unbounded or empty problems whose relaxations are unbounded."""
    n, kind = int(rng.integers(1, 4)), int(rng.integers(4))
    z, y = cp.Variable(n, name="z", integer=True), cp.Variable(name="y")
    if kind == 2:
        return Known(most(y + z[0], [y >= z[0], z <= 3]), UNBOUNDED, np.inf)
    if kind == 3:
        w = cp.Variable(name="w", integer=True)
        return Known(most(y, [2 * z[0] - 2 * w == 1, y <= z[0], z >= 0, z <= 9, w >= -9, w <= 9]), INFEASIBLE)
    centre = rng.integers(-(10**5), 10**5, n) + 0.25
    problem = least(cp.sum(cp.abs(z - centre)), [z <= 1e9, z >= -1e9])
    answers = at(z, truth=np.round(centre), lie=np.round(centre) + 1)
    return _known(problem, 0.25 * n, answers=answers)


def hermitian(rng: np.random.Generator) -> Known:
    """Minimise over complex density matrices: the least eigenvalue, or with entries held, a sum of moduli."""
    n = int(rng.integers(2, 4))
    G = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    C = G + G.conj().T
    sizes, vectors = np.linalg.eigh(C)
    X = cp.Variable((n, n), name="X", hermitian=True)
    problem = least(cp.real(cp.trace(C @ X)), [X >> 0, cp.real(cp.trace(X)) == 1])
    v, w = vectors[:, 0], vectors[:, -1]
    truth, other = np.outer(v, v.conj()), np.outer(w, w.conj())
    share = 2 * VALUE * max(1.0, abs(sizes[0])) / (sizes[-1] - sizes[0])
    answers = at(X, truth=truth, lie=(1 - share) * truth + share * other, outside=1.001 * truth)
    return _known(problem, sizes[0], answers=answers)


def parametrised(rng: np.random.Generator) -> Known:
    """Clip a Parameter at another one."""
    n = int(rng.integers(1, 6))
    x, p, q = cp.Variable(n, name="x"), cp.Parameter(n, name="p"), cp.Parameter(n, nonneg=True, name="q")
    p.value, q.value = rng.normal(size=n), rng.uniform(0.1, 1, n)
    answer = np.clip(p.value, -q.value, q.value)
    value = float(np.square(answer - p.value).sum())
    problem = least(cp.sum_squares(x - p), [cp.abs(x) <= q])
    return _known(problem, value, answers=at(x, truth=answer, lie=answer + 0.02 * np.sign(0.5 - answer)))


def sorted_ties(rng: np.random.Generator) -> Known:
    """Minimise weighted sorted sums at given total: all entries tie."""
    n, total = int(rng.integers(2, 6)), float(rng.uniform(0.5, 3))
    x = cp.Variable(n, name="x")
    k = int(rng.integers(1, n + 1))
    weights = rng.uniform(0, 2, n)
    lines = rng.integers(3)
    costs: tuple[Any, ...] = (cp.sum_largest(x, k), cp.dotsort(x, weights), cp.max(x) + cp.sum_largest(x, k))
    share = (k / n, float(weights.mean()), (1 + k) / n)[lines]
    answer = np.full(n, total / n)
    return _known(
        least(costs[lines], [cp.sum(x) == total]),
        share * total,
        answers=at(x, truth=answer, outside=answer * (1 - 4 * ROW)),
    )


def perspectives(rng: np.random.Generator) -> Known:
    """Minimise perspectives of a square and an exponential over their scale."""
    a, x, s = float(rng.uniform(0.5, 3)), cp.Variable(name="x"), cp.Variable(nonneg=True, name="s")
    z = cp.Variable(name="z")
    if rng.integers(2):
        return _known(
            least(cp.perspective(cp.square(x), s) + s, [x >= a]),
            2 * a,
            answers={"truth": {x: np.array(a), s: np.array(a)}, "lie": {x: np.array(a), s: np.array(a * 1.03)}},
        )
    problem = least(cp.perspective(cp.exp(z), s), [z >= -a, s <= 1])
    # s exp(-a/s) rises in s: the infimum is at s = 0.
    return Known(problem, value=0.0)


def quantum(rng: np.random.Generator) -> Known:
    """Minimise an energy less von Neumann's entropy, or plus a relative one, which cvxpy compiles approximately."""
    relative = rng.integers(4) == 0
    n = 2 if relative else int(rng.integers(2, 4))
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    a, energy = rng.uniform(0.1, 1, n) if relative else np.ones(n), rng.uniform(0, 3, n)
    X, weights = cp.Variable((n, n), name="X", symmetric=True), a * np.exp(-energy)
    A, C, truth = ((Q * one) @ Q.T for one in (a, energy, weights / weights.sum()))
    entropy = -cp.quantum_rel_entr(X, A) if relative else cp.von_neumann_entr(X)
    answers = at(X, truth=truth, lie=0.9 * truth + 0.1 / n * np.eye(n))
    far = 1e-2 if relative else CLOSE
    problem = most(entropy - cp.trace(C @ X), [cp.trace(X) == 1])
    return Known(problem, value=float(np.log(weights.sum())), far=far, answers=answers)


def power_cones(rng: np.random.Generator) -> Known:
    """Maximise over power cones of several dimensions as constraints."""
    n = int(rng.integers(2, 5))
    a = rng.uniform(0.2, 1, n)
    a /= a.sum()
    c, x, z = rng.uniform(0.5, 2, n), cp.Variable(n, name="x"), cp.Variable(1, name="z")
    answer = a / c
    value = float(np.prod(answer**a))
    cone: Any = cp.PowConeND(x, z, a) if n > 2 or rng.integers(2) else cp.PowCone3D(x[:1], x[1:], z, a[:1])
    problem = most(z[0], [cone, c @ x <= 1])
    answers = {
        "truth": {x: answer, z: np.array([value])},
        "lie": {x: answer, z: np.array([value * (1 - 2 * VALUE) - VALUE])},
        "outside": {x: answer, z: np.array([value + 10 * VALUE])},
    }
    return _known(problem, value, answers=answers)


def products(rng: np.random.Generator) -> Known:
    """Recover a vector from its convolution, or a matrix from its Kronecker product, by equalities."""
    n = int(rng.integers(2, 4))
    if rng.integers(2):
        kernel, answer, x = rng.normal(size=3), rng.normal(size=n), cp.Variable(n, name="x")
        problem = least(cp.norm1(x), [cp.convolve(kernel, x) == np.convolve(kernel, answer)])
        value, lie = float(np.abs(answer).sum()), answer * (1 - 100 * ROW)
        return _known(problem, value, answers=at(x, truth=answer, outside=lie))
    A, answer, X = rng.normal(size=(2, 2)), rng.normal(size=(n, 2)), cp.Variable((n, 2), name="X")
    return _known(
        least(cp.sum(X), [cp.kron(A, X) == np.kron(A, answer)]),
        answer.sum(),
        unit=max(1.0, float(np.abs(answer).sum())),
        answers=at(X, truth=answer, outside=answer * (1 + 100 * ROW)),
    )


def harmonic(rng: np.random.Generator) -> Known:
    """Pose inverses: of products, of traces, of harmonic means, at equal entries."""
    n, kind = int(rng.integers(2, 5)), int(rng.integers(3))
    x = cp.Variable(n, name="x")
    one = np.ones(n)
    if kind == 0:
        return _known(least(cp.inv_prod(x), [cp.sum(x) <= n]), 1, answers=at(x, truth=one, lie=one * (1 - VALUE)))
    if kind == 1:
        problem = most(cp.harmonic_mean(x), [cp.sum(x) <= n])
        return _known(problem, 1, answers=at(x, truth=one, lie=one * (1 - 2 * VALUE)))
    X = cp.Variable((n, n), name="X", symmetric=True)
    problem = least(cp.tr_inv(X), [cp.trace(X) <= n])
    return _known(problem, n, answers=at(X, truth=np.eye(n), lie=np.eye(n) * (1 - 2 * VALUE)))


FAMILIES = (
    *(flat_valley, bounded_entries, near_boundary, vanishing_denominator, wide_exponents, mean_at_zero),
    *(only_a_limit, by_a_hair, repeated_equalities, whole_numbers, hermitian, parametrised),
    *(sorted_ties, perspectives, quantum, power_cones, products, harmonic),
)

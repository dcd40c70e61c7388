"""Theorem IV.1 at fixed penalties, as one semidefinite program.

Conditions (i) and (ii) compare matrices that are not symmetric; A > B is read as: the symmetric part of A - B is
positive definite. With S = W(D + A), a = L mu and b = L mu/(mu - 1), any two numbers > 0 with 1/a + 1/b = 1/L:

(i)   I + S D~^-1 > a/(2 sigma) (W(D - A))^+ D_M
(ii)  S > S D~^-1 W(D - A) + 2 (1/a + 1/b) S D~^-1 S + b/(2 sigma) D_M

which is linear in a, b and bounds p >= 1/a, q >= 1/b. The program maximises the least eigenvalue of both.

No gamma serves a bipartite graph: S v = 0 for the v that is 1 on one side and -1 on the other, and (ii) then asks for
0 > b/(2 sigma) v'D_M v > 0. This needs S symmetric: one penalty an edge. The theorem is sufficient only, and on such
graphs the iteration may well converge: `rate.linear_rate` measures how fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.solving import solve_conic
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.solvers.registry import solver_spec

from .graph import edge_weights, reach
from .problem import Problem

#: Margins up to this, relative to what is compared, are rounding.
ROUNDING = 1e-12
#: Accuracy that solvers are asked for: at their own, SCS was off by 1.2e-5 with another build of BLAS.
ACCURACY = 1e-8


@dataclass(frozen=True, eq=False)
class ConvergenceConditions:
    """Whether Theorem IV.1 holds, and on what evidence.

    `holds`: True: at L and mu both margins are positive, by eigenvalues computed here. False: no L and mu can do, by a
    proof for the graph or by a certified bound of the program. None: neither was shown.
    `verdict`: The same in a sentence.
    `L`, `mu`: The best that was found; 2 and 2 where no solver answered.
    `margins`: The least eigenvalues of the symmetric parts of (i) and (ii) there, the second relative to ||S||.
    `simplified`: Those of (iii) and (iv): L = mu = 2.
    `table`: One row a solver: status, margin (of the program), bound (which no margin can exceed, by weak duality from
    its multipliers), residual (the largest of the cone program, measured here), own_margin (by eigenvalues at its L and
    mu).
    """

    holds: bool | None
    verdict: str
    L: float
    mu: float
    margins: tuple[float, float]
    simplified: tuple[float, float]
    table: pd.DataFrame = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Matrices:
    """The matrices of conditions (i) and (ii)."""

    now: Operators
    squares: Array  # M_i^2

    @property
    def sigma(self) -> float:
        return float(self.now.divisor.min())

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.now.signless, 2))

    def first(self) -> tuple[Array, Array]:
        """(i): its constant, and what a/(2 sigma) multiplies."""
        smoothed = self.now.signless / self.now.divisor
        inverse = np.linalg.pinv(self.now.laplacian, rcond=1e-12)
        return _symmetric(np.eye(len(smoothed)) + smoothed), _symmetric(inverse * self.squares)

    def second(self) -> tuple[Array, Array, Array]:
        """(ii) over ||S||: its constant, and what 2 (1/a + 1/b) and b/(2 sigma) multiply."""
        signless, smoothed = self.now.signless, self.now.signless / self.now.divisor
        constant = _symmetric(signless - smoothed @ self.now.laplacian)
        return constant / self.size, _symmetric(smoothed @ signless) / self.size, np.diag(self.squares) / self.size

    def margins(self, a: float, b: float) -> tuple[float, float]:
        """The least eigenvalues of (i) and (ii)."""
        constant, inverse = self.first()
        base, square, bends = self.second()
        two = 2.0 * self.sigma
        first = constant - a / two * inverse
        second = base - 2.0 * (1.0 / a + 1.0 / b) * square - b / two * bends
        return float(np.linalg.eigvalsh(first)[0]), float(np.linalg.eigvalsh(second)[0])


def conditions(
    problem: Problem, eta: Array, gamma: float, variant: str, solvers: Sequence[str]
) -> ConvergenceConditions:
    """Ask whether (i) and (ii) hold at fixed penalties.

    `eta`: (N,). `variant`: {"edge", "printed"}. `solvers`: CLARABEL or SCS: those that take semidefinite cones.
    Raises ModelError: A solver that does not, or a penalty that is no square.
    """
    if problem.ridge is None:
        raise ModelError(f"penalty={problem.penalty.name!r} is not smooth: Assumption 3 does not hold")
    now = Operators.of(eta, problem.network.adjacency, gamma, variant)
    matrices = _Matrices(now, problem.smoothness**2)
    if len(solvers) == 0:  # also of an array or a series
        raise ModelError("solvers=() names none: pass CLARABEL, SCS or both")
    answers = [_answer(matrices, solver) for solver in solvers]
    table = pd.DataFrame([row for row, _, _ in answers])
    margins, a, b = max(((matrices.margins(a, b), a, b) for _, a, b in answers), key=lambda found: min(found[0]))
    holds, verdict = _verdict(problem, matrices, margins, table, gamma)
    return ConvergenceConditions(
        holds, verdict, a * b / (a + b), 1.0 + a / b, margins, matrices.margins(4.0, 4.0), table
    )


def _answer(matrices: _Matrices, solver: str) -> tuple[dict[str, object], float, float]:
    """Return a solver's answer to: maximise t, the least eigenvalue of (i) and (ii);

    its accuracy; and its a and b. u and v are a/(2 sigma) and b/(2 sigma) in units of what they multiply, for the
    solvers' sake.
    """
    constant, inverse = matrices.first()
    base, square, bends = matrices.second()
    units = (float(np.linalg.norm(inverse, 2)), float(np.linalg.norm(bends, 2)))
    recycled = _positive(square) / matrices.sigma
    t, u, v, p, q = (cp.Variable(name=name) for name in "tuvpq")
    unit = np.eye(len(constant))
    first = constant - u * (inverse / units[0]) - t * unit >> 0
    second = base - (units[0] * p + units[1] * q) * recycled - v * (bends / units[1]) - t * unit >> 0
    pairs = [cp.bmat([[above, 1.0], [1.0, below]]) >> 0 for above, below in ((p, u), (q, v))]
    solution = solve_conic(
        cp.Problem(cp.Maximize(t), [first, second, *pairs]), solver, solver_spec(solver).full_options(ACCURACY, {})
    )
    found = solution.residuals
    row: dict[str, object] = {
        "solver": solver,
        "status": solution.status,
        "margin": np.nan,
        "bound": np.nan,
        "residual": np.nan if found is None else found.largest,
        "own_margin": -np.inf,
    }
    if solution.x is None or not (u.value > 0.0 and v.value > 0.0):
        return row, 4.0, 4.0  # of (iii) and (iv)
    a, b = (2.0 * matrices.sigma * float(one.value) / size for one, size in zip((u, v), units, strict=True))
    bound = _bound(matrices, first.dual_value, second.dual_value)
    return {**row, "margin": float(t.value), "bound": bound, "own_margin": min(matrices.margins(a, b))}, a, b


def _bound(matrices: _Matrices, first: Array, second: Array) -> float:
    """Return what no margin can exceed, by weak duality, from any two matrices.

    For X, Y >= 0 with traces that sum to 1, t is at most the margins' mean in X and Y. Over u, v > 0 that mean is
    <I + .., X> + <S - .., Y> - 2 sqrt(<K, X> <P, Y>/sigma) - 2 sqrt(<B, Y> <P, Y>/sigma), with u K, v B and
    (1/u + 1/v) P/sigma what (i) and (ii) take off: inf where <K, X> < 0.
    """
    constant, inverse = matrices.first()
    base, square, bends = matrices.second()
    x, y = _positive(_symmetric(first)), _positive(_symmetric(second))
    total = float(np.trace(x) + np.trace(y))
    slope, recycled = float(np.sum(inverse * x)), float(np.sum(_positive(square) * y)) / matrices.sigma
    if not total > 0.0 or slope < 0.0:
        return float("inf")
    gain = float(np.sum(constant * x) + np.sum(base * y))
    loss = 2.0 * np.sqrt(slope * recycled) + 2.0 * np.sqrt(float(np.sum(bends * y)) * recycled)
    return (gain - float(loss)) / total


def _verdict(
    problem: Problem, matrices: _Matrices, margins: tuple[float, float], table: pd.DataFrame, gamma: float
) -> tuple[bool | None, str]:
    if min(margins) > ROUNDING:
        return True, f"Theorem IV.1 holds at gamma={gamma:g}: margins {margins[0]:.3g} and {margins[1]:.3g}"
    signless = matrices.now.signless
    if problem.network.bipartite and np.allclose(signless, signless.T, rtol=ROUNDING, atol=0.0):
        return False, (
            "Theorem IV.1 cannot hold for any gamma: the graph is bipartite and D + A is singular. The condition is "
            "sufficient only; linear_rate says whether the iteration converges"
        )
    exact = float(np.linalg.eigvalsh(matrices.second()[1])[0]) >= -ROUNDING
    bound = table["bound"].min()
    if exact and bound < 0.0:
        return False, (
            f"Theorem IV.1 does not hold at gamma={gamma:g}: no L and mu have a margin above {bound:.3g}. The "
            "condition is sufficient only; try a larger gamma, or linear_rate"
        )
    return None, (
        f"undecided at gamma={gamma:g}: the best margin found is {min(margins):.3g}, and no certificate excludes a "
        "positive one"
    )


def _symmetric(matrix: Array) -> Array:
    return np.asarray(0.5 * (matrix + matrix.T))


def _positive(matrix: Array) -> Array:
    """The positive part: p and q are upper bounds of what multiplies it, and must not help."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


@dataclass(frozen=True, eq=False)
class Operators:
    """The matrices of a pass.

    `laplacian`, `signless`, (N, N): W(D - A) and W(D + A). `divisor`, (N,): The diagonal of D~, 2 eta_i V_i + gamma.
    """

    laplacian: Array
    signless: Array
    divisor: Array

    @classmethod
    def of(cls, eta: Array, adjacency: Array, gamma: float, variant: str) -> Operators:
        """Return the matrices at the penalties of a pass, (N,); see `graph.edge_weights`."""
        links = edge_weights(eta, adjacency, variant)
        spans = reach(links)
        return cls(np.diag(spans) - links, np.diag(spans) + links, 2.0 * spans + gamma)

"""The term sum p f(q/p) of a block: its DCP form where f has one, adaptive tangents where it has none.

A block declares it without asking which of the two applies::

    leakage = DivergenceTerm(divergence, (n_y, n_u))

    def declare(_):
        form = leakage.declare(weight_P, weight_Q)                  # cvxpy expressions of that shape
        return Declaration(
            cp.Minimize(beta * form.expression + ...),
            {..., **form.constraints},
            {"P": P, **form.variables},
            {..., **form.parameters},
        )

    Block(
        ...,
        declare=declare,
        parameters=lambda view: {..., **leakage.parameters(view)},
        embed=lambda point, at: {"P": P, **leakage.values(p, q)},   # p, q: the numbers that weight_P, weight_Q take
        repair=lambda values, view: {"P": P, **leakage.values(p, q)},
        refinement=leakage.refinement(lambda values, view: (p, q)),
    )

p f(q/p) is the largest of its tangents (f(t) - t f'(t)) p + f'(t) q, t > 0, whatever convex f is. A few of them for
each cell make a linear program whose value is a bound from below; the true objective at its solution is a bound from
above. New tangents go to the cell's own t = q/p and halfway (in log t) to its neighbours on both sides: an interval's
error falls by 16 a round, and 3 to 8 rounds close the gap to 1e-7 for all built-in divergences.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import cvxpy as cp
import numpy as np

from cvxpriv.blocks.refinement import Refinement
from cvxpriv.divergences.definition import FDivergence
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.solvers.chain import try_solver
from cvxpriv.solvers.registry import fallback_chain, solver_spec

#: Number of tangents of each cell that move and that stay, besides one on each side of every kink. Without those that
#: stay, a cell whose t jumps far would leave its bound loose elsewhere, and the solution would jump back.
MOVING, STAYING = 10, 6
#: The staying tangents lie in [1/SPAN, SPAN]; none lies outside [1/REACH, REACH].
SPAN, REACH = 1e3, 1e6
#: Distance in log t of a new tangent where there is no neighbour.
OUTWARD = 1.0
#: Relative distance to the left of a kink at which its left tangent is taken.
LEFT = 1e-12


def starting_points(divergence: FDivergence, cells: int, moving: int = MOVING) -> Array:
    """Return the t of the first tangents, (cells, slots): those that stay first, then the moving ones."""
    between = np.geomspace(1.0 / SPAN, SPAN, 2 * moving + 1)[1::2]
    return np.tile(np.concatenate([_staying(divergence), between]), (cells, 1))


def _staying(divergence: FDivergence) -> Array:
    kinks = np.array(divergence.kinks)
    return np.concatenate([np.geomspace(1.0 / SPAN, SPAN, STAYING), kinks, kinks * (1.0 - LEFT)])


def tangents(divergence: FDivergence, points: Array) -> tuple[Array, Array]:
    """Return the tangents at t = points as coefficients of p and of q, each of the shape of `points`.

    One that is not finite, for f may overflow far out, is replaced by the tangent at t = 1.
    """
    with np.errstate(all="ignore"):
        of_p, of_q = divergence.gradients(1.0 / np.maximum(points, 1.0), np.minimum(points, 1.0))
    middle_p, middle_q = divergence.gradients(np.ones(1), np.ones(1))
    good = np.isfinite(of_p) & np.isfinite(of_q)
    return np.where(good, of_p, middle_p), np.where(good, of_q, middle_q)


def refined(divergence: FDivergence, points: Array, p: Array, q: Array) -> Array:
    """Return the points for the next round: three new ones for each cell in the place of the slackest three.

    `points`, (cells, slots): Points, as `starting_points` or this function returned them.
    `p`, `q`, (cells,): The solver's unrepaired values: tangents belong where its model was wrong. Cells without mass
    keep theirs.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = np.clip(np.maximum(q, 0.0) / np.maximum(p, 0.0), 1.0 / REACH, REACH)
    moved = ~np.isnan(t)
    log_t = np.log(t[moved])[:, None]
    away = np.log(points[moved]) - log_t
    below = np.where(away < 0.0, away, -np.inf).max(axis=1, keepdims=True)
    above = np.where(away > 0.0, away, np.inf).min(axis=1, keepdims=True)
    below, above = np.where(np.isinf(below), -OUTWARD, below), np.where(np.isinf(above), OUTWARD, above)
    new = np.exp(np.hstack([log_t, log_t + below / 2.0, log_t + above / 2.0]))
    of_p, of_q = tangents(divergence, points[moved])
    height = of_p * p[moved, None] + of_q * q[moved, None]
    height[:, : _staying(divergence).size] = np.inf
    result = points.copy()
    replaced = points[moved]
    np.put_along_axis(replaced, np.argsort(height, axis=1)[:, : new.shape[1]], new, axis=1)
    result[moved] = np.clip(replaced, 1.0 / REACH, REACH)
    return result


FINEST = 1e-11
"""Accuracy of the variables of a user's form."""


@dataclass(frozen=True)
class TermForm:
    """The parts of a declaration that a term adds.

    `expression`: sum p f(q/p), convex; under tangents a variable's sum, bounded from below by them.
    `constraints`, `variables`, `parameters`: Objects to merge into those of the declaration.
    """

    expression: cp.Expression
    constraints: Mapping[str, cp.Constraint]
    variables: Mapping[str, cp.Variable]
    parameters: Mapping[str, cp.Parameter]


@dataclass(frozen=True)
class DivergenceTerm:
    """sum_i p_i f(q_i/p_i) over the cells of two arrays of one shape.

    `shape`: Shape of P and Q.
    `fixed`, {"p", "q"}: The one of P and Q that holds no variable, only numbers or Parameters. None: both hold
    variables.
    `name`: Prefix of the names of variables, Parameters and constraints; a block with two terms gives two names.
    `moving`: Number of tangents for each cell that are refined; others stay (`cvxpriv.divergences.term`).
    """

    divergence: FDivergence
    shape: tuple[int, ...]
    fixed: Literal["p", "q"] | None = None
    name: str = "divergence"
    moving: int = MOVING

    @property
    def exact(self) -> bool:
        """Whether f has a DCP form, so that no tangents are needed."""
        return self.divergence.expression is not None

    @property
    def points(self) -> str:
        """Name of a view's entry with the tangents' t, (cells, slots); where it is missing they start anew."""
        return f"{self.name}/tangents"

    @property
    def cells(self) -> int:
        """Number of terms in the sum."""
        return int(np.prod(self.shape))

    def declare(self, p: cp.Expression, q: cp.Expression) -> TermForm:
        """Return the term at cvxpy expressions P and Q, weights included."""
        if p.shape != self.shape or q.shape != self.shape:
            raise ModelError(f"P and Q have shapes {p.shape} and {q.shape}: both must have {self.shape}")
        if not self.exact:
            return self._tangents(cp.vec(p, order="C"), cp.vec(q, order="C"))
        expression, constraints = self.divergence.form(p, q)
        known = {variable.id for variable in [*p.variables(), *q.variables()]}
        new = _auxiliary([expression, *constraints], known)
        return TermForm(
            expression,
            {f"{self.name} form[{index}]": one for index, one in enumerate(constraints)},
            {self._variable(index): one for index, one in enumerate(new)},
            {},
        )

    def parameters(self, view: Values, *, p: Array | None = None, q: Array | None = None) -> dict[str, Array]:
        """Return the Parameters' values; none where the form is exact.

        `view`: One start of the state; its `points` are read if they are there.
        `p`, `q`: Values of the fixed one, weights included.
        """
        if self.exact:
            return {}
        of_p, of_q = tangents(self.divergence, self._held(view))
        size = np.maximum(1.0, np.maximum(np.abs(of_p), np.abs(of_q)))  # rows of one size: solvers scale badly here
        slopes = {"p": of_p / size, "q": of_q / size}
        if self.fixed is not None:
            given = p if self.fixed == "p" else q
            if given is None:
                raise ModelError(f"{self.fixed}=None, but it is fixed: pass its numbers to `parameters`")
            slopes[self.fixed] = slopes[self.fixed] * np.reshape(given, (-1, 1))
        return {f"{self.name}/of p": slopes["p"], f"{self.name}/of q": slopes["q"], f"{self.name}/of value": 1.0 / size}

    def values(self, p: Array, q: Array) -> dict[str, Array]:
        """Return the values of the variables that the term adds, at numbers p and q of shape `shape`.

        They are NaN where a user's own form has no values that a solver finds.
        """
        p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
        if not self.exact:
            return {self._variable(0): self.divergence.terms(p, q).ravel()}
        if self.divergence.auxiliary is not None:
            held = self.divergence.auxiliary(p.ravel(), q.ravel())
            return {self._variable(index): one for index, one in enumerate(held)}
        expression, constraints = self.divergence.form(cp.Constant(p), cp.Constant(q))
        new = _auxiliary([expression, *constraints], set())
        if new:
            solver = solver_spec(fallback_chain(None)[0])
            try_solver(cp.Problem(cp.Minimize(expression), constraints), solver.name, solver.full_options(FINEST, {}))
        found = [np.full(one.shape, np.nan) if one.value is None else np.asarray(one.value) for one in new]
        return {self._variable(index): one for index, one in enumerate(found)}

    def refinement(self, pair: Callable[[Values, Values], tuple[Array, Array]], **limits: float) -> Refinement | None:
        """Return how the tangents are refined, for `Block.refinement`; None where the form is exact."""
        if self.exact:
            return None

        def refine(values: Values, view: Values) -> Values:
            p, q = (np.broadcast_to(one, self.shape).ravel() for one in pair(values, view))
            return {self.points: refined(self.divergence, self._held(view), p, q)}

        return Refinement(refine, **limits)  # type: ignore[arg-type]

    def _held(self, view: Values) -> Array:
        return view[self.points] if self.points in view else starting_points(self.divergence, self.cells, self.moving)

    def _tangents(self, p: cp.Expression, q: cp.Expression) -> TermForm:
        """z_i >= of_p_ik p_i + of_q_ik q_i for each cell i and slot k, every row scaled by its own size."""
        shape = starting_points(self.divergence, self.cells, self.moving).shape
        value = cp.Variable(self.cells, name=self._variable(0))
        names = [f"{self.name}/of {which}" for which in ("p", "q", "value")]
        of_p, of_q, of_value = (cp.Parameter(shape, name=name, nonneg=name.endswith("value")) for name in names)
        wide = [_spread(one, shape[1]) for one in (p, q, value)]
        height = of_p if self.fixed == "p" else cp.multiply(of_p, wide[0])
        height = height + (of_q if self.fixed == "q" else cp.multiply(of_q, wide[1]))
        return TermForm(
            cp.sum(value),
            {f"{self.name} tangents": cp.multiply(of_value, wide[2]) >= height},
            {self._variable(0): value},
            dict(zip(names, (of_p, of_q, of_value), strict=True)),
        )

    def _variable(self, index: int) -> str:
        return f"{self.name}/value" if index == 0 else f"{self.name}/value[{index}]"


def _auxiliary(parts: list[cp.Expression | cp.Constraint], known: set[int]) -> list[cp.Variable]:
    """Return the variables that are not P's and Q's, in the order in which they were made."""
    found = {variable.id: variable for part in parts for variable in part.variables()}
    return [found[key] for key in sorted(found) if key not in known]


def _spread(vector: cp.Expression, width: int) -> cp.Expression:
    """Return a column for each slot."""
    return cp.reshape(vector, (vector.size, 1), order="C") @ np.ones((1, width))

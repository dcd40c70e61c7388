"""Newton's method on all parties' columns together, which ends a run whose passes are slow, or would be.

The passes are ADMM: they alternate between x and z where the method of multipliers minimises over both. A loss with
a kink beside a penalty with one, or columns of very different scales, make the alternation slow: thousands of passes.
Here the method of multipliers itself is run from a pass's point, with a copy of x for the penalties. Without z and the
copy its function of x has a gradient, piecewise smooth, and curvature wherever the hold of x is felt: Newton's method
with an exact search of the line converges from everywhere (Li, Sun and Toh 2018; Hermans, Themelis and Patrinos 2022).

Where a party's own system would cost far more than products with its columns, the run begins with `truncated`, and
mostly ends there.

An answer counts only where the residual of the problem itself says so, or its gap. It needs all columns in one place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import linalg, sparse

from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties.convex import by_coordinate
from cvxpriv.schedules.steps import Accelerator

from . import kkt
from .accelerated import ARGUMENT
from .factor import Factor, weighted_gram
from .problem import Problem, together
from .schemes import Scheme
from .truncated import Truncated, may_begin

#: Passes after which it is tried: most runs have ended by then, and a later try begins nearer.
AFTER = (40, 120, 360)
#: Least holds of x, as parts of the penalty, of the tries there: with less hold minimisations are fewer, and steps
#: longer where nothing bends.
HOLDS = (1e-10, 1e-6)
#: Most columns, and most products of a Hessian, for which it is tried: a Hessian then costs some tens of passes.
COLUMNS, PRODUCTS = 1000, 1e9
#: Most Newton steps, steps for one penalty and trials on one line.
STEPS, INNER, TRIALS = 400, 30, 40
#: Hold of x at first, as a part of the penalty, and the factors by which penalty and hold change.
HOLD, GROW, SHRINK = 1e-2, 5.0, 10.0
#: Part of the first slope on a line at which its search ends, and of the infeasibility at which a minimisation ends.
FLAT, INEXACT = 0.5, 0.1
#: Part of the dual residual above which the primal one makes the penalty grow.
BEHIND = 0.1
#: Norm of a step, as a part of x's, that is x's rounding: nothing is nearer.
ROUNDED = 16.0 * np.finfo(float).eps
#: Name of the entry of a state that says that it is Newton's.
JOINT = "joint"
#: Relative change of an argument over which a proximal step's slope is measured.
SECANT = 1e-6


def may_join(problem: Problem) -> bool:
    """Return whether Newton's method may end a run: after passes, or before them where parties' systems cost more."""
    return _is_small(problem) or may_begin(problem)


def _is_small(problem: Problem) -> bool:
    """Return whether it may be tried after passes: a convex loss, penalties of single coordinates, and few columns."""
    size, columns = problem.samples, problem.columns
    small = columns <= COLUMNS and (size + columns) * float(columns) ** 2 <= PRODUCTS
    return small and problem.loss.convex and all(by_coordinate(one) for one in problem.penalties)


class Joining:
    """The accelerator of a run that Newton's method may end: `inner`, or else plain passes, and a try after some.

    `gap`: Certified gap, as a part of the objective, that is enough; 0 for none.
    """

    def __init__(
        self,
        problem: Problem,
        scheme: Scheme,
        factors: Sequence[Factor],
        inner: Accelerator | None,
        tol: float,
        gap: float,
    ) -> None:
        self.problem, self.scheme, self.factors, self.inner = problem, scheme, factors, inner
        self.tol, self.gap = tol, gap

    def __call__(self, body: Callable[[Values], dict[str, Array]], state: dict[str, Array], iteration: int) -> Values:
        found = self._begun(state) if iteration == 1 and may_begin(self.problem) else None
        if found is None:
            found = image = body(state) if self.inner is None else self.inner(body, state, iteration)
            if iteration in AFTER and _is_small(self.problem):
                ends = (self._ended(image, least) for least in HOLDS)
                found = next((end for end in ends if end is not None), image)
        return found

    def _begun(self, state: Values) -> Values | None:
        """Return the end of a run from its beginning, without any party's system, or None."""
        begun = np.concatenate([state[f"x/{m}"][0] for m in range(self.problem.parties)])
        try:
            with np.errstate(all="ignore"):  # what overflows is not accepted
                x = Truncated(self.problem, self.factors).minimised(begun, self.tol, self.gap)
        except linalg.LinAlgError:  # the preconditioner of a tiny penalty
            return None
        if x is None:
            return None
        share = np.sum([one.share(own) for one, own in zip(self.factors, self.problem.split(x), strict=True)], axis=0)
        return self._accepted(state, x, share, self.problem.weights * self.problem.loss.gradient(share, self.problem.y))

    def _ended(self, state: Values, least: float) -> Values | None:
        """Return the end of a run from a pass, or None."""
        view = {name: value[0] for name, value in state.items()}
        r = np.broadcast_to(self.scheme.weight(view["rho"], self.problem.parties), view["z"].shape)
        with np.errstate(all="ignore"):  # what overflows is not accepted
            point = Joint(self.problem, view, r, least).minimised(self.tol)
        return None if point is None else self._accepted(state, point.copy, point.z, point.y)

    def _accepted(self, state: Values, x: Array, z: Array, y: Array) -> Values | None:
        """Return the state at a point, where the residual of the problem or its gap is small, or None."""
        after = {name: value[0] for name, value in state.items() if name != ARGUMENT and "pulled" not in name}
        after |= {"z": z, "y": y}
        for m, (own, factor) in enumerate(zip(self.problem.split(x), self.factors, strict=True)):
            after |= {f"x/{m}": own, f"v/{m}": factor.share(own)}
        after["y"] = kkt.dual_within(self.problem, after)  # r (p - z) has lost digits where r is large
        if kkt.residuals(self.problem, self.factors, after).largest > self.tol:
            gap = kkt.duality_gap(self.problem, after) if self.gap > 0.0 else None
            if gap is None or not gap <= self.gap * self.problem.value_at(z, self.problem.split(x)) < np.inf:
                return None
        return {**{name: value[None] for name, value in after.items()}, JOINT: np.ones(1)}


@dataclass(frozen=True, eq=False)
class Point:
    """A point x, and the steps of z and of the copy from it, with slopes `y` and `u`; the copy's is at `argument`."""

    x: Array
    share: Array
    z: Array
    y: Array
    argument: Array
    copy: Array
    u: Array


class Joint:
    """The augmented Lagrangian of S = z and of x = its copy, at multipliers y and u, with x held at an anchor.

    `r`, (N,), `a`, (d,): Penalties of the two. `hold`, `least`: Weight of the hold, as a part of a, and its least.
    """

    def __init__(self, problem: Problem, view: Values, r: Array, least: float) -> None:
        self.least = least
        self.problem, self.r, self.y, self.z = problem, r, view["y"], view["z"]
        self.factor = Factor(together(problem.parts))
        self.x = np.concatenate([view[f"x/{m}"] for m in range(problem.parties)])
        squares = self.factor.part.power(2) if sparse.issparse(self.factor.part) else self.factor.part**2
        self.a = np.asarray(squares.T @ r)
        self.a = np.where(self.a > 0.0, self.a, 1.0)
        self.u, self.hold = -self.factor.pull(self.y), HOLD

    def minimised(self, tol: float) -> Point | None:
        """Return a point whose residual is at most `tol`, or None: steps, or doubles, do not reach."""
        at, taken = self._point(self.x, self.factor.share(self.x), self.z), 0
        while taken < STEPS:
            for _ in range(INNER):
                pulled = self.factor.pull(at.y)
                gradient = pulled + at.u + self.hold * self.a * (at.x - self.x)
                scale = max(1.0, *(float(np.linalg.norm(one)) for one in self.problem.split(pulled)))
                primal = float(np.linalg.norm(self.factor.share(at.copy) - at.z)) / max(
                    1.0, float(np.linalg.norm(at.z))
                )
                dual = float(np.linalg.norm(pulled + at.u)) / scale
                if max(primal, dual) <= tol:
                    return at
                if np.linalg.norm(gradient) <= INEXACT * max(tol, min(max(primal, dual), 1.0)) * scale:
                    break
                step = self._newton(at, gradient)
                if step is None or np.linalg.norm(step) <= ROUNDED * np.linalg.norm(at.x):
                    return None
                at, taken = self._along(at, step, abs(float(gradient @ step))), taken + 1
            self.y, self.u, self.x = at.y, at.u, at.x
            if primal > max(INEXACT * tol, BEHIND * dual):  # a large penalty costs y its last digits
                self.r, self.a, self.hold = GROW * self.r, GROW * self.a, self.hold / GROW
            self.hold = max(self.hold / SHRINK if dual > INEXACT * tol else self.hold, self.least)
            at = self._point(at.x, at.share, at.z)
        return None

    def _point(self, x: Array, share: Array, guess: Array) -> Point:
        problem, p, s = self.problem, share + self.y / self.r, x + self.u / self.a
        z = problem.loss.prox(p, problem.y, problem.weights, self.r, guess)
        copy = self._prox(s)
        return Point(x, share, z, self.r * (p - z), s, copy, self.a * (s - copy))

    def _prox(self, s: Array) -> Array:
        parts = zip(self.problem.penalties, *map(self.problem.split, (s, self.problem.lam / self.a)), strict=True)
        # A step for each coordinate: `by_coordinate` leaves only penalties that take them.
        return np.concatenate([cast(Callable[[Array, Array], Array], one.prox)(t, step) for one, t, step in parts])

    def _newton(self, at: Point, gradient: Array) -> Array | None:
        problem, by = self.problem, SECANT * (np.abs(at.argument) + np.abs(at.argument).mean()) + np.finfo(float).tiny
        slope = np.clip((self._prox(at.argument + by) - self._prox(at.argument - by)) / (2.0 * by), 0.0, 1.0)
        low, high = problem.loss.slopes(at.z, problem.y, within=kkt.AT_KINK)
        bend = problem.weights * problem.loss.curvature(at.z, problem.y)
        each = np.where(low < high, self.r, self.r * bend / (self.r + bend))
        root = 1.0 / np.sqrt(self.a)
        matrix = root[:, None] * weighted_gram(self.factor.stored, each) * root
        matrix[np.diag_indices_from(matrix)] += 1.0 - slope + self.hold
        try:
            return np.asarray(-root * linalg.solve(matrix, root * gradient, assume_a="pos"), dtype=np.float64)
        except (linalg.LinAlgError, ValueError):
            return None

    def _along(self, at: Point, step: Array, slope: float) -> Point:
        """Return the point on the line where the slope has all but vanished: a full step, or where it changes sign."""
        share, low, high, length = self.factor.share(step), 0.0, np.inf, 1.0
        for _ in range(TRIALS):
            found = self._point(at.x + length * step, at.share + length * share, at.z)
            here = float(found.y @ share + found.u @ step + (self.hold * self.a * (found.x - self.x)) @ step)
            if here > FLAT * slope:
                high = length
            elif here < -FLAT * slope and np.isfinite(high):
                low = length
            else:
                break
            length = 0.5 * (low + high)
        return found

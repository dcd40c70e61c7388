"""The proximal step of a point: a measure of its distance from optimal that kinks and ties do not disturb.

Where eigenvalues, entries or pieces tie, a function has many gradients; a hair beside the tie it has one, and that one
jumps. A derivative at the point then says little. The proximal point does not jump::

    p = argmin over the constraints of  f(x) / steepness + |x - x0|^2 / (2 size),        step = max |p - x0| / size.

``x0`` is optimal exactly if ``p = x0``. Otherwise ``p`` lies ``step * size`` away and there, for the best multipliers
and the best element of every subdifferential, the Lagrangian has a gradient of ``step * steepness`` at most. No
derivative is taken and no tolerance says what a tie is: cvxpy's own cone form of each atom carries its kinks.

The program is solved by a conic solver that is not believed: its objective is strongly convex, so that a gap ``g`` of
the answer, measured from the data, leaves ``p`` uncertain by ``sqrt(2 g size)``. An answer that is not accurate enough
is no measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.kkt.conic.solving import ConicSolution, solve_conic
from cvxpriv.kkt.coordinates import dense, held
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.solvers.registry import DEFAULT_CHAIN, installed, solver_spec

ACCURACY = 1e-5
"""Largest uncertainty of a step, relative to the size of the point, for it to be a measurement."""
ATTEMPTS = tuple((name, 1e-12) for name in DEFAULT_CHAIN)
"""Solvers and tolerances that are tried until an answer is accurate enough."""
LARGEST = 2_000
"""Numbers in the variables up to which the second and third are: of more, they take hours, or factor a dense matrix."""
STEEP = 10.0
"""Size of the gradient from which on the objective is also divided by it: a steep one leaves no digits for the move."""


@dataclass(frozen=True)
class Proximal:
    """A proximal step.

    Attributes
    ----------
    step : float
        The step relative to `size`; NaN if it could not be measured.
    size, steepness : float
        Scales of the point and of the gradient; the latter is 1 unless the objective had to be divided.
    accuracy : float
        Largest uncertainty of `step`; infinite where it could not be measured.
    why : str
        The reason why it could not be measured, or ``""``.
    """

    step: float
    size: float
    steepness: float
    accuracy: float
    why: str = ""

    @property
    def measured(self) -> bool:
        """Whether there is a step."""
        return bool(np.isfinite(self.step))

    @property
    def move(self) -> float:
        """The step in the units of the variables."""
        return self.step * self.size

    @property
    def slope(self) -> float:
        """Upper bound of the largest entry of the Lagrangian's smallest gradient at the proximal point."""
        return self.step * self.steepness


@door
def proximal_step(problem: cp.Problem, steepness: float = 1.0) -> Proximal:
    """Return the proximal step of a problem's variables from their current values, which are kept.

    Parameters
    ----------
    steepness : float
        Size of the objective's gradient. The objective is divided by it only if the step cannot be measured accurately
        otherwise: that makes the step relative to the gradient, which is more lenient.

    Examples
    --------
    >>> X = cp.Variable((2, 2), symmetric=True)
    >>> problem = cp.Problem(cp.Minimize(cp.lambda_max(X)), [cp.trace(X) == 2])
    >>> X.value = np.eye(2)  # optimal, where both eigenvalues tie
    >>> proximal_step(problem).step < 1e-9
    True
    """
    start = [dense(variable.value) for variable in problem.variables()]
    size = 1.0 + max((float(np.abs(value).max(initial=0.0)) for value in start), default=0.0)
    if not np.isfinite(size):
        return _unmeasured(size, "the point is not finite")
    large = sum(value.size for value in start) > LARGEST
    scales = [1.0, steepness] if STEEP < steepness < np.inf else [1.0]
    why = "no solver takes the cones of its proximal program"
    for scale in scales:
        nearby = _program(problem, start, size, scale)
        for solver, tolerance in [one for one in ATTEMPTS if one[0] in installed()][: 1 if large else None]:
            with held(nearby.variables(), nearby.constraints):
                try:
                    solution = solve_conic(nearby, solver, solver_spec(solver).timed_options(tolerance))
                except cp.error.SolverError:  # its cones are not this solver's
                    continue
                except Exception as error:  # atoms of cvxpy raise what they like while they are compiled
                    return _unmeasured(size, f"its proximal program cannot be compiled ({error})")
                accuracy = _accuracy(solution, size)
                if accuracy <= ACCURACY:
                    return Proximal(_largest_move(problem, start) / size, size, scale, accuracy)
            why = f"its proximal point is not solved accurately ({solver}: {solution.status})"
            why += f", and no other solver is asked for more than {LARGEST:,} numbers" if large else ""
    return _unmeasured(size, why)


def _unmeasured(size: float, why: str) -> Proximal:
    return Proximal(float("nan"), size, 1.0, float("inf"), why)


def _program(problem: cp.Problem, start: Sequence[Array], size: float, steepness: float) -> cp.Problem:
    sign = -1.0 if isinstance(problem.objective, cp.Maximize) else 1.0
    moves = [cp.sum_squares(variable - value) for variable, value in zip(problem.variables(), start, strict=True)]
    objective = (sign / steepness) * problem.objective.args[0] + sum(moves) / (2.0 * size)
    return cp.Problem(cp.Minimize(objective), problem.constraints)


def _accuracy(solution: ConicSolution, size: float) -> float:
    """Return the uncertainty of the step that an answer's exact residuals leave."""
    if solution.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or solution.residuals is None or solution.error:
        return float("inf")
    gap = solution.residuals.largest * (1.0 + abs(solution.residuals.objective))
    return float(np.sqrt(2.0 * gap / size))


def _largest_move(problem: cp.Problem, start: Sequence[Array]) -> float:
    moves = [np.abs(dense(one.value) - value) for one, value in zip(problem.variables(), start, strict=True)]
    return max((float(move.max(initial=0.0)) for move in moves), default=0.0)

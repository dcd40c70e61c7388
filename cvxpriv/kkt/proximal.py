"""The proximal step of a point: a measure of its distance from optimal that kinks and ties do not disturb.

Where eigenvalues, entries or pieces tie, a function has many gradients; a hair beside the tie it has one, and that one
jumps. A derivative at the point then says little. The proximal point does not jump::

    p = argmin over the constraints of  f(x) / steepness + |x - x0|^2 / (2 size),        step = max |p - x0| / size.

``x0`` is optimal exactly if ``p = x0``. Otherwise ``p`` lies ``step * size`` away and there, for the best multipliers
and the best element of every subdifferential, the Lagrangian has a gradient of ``step * steepness`` at most. No
derivative is taken and no tolerance says what a tie is: cvxpy's own cone form of each atom carries its kinks.

The program is the problem's own cone program with another objective, in the differences from ``x0``. CLARABEL solves
it, and is not believed: its objective is strongly convex, so that a gap ``g`` of the answer, measured from the data,
leaves ``p`` uncertain by ``sqrt(2 g size)``. An answer that is not accurate enough is no measurement.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.data import Compilations, extract
from cvxpriv.kkt.conic.program import (
    ConeProgram,
    ConeResiduals,
    cone_residuals,
    solved_by_clarabel,
)
from cvxpriv.kkt.coordinates import dense
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.solvers.place import quiet

ACCURACY = 1e-5
"""Largest uncertainty of a step, relative to the size of the point, for it to be a measurement."""
PROVER, ASKED = "CLARABEL", (1e-12, 3e-11, 1e-10)
"""The solver, and the tolerances that it is asked for in turn: near its last digits it may stop at a worse point."""
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
def proximal_step(problem: cp.Problem) -> Proximal:
    """Return the proximal step of a problem's variables from their current values, which are kept.

    Examples
    --------
    >>> X = cp.Variable((2, 2), symmetric=True)
    >>> problem = cp.Problem(cp.Minimize(cp.lambda_max(X)), [cp.trace(X) == 2])
    >>> X.value = np.eye(2)  # optimal, where both eigenvalues tie
    >>> proximal_step(problem).step < 1e-9
    True
    """
    with quiet():
        return Nearby(problem).step(1.0)


class Nearby:
    """The proximal programs of a problem, whose cone program is compiled once.

    `shared`: Earlier compilations of the same expressions.
    """

    def __init__(self, problem: cp.Problem, shared: Compilations | None = None) -> None:
        self._problem, self._shared = problem, shared or Compilations()

    def step(self, steepness: float) -> Proximal:
        """Return the step from the variables' current values: see `proximal_step`."""
        start = np.concatenate([np.ravel(dense(one.value), order="F") for one in self._problem.variables()])
        size = 1.0 + float(np.abs(start).max(initial=0.0))
        if not np.isfinite(size):
            return _unmeasured(size, "the point is not finite")
        try:
            for scale in [1.0, steepness] if STEEP < steepness < np.inf else [1.0]:
                for asked in ASKED:
                    found, move = self._moved(start, size, scale, asked)
                    if found is None:
                        continue
                    # The uncertainty of the step that the answer's exact residuals leave.
                    accuracy = float(np.sqrt(2.0 * found.largest * (1.0 + abs(found.objective)) / size))
                    if accuracy <= ACCURACY:
                        return Proximal(move / size, size, scale, accuracy)
        except Exception as error:  # atoms of cvxpy raise what they like while they are compiled
            return _unmeasured(size, f"its proximal program cannot be compiled ({error})")
        return _unmeasured(size, "its proximal point is not solved accurately")

    @cached_property
    def _compiled(self) -> tuple[ConeProgram, Array]:
        """The problem's cone program, and the column of each of its numbers, counted from one; zero for none."""
        compiled = extract(self._problem, PROVER, {}, self._shared)
        if compiled.altered_by_cvxpy:
            raise ModelError("cvxpy puts an approximation in its place")
        entries = compiled.variables(np.arange(1.0, compiled.fields["c"].size + 1.0)) or {}
        numbers = [np.ravel(entries.get(one.id, np.nan), order="F") for one in self._problem.variables()]
        return ConeProgram(**compiled.fields), np.concatenate(numbers)

    def _moved(self, start: Array, size: float, scale: float, asked: float) -> tuple[ConeResiduals | None, float]:
        """Return the residuals of CLARABEL's answer, and the largest move of an entry."""
        program, places = self._compiled
        count = program.c.size
        free = places != 0.0  # an entry that is always zero has no column
        if places.size != start.size or not np.isin(places[free], np.arange(1.0, count + 1.0)).all():
            return None, 0.0
        columns, wanted = places[free].astype(int) - 1, start[free]
        weights = np.bincount(columns, minlength=count).astype(float)
        centre = np.bincount(columns, wanted, minlength=count) / np.maximum(weights, 1.0)
        nearby = replace(
            program,
            P=sp.csc_array(program.P / scale + sp.diags_array(weights / size)),
            c=(program.c + program.P @ centre) / scale,
            d=program.value(centre) / scale,
            b=program.slack(centre),
        )
        moved, dual = solved_by_clarabel(nearby.P, nearby.A, nearby.b, program.layout, asked, nearby.c)
        if moved is None or dual is None:
            return None, 0.0
        residuals = cone_residuals(nearby, moved, dual)
        return residuals, float(np.abs((centre + moved)[columns] - wanted).max(initial=0.0))


def _unmeasured(size: float, why: str) -> Proximal:
    return Proximal(float("nan"), size, 1.0, float("inf"), why)

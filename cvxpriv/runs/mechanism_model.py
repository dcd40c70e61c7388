"""The face of a model that designs a mechanism, as the command line and the tests use it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.certify.cases import Case
from cvxpriv.errors import DataError, ModelError, suggest
from cvxpriv.numerics.arguments import few, real_numbers, require_at_most, require_counts
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import MOST_POINTS, Size, require_feasible
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.mechanism_run import MechanismRun, OnTable
from cvxpriv.runs.options import Option
from cvxpriv.runs.sides import Sides
from cvxpriv.schedules.running import run_each
from cvxpriv.tables.joint import JointTable

Run = TypeVar("Run", bound=MechanismRun[Any, Any])


def points_named(text: str) -> int | tuple[float, ...]:
    """Return the points of a curve from text: a whole number of points, or the points themselves.

    >>> points_named("20"), points_named(".3, 0.6,1"), points_named("0.5")
    (20, (0.3, 0.6, 1.0), (0.5,))
    """
    if text.strip().isdecimal():
        return int(text)
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise DataError(
            f"{text!r} holds no numbers: give a number of points, such as 20, or the points, such as .3,.6,1"
        ) from None


CurvePoints = Annotated[
    Iterable[float] | int,
    Option(
        "Points of the curve, or their number.",
        kind="iterable of float, or int",
        flag="--curve",
        metavar="N | V,V,...",
        read=points_named,
    ),
]


@door
class MechanismModel(ABC, Generic[Run]):
    """The base of models that design a mechanism from a joint table of private data and the mechanism's input.

    A subclass declares its options in the signatures of `__init__` and `solve`; the command line is made from them.

    Attributes
    ----------
    constraints : tuple of (str, Constraint)
        The constraints added so far.
    """

    #: The kind of command that the model has, and its name.
    task: ClassVar[str] = "mechanism"
    command: ClassVar[str]
    #: The model's names for the sides of its table.
    sides: ClassVar[Sides]

    problem: OnTable
    constraints: tuple[tuple[str, Constraint], ...] = ()

    @abstractmethod
    def __init__(self, table: JointTable, **options: Any) -> None:
        """Pose the problem."""

    @abstractmethod
    def blocks(self) -> dict[str, Block]:
        """Return every block of the model by name, with the constraints added so far."""

    @abstractmethod
    def solve(self, *args: Any, **options: Any) -> Run:
        """Solve from several starts and return the best run."""

    @abstractmethod
    def size(self, **solving: Any) -> Size:
        """Return an upper estimate of what `solve` takes with these options."""

    @abstractmethod
    def along(self, points: Iterable[float] | int) -> list[Self]:
        """Return this model at each point of its curve.

        Raises
        ------
        ModelError
            There is no point, or one is out of range.
        """

    @abstractmethod
    def curve(self, *args: Any, **options: Any) -> pd.DataFrame:
        """Return the trade-off as a table: the best run at each point."""

    def traced(self, points: Iterable[float] | int, **options: Any) -> tuple[pd.DataFrame, Sequence[Array]]:
        """Return the trade-off as a table, and the mechanism at each of its points, where the model keeps them."""
        return self.curve(points, **options), ()

    @staticmethod
    @abstractmethod
    def example_cases() -> list[Case]:
        """Return blocks at answers, which `cvxpriv crosscheck --all` checks."""

    @staticmethod
    @abstractmethod
    def run_of(document: Mapping[str, Any], path: PathLike) -> MechanismRun[Any, Any]:
        """Return the run that a file holds; `cvxpriv.load` calls it."""

    @abstractmethod
    def _require_declarable(self) -> None:
        """Raise an error where the constraints cannot be declared: one is not a constraint, or is not DCP."""

    def constrain(self, name: str, constraint: Constraint) -> Self:
        """Return this model with one more constraint on the whole mechanism.

        Parameters
        ----------
        name : str
        constraint : callable
            Maps the mechanism, a cvxpy expression with one row per input and one column per output, to a cvxpy
            constraint or an iterable of them. A second argument receives the known quantities of the inputs, a
            `cvxpriv.Known`. `cvxpriv.constraints` has ready ones.

        Raises
        ------
        ModelError
            The name is taken, or the function returns something that is not a constraint, or is not DCP.

        Examples
        --------
        >>> from cvxpriv.models import PrivacyFunnel
        >>> funnel = PrivacyFunnel([[0.4, 0.1], [0.1, 0.4]], rate=0.2)
        >>> floored = funnel.constrain("no certainty", lambda mechanism: mechanism >= 0.02)
        >>> [name for name, _ in floored.constraints]
        ['no certainty']
        """
        other = self._with((*self.constraints, (name, constraint)))
        other._require_declarable()
        return other

    def without(self, name: str) -> Self:
        """Return this model without one of its constraints.

        Raises
        ------
        ModelError
            No constraint has that name.

        Examples
        --------
        >>> from cvxpriv.models import PrivacyFunnel
        >>> funnel = PrivacyFunnel([[0.4, 0.1], [0.1, 0.4]], rate=0.2)
        >>> funnel.constrain("cap", lambda mechanism: mechanism <= 0.9).without("cap").constraints
        ()
        """
        self._require_constraint(name)
        return self._with(tuple((own, one) for own, one in self.constraints if own != name))

    def renamed(self, name: str, to: str) -> Self:
        """Return this model with one of its constraints under another name.

        Raises
        ------
        ModelError
            No constraint has the name, or the new one is taken.
        """
        self._require_constraint(name)
        if to != name and to in dict(self.constraints):
            raise ModelError(f"to={to!r} is already a constraint of the model: choose another name")
        return self._with(tuple((to if own == name else own, one) for own, one in self.constraints))

    @classmethod
    def of_problem(cls, problem: Any, constraints: tuple[tuple[str, Constraint], ...]) -> Self:
        """Return the model of a problem that is validated, under constraints."""
        model = cls.__new__(cls)
        model.problem, model.constraints = problem, constraints
        return model

    def _with(self, constraints: tuple[tuple[str, Constraint], ...]) -> Self:
        other = copy.copy(self)
        other.constraints = constraints
        return other

    def _require_constraint(self, name: str) -> None:
        if name not in dict(self.constraints):
            raise ModelError(f"name={name!r} is no constraint of the model: {suggest(name, dict(self.constraints))}")


def curve_points(points: Iterable[float] | int, whole: float = 1.0) -> list[float]:
    """Return the points of a curve; a number n stands for 1/n, 2/n, ..., 1 of the whole.

    >>> curve_points(4)
    [0.25, 0.5, 0.75, 1.0]
    """
    if isinstance(points, (int, np.integer)):
        require_counts(points=points)
        require_at_most(MOST_POINTS, points=points)
        return [whole * point / points for point in range(1, int(points) + 1)]
    listed = isinstance(points, Iterable) and not isinstance(points, (str, bytes, np.ndarray))
    found = (
        real_numbers(few("points", points, MOST_POINTS) if listed else points, "points", ModelError).ravel().tolist()
    )
    require_at_most(MOST_POINTS, points=len(found))
    if not found:
        raise ModelError(f"points={points!r} holds no number: pass numbers, or how many")
    return [float(point) for point in found]


def runs_of(models: Sequence[MechanismModel[Run]], solving: Mapping[str, Any], description: str) -> list[Run]:
    """Return a run of each model, in order. A keyboard interrupt ends them and drops the run that it cut."""
    options = {name: value for name, value in solving.items() if name not in ("n_jobs", "progress")}
    if models:
        whole = models[0].size(**options).repeated(len(models), f"{len(models):,} points")
        require_feasible(whole, bool(options.get("oversize", False)))
    work: Callable[[MechanismModel[Run]], Run] = partial(_solved, options)
    runs = run_each(
        work,
        models,
        n_jobs=solving.get("n_jobs", 1),
        progress=solving.get("progress", False),
        description=description,
        last=lambda run: run.interrupted,
    )
    return [run for run in runs if not run.interrupted]


def _solved(options: dict[str, Any], model: MechanismModel[Run]) -> Run:
    return model.solve(**options)

"""The face of a model that learns from rows, as commands and `cvxpriv.load` use it, and the choice among its starts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from cvxpriv.certify.cases import Case
from cvxpriv.errors import ModelError
from cvxpriv.learning.fit import Fit
from cvxpriv.numerics.arguments import real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.learning_run import LearningRun, PrivateLearningRun, Start
from cvxpriv.schedules.running import run_each


@door
class LearningModel(ABC):
    """A model that learns from rows, with or without privacy.

    A subclass declares its options in the signatures of `__init__`, `solve` and `solve_private`; the command line is
    made from them.
    """

    #: The kind of command that the model has, and its name.
    task: ClassVar[str] = "learning"
    command: ClassVar[str]
    #: The class of fits of the model to encoded rows.
    on_rows: ClassVar[type[Fit]]
    #: The classes of runs that `solve` and `solve_private` return.
    runs: ClassVar[tuple[type[LearningRun], type[PrivateLearningRun]]]

    @abstractmethod
    def solve(self, *args: Any, **options: Any) -> LearningRun:
        """Fit without privacy."""

    @abstractmethod
    def solve_private(self, *args: Any, **options: Any) -> PrivateLearningRun:
        """Fit with differential privacy."""

    @staticmethod
    @abstractmethod
    def init_of(run: Any) -> Array:
        """Return the `init` with which another fit starts at a run's answer."""

    @staticmethod
    @abstractmethod
    def example_cases() -> list[Case]:
        """Return blocks at answers, which `cvxpriv crosscheck --all` checks."""

    @classmethod
    def run_of(cls, document: Mapping[str, Any], path: PathLike) -> LearningRun | PrivateLearningRun:
        """Return the run that a file holds, private or not; `cvxpriv.load` calls it."""
        clear, private = cls.runs
        return private.opened(document, path) if document.get("private") else clear.opened(document, path)


#: Standard deviation of the predictions of a random start: log odds of this size are far from 0, and not absurd.
SPREAD = 3.0

Run = TypeVar("Run", bound=LearningRun)


def initial_points(
    init: object, shape: tuple[int, ...], starts: int | None, seed: int, scale: Callable[[], float]
) -> list[Array]:
    """Return the initial point of each start: the first at `init`, the others at random.

    `init`: The first point, of this shape or one that broadcasts to it. None is 0.
    `starts`: Number of starts. None is 1.
    `seed`: Seed of the random points. Start k is the same whatever the number of starts.
    `scale`: Returns the standard deviation of the entries of a random start; it reads all data.
    Raises ModelError: `init` has another shape, or numbers that are not finite.
    """
    given = np.zeros(shape) if init is None else real_numbers(init, "init", ModelError)
    fits = given.ndim >= 1 and given.shape == shape[len(shape) - given.ndim :]
    if not fits or not np.isfinite(given).all():
        raise ModelError(f"init has shape {given.shape}, expected {shape} and finite numbers")
    first = np.broadcast_to(given, shape).copy()
    random = (scale() * np.random.default_rng([seed, k]).normal(size=shape) for k in range(1, starts or 1))
    return [first, *random]


def random_scale(squares: float, rows: int) -> float:
    """Return the standard deviation of random coefficients with which predictions spread by about `SPREAD`.

    `squares`: Sum of the squares of all entries of the rows.
    """
    spread = float(np.sqrt(squares / rows))  # 0 too where the quotient is below the doubles
    return SPREAD / spread if spread > 0.0 else 1.0


def best_start(solve: Callable[..., Run], points: list[Array], *, n_jobs: int, progress: bool) -> Run:
    """Solve from every point; return the best run, with a summary of each start.

    The best run has the least objective among those that converged, or among all where none did. A single start shows
    the progress of its own passes.
    Raises ModelError: No start ended at finite numbers.
    """
    alone = len(points) == 1
    runs = run_each(
        partial(solve, progress=progress and alone),
        points,
        n_jobs=n_jobs,
        progress=progress and not alone,
        description="starts",
        last=lambda run: run.interrupted or run.overdue,
    )
    best = min(range(len(runs)), key=lambda k: (not runs[k].finite, not runs[k].converged, runs[k].objective, k))
    tried = tuple(
        Start(float(run.objective), float(run.kkt.largest), int(run.iterations), bool(run.converged), k == best)
        for k, run in enumerate(runs)
    )
    best_run: Run = replace(cast(Any, runs[best]), tried=tried)
    return finite_run(best_run)


def finite_run(run: Run) -> Run:
    """Return a run whose coefficients and objective are finite numbers.

    Raises ModelError: They are not.
    """
    if not run.finite:
        raise ModelError(
            "the passes left the range of doubles: scale the columns to sizes near 1, and choose weights, penalties "
            "and rates that are neither tiny nor huge"
        )
    return run

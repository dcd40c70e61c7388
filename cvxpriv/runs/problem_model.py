"""The base of models that are one multi-convex problem on numbers, with nothing private: a subclass poses it.

Starts, certification, file, page and command follow from the problem.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Self

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxpriv import models
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import DataError
from cvxpriv.numerics.arguments import real_numbers, require_callback
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Fact, Facts
from cvxpriv.reports.files import PathLike
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.alternation import AlternationRun, Exact, Groups, alternate
from cvxpriv.runs.options import Option, declared
from cvxpriv.runs.saved import read_run

STARTS, MAX_ITER = 10, 500
#: Name of the file of a run in a command's folder.
FILE = "run.json"

Starts = Annotated[shared.Starts, Option(usual=str(STARTS))]
MaxIter = Annotated[shared.MaxIter, Option(usual=str(MAX_ITER))]


@dataclass(frozen=True, eq=False, repr=False)
class ProblemModelRun(AlternationRun):
    """The best of the starts of a model: see `AlternationRun`.

    Attributes
    ----------
    posed_by : ProblemModel
    """

    posed_by: ProblemModel = field(kw_only=True)

    @property
    def model(self) -> str:  # type: ignore[override]
        """The model's name in `cvxpriv.models`."""
        return type(self.posed_by).__name__

    @property
    def facts(self) -> Facts:
        """See `ProblemRun`; with the model's name, options, and numbers of the data."""
        found, kind = super().facts, type(self.posed_by)
        rows, columns = self.posed_by.data.shape
        missed = f"the residual is {self.residual:.1e}, {self.tol:.0e} was asked for: take more passes or starts"
        return replace(
            found,
            title=kind.command,
            summary=f"{(kind.__doc__ or '').partition(chr(10))[0]} {found.summary}".strip(),
            about=[Fact("rows", rows), Fact("columns", columns)],
            settings=[*(Fact(name, value) for name, value in self.posed_by.options.items()), *found.settings],
            files={FILE: self.save},
            unmet="" if self.converged else missed,
        )

    def saved(self) -> dict[str, Any]:
        return {**super().saved(), "data": self.posed_by.data.tolist(), "options": dict(self.posed_by.options)}

    @classmethod
    def of_document(cls, document: Mapping[str, Any], problem: cp.Problem | None = None, **more: Any) -> Self:
        """See `Run`. The file names the model, which has to be registered, and holds its data: no problem is needed."""
        model = getattr(models, document["model"])(document["data"], **document["options"])
        return super().of_document(document, problem or model.posed()[0], posed_by=model)

    @classmethod
    def load(cls, path: PathLike, problem: cp.Problem | None = None) -> Self:
        """See `Run`. The run may belong to any model of this kind."""
        return cls.opened(read_run(path), path, problem=problem)


class ProblemModel(ABC):
    """A model that is one multi-convex problem on a matrix of numbers, alternated from random starts.

    A subclass has a `command`, an `__init__` that passes data and options on by name, and `posed`. It is registered in
    `cvxpriv.models` under its class's name.

    Attributes
    ----------
    data : ndarray
        A matrix, finite.
    options : mapping of str to object
        The options that pose the problem: numbers and texts, which a saved run holds.
    """

    task: ClassVar[str] = "problem"
    command: ClassVar[str]
    #: Data on which the model's blocks are checked by `cvxpriv crosscheck --all`.
    example: ClassVar[ArrayLike] = ((2.0, 1.0, 0.5), (1.0, 3.0, 1.0), (0.5, 1.0, 2.0), (1.0, 0.2, 0.6))

    def __init__(self, data: ArrayLike, **options: Any) -> None:
        self.data: Array = real_numbers(data, "data")
        if self.data.ndim != 2 or not self.data.size:
            raise DataError(f"data has shape {self.data.shape}: expected a matrix with at least one row and column")
        if not np.isfinite(self.data).all():
            row, column = (int(one) for one in np.argwhere(~np.isfinite(self.data))[0])
            raise DataError(f"data[{row}, {column}]={self.data[row, column]}: expected finite numbers; fill or drop it")
        self.options = options

    @abstractmethod
    def posed(self) -> tuple[cp.Problem, Groups | None]:
        """Return a new problem, its variables named, and its blocks in the order of a pass; None finds them."""

    def updates(self) -> Mapping[str, Exact]:
        """Return exact updates of single blocks: see `cvxpriv.alternate`. By default there are none."""
        return {}

    @declared
    def solve(
        self,
        *,
        method: shared.OnlyMethod = None,
        engine: shared.Engine = "closed_form",
        starts: Starts = None,
        seed: shared.Seed = 0,
        tol: shared.Tol = 1e-5,
        max_iter: MaxIter = None,
        init: shared.NamedInit = None,
        solver: shared.Solver = None,
        n_jobs: shared.NJobs = 1,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        time_limit: shared.TimeLimit = None,
        isolate: shared.Isolate = None,
        oversize: shared.Oversize = False,
    ) -> ProblemModelRun:
        """Return the best of several starts.

        Raises
        ------
        ModelError
            An option is out of range, or a block is not convex.
        SolverFailure, Disagreement
            The engine raised it.
        """
        require_callback(callback, n_jobs)
        problem, blocks = self.posed()
        found = alternate(
            problem,
            blocks,
            starts=STARTS if starts is None else starts,
            seed=seed,
            init=init,
            updates=self.updates(),
            engine=engine,  # type: ignore[arg-type]
            tol=tol,
            max_iter=MAX_ITER if max_iter is None else max_iter,
            solver=solver,
            n_jobs=n_jobs,
            progress=progress,
            callback=callback,
            time_limit=time_limit,
            isolate=isolate,
            oversize=oversize,
        )
        return ProblemModelRun(**{one.name: getattr(found, one.name) for one in fields(found)}, posed_by=self)

    def cases(self) -> list[Case]:
        """Return the blocks at the answer of one start; `cvxpriv crosscheck NAME` checks them."""
        found = self.solve(starts=1)
        return [case_of_block(block, found.values) for block in found.blocks().values()]

    @classmethod
    def example_cases(cls) -> list[Case]:
        """Return the blocks at an answer for the example's data, with the options unchanged."""
        return cls(cls.example).cases()

    @classmethod
    def run_of(cls, document: Mapping[str, Any], path: PathLike) -> ProblemModelRun:
        """Return the run that a file holds; `cvxpriv.load` calls it."""
        return ProblemModelRun.opened(document, path)

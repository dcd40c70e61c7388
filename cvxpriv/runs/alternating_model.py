"""The base of mechanism models that alternate blocks: a subclass declares its blocks, starts and figures.

Command line, page, files, starts, curve, certification and cross-check follow from these.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from cvxpriv import models
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import Engine, engine_named
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError
from cvxpriv.kkt import Residuals
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.numerics.arguments import real_numbers, require_callback
from cvxpriv.numerics.arrays import Array, Values, measured_each, single, stack, starts_in, take
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import Size, of_mechanism, require_feasible
from cvxpriv.reports.facts import Facts
from cvxpriv.reports.files import PathLike
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.alternating_facts import alternating_facts
from cvxpriv.runs.mechanism_model import CurvePoints, MechanismModel, curve_points, runs_of
from cvxpriv.runs.mechanism_run import Beside, MechanismRun, restored
from cvxpriv.runs.options import Option, declared
from cvxpriv.runs.saved import read_run
from cvxpriv.runs.sides import PRIVATE_AND_PUBLIC, Sides
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.problem_starts import given_starts
from cvxpriv.schedules.running import run, run_pieces
from cvxpriv.schedules.steps import Loop, Sweep
from cvxpriv.tables.documents import table_of
from cvxpriv.tables.joint import JointTable

LOOP = "passes"
STARTS, MAX_ITER = 10, 1000
#: A pass that moves every entry of the state by at most this part of the tolerance may be the last.
HARDLY = 0.1
#: Among starts whose objectives differ by less than this, in nats, the one of least residual is the best.
SAME = 1e-9
EXAMPLE = ((0.30, 0.03, 0.13), (0.01, 0.27, 0.02), (0.03, 0.03, 0.18))

Starts = Annotated[shared.Starts, Option(usual=str(STARTS))]
MaxIter = Annotated[shared.MaxIter, Option(usual=str(MAX_ITER))]


@dataclass(frozen=True)
class Settings:
    """The options of `AlternatingModel.solve` that decide its result."""

    engine: str
    starts: int
    seed: int
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False, repr=False)
class AlternatingRun(MechanismRun["AlternatingModel", Settings]):
    """The best of a model's starts: see `MechanismRun`. The model's figures are among the columns of `starts`."""

    @property
    def model(self) -> str:  # type: ignore[override]
        """The model's name in `cvxpriv.models`."""
        return type(self.problem).__name__

    @property
    def whole(self) -> str:  # type: ignore[override]
        """Name of the block that designs the mechanism."""
        return next(name for name, block in self.blocks().items() if "mechanism" in block.writes)

    @property
    def figures(self) -> dict[str, float]:
        """The model's figures for the mechanism, in nats; the first one is minimised."""
        return {name: float(value) for name, value in self.problem.figures(self.state).items()}

    @property
    def mechanism(self) -> Array:
        rows = self.state["mechanism"]
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    @property
    def kkt(self) -> Residuals:
        """Residuals of the block farthest from its optimum. No constraint joins two blocks, so these are all."""
        found = [block.residual(self.state, self.state) for block in self.blocks().values()]
        return max(found, key=lambda residuals: residuals.largest)

    def as_model(self) -> AlternatingModel:
        return self.problem

    def blocks(self) -> dict[str, Block]:
        return self.problem.blocks()

    def _described(self, beside: Beside) -> Facts:
        return alternating_facts(self, beside, self.problem.sides, self.figures, self.problem.options)

    def as_mechanism(self) -> Mechanism:
        figures = {**self.figures, "kkt": self.residual}
        return self._designed(figures, asdict(self.settings), self.problem.table.private.columns)

    def saved(self) -> dict[str, Any]:
        return {"options": dict(self.problem.options)}

    @classmethod
    def of_document(cls, document: Mapping[str, Any], kind: type[AlternatingModel] | None = None) -> AlternatingRun:
        """See `Run`. Where the kind of model is not given, the file names one, which has to be registered."""
        fields = restored(document)
        model = (kind or getattr(models, document["model"]))(table_of(document), **document["options"])
        model.constraints = fields["constraints"]
        return cls(problem=model, settings=Settings(**document["settings"]), **fields)

    @classmethod
    def load(cls, path: PathLike) -> AlternatingRun:
        """See `Run`. The run may belong to any model of this kind."""
        return cls.opened(read_run(path), path)


@door
class AlternatingModel(MechanismModel[AlternatingRun]):
    """A model whose mechanism is found by alternating convex blocks from random starts.

    A subclass has a `command`, the `curve_option` that its curve goes along, an `__init__` that passes the table and
    its options on by name, and the three methods below. It is registered in `cvxpriv.models` under its class's name.

    Attributes
    ----------
    table : JointTable
    options : mapping of str to object
        The options that pose the problem: numbers and texts, which a saved run holds.
    """

    sides: ClassVar[Sides] = PRIVATE_AND_PUBLIC
    #: The option that a curve varies, a number.
    curve_option: ClassVar[str]

    def __init__(self, table: JointTable | npt.ArrayLike, **options: Any) -> None:
        self.table = table if isinstance(table, JointTable) else JointTable.from_array(table)
        self.options = options

    @abstractmethod
    def steps(self) -> Sequence[Block]:
        """Return the blocks of one pass, in their order. One of them writes the entry "mechanism", with rows P(Y|x)."""

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Values:
        """Return the full initial state of one start."""

    @abstractmethod
    def figures(self, state: Values) -> Mapping[str, float]:
        """Return the figures of one state, in nats; the first one is minimised."""

    @property
    def problem(self) -> Self:  # type: ignore[override]
        """The model itself: it holds its table."""
        return self

    def blocks(self) -> dict[str, Block]:
        asked = {True: self.constraints, False: ()}
        return {block.name: block.constrained(asked["mechanism" in block.writes]) for block in self.steps()}

    @declared
    def solve(
        self,
        *,
        method: shared.OnlyMethod = None,
        engine: shared.Engine = "closed_form",
        starts: Starts = None,
        seed: shared.Seed = 0,
        tol: shared.Tol = 1e-7,
        max_iter: MaxIter = None,
        init: shared.NamedInit = None,
        solver: shared.Solver = None,
        n_jobs: shared.NJobs = 1,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        time_limit: shared.TimeLimit = None,
        isolate: shared.Isolate = None,
        oversize: shared.Oversize = False,
    ) -> AlternatingRun:
        """Return the best of several starts.

        Raises
        ------
        ModelError
            An option is out of range.
        SolverFailure, Disagreement
            The engine raised it.
        """
        begun = time.perf_counter()
        require_callback(callback, n_jobs)
        who = engine_named(engine, solver=solver, time_limit=time_limit, isolate=isolate, residual=tol)
        given = given_starts(init)
        count = len(given) or (STARTS if starts is None else starts)
        size = self.size(engine=who.name, starts=count, max_iter=max_iter, time_limit=time_limit)
        require_feasible(size, oversize)
        limit = MAX_ITER if max_iter is None else max_iter
        blocks = list(self.blocks().values())
        loop = Loop(Sweep(blocks), _Settled(blocks, tol), limit, self._measured, name=LOOP)
        initial = [self._initial(seed, number, given[number] if given else {}) for number in range(count)]
        done = run_pieces(partial(_passes, loop, who, callback), initial, n_jobs=n_jobs, progress=progress)
        state = {name: np.concatenate([piece[name] for piece, _ in done]) for name in done[0][0]}
        measured = self._measured(state)
        objective = measured.pop("objective")
        origin = "init" if given else "random"
        measured = {**measured, "kkt": _residuals(blocks, state)}
        table, log = _starts(origin, measured, [context for _, context in done], tol)
        near = table[objective <= objective.min() + SAME]
        best = int(near["kkt"].idxmin())
        settings = Settings(who.name, count, seed, limit, tol)
        interrupted = any(context.interrupted for _, context in done)
        return AlternatingRun(
            self,
            single(state, best),
            dict(table),
            best,
            settings,
            time.perf_counter() - begun,
            log,
            self.constraints,
            interrupted,
            overdue=any(context.overdue for _, context in done),
        )

    def size(self, **solving: Any) -> Size:
        """See `MechanismModel`; by default of a mechanism with one more output than inputs."""
        private, inputs = self.table.probabilities.shape
        return of_mechanism(
            private,
            inputs,
            inputs + 1,
            starts=solving.get("starts") or STARTS,
            passes=solving.get("max_iter") or MAX_ITER,
            exact=solving.get("engine", "closed_form") == "closed_form" and not self.constraints,
        ).within(solving.get("time_limit"))

    def along(self, points: Iterable[float] | int) -> list[Self]:
        """See `MechanismModel`. A number n stands for 1/n, 2/n, ..., 1 of the model's own value."""
        named = [{**self.options, self.curve_option: point} for point in self._points(points)]
        several = [type(self)(self.table, **options) for options in named]
        for one in several:
            one.constraints = self.constraints
        return several

    def curve(self, points: CurvePoints = 20, **options: Any) -> pd.DataFrame:
        """Return the best run's figures at each value of `curve_option`."""
        rows = [
            {self.curve_option: point, **found.figures, "kkt": found.residual, "converged": found.converged}
            | {"iterations": found.iterations, "seconds": found.seconds}
            for point, found in zip(self._points(points), runs_of(self.along(points), options, "points"), strict=False)
        ]
        return pd.DataFrame(rows)

    @classmethod
    def example_cases(cls) -> list[Case]:
        """See `MechanismModel`. The blocks belong to an answer for a small table, with the options unchanged."""
        found = cls(np.array(EXAMPLE)).solve(starts=2)
        return [case_of_block(block, found.state) for block in found.blocks().values()]

    @classmethod
    def run_of(cls, document: Mapping[str, Any], path: PathLike) -> AlternatingRun:
        return AlternatingRun.opened(document, path, kind=cls)

    def _require_declarable(self) -> None:
        for block in self.blocks().values():
            block.declaration()

    def _measured(self, state: Values) -> dict[str, Array]:
        named = measured_each(self.figures)(state)
        return {**named, "objective": next(iter(named.values()))}

    def _initial(self, seed: int, number: int, given: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
        """Return the state of a start: that of `start`, with the entries that are given."""
        usual = dict(self.start(np.random.default_rng([seed, number])))
        for name, value in given.items():
            if name not in usual or np.shape(value) != usual[name].shape:
                shapes = ", ".join(f"{one} {entry.shape}" for one, entry in usual.items())
                raise ModelError(f"init[{number}][{name!r}] has shape {np.shape(value)}: the state has {shapes}")
            usual[name] = real_numbers(value, f"init[{number}][{name!r}]", ModelError)
        return usual

    def _points(self, points: Iterable[float] | int) -> list[float]:
        return curve_points(points, float(self.options[self.curve_option]))


@dataclass(frozen=True)
class _Settled:
    """Stop a start whose blocks are all optimal to a tolerance, checked once a pass hardly moves it."""

    blocks: Sequence[Block]
    tol: float

    def __call__(
        self, iteration: int, before: Values, after: Values, measured: Mapping[str, Array]
    ) -> npt.NDArray[np.bool_]:
        """See `Stop`."""
        moves = [np.abs(after[name] - before[name]).reshape(starts_in(after), -1).max(axis=1) for name in after]
        still = np.max(moves, axis=0) <= HARDLY * self.tol
        if still.any():
            still[still] = _residuals(self.blocks, take(after, np.flatnonzero(still))) <= self.tol
        return np.asarray(still)


def _residuals(blocks: Sequence[Block], state: Values) -> Array:
    """Return, for every start, the residual of the block farthest from its optimum while the others are fixed."""
    return np.asarray(np.max([block.own_residuals(state) for block in blocks], axis=0))


def _passes(
    loop: Loop, engine: Engine, callback: shared.Watch | None, starts: list[dict[str, Any]]
) -> tuple[dict[str, Array], Context]:
    context = Context(engine, History(), callback, starts=np.arange(len(starts)))
    return run(loop, stack(starts), context), context


def _starts(
    origin: str, measured: Mapping[str, Array], contexts: Sequence[Context], tol: float
) -> tuple[pd.DataFrame, History]:
    iterations = [context.reports[LOOP].iterations for context in contexts]
    table = pd.DataFrame({"origin": origin, **measured})
    table["iterations"], table["converged"] = np.concatenate(iterations), measured["kkt"] <= tol
    log = History.joined((context.history, len(one)) for context, one in zip(contexts, iterations, strict=True))
    return table.rename_axis("start"), log

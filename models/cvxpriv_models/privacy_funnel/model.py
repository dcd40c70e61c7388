"""The model's face: `PrivacyFunnel`, its options and its curve."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv import datasets
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import Engine, Until, elsewhere_of, engine_named
from cvxpriv.bounds.columns import INTERRUPTED
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError, SolverFailure
from cvxpriv.numerics.arguments import require_callback
from cvxpriv.numerics.arrays import Array, Values, given_count
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import Size, late, now, of_mechanism, processor_time, require_feasible, until
from cvxpriv.reports.files import PathLike
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.mechanism_model import CurvePoints, MechanismModel, curve_points, runs_of
from cvxpriv.runs.mechanism_run import unsought
from cvxpriv.runs.options import Option, declared
from cvxpriv.runs.sides import Sides
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run_pieces
from cvxpriv.solvers.isolation import answered_apart
from cvxpriv.solvers.place import apart, supervised, within
from cvxpriv.tables.joint import JointTable

from . import algorithm, closed_form, optimum
from .blocks import Constraints, blocks
from .bound import FunnelBound, Prover, unsearched
from .constrained_bound import ConstrainedBound, bound_under
from .constrained_start import best, constrained_start, further_starts, refused
from .curve import band, certified_row, curve_row, lower_envelope
from .facts import SIDES
from .perfect_privacy import PerfectPrivacy, perfect_privacy
from .population import Population, population_interval
from .problem import RATE_UNITS, Cells, Problem, usual_size
from .run import FunnelRun, Settings
from .solving import Passes, best_run, initial

#: The method that proves its answer: column generation, and a polish.
COLUMNS = "columns"
#: Processor seconds for the bound, for up to `ITS_SIZE` symbols of X; in proportion beyond, and at most `LONGEST`. The
#: polish ends after as many more.
TIME_LIMIT = 30.0
ITS_SIZE, LONGEST = 480, 60.0
#: Number of plain passes that one with an acceleration costs.
ACCELERATED = 3.0
Rate = Annotated[float, Option("Least utility of Y: I(X;Y) >= rate.")]
RateUnit = Annotated[str, Option("Unit of the rate. A fraction is one of H(X).", choices=RATE_UNITS)]
SizeY = Annotated[
    int | None,
    Option(
        "Number of symbols of Y.",
        low=1,
        high=1e9,
        usual="|X| + 1, and 1 for each constraint on a sum over Y, with which every point can be reached",
    ),
]
Method = Annotated[
    shared.Method,
    Option(
        choices=(COLUMNS, *algorithm.METHODS),
        usual="columns; aem, the paper's Algorithm 1, with init or an acceleration; ccp with constraints",
    ),
]
Accelerate = Annotated[
    str,
    Option("Acceleration of a pass, by Newton steps; none is the paper's iteration.", choices=("auto", "none")),
]
Starts = Annotated[
    shared.Starts,
    Option(
        usual="none beside the optimum of columns; 30 for aem, 4 to 16 with constraints, 1 where a solver does the work"
    ),
]
Tol = Annotated[shared.Tol, Option(unit="nats")]
MaxIter = Annotated[shared.MaxIter, Option(usual=f"{algorithm.MAX_ITER}")]
Gap = Annotated[
    float, Option("Certified distance from the best possible leakage at which columns stops.", unit="nats", above=0.0)
]
TimeLimit = Annotated[
    float, Option("Time limit of the search for the bound. A bound proved by then holds.", unit="seconds", above=0.0)
]
SolveLimit = Annotated[
    shared.TimeLimit, Option(usual="30 processor seconds for the bound, up to 60 for a large X; no other limit")
]
Certified = Annotated[bool, Option("Compute only the two bounds of each rate, columns of one rate serving the next.")]


class SolveOptions(shared.SolveOptions, total=False):
    """The options of `PrivacyFunnel.solve`, as `PrivacyFunnel.curve` passes them on."""

    accelerate: Accelerate
    gap: Gap


@door
@declared
class PrivacyFunnel(MechanismModel[FunnelRun]):
    """Design an output Y to release in place of X: it tells enough of X, and as little as possible of S. PF (1).

    Minimise I(S;Y) over the mechanisms P(Y|X) with I(X;Y) >= rate.

    Parameters
    ----------
    p_sx : JointTable or array, (|S|, |X|)
        Joint distribution of the private S and the public X.

    Raises
    ------
    DataError
        `p_sx` is no joint distribution.
    ModelError
        The rate, its unit or `size_y` is out of range.

    Examples
    --------
    >>> from cvxpriv.models import PrivacyFunnel
    >>> funnel = PrivacyFunnel([[0.30, 0.03, 0.13], [0.01, 0.27, 0.02], [0.03, 0.03, 0.18]], rate=0.5)
    >>> run = funnel.solve(starts=10, seed=0)
    >>> run.converged, run.mechanism.shape
    (True, (3, 4))
    """

    command: ClassVar[str] = "funnel"
    sides: ClassVar[Sides] = SIDES

    problem: Problem

    @declared
    def __init__(
        self, p_sx: JointTable | ArrayLike, rate: Rate = 0.8, *, rate_unit: RateUnit = "fraction", size_y: SizeY = None
    ) -> None:
        self.problem = Problem.of(p_sx, rate, rate_unit, size_y)
        self._usual_size = size_y is None

    def __repr__(self) -> str:
        size_s, size_x = self.problem.p_s_given_x.shape
        return f"PrivacyFunnel({size_s} x {size_x} table, rate={self.problem.rate:.6g} nats, |Y|={self.problem.size_y})"

    def at_rate(self, rate: float) -> PrivacyFunnel:
        """Return the same funnel at another rate, a fraction of H(X)."""
        size_y = None if self._usual_size else self.problem.size_y
        return PrivacyFunnel(self.problem.table, rate, rate_unit="fraction", size_y=size_y)._with(self.constraints)

    def along(self, points: Iterable[float] | int) -> list[PrivacyFunnel]:
        return [self.at_rate(rate) for rate in curve_points(points)]

    def size(self, **solving: Any) -> Size:
        private, inputs = self.problem.p_s_given_x.shape
        engine, accelerate = solving.get("engine", "closed_form"), solving.get("accelerate", "auto")
        exact = engine == "closed_form" and not self.constraints
        plain = solving.get("method") in (None, COLUMNS) and solving.get("init") is None and accelerate == "auto"
        usual = 1 if exact and plain else 30 if exact else 4 if self.constraints else 1
        limited, proved = solving.get("time_limit"), plain and engine == "closed_form"
        size = of_mechanism(
            private,
            inputs,
            self.problem.size_y,
            starts=given_count(solving.get("init")) or solving.get("starts") or usual,
            passes=solving.get("max_iter") or algorithm.MAX_ITER,
            exact=exact,
            effort=ACCELERATED if exact and accelerate != "none" else 1.0,
            blocks=(1.0,) if self.constraints else (1.0, float(private)),  # the q block has a cell for each of S too
        ).within(limited)
        return replace(size, proof=self._longest_proof) if proved and limited is None else size

    @property
    def _longest_proof(self) -> float:
        """Processor seconds after which the search for a bound ends where no limit is given."""
        return min(TIME_LIMIT * max(1.0, self.problem.p_x.size / ITS_SIZE), LONGEST)

    def blocks(self) -> dict[str, Block]:
        """Return every block of the model by name, with the constraints added so far."""
        return blocks(self.problem, self.constraints)

    @declared
    def solve(
        self,
        *,
        method: Method = None,
        engine: shared.Engine = "closed_form",
        starts: Starts = None,
        seed: shared.Seed = 0,
        tol: Tol = 1e-7,
        max_iter: MaxIter = None,
        init: shared.Init = None,
        solver: shared.Solver = None,
        n_jobs: shared.NJobs = 1,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        time_limit: SolveLimit = None,
        isolate: shared.Isolate = None,
        oversize: shared.Oversize = False,
        accelerate: Accelerate = "auto",
        gap: Gap = 1e-8,
    ) -> FunnelRun:
        """Return the best mechanism, with a proof of how good it is; or the best of several starts.

        The usual method, "columns", searches posteriors by column generation and polishes what it finds; `run.gap` is
        a certified distance from the best possible leakage. Up to |S| = 5, or 8 on a small table, the search is
        complete, and the answer is the global optimum; beyond, `run.bound.reason` says that it is not. The others
        alternate blocks from several starts, as the paper does, and prove nothing.

        Parameters
        ----------
        starts : int, optional
            Number of starts. None is none beside the optimum that "columns" finds, 30 with "aem" and exact updates, 4
            with constraints, and 1 where else a solver does the work. While the certified gap under constraints is
            above `tol`, up to 12 more are tried, within ten processor seconds, and count where they end lower. They
            are random, except that with exact updates the first comes from submodular clustering: on large tables it
            often ends lowest.
        init : array, (|X|, |Y|) or (starts, |X|, |Y|), optional
            Mechanisms P(Y|X) to start from in place of random ones. A zero stays a zero.
        accelerate : {"auto", "none"}
            Addition to a pass of "aem": "none" is the paper; "auto", a feasible Newton step, reaches a
            stationary point in tens of passes where the paper's iteration takes thousands; with constraints, five
            passes and Newton's method on those that bind.

        Raises
        ------
        ModelError
            An option is out of range, or `init` does not fit or does not carry the rate.
        SolverFailure
            No solver of the chain solved a block.
        Disagreement
            The `checked` engine found two answers, or a step that broke an invariant.

        Notes
        -----
        A keyboard interrupt returns the best mechanism so far, with `converged` False.
        """
        begun = time.perf_counter()
        require_callback(callback, n_jobs)
        who = engine_named(engine, solver=solver, time_limit=time_limit, isolate=isolate)
        asked = {"method": method, "engine": who.name, "starts": starts, "max_iter": max_iter, "init": init}
        require_feasible(self.size(**asked, accelerate=accelerate, time_limit=time_limit), oversize)
        usually, method = method is None, self._method(method, who, init, accelerate)
        blocks = "aem" if method == COLUMNS else method
        limit = algorithm.MAX_ITER if max_iter is None else max_iter
        work = Passes(self.problem, self.constraints, blocks, accelerate, tol, limit, who, callback)
        done: list[tuple[Values, Context]] = []
        proved, under = None, None
        limit_of_bound = self._longest_proof if time_limit is None else shared.FOR_THE_BOUND * time_limit
        ends = now() + (np.inf if time_limit is None else time_limit)
        with apart(elsewhere_of(who)), processor_time(time_limit is None), until(ends):
            if method == COLUMNS:
                proved, _ = self._proved(gap, limit_of_bound)
                few = min(limit, optimum.FEW_PASSES) if proved.upper <= tol else limit
                ending = Until(who, now() + limit_of_bound) if time_limit is None else who
                polish = replace(work, limit=few, engine=ending)
                done += optimum.polished(self.problem, proved, tol, who, polish, limit_of_bound)
            elif usually and self.constraints and who.name == "closed_form" and init is None:
                proved, under = self._proved(gap, limit_of_bound)
                settled = partial(optimum.settled, self.problem, who)
                done += constrained_start(self.problem, self.constraints, under, work, settled, tol)
            origins = [COLUMNS] * len(done)
            exact = who.name == "closed_form" and not self.constraints and blocks == "aem"
            end = bool(done) and (under is None or under.fits(self.problem.size_y))
            if done and proved is not None and not end:
                end = best(self.problem, self.constraints, proved, closed_form.rows_of(done[0][0]["log_u"][0]), tol)
            usual = 0 if end else 30 if exact else 4 if self.constraints else 1
            count = usual if starts is None else starts
            if count and not (done and late()):
                log_u, others = initial(self.problem, init, count, seed, clustered=exact)
                try:
                    done += run_pieces(work, log_u, n_jobs=n_jobs, progress=progress)
                    origins += others
                    if starts is None and proved is not None and self.constraints:
                        more = further_starts(self.problem, proved, done, work.below, seed, tol)
                        origins += ["random"] * sum(len(state["log_u"]) for state, _ in more)
                        done += more
                except ModelError as problem:
                    if not done:
                        raise refused(problem, self.problem, self.constraints, under) from None
            settings = Settings(who.name, method, accelerate, len(origins), seed, limit, tol)
            seconds = time.perf_counter() - begun
            found = best_run(self.problem, self.constraints, done, origins, settings, seconds, proved)
        changed = {"method": not usually, "engine": who.name != "closed_form", "init": init is not None}
        no_gap = "" if proved is not None else unsought({**changed, "accelerate": accelerate != "auto"})
        return replace(found, isolate=isolate, no_gap=no_gap)

    def _method(self, method: str | None, who: Engine, init: ArrayLike | None, accelerate: str) -> str:
        """Return the method that is asked for, or the usual one."""
        exact = who.name == "closed_form" and not self.constraints
        if method == COLUMNS and not exact:
            raise ModelError(
                f"method={method!r} needs engine='closed_form' and no constraints: choose 'aem', or 'ccp' with "
                "constraints; bound() still bounds the leakage without them"
            )
        plain = exact and init is None and accelerate == "auto"
        return method or ("ccp" if self.constraints else COLUMNS if plain else "aem")

    @declared
    def bound(self, *, gap: Gap = 1e-6, time_limit: TimeLimit = 60.0, isolate: shared.Isolate = None) -> FunnelBound:
        """Bound the least leakage at the rate from both sides, with a certificate that needs no solver.

        With constraints `lower` counts those that `counted` names: on tables small enough, all ready ones but floors,
        fixed cells, and those on the order or the distribution of outputs. It holds with the others too, which
        `ignored` names. `mechanism` leaks `upper`; it satisfies the counted constraints, unless `reason` says that
        none was found that does: `upper` is then I(S;X). With `isolate` the search is made in a process of its own,
        which is ended after so many seconds whatever a solver does there.

        Raises
        ------
        ModelError
            The constraints let no mechanism carry the rate.
        SolverFailure
            The process of `isolate` did not answer.
        """
        if isolate is not None:
            again = {"gap": gap, "time_limit": time_limit}
            return answered_apart("the bound", partial(self.bound, **again), seconds=isolate)
        return self._searched(gap, time_limit)[0]

    def _searched(self, gap: float, time_limit: float) -> tuple[FunnelBound, ConstrainedBound | None]:
        if not self.constraints:
            return Prover(self.problem.table.probabilities).at(self.problem.rate, gap, time_limit), None
        return bound_under(self.problem, self.constraints, gap, time_limit)

    def _proved(self, gap: float, seconds: float) -> tuple[FunnelBound, ConstrainedBound | None]:
        """Return what a search proves; where no solver answers it, a bound that needs none and says so."""
        try:
            return supervised("the bound", self._searched, gap, within(seconds))
        except SolverFailure as failure:
            found = unsearched(self.problem, failure)
            return replace(found, ignored=tuple(name for name, _ in self.constraints)), None
        except KeyboardInterrupt:  # here, while the search runs elsewhere
            return replace(unsearched(self.problem, SolverFailure("")), reason=INTERRUPTED), None

    def perfect_privacy(self) -> PerfectPrivacy:
        """Return the largest rate at which nothing leaks, with its mechanism."""
        return perfect_privacy(self.problem.table)

    def population(self, replicates: int = 100, level: float = 0.95, seed: int = 0) -> Population:
        """Return intervals for the least leakage at the rate in the population that the table's records come from.

        One by the bootstrap, one that holds for any population on the same symbols. Constraints are left out.

        Raises
        ------
        DataError
            The table holds no counts.
        ModelError
            An argument is out of range.
        """
        return population_interval(self.problem.table, self.problem.rate, replicates, level, seed)

    @declared
    def curve(
        self, points: CurvePoints = 20, *, certified: Certified = False, **options: Unpack[SolveOptions]
    ) -> pd.DataFrame:
        """Return the privacy-utility trade-off: the least leakage found at each rate.

        A mechanism found at a higher rate serves a lower one too, so the curve never falls as the rate rises; the
        column `found_at` names the rate at which the mechanism was found.

        Parameters
        ----------
        points : iterable of float, or int
            Rates as fractions of H(X); a number n stands for 1/n, 2/n, ..., 1.
        **options
            Those of `solve`; `n_jobs` are processes among which the rates are divided.

        Returns
        -------
        DataFrame
            One row per rate: fraction, rate, utility, leakage, lower (nats), kkt, converged, iterations, found_at,
            seconds. `lower` is a certified bound, NaN where none is known. A keyboard interrupt ends the curve: the
            rates that were finished come back. With `certified`, no kkt and no iterations, but `reason`: "", or why the
            gap is not the wanted one; an interrupt leaves the rates down to the one that it cut, whose row names it.

        Raises
        ------
        ModelError
            `certified` with constraints, which the bounds would ignore, or with options that only `solve` has.
        """
        return self._band(points, dict(options)) if certified else self.traced(points, **options)[0]

    def traced(self, points: Iterable[float] | int, **options: Any) -> tuple[pd.DataFrame, Sequence[Array]]:
        runs = runs_of(self.along(points), options, "rates")
        pairs = list(zip(curve_points(points), runs, strict=False))
        if not pairs:
            return pd.DataFrame(), []
        curve = lower_envelope([curve_row(rate, run) for rate, run in pairs])
        found = {rate: run.mechanism for rate, run in pairs}
        return curve, [found[rate] for rate in curve["found_at"]]

    def _band(self, points: Iterable[float] | int, options: dict[str, object]) -> pd.DataFrame:
        if self.constraints:
            raise ModelError("certified=True bounds the leakage without constraints: leave certified out")
        if other := sorted(set(options) - {"gap", "time_limit", "n_jobs", "progress"}):
            raise ModelError(f"certified=True runs no method: leave {', '.join(other)} out")
        fractions = curve_points(points)
        rates = [one.problem.rate for one in self.along(fractions)]
        gap, time_limit = (float(str(options.get(name, usual))) for name, usual in (("gap", 1e-6), ("time_limit", 60)))
        found = band(self.problem.table, rates, gap, time_limit)
        rows = [certified_row(fractions[place], point, self.problem.p_x) for place, point in found.items()]
        return pd.DataFrame(rows)

    @staticmethod
    def example_cases() -> list[Case]:
        """Return every block at an answer on the heart failure table; `cvxpriv crosscheck --all` checks them."""
        run = PrivacyFunnel(datasets.heart_failure(), rate=0.6).solve(starts=3)
        cases = [case_of_block(block, run.state) for block in run.blocks().values()]
        return [replace(case, name=f"funnel {case.name}") for case in cases]

    @staticmethod
    def run_of(document: Mapping[str, Any], path: PathLike) -> FunnelRun:
        return FunnelRun.opened(document, path)

    @classmethod
    def of_problem(cls, problem: Problem, constraints: Constraints) -> Self:
        model = super().of_problem(problem, constraints)
        model._usual_size = problem.size_y == usual_size(problem.p_x.size, constraints)
        return model

    def _with(self, constraints: Constraints) -> Self:
        other = super()._with(constraints)
        if self._usual_size:
            other.problem = replace(self.problem, size_y=usual_size(self.problem.p_x.size, constraints))
        return other

    def _require_declarable(self) -> None:
        every_cell = Cells(np.ones((self.problem.p_x.size, self.problem.size_y), dtype=bool))
        self.blocks()["u"].declaration(every_cell)

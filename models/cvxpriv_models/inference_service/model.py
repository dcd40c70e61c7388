"""The model's face: `InferenceAsService`, its solve and its curve."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Known
from cvxpriv.blocks.engines import Until, elsewhere_of, engine_named
from cvxpriv.bounds.output_names import in_place
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import SolverFailure
from cvxpriv.mechanisms.plots import Axis, with_axes
from cvxpriv.numerics.arguments import require_callback
from cvxpriv.numerics.arrays import Array, given_count
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import Size, now, of_mechanism, processor_time, require_feasible, until
from cvxpriv.reports.files import PathLike
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.mechanism_model import CurvePoints, MechanismModel, curve_points, runs_of
from cvxpriv.runs.mechanism_run import unsought
from cvxpriv.runs.options import declared
from cvxpriv.runs.sides import Sides
from cvxpriv.schedules.running import run_each
from cvxpriv.solvers.isolation import answered_apart
from cvxpriv.solvers.place import apart, supervised, within
from cvxpriv.tables.joint import JointTable

from . import algorithm, options
from .algorithm import AUTO, COLUMNS
from .bound import CERTIFIED, ServiceBound, bound, unsearched
from .facts import SIDES
from .joint import joint
from .kkt import residuals
from .measured import Options
from .options import require_solvable, warn_without_guarantee
from .priced_constraints import PricedConstraints
from .problem import LARGEST_BETA, Problem
from .run import InferenceRun, Settings
from .selection import best_run, initial
from .solving import FIRST_PASSES, LAST_PASSES, SOLVER_PASSES, solve_starts
from .starts import fitted, given
from .thresholds import SHARE, WITHOUT_THRESHOLD, CriticalBeta, critical_beta, usual_beta
from .whole_newton import risen

#: Single passes of the default beside its joint steps.
AFTER = FIRST_PASSES + LAST_PASSES
#: Joint steps by a solver that a pass over all rows takes, and what an entry of both holds in bytes.
BY_ROWS, COMPILED_BY_ROWS = 3, 6e4
#: Starts and outer steps where exact updates do the work, under constraints, and where a solver does.
EXACT_STARTS, SOLVER_STARTS, CONSTRAINED_STARTS, NAMED_STARTS = 20, 1, 6, 12
JOINT_STEPS, EXACT_STEPS, SOLVER_STEPS = 100, 1000, 50
#: Joint steps where the optimum has more outputs than U; the relative gap to prove under constraints.
MERGED_STEPS, CONSTRAINED_GAP = 300, 1e-5
#: Cells of a mechanism up to which "auto" looks for better ones too where the optimum has more outputs than U.
SMALL = 500
#: Starts that run as one batch, and cells of their mechanisms above which it is one start.
PIECE, BATCHED = 5, 1_000_000
TIME_LIMIT = 30.0
#: Why nothing is proved of many symbols of S.
MANY = (
    f"S has more than {CERTIFIED} symbols, for which solve() looks for no bound; "
    "that of bound() holds, and may be loose"
)


@door
@declared
class InferenceAsService(MechanismModel[InferenceRun]):
    """Design a message U to send in place of data Y: a server infers S from it and learns little of Y. IAS (1).

    Maximise I(S;U) - beta E[f(p(u)/p(u|y))] over the mechanisms P(U|Y).

    Parameters
    ----------
    p_sy : JointTable or array, (|S|, |Y|)
        Joint distribution of the inferred S and the user's data Y.

    Raises
    ------
    DataError
        `p_sy` is no joint distribution.
    ModelError
        An argument is out of range.

    Examples
    --------
    >>> from cvxpriv.models import InferenceAsService
    >>> inference = InferenceAsService([[0.30, 0.15, 0.05], [0.05, 0.15, 0.30]], beta=0.2)
    >>> run = inference.solve(starts=5, seed=0)
    >>> run.converged, run.mechanism.shape
    (True, (3, 4))
    """

    command: ClassVar[str] = "inference"
    sides: ClassVar[Sides] = SIDES

    problem: Problem

    @declared
    def __init__(
        self,
        p_sy: JointTable | ArrayLike,
        beta: options.Beta = None,
        *,
        divergence: options.Divergence = "jensen-shannon",
        size_u: options.SizeU = None,
        floor: options.Floor = 0.0,
    ) -> None:
        problem = Problem.of(p_sy, WITHOUT_THRESHOLD if beta is None else beta, divergence, size_u, floor)
        self.problem = replace(problem, beta=usual_beta(problem)) if beta is None else problem

    def __repr__(self) -> str:
        size_s, size_y = self.problem.p_s_given_y.shape
        return (
            f"InferenceAsService({size_s} x {size_y} table, beta={self.problem.beta:g}, "
            f"{self.problem.divergence.name}, |U|={self.problem.size_u}, floor={self.problem.floor:g})"
        )

    def at_beta(self, beta: float) -> InferenceAsService:
        """Return the same model at another weight of privacy."""
        problem = self.problem
        other = InferenceAsService(
            problem.table, beta, divergence=problem.divergence, size_u=problem.size_u, floor=problem.floor
        )
        other.constraints = self.constraints
        return other

    def along(self, points: Iterable[float] | int) -> list[InferenceAsService]:
        whole = usual_beta(self.problem) / SHARE if isinstance(points, int) else 1.0
        return [self.at_beta(beta) for beta in curve_points(points, whole)]

    def blocks(self) -> dict[str, Block]:
        """Return every block of the model by name, with the constraints added so far."""
        return algorithm.blocks(self.problem, constraints=self.constraints)

    @declared
    def beta_critical(self, seed: shared.Seed = 0) -> CriticalBeta:
        """Return from which beta on the trivial mechanism is optimal: the local threshold, and a searched one."""
        return critical_beta(self.problem, seed)

    @declared
    def solve(
        self,
        *,
        method: options.Method = None,
        engine: shared.Engine = "closed_form",
        starts: options.Starts = None,
        seed: shared.Seed = 0,
        tol: options.Tol = 1e-7,
        max_iter: options.MaxIter = None,
        init: shared.Init = None,
        solver: shared.Solver = None,
        n_jobs: shared.NJobs = 1,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        time_limit: options.SolveLimit = None,
        isolate: shared.Isolate = None,
        oversize: shared.Oversize = False,
        accelerate: options.Accelerate = "auto",
        rho: options.Rho = 1.0,
        inner: options.Inner = 100,
        inner_tol: options.InnerTol = 1e-6,
        c: options.Modulus = 10.0,
        step: options.Step = None,
        gap: options.Gap = 1e-6,
    ) -> InferenceRun:
        """Return the best mechanism, with a proof of how good it is; or the best of several starts.

        The usual method, "columns", finds the global optimum by column generation and goes on by joint steps;
        `run.gap` is then a certified distance from the best possible objective. The others prove nothing beyond the
        server's present reading of U (`run.local_gap`).

        Parameters
        ----------
        method : {"columns", "auto", "admm", "joint", "bregman", "gradient", "printed"}, optional
            "columns" needs |S| <= 4 and exact updates. "auto" takes joint steps from a start that one
            convex problem over a grid of posteriors made, and single passes of ADMM from every start, and goes on from
            the best, and from one joint problem over the posteriors of all of them. "admm" is the paper's Algorithm 1,
            "joint" solves (10) exactly at each step, "bregman" is (29), "gradient" the paper's GA. "printed" is
            Algorithm 1 with the sign of (19) as printed: it diverges. None is "columns" where |S| <= 4 and
            neither `starts`, `init` nor another engine is given; with kinks of f, a floor, or constraints that the
            bound leaves out, "auto" goes on from its optimum and its own starts. Else None is "auto".
        starts : int, optional
            Number of starts. None is the optimum that "columns" finds, 20 for "auto" with exact updates, 6 with
            constraints (12 with those that name outputs), 1 where a solver does the work. Those of "auto" and "joint"
            begin with the grid start, the trivial mechanism, clustered inputs and the identity; the others are random.
            With constraints every other one is the end of a start that did not know them, and outputs get the names at
            which the constraints are missed least.
        init : array, (|Y|, |U|) or (starts, |Y|, |U|), optional
            Mechanisms P(U|Y) to start from in place of these.

        Raises
        ------
        ModelError
            An option is out of range, `init` does not fit, or the constraints cannot hold or ask for the joint block.
        SolverFailure
            No solver of the chain solved a block.
        Disagreement
            The `checked` engine found two answers.

        Warns
        -----
        NoGuaranteeWarning
            "printed", and "bregman" with c <= l_g.

        Notes
        -----
        A keyboard interrupt returns the best mechanism so far, with `converged` False.
        """
        begun = time.perf_counter()
        require_callback(callback, n_jobs)
        who = engine_named(engine, solver=solver, time_limit=time_limit, isolate=isolate)
        asked = {"method": method, "engine": who.name, "starts": starts, "max_iter": max_iter, "init": init}
        require_feasible(self.size(**asked, inner=inner, time_limit=time_limit), oversize)
        require_solvable(self.problem, self.constraints, method or AUTO, who)
        exact = who.name == "closed_form" and not self.constraints
        usual = JOINT_STEPS if method in (None, COLUMNS, AUTO, "joint") else EXACT_STEPS
        steps = (usual if exact else SOLVER_STEPS) if max_iter is None else max_iter
        chosen = Options(tol, steps, rho, inner, inner_tol, c, step, accelerate)
        warn_without_guarantee(self.problem, method or AUTO, chosen)
        count = starts or self._usual_starts(exact)
        free = init is None and starts is None and who.name == "closed_form"
        asked_for = method == COLUMNS or (method is None and free and self._few)
        seconds = TIME_LIMIT if time_limit is None else shared.FOR_THE_BOUND * time_limit
        ends = now() + (np.inf if time_limit is None else time_limit)
        with apart(elsewhere_of(who)), processor_time(time_limit is None), until(ends):
            changed = {"method": method is not None, "engine": who.name != "closed_form"}
            changed |= {"starts": starts is not None, "init": init is not None}
            proved, no_gap = (
                self._proved(gap, seconds) if asked_for else (None, unsought(changed) if self._few else MANY)
            )
            method = method or AUTO
            drawn = partial(initial, self.problem, self.constraints, count=count, seed=seed, engine=who)
            if init is not None:
                mechanisms, origins = given(self.problem, init)
            elif proved is not None:
                left = TIME_LIMIT if time_limit is None else time_limit - seconds
                mechanisms, origins, method, chosen = self._from_bound(proved, chosen, drawn, left, max_iter is None)
            else:
                mechanisms, origins = drawn(method)
            steps_of = "joint" if method == COLUMNS else method
            if proved is not None and init is None and self._final(proved, mechanisms, tol):
                steps_of = ""
            ending = Until(who, now() + TIME_LIMIT) if method == COLUMNS and time_limit is None else who
            # Pieces of one size, whoever does them: how many starts share a batch decides the last bits of each.
            several = PIECE if PIECE * mechanisms[0].size <= BATCHED else 1
            parts = [slice(first, first + several) for first in range(0, len(mechanisms), several)]
            done = run_each(
                partial(solve_starts, self.problem, self.constraints, steps_of, chosen, ending, callback),
                [(mechanisms[part], origins[part]) for part in parts],
                n_jobs=n_jobs,
                progress=progress,
                description="starts",
            )
            settings = Settings(method, who.name, sum(len(piece["q"]) for piece, _ in done), seed, chosen)
            best = best_run(self.problem, self.constraints, done, origins, settings, proved, no_gap)
        stopped = best.interrupted or (proved is not None and proved.interrupted)
        return replace(best, seconds=time.perf_counter() - begun, interrupted=stopped, isolate=isolate)

    def _proved(self, gap: float, seconds: float) -> tuple[ServiceBound | None, str]:
        """Return the bound; or None, and why no solver answers its search."""
        if self.constraints and not PricedConstraints.of(self.problem, self.constraints).none:
            gap = max(gap, CONSTRAINED_GAP)  # which the linear program of their columns reaches in seconds
        search = partial(bound, self.problem, gap=gap, time_limit=within(seconds))
        try:
            return supervised("the bound", partial(search, constraints=self.constraints)), ""
        except SolverFailure as failure:
            return None, f"no bound was found: {failure}"
        except KeyboardInterrupt:  # here, while the search runs elsewhere
            return unsearched(self.problem), ""

    def _from_bound(
        self,
        proved: ServiceBound,
        chosen: Options,
        drawn: Callable[[str], tuple[Array, Sequence[str]]],
        seconds: float,
        usual: bool,
    ) -> tuple[Array, Sequence[str], str, Options]:
        """Return the starts that a bound's mechanism gives, their origins, and the method and options from there.

        `drawn`: Returns the usual starts of a method. `seconds`: Time that is left. `usual`: Whether no number of steps
        was asked for.
        """
        begin = fitted(self.problem, proved.mechanism)[0]
        if self.constraints:
            begin = in_place(begin, self.constraints, Known.of_table(self.problem.table))
        mechanisms, method, origins = begin[None], self._after_bound(proved), [COLUMNS]
        if proved.interrupted:
            return mechanisms, origins, COLUMNS, replace(chosen, max_iter=1)
        if method == AUTO:
            others, named = drawn(method)
            return np.concatenate([mechanisms, others]), [*origins, *named], method, chosen
        if not (self.constraints or self._nothing(proved)):
            mechanisms = risen(self.problem, begin, chosen.tol, now() + seconds)[None]
            if usual and not self._kept(proved):
                chosen = replace(chosen, max_iter=MERGED_STEPS)
        return mechanisms, origins, method, chosen

    def size(self, **solving: Any) -> Size:
        private, inputs = self.problem.p_s_given_y.shape
        method, exact = solving.get("method"), solving.get("engine", "closed_form") == "closed_form"
        exact = exact and not self.constraints
        proved = method == COLUMNS or (method is None and exact and self._few and solving.get("starts") is None)
        several = self._usual_starts(exact)
        joint = method in (None, COLUMNS, AUTO, "joint")
        steps = solving.get("max_iter") or ((JOINT_STEPS if joint else EXACT_STEPS) if exact else SOLVER_STEPS)
        limited = solving.get("time_limit")
        size = of_mechanism(
            private,
            inputs,
            self.problem.size_u,
            starts=given_count(solving.get("init")) or solving.get("starts") or (1 if proved else several),
            passes=4 * steps + AFTER if joint and exact else steps + BY_ROWS * SOLVER_PASSES if joint else steps,
            exact=exact,
            effort=1.0
            if joint or method == "gradient"
            else float(solving.get("inner", 100)) * (1 if exact else BY_ROWS),
            compiled=COMPILED_BY_ROWS,
        ).within(limited)
        return replace(size, proof=TIME_LIMIT) if proved and limited is None else size

    def _usual_starts(self, exact: bool) -> int:
        """Return the usual number of starts: more where constraints give outputs names, since more ends differ."""
        if not self.constraints:
            return EXACT_STARTS if exact else SOLVER_STARTS
        return NAMED_STARTS if PricedConstraints.of(self.problem, self.constraints).named else CONSTRAINED_STARTS

    @property
    def _few(self) -> bool:
        """Whether S has so few symbols that the bound can be expected to be tight."""
        return len(self.problem.p_s_given_y) <= CERTIFIED

    def _kept(self, proved: ServiceBound) -> bool:
        """Whether the bound's own mechanism is the answer: it is the best, and has no more outputs than U."""
        return proved.certified and proved.mechanism.shape[1] <= self.problem.size_u

    def _nothing(self, proved: ServiceBound) -> bool:
        """Whether the bound's mechanism is the answer as it is: a step at an enormous beta would only add rounding."""
        found = proved.lower == 0.0 or self.problem.beta > LARGEST_BETA
        return found and self._kept(proved) and not (self.constraints or proved.left_out)

    def _final(self, proved: ServiceBound, mechanisms: Array, tol: float) -> bool:
        """Whether mechanisms that come from a bound are the answer, without a step."""
        if self.constraints or len(mechanisms) > 1:
            return False
        return self._nothing(proved) or residuals(self.problem, mechanisms).largest[0] <= tol

    def _after_bound(self, proved: ServiceBound) -> str:
        """Whether the bound's own mechanism, and joint steps from it, will do: it obeys all that is asked."""
        if self._nothing(proved):
            return COLUMNS
        outputs, (size_y, size_u) = proved.mechanism.shape[1], (len(self.problem.p_y), self.problem.size_u)
        smooth = not self.problem.divergence.kinks and self.problem.floor == 0.0
        room = outputs <= size_u or size_y * size_u > SMALL
        asked = PricedConstraints.of(self.problem, self.constraints)
        near = proved.certified or not (asked.named or asked.lines or asked.bent)
        return COLUMNS if smooth and room and near and set(proved.ignored) <= {"size_u"} else AUTO

    @declared
    def bound(
        self, *, gap: options.Gap = 1e-6, time_limit: options.TimeLimit = 60.0, isolate: shared.Isolate = None
    ) -> ServiceBound:
        """Bound the best objective from both sides, with a certificate that needs no solver.

        No mechanism is worth more than `upper`; a floor or a limit on |U| only lower the optimum, and `mechanism`,
        which is worth `lower`, ignores them. Constraints that are sums over outputs are part of both bounds; which are
        not, and why, is in `left_out`: `upper` holds with them too. With `isolate` the search is made in a process of
        its own, which is ended after so many seconds whatever a solver does there.

        Raises
        ------
        SolverFailure
            The process of `isolate` did not answer.
        """
        if isolate is not None:
            again = {"gap": gap, "time_limit": time_limit}
            return answered_apart("the bound", partial(self.bound, **again), seconds=isolate)
        return bound(self.problem, gap=gap, time_limit=time_limit, constraints=self.constraints)

    @declared
    def curve(self, points: CurvePoints = 10, **solving: Unpack[options.SolveOptions]) -> pd.DataFrame:
        """Return accuracy and leakage of the best mechanism found at each weight of privacy.

        Parameters
        ----------
        points : iterable of float, or int
            Weights; a number n stands for 1/n, 2/n, ..., 1 of the largest weight at which telling pays.
        **solving
            The options of `solve`; `n_jobs` are processes among which the weights are divided.

        Returns
        -------
        DataFrame
            One row a beta, in the given order: beta, accuracy, leakage, objective, kkt, converged, iterations, trivial,
            seconds. A keyboard interrupt ends it: the weights that were finished come back.
        """
        return self.traced(points, **solving)[0]

    def traced(self, points: Iterable[float] | int, **options: Any) -> tuple[pd.DataFrame, Sequence[Array]]:
        runs = runs_of(self.along(points), options, "betas")
        rows = pd.DataFrame([_curve_row(run) for run in runs])
        across, up = Axis("accuracy", "accuracy I(S;U) in nats"), Axis("leakage", "leakage E[f(p(u)/p(u|y))]")
        return with_axes(rows, across, up), [run.mechanism for run in runs]

    @staticmethod
    def example_cases() -> list[Case]:
        """Return every block at an answer, for each f of the paper; `cvxpriv crosscheck --all` checks them."""
        p_sy = [[0.18, 0.12, 0.06, 0.03], [0.06, 0.12, 0.12, 0.31]]
        cases = []
        for name in ("mutual-information", "jensen-shannon", "le-cam", "hellinger"):
            run = InferenceAsService(p_sy, beta=0.3, divergence=name, size_u=4, floor=1e-3).solve(starts=4)
            found = [case_of_block(block, run.state) for block in run.blocks().values()]
            cases += [replace(case, name=f"inference {name} {case.name}") for case in found]
        return cases

    @staticmethod
    def run_of(document: Mapping[str, Any], path: PathLike) -> InferenceRun:
        return InferenceRun.opened(document, path)

    def _require_declarable(self) -> None:
        joint(self.problem).constrained(self.constraints).declaration()


def _curve_row(run: InferenceRun) -> dict[str, object]:
    return {
        "beta": run.problem.beta,
        "accuracy": run.accuracy,
        "leakage": run.leakage,
        "objective": run.objective,
        "kkt": run.residual,
        "converged": run.converged,
        "iterations": run.iterations,
        "trivial": run.trivial,
        "seconds": run.seconds,
    }

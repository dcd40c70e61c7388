"""The face of the model: `ADMMSharing`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.blocks import engines
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError
from cvxpriv.learning.fit import Fit
from cvxpriv.learning.learning_model import LearningModel, best_start, initial_points
from cvxpriv.learning.schema import SchemaOption, schema_named
from cvxpriv.numerics.arguments import require_callback
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.sizes import Size, of_learning, require_feasible
from cvxpriv.penalties import Penalty
from cvxpriv.penalties.contract import HEAVIEST
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.options import Option, declared
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run

from . import algorithm, kkt, options
from .accelerated import default_rho, may_follow
from .assumptions import Assumptions, check, require_guarantee
from .bounds import ADJACENCIES
from .factor import Factor
from .joint import JOINT, may_join
from .on_rows import SharingOnRows
from .private import PrivateSharingRun, solve_private
from .private_settings import PASSES, settings_of
from .problem import Problem
from .run import Settings, SharingRun, has_converged, scheme_of
from .schemes import SCHEMES, USUAL, Scheme, scheme_named

#: Largest number of passes, unless told otherwise.
MAX_ITER = 1000


@door
@declared
class ADMMSharing(LearningModel):
    """Fit a linear model whose columns are split among parties; each shares one value per sample. SHARING (1).

    Minimise sum_i weight_i l(S_i, y_i) + lam sum_m R_m(x_m) over x_m in X_m, with S = sum_m D_m x_m. The loss is
    **summed** over the samples, not averaged.

    On small tables a private fit loses to fits of each party alone whose margins are averaged, which releases nothing.

    Parameters
    ----------
    parts : sequence of array or scipy.sparse, (N, d_m)
        Each party's columns of the same samples, in the same order.
    y : array, (N,)
        Labels; a margin loss takes two classes, of any type.
    sets : str, or one a party, optional
        Sets X_m, `nonneg` or `box:<low>:<high>`, in addition to the penalty. `constrain` takes any other convex set.
    weights : array, (N,), optional
        Weights of the samples, > 0.

    Raises
    ------
    DataError
        Parties of unequal rows, an empty party, NaN, labels that are not two classes (the message names those found).
    ModelError
        An unknown loss, penalty or set, or lam < 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxpriv.models import ADMMSharing
    >>> columns = np.random.default_rng(0).normal(size=(60, 4))
    >>> labels = np.where(columns @ [1.0, -1.0, 0.5, 0.0] > 0, "yes", "no")
    >>> run = ADMMSharing([columns[:, :2], columns[:, 2:]], labels).solve()
    >>> run.converged, [x.shape for x in run.coefficients], str(run.predict([columns[:1, :2], columns[:1, 2:]])[0])
    (True, [(2,), (2,)], 'yes')
    """

    command: ClassVar[str] = "sharing"
    on_rows: ClassVar[type[Fit]] = SharingOnRows
    runs: ClassVar[Any] = (SharingRun, PrivateSharingRun)
    apart: ClassVar[str] = "cvxpriv_models.admm_sharing.apart:SharingApart"
    apart_flag: ClassVar[str] = "--parties"

    @declared
    def __init__(
        self,
        parts: Sequence[ArrayLike | sparse.sparray],
        y: ArrayLike,
        *,
        loss: options.LossName = "logistic",
        penalty: options.PenaltyName = "l2",
        lam: options.Lam = 1.0,
        sets: str | Penalty | Sequence[str | Penalty | None] | None = None,
        weights: ArrayLike | None = None,
        schema: SchemaOption = None,
    ) -> None:
        self.problem = Problem.of(parts, y, loss, penalty, lam, weights, sets, schema_named(schema))
        self.factors = tuple(Factor(part) for part in self.problem.parts)
        self.constraints: algorithm.Constraints = ()

    def __repr__(self) -> str:
        return f"ADMMSharing({self.problem!r})"

    def constrain(self, name: str, constraint: Constraint, party: int = 0) -> ADMMSharing:
        """Return this model with one more constraint on the coefficients of one party: its X_m, SHARING (2).

        Parameters
        ----------
        name : str
        constraint : callable
            Maps x_m, a cvxpy expression (d_m,), to a constraint or several: `lambda x: cvxpy.sum(x) == 1`.
        party : int
            Number m of the party, from 0.

        Raises
        ------
        ModelError
            No such party, the name is taken, or the function returns no convex constraint.
        """
        if party not in range(self.problem.parties):
            raise ModelError(f"party={party!r} is not one of 0..{self.problem.parties - 1}")
        other = object.__new__(type(self))
        other.problem, other.factors = self.problem, self.factors
        other.constraints = (*self.constraints, (party, name, constraint))
        blocks = algorithm.blocks(self.problem, scheme_named("averaged"), self.factors, other.constraints)
        blocks[f"x/{party}"].declaration()  # refuses here what is no constraint, or not DCP
        return other

    @declared
    def solve(
        self,
        *,
        method: Annotated[
            shared.Method, Option(choices=tuple(SCHEMES), usual="averaged, which converges for every rho")
        ] = None,
        engine: shared.Engine = "closed_form",
        starts: Annotated[shared.Starts, Option(usual="1; several make sense for a loss that is not convex")] = None,
        seed: shared.Seed = 0,
        tol: Annotated[shared.Tol, Option("Relative KKT residual at which a start has converged.")] = 1e-7,
        max_iter: Annotated[shared.MaxIter, Option(usual=str(MAX_ITER))] = None,
        init: Annotated[
            shared.Init, Option("Coefficients of all parties to start from, (d_1 + ... + d_M,).", usual="0")
        ] = None,
        solver: shared.Solver = None,
        n_jobs: shared.NJobs = 1,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        time_limit: shared.TimeLimit = None,
        isolate: shared.Isolate = None,
        oversize: shared.Oversize = False,
        rho: options.Rho = None,
        accelerate: options.Accelerate = "auto",
        gap: options.Gap = None,
    ) -> SharingRun:
        """Run ADMM without privacy.

        `cvxpriv_models.admm_sharing.schemes` describes the methods; `printed` may diverge. A party whose penalty is no
        square takes one proximal step a pass; with `printed`, and where constraints were added, a solver does its step.

        Raises
        ------
        ModelError
            An option is out of range, or a non-convex loss with a penalty too small for its z step.
        SolverFailure
            No solver of the chain solved a block.
        Disagreement
            The `checked` engine found two answers.

        Notes
        -----
        A keyboard interrupt returns the last pass, with `converged` False where it is not.
        """
        require_callback(callback, n_jobs)
        who = engines.engine_named(engine, solver=solver, time_limit=time_limit, isolate=isolate, residual=tol)
        exact, several = who.name == "closed_form", self.problem.parties + 1
        size = self._size(max_iter or MAX_ITER, blocks=several, starts=starts or 1, exact=exact)
        require_feasible(size.within(time_limit), oversize)
        chosen = scheme_of(method or USUAL, who.name, self.constraints)
        weight = default_rho(self.problem.loss, chosen, self.problem.parties) if rho is None else float(rho)
        require_guarantee(self.problem, chosen, weight)
        anderson = self._accelerated(accelerate, chosen, who)
        follow = rho is None and who.name == "closed_form" and not self.constraints
        follow = follow and may_follow(self.problem, chosen)
        limit, asked = max_iter or MAX_ITER, 0.0 if self.constraints else kkt.gap_asked(self.problem, gap, tol)
        together = anderson and accelerate == "auto" and not self.constraints and may_join(self.problem)
        settings = Settings(chosen.name, who.name, weight, anderson, limit, tol, follow, together, asked)
        points = initial_points(init, (self.problem.columns,), starts, seed, lambda: self.problem.random_scale)
        work = partial(self._from, settings=settings, engine=who, callback=callback)
        return best_start(work, points, n_jobs=n_jobs, progress=progress)

    @declared
    def solve_private(
        self,
        *,
        epsilon: shared.Epsilon | None = None,
        delta: shared.Delta | None = None,
        adjacency: Annotated[shared.Adjacency, Option(choices=tuple(ADJACENCIES))] = None,
        noise_seed: shared.NoiseSeed = None,
        method: Annotated[shared.Method, Option(choices=tuple(SCHEMES), usual="averaged")] = None,
        max_iter: Annotated[
            shared.MaxIter, Option("Number of passes; each party releases its share once per pass.", usual=str(PASSES))
        ] = None,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        budget: shared.BudgetOption = None,
        oversize: shared.Oversize = False,
        row_bound: options.RowBound = None,
        column_bound: options.ColumnBound = None,
        cell_bound: options.CellBound = None,
        clip: options.Clip = None,
        clip_entries: options.ClipEntries = None,
        clip_data: options.ClipData = False,
        labels: options.Labels = "shared",
        noise: options.NoiseKind = "gaussian",
        rho: options.PrivateRho = None,
        shrink: options.Shrink = True,
    ) -> PrivateSharingRun:
        """Fit with differential privacy: Gaussian noise on every share, scaled to the budget before anything runs.

        **It loses to no exchange at all on small tables**: on German credit log loss and AUC are .630 and .720 at
        epsilon = 1 and delta = 1e-6, where the average of two parties' own fits has .531 and .796.

        A released share has N values, and their noise is of the size of one person's influence: single values are
        drowned, and sums over thousands of rows are not. Few passes, a large `lam` (tens, where the loss is summed over
        tens of thousands of rows) and a small `rho` serve best.

        `adjacency` states the change of one neighbour. "replace-one" is a person's whole row, over all M parties: it is
        touched by M times as many releases as one party makes, and costs sqrt(M) times the mu of "party-row". Replacing
        moves by up to twice the public bound that goes with it; data beyond it are refused. The method
        `proximal_jacobi` reads private coefficients, and needs `clip`. `cvxpriv_models.admm_sharing.labels` describes
        held labels.

        Raises
        ------
        PrivacyError
            The budget is not valid; the relation has no public bound and nothing is clipped, so that the sensitivity is
            unbounded; the data exceed the bound; or labels='held' comes without two classes.
        ModelError
            Another option is out of range.

        Warns
        -----
        PrivacyWarning
            With noise_seed, and with noise='printed', which says why it has no guarantee.

        Notes
        -----
        On a9a, at the same budget, test log loss and AUC are .342 and .893, and those of own fits .351 and .898:
        releases pay in log loss, not in ranking. Held labels cost more than the exchange gives at epsilon = 1, and not
        at 4.

        Examples
        --------
        >>> import numpy as np
        >>> from cvxpriv.models import ADMMSharing
        >>> rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(400, 4))
        >>> model = ADMMSharing([rows[:, :2], rows[:, 2:]], rows @ [2.0, -1.0, 1.0, 0.5] > 0.0, lam=10.0)
        >>> run = model.solve_private(epsilon=1.0, delta=1e-5, adjacency="replace-one", row_bound=1.0)
        >>> print(f"{run.accounting.epsilon:.4f} of {run.accounting.releases} releases")
        1.0000 of 8 releases
        """
        given = {name: value for name, value in locals().items() if name not in ("self", "oversize")}
        watched = {name: given.pop(name) for name in ("noise_seed", "progress", "callback", "budget")}
        # How many entries are not 0 is private: no error may follow from it.
        require_feasible(self._size(max_iter or PASSES, blocks=self.problem.parties, stored=0), oversize)
        settings = settings_of(self.problem, **given)
        return solve_private(self.problem, self.factors, self.constraints, settings, **watched)

    @declared
    def check_assumptions(
        self,
        *,
        rho: options.Rho = None,
        method: Annotated[shared.Method, Option(choices=tuple(SCHEMES), usual="printed")] = None,
    ) -> Assumptions:
        """Return the paper's Assumptions 1 and 2 with measured numbers, each with the right condition for a method."""
        chosen = scheme_named(method or "printed")
        weight = default_rho(self.problem.loss, chosen, self.problem.parties) if rho is None else float(rho)
        if weight > HEAVIEST:
            raise ModelError(f"rho={weight:g} is above {HEAVIEST:g}, whose square no double holds: take a smaller one")
        return check(self.problem, chosen, self.factors, weight)

    @staticmethod
    def init_of(run: SharingRun) -> Array:
        """Return the `init` with which another fit starts at a run's answer: `cvxpriv.sweep` calls it."""
        return np.concatenate(run.coefficients)

    @staticmethod
    def example_cases() -> list[Case]:
        """Return the blocks of small problems after a few passes, one for each loss and some penalties."""
        rng = np.random.default_rng(0)
        columns = rng.normal(size=(40, 5))
        labels = np.where(columns[:, 0] - columns[:, 3] + rng.normal(size=40) > 0.0, 1.0, -1.0)
        cases = []
        for loss, penalty in (
            ("logistic", "l2"),
            ("squared", "l1"),
            ("huber", "elastic-net:1:0.5"),
            ("hinge", "l2"),
            ("smoothed-hinge", "nonneg"),
        ):
            model = ADMMSharing([columns[:, :3], columns[:, 3:]], labels, loss=loss, penalty=penalty)
            solved = model.solve(method="proximal_jacobi", max_iter=30)
            found = [case_of_block(block, solved.state) for block in solved.blocks().values()]
            cases += [replace(case, name=f"sharing {loss} {penalty} {case.name}") for case in found]
        return cases

    def _size(self, passes: int, **more: Any) -> Size:
        parts, rows, columns = self.problem.parts, self.problem.samples, self.problem.columns
        many = {"stored": sum(int(part.size) for part in parts), "factors": sum(min(part.shape) ** 2 for part in parts)}
        return of_learning(rows, columns, passes=passes, **{**many, **more})

    def _from(
        self, point: Array, settings: Settings, engine: engines.Engine, progress: bool, callback: shared.Watch | None
    ) -> SharingRun:
        """Run ADMM from one start, (d_1 + ... + d_M,)."""
        begun = time.perf_counter()
        loop = algorithm.schedule(
            self.problem,
            scheme_of(settings.method, settings.engine, self.constraints),
            self.factors,
            tol=settings.tol,
            limit=settings.max_iter,
            follow=settings.follow,
            accelerate=settings.accelerate,
            joint=settings.joint,
            constraints=self.constraints,
            gap=settings.gap,
        )
        context = Context(engine, History(), with_bar(callback, settings.max_iter, progress))
        first = algorithm.initial_state(self.problem, settings.rho, point)
        state = single(run(loop, first, context), 0)
        return self._finished(state, context, settings, time.perf_counter() - begun)

    def _accelerated(self, accelerate: str, scheme: Scheme, engine: engines.Engine) -> bool:
        fit = self.problem.loss.convex and scheme.name != "printed" and engine.name == "closed_form"
        if accelerate == "anderson" and not fit:
            raise ModelError(
                "accelerate='anderson' goes with a convex loss, engine='closed_form', and a method other than "
                "'printed': pass accelerate='none'"
            )
        return fit and accelerate != "none"

    def _finished(self, state: Values, context: Context, settings: Settings, seconds: float) -> SharingRun:
        problem, report = self.problem, context.reports[algorithm.LOOP]
        coefficients = [state[f"x/{m}"] for m in range(problem.parties)]
        scheme = scheme_of(settings.method, settings.engine, self.constraints)
        found = algorithm.residuals_with_constraints(problem, scheme, self.factors, state, self.constraints)
        objective = problem.objective(coefficients)
        gap = None if self.constraints else kkt.duality_gap(problem, state)
        return SharingRun(
            coefficients,
            problem.loss.name,
            problem.classes,
            state=state,
            settings=settings,
            converged=has_converged(found, gap, objective, settings),
            iterations=int(report.iterations[0]),
            objective=objective,
            kkt=found,
            gap=gap,
            seconds=seconds,
            problem=problem,
            log=context.history,
            joint=JOINT in state,
            constraints=self.constraints,
            interrupted=context.interrupted,
            overdue=context.overdue,
        )

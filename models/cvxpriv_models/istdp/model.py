"""The face of the model: `ISTDP`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import engine_named
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import DataError
from cvxpriv.learning.fit import Fit
from cvxpriv.learning.learning_model import LearningModel, best_start, initial_points
from cvxpriv.learning.schema import SchemaOption, relation_of, schema_named
from cvxpriv.numerics.arguments import require_callback
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import of_learning, require_feasible
from cvxpriv.penalties import MCP, SCAD, CappedL1, ElasticNet, Penalty
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.options import Option, declared

from . import options
from .algorithm import METHODS, blocks, path_table, schedule, solve_from
from .clipping import ADJACENCIES
from .on_rows import SparseOnRows
from .private import PRIVATE_METHODS, solve_private
from .private_options import MOST_ITERATIONS
from .problem import Problem
from .run import PrivateSparseRun, Settings, SparseRun

#: Largest number of passes, unless told otherwise.
MAX_ITER = 1000


class OwnOptions(shared.SolveOptions, total=False):
    """The options of `ISTDP.solve`."""

    step: options.Step
    accelerate: options.Accelerate


@door
@declared
class ISTDP(LearningModel):
    """Learn sparse coefficients: minimise (1/n) sum_i l(x_i theta, y_i) + P(theta), privately or not. ISTDP (2).

    Under the noise of a private fit all columns stay, unless `support` says how many to keep.

    Parameters
    ----------
    X : array, DataFrame or scipy sparse array, (n, d)
        The rows. Scale the columns alike: one weight penalises them all.
    y : array, (n,)
        Labels: two classes of any type for a margin loss, or only one of 0 and 1, or of -1 and 1; any numbers for a
        residual loss.
    intercept : bool
        Add a coefficient that is not penalised: that of a last column of ones. It is one more coordinate of theta and
        of each row's gradient before clipping, so it is inside the sensitivity and costs no release of its own: a
        private model with an intercept is as private as one without.
    allow_constant : bool
        Keep columns of X that are constant and not 0; those of zeros are always kept. An error about a constant column
        reveals a fact about the data: where even that is private, pass True.

    Raises
    ------
    DataError
        X or y holds entries that are not finite numbers, they do not fit, a column is constant and not 0, or y does not
        have two classes for a margin loss.
    ModelError
        The loss has a kink, or the penalty is not valid.

    Examples
    --------
    >>> from cvxpriv.models import ISTDP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> y = X[:, 3] - 2 * X[:, 7] + 0.1 * rng.normal(size=200)
    >>> run = ISTDP(X, y, loss="squared", penalty="mcp:0.1:3").solve()
    >>> run.converged, run.support.tolist()
    (True, [3, 7])
    """

    command: ClassVar[str] = "sparse"
    on_rows: ClassVar[type[Fit]] = SparseOnRows
    runs: ClassVar[Any] = (SparseRun, PrivateSparseRun)

    @declared
    def __init__(
        self,
        X: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix,
        y: ArrayLike,
        *,
        loss: options.LossName = "logistic",
        penalty: options.PenaltyName = "auto",
        intercept: bool = False,
        allow_constant: bool = False,
        schema: SchemaOption = None,
    ) -> None:
        self.problem = Problem.of(X, y, loss, penalty, intercept, allow_constant, schema_named(schema))

    def __repr__(self) -> str:
        problem = self.problem
        rows = "private rows" if relation_of(problem.schema, None) == "add-remove" else problem.rows
        return (
            f"ISTDP({rows} x {problem.features} data, loss={problem.loss.name!r}, penalty={problem.penalty!r}, "
            f"intercept={problem.intercept})"
        )

    @property
    def lambda_max(self) -> float:
        """The weight from which on all coefficients stay 0 (`Problem.lambda_max`)."""
        return self.problem.lambda_max

    @classmethod
    def of(cls, problem: Problem) -> ISTDP:
        """Return the model of data that have been validated."""
        model = object.__new__(cls)
        model.problem = problem
        return model

    def with_penalty(self, penalty: Penalty) -> ISTDP:
        """Return the same model with another penalty; the data are shared."""
        return self.of(self.problem.with_penalty(penalty))

    def blocks(self) -> dict[str, Block]:
        """Return every block of the model by name."""
        return blocks(self.problem)

    @declared
    def solve(
        self,
        *,
        method: Annotated[shared.Method, Option(choices=METHODS, usual="gist")] = None,
        engine: shared.Engine = "closed_form",
        starts: Annotated[shared.Starts, Option(usual="1; another start may end at another stationary point")] = None,
        seed: shared.Seed = 0,
        tol: shared.Tol = 1e-7,
        max_iter: Annotated[shared.MaxIter, Option(usual=str(MAX_ITER))] = None,
        init: Annotated[shared.Init, Option("Coefficients to start from, (d,), an intercept last.", usual="0")] = None,
        solver: shared.Solver = None,
        n_jobs: shared.NJobs = 1,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        time_limit: shared.TimeLimit = None,
        isolate: shared.Isolate = None,
        oversize: shared.Oversize = False,
        step: options.Step = "bb1",
        accelerate: options.Accelerate = "auto",
    ) -> SparseRun:
        """Find a stationary point, without privacy.

        Raises
        ------
        ModelError
            An option is out of range, `init` does not fit, or the penalty has no DCP form for the engine.
        SolverFailure
            No solver of the chain solved the block.
        Disagreement
            The `checked` engine found two answers.

        Notes
        -----
        A keyboard interrupt returns the point so far.
        """
        require_callback(callback, n_jobs)
        if self.problem.too_large:
            raise DataError(self.problem.too_large)
        who = engine_named(engine, solver=solver, time_limit=time_limit, isolate=isolate)
        shape, stored = (self.problem.rows, self.problem.features), int(self.problem.design.size)
        exact, passes = who.name == "closed_form", max_iter or MAX_ITER
        size = of_learning(*shape, starts=starts or 1, passes=passes, exact=exact, stored=stored)
        require_feasible(size.within(time_limit), oversize)
        settings = Settings(method or METHODS[0], who.name, step, accelerate, passes, float(tol))
        loop = schedule(self.problem, step, accelerate, settings.tol, settings.max_iter)
        points = initial_points(init, (self.problem.size,), starts, seed, lambda: self.problem.random_scale)
        work = partial(solve_from, self.problem, loop=loop, engine=who, settings=settings, callback=callback)
        return best_start(work, points, n_jobs=n_jobs, progress=progress)

    @declared
    def solve_private(
        self,
        *,
        epsilon: shared.Epsilon | None = None,
        delta: shared.Delta | None = None,
        adjacency: Annotated[shared.Adjacency, Option(choices=tuple(ADJACENCIES))] = None,
        noise_seed: shared.NoiseSeed = None,
        method: Annotated[shared.Method, Option(choices=PRIVATE_METHODS, usual="istdp")] = None,
        max_iter: Annotated[
            shared.MaxIter,
            Option("Number of noisy gradients that are released.", usual="n mu / sqrt(e d), from public numbers"),
        ] = None,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        budget: shared.BudgetOption = None,
        oversize: shared.Oversize = False,
        clip: options.Clip = 1.0,
        step: options.PrivateStep = "lipschitz",
        output: options.Output = "auto",
        row_bound: options.RowBound = None,
        public_rows: options.PublicRows = None,
        centre: options.Centre = "auto",
        support: options.Support = None,
    ) -> PrivateSparseRun:
        """Find coefficients with (epsilon, delta)-differential privacy.

        The shape of X, the loss, the penalty and the options count as public: choose them without these data. Make the
        model with `allow_constant=True` where it must stay secret that a column is constant.

        `adjacency` states the change of one person: a row is replaced, with n public ("replace-one"); or a row is
        there or not ("add-remove"), and the sum of gradients is divided by the public number `public_rows`, by that of
        the schema, or by the number of rows with noise, which costs a hundredth of mu^2.

        With an intercept the rows are centred by moments that are released first (`centring`): `centre`. Then the clip
        bounds the rows of these moments, by `row_bound` or as the loss's slope implies it, and that of the gradients
        follows from what was released. Without `support`, columns to choose privately, noise keeps all of them.

        "output-perturbation" and "objective-perturbation" need an l2 penalty (the first also takes an elastic net).
        Objective perturbation alone spends no delta. "printed" is the paper's Algorithm 1: not private, and it warns.

        Raises
        ------
        PrivacyError
            The budget, `clip`, `max_iter` or a public bound is not valid, or the loss needs a `row_bound`.
        ModelError
            There is no such method, step or centre, or it does not cover the loss, the penalty or the intercept.

        Notes
        -----
        A keyboard interrupt returns the point so far, and the accounting of what was released up to there.

        Examples
        --------
        >>> import numpy as np
        >>> from cvxpriv.models import ISTDP
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-0.5, 0.5, size=(2000, 4))
        >>> y = np.where(x[:, 2] + 0.1 * rng.normal(size=2000) > 0.0, 1, -1)
        >>> run = ISTDP(x, y, penalty="l1:0.02").solve_private(epsilon=1.0, delta=1e-6, max_iter=30)
        >>> run.accounting.releases, round(run.accounting.epsilon, 6), bool(run.coefficients[2] > 0.5)
        (30, 1.0, True)
        """
        given = {name: value for name, value in locals().items() if name not in ("self", "oversize")}
        shape = self.problem.rows, self.problem.features
        require_feasible(of_learning(*shape, passes=max_iter or MOST_ITERATIONS), oversize)
        return solve_private(self.problem, **given)[0]

    def path(self, lams: Iterable[float] | int = 20, **solving: Unpack[OwnOptions]) -> pd.DataFrame:
        """Return solutions for several weights, each started from the one before, from the largest weight down.

        Parameters
        ----------
        lams : iterable of float, or int
            The weights; a number is the number of weights from `lambda_max` down to a hundredth of it, with equal
            ratios.
        **solving
            Options of `solve`; `init` is the first start.

        Returns
        -------
        DataFrame
            One row per weight, which is its index: objective, kkt, converged, support, iterations, seconds, and one
            column per coefficient, `theta[<feature>]`, and `(intercept)`.

        Raises
        ------
        ModelError
            A weight is not valid, or the penalty has no weight `lam`.
        """

        def solved(penalty: Penalty, init: ArrayLike | None) -> SparseRun:
            asked = solving.copy()
            asked["init"] = init
            return self.with_penalty(penalty).solve(**asked)

        return path_table(self.problem, lams, solving.get("init"), solved)

    @staticmethod
    def init_of(run: SparseRun) -> Array:
        """Return the `init` with which another fit starts at a run's answer: `cvxpriv.sweep` calls it."""
        return run.theta

    @staticmethod
    def example_cases() -> list[Case]:
        """Return the block with each kind of proximal problem, which `cvxpriv crosscheck --all` checks."""
        center = np.array([-2.0, -0.85, -0.3, 0.025, 0.2, 0.55, 1.15, 1.75])
        posed: list[tuple[Penalty, float]] = [
            *((MCP(0.5, alpha), length) for alpha, length in ((3.0, 1.0), (1.5, 4.0))),
            *((SCAD(0.5, a), length) for a, length in ((3.7, 1.5), (2.5, 2.0))),
            *((one, 1.0) for one in (CappedL1(0.5, 0.4), ElasticNet(0.4, 0.5))),
        ]

        def case(penalty: Penalty, length: float) -> Case:
            at = {"center": center, "step": np.asarray(length)}
            name = f"istdp prox, {penalty.name}, step {length:g}"
            return replace(case_of_block(proximal_block(penalty, center.size), at), name=name)

        return [case(*one) for one in posed]

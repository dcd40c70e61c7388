"""The model's face: `ISTDP`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.engines import Engine, engine_named
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import numbers, require_counts, require_positive
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import MCP, SCAD, CappedL1, ElasticNet, Loss, Penalty
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.saved import read_run

from .algorithm import blocks, schedule
from .line_search import Search
from .path import path_table
from .problem import Problem
from .run import Settings, SparseRun
from .solving import Callback, solve_from

if TYPE_CHECKING:
    from .private_run import PrivateSparseRun

__all__ = ["ISTDP"]


class ISTDP:
    """Learn sparse coefficients: minimise (1/n) sum_i l(x_i theta, y_i) + P(theta), privately or not. ISTDP (2).

    Parameters
    ----------
    X : array, DataFrame or scipy sparse array, (n, d)
        Scale the columns alike: one weight punishes them all.
    y : array, (n,)
        Two classes of any type for a loss of the margin, or one only of 0 and 1, or of -1 and 1; any numbers for a loss
        of the residual.
    loss : str or Loss
        `logistic`, `smoothed-hinge`, `sigmoid` (of the margin), `squared`, `huber` (of the residual), or a smooth
        `cvxpriv.learning.Loss` of your own.
    penalty : str or Penalty
        `mcp:<lam>:<alpha>`, `scad:<lam>:<a>`, `capped-l1:<lam>:<cap>`, `l1:<lam>`, `l2:<lam>`,
        `elastic-net:<lam>:<ratio>`, `nonneg`, `box:<low>:<high>` (`cvxpriv.penalties.penalty_named`), a `Penalty`, or
        an object with value, prox, residual and weak_convexity. "auto" is `mcp:0.05:3`, and in a
        private solve an MCP of the size that its noise asks for (`public_rules.noise_level_penalty`).
    intercept : bool
        Adds a coefficient that is not penalised: that of a last column of ones. It is one more coordinate of theta and
        of each row's gradient, before that is clipped, so it is inside the sensitivity and costs no release of its own:
        a private model with an intercept is as private as one without.
    allow_constant : bool
        Keep columns of X that are constant. Whether a column is constant is a fact about the data that an error tells:
        where even that is private, pass True.

    Raises
    ------
    DataError
        X or y holds something that is no finite number, they do not fit, a column is constant, or y has not two
        classes for a loss of the margin.
    ModelError
        The loss has a kink, or the penalty is none.

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

    def __init__(
        self,
        X: ArrayLike | pd.DataFrame | sp.sparray | sp.spmatrix,
        y: ArrayLike,
        loss: str | Loss = "logistic",
        penalty: str | Penalty = "auto",
        intercept: bool = False,
        *,
        allow_constant: bool = False,
    ) -> None:
        self.problem = Problem.of(X, y, loss, penalty, intercept, allow_constant)

    def __repr__(self) -> str:
        problem = self.problem
        return (
            f"ISTDP({problem.rows} x {problem.features} data, loss={problem.loss.name!r}, penalty={problem.penalty!r}, "
            f"intercept={problem.intercept})"
        )

    @property
    def lambda_max(self) -> float:
        """The weight from which on no coefficient leaves 0 (`Problem.lambda_max`)."""
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

    def solve(
        self,
        engine: str | Engine = "closed_form",
        *,
        algorithm: str = "gist",
        step: str = "bb1",
        accelerate: str = "auto",
        line_search: Search | None = None,
        init: ArrayLike | None = None,
        max_iter: int = 1000,
        tol: float = 1e-8,
        solver: str | Sequence[str] | None = "CLARABEL",
        callback: Callback | None = None,
    ) -> SparseRun:
        """Find a stationary point; nothing about it is private.

        Parameters
        ----------
        engine : {"closed_form", "dcp", "checked"} or Engine
            Who does the proximal steps: the exact formula, cvxpy solvers, or both compared at each step.
        algorithm : {"gist"}
        step : {"bb1", "bb2", "alternating"}
            The Barzilai-Borwein length that a pass begins with.
        accelerate : {"auto", "newton", "none"}
            What follows a pass: Newton steps on the support, accepted only if F falls, or nothing. "auto" is "newton"
            where the penalty has `slope` and `bend`.
        line_search : Search, optional
            The constants of the line search, and the greatest length.
        init : array, (d,) or, with an intercept, (d + 1,), optional
            Where to start; None is 0. The problem has several stationary points: another start may end at another.
        max_iter : int
            Most passes.
        tol : float
            The largest KKT residual of a converged run.
        solver : str or sequence of str, optional
            The first of the fallback chain, or the whole chain.
        callback : callable, optional
            `callback(loop, iteration, measured)` after each iteration; returning True ends the run.

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
        require_counts(max_iter=max_iter)
        require_positive(tol=tol)
        if callback is not None and not callable(callback):
            raise ModelError(f"callback={callback!r} is no function: pass callback(loop, iteration, measured)")
        who = engine_named(engine, solver=solver)
        search = Search() if line_search is None else line_search
        loop = schedule(self.problem, algorithm, step, accelerate, search, float(tol), max_iter)
        settings = Settings(algorithm, who.name, step, accelerate, max_iter, float(tol))
        return solve_from(self.problem, self._initial(init), loop, search, who, settings, callback)

    def solve_private(self, epsilon: float, delta: float, **options: Any) -> PrivateSparseRun:
        """Find coefficients with (epsilon, delta)-differential privacy: see `private.solve_private` for the options."""
        from .private import solve_private

        return solve_private(self.problem, epsilon, delta, **options)

    def path(self, lams: Iterable[float] | int = 20, **options: Any) -> pd.DataFrame:
        """Return solutions for several weights, each started from the one before, from the largest weight down.

        Parameters
        ----------
        lams : iterable of float, or int
            Weights; a number is so many from `lambda_max` down to a hundredth of it, with equal ratios.
        **options
            Passed to `solve`; `init` is the first start.

        Returns
        -------
        DataFrame
            One row per weight, which is its index: objective, kkt, converged, support, iterations, seconds, and one
            column per coefficient, `theta[<feature>]`, and `(intercept)`.

        Raises
        ------
        ModelError
            A weight is none, or the penalty has no weight `lam`.
        """
        return path_table(self, lams, options)

    @staticmethod
    def example_cases() -> list[Case]:
        """Return the block with each kind of proximal problem: what `cvxpriv crosscheck --all` checks."""
        center = np.array([-2.0, -0.85, -0.3, 0.025, 0.2, 0.55, 1.15, 1.75])
        posed: list[tuple[Penalty, float]] = [
            (MCP(0.5, 3.0), 1.0),
            (MCP(0.5, 1.5), 4.0),
            (SCAD(0.5, 3.7), 1.5),
            (SCAD(0.5, 2.5), 2.0),
            (CappedL1(0.5, 0.4), 1.0),
            (ElasticNet(0.4, 0.5), 1.0),
        ]
        cases = []
        for penalty, length in posed:
            case = case_of_block(proximal_block(penalty, center.size), {"center": center, "step": np.asarray(length)})
            cases.append(replace(case, name=f"istdp prox, {penalty.name}, step {length:g}"))
        return cases

    @staticmethod
    def load_run(path: PathLike) -> SparseRun | PrivateSparseRun:
        """Read a saved run, private or not: what `cvxpriv.load` calls."""
        from .private_run import PrivateSparseRun

        return PrivateSparseRun.load(path) if read_run(path).get("private") else SparseRun.load(path)

    def _initial(self, init: ArrayLike | None) -> Array:
        if init is None:
            return np.zeros(self.problem.size)
        theta = numbers("init", init)
        if theta.shape != (self.problem.size,) or not np.isfinite(theta).all():
            last = ", the intercept last" if self.problem.intercept else ""
            raise ModelError(f"init has shape {theta.shape}, expected ({self.problem.size},) finite numbers{last}")
        return theta

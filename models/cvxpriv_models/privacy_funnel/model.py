"""The model's face: `PrivacyFunnel`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cvxpriv import datasets
from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.blocks.engines import Engine, engine_named
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError
from cvxpriv.mechanisms.mechanism import stochastic_matrix
from cvxpriv.numerics.arguments import numbers, require_counts, require_seed
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.files import PathLike
from cvxpriv.schedules.independent_runs import pieces, sweep
from cvxpriv.tables.joint import JointTable

from . import algorithm
from .baselines import agglomerative
from .cells import Cells
from .curve import curve_row, lower_envelope
from .problem import Problem
from .run import FunnelRun, Settings, best_run
from .solving import Callback, solve_starts
from .starts import feasible_starts, softened

__all__ = ["PrivacyFunnel"]

#: How far below the rate a start may lie: what the rows of a mechanism read from a file lose to rounding.
FEASIBLE = 1e-9


class PrivacyFunnel:
    """Release Y in place of X: as little as possible about S, at least R about X. PF (1).

    Parameters
    ----------
    p_sx : JointTable or array, (|S|, |X|)
        The joint distribution of what is private and what may be released.
    rate : float
        The utility asked for, I(X;Y) >= rate.
    rate_unit : {"fraction", "nats", "bits"}
        A fraction is one of H(X).
    size_y : int, optional
        |Y|; None is |X| + 1, with which the trade-off curve can be reached.

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
    >>> solved = funnel.solve(starts=10, seed=0)
    >>> solved.converged, solved.mechanism.shape
    (True, (3, 4))
    """

    def __init__(
        self,
        p_sx: JointTable | ArrayLike,
        rate: float = 0.8,
        rate_unit: str = "fraction",
        size_y: int | None = None,
    ) -> None:
        self.problem = Problem.of(p_sx, rate, rate_unit, size_y)
        self.constraints: tuple[tuple[str, Constraint], ...] = ()

    def __repr__(self) -> str:
        size_s, size_x = self.problem.p_s_given_x.shape
        return f"PrivacyFunnel({size_s} x {size_x} table, rate={self.problem.rate:.6g} nats, |Y|={self.problem.size_y})"

    def at_rate(self, rate: float, rate_unit: str = "fraction") -> PrivacyFunnel:
        """Return the same funnel at another rate."""
        other = PrivacyFunnel(self.problem.table, rate, rate_unit, self.problem.size_y)
        other.constraints = self.constraints
        return other

    def constrain(self, name: str, constraint: Constraint) -> PrivacyFunnel:
        """Return this funnel with one more constraint on the whole mechanism P(Y|X).

        Parameters
        ----------
        name : str
        constraint : callable
            The mechanism, a cvxpy expression (|X|, |Y|), to a constraint or an iterable of them. A second argument
            receives what is `cvxpriv.Known` of X. `cvxpriv.constraints` has ready ones.

        Raises
        ------
        ModelError
            The name is taken, or what the function returns is no constraint, or is not DCP.

        Examples
        --------
        >>> funnel = PrivacyFunnel([[0.4, 0.1], [0.1, 0.4]], rate=0.2)
        >>> floored = funnel.constrain("no certainty", lambda mechanism: mechanism >= 0.02)
        >>> [name for name, _ in floored.constraints]
        ['no certainty']
        """
        other = self.at_rate(self.problem.rate, "nats")
        other.constraints = (*self.constraints, (name, constraint))
        every_cell = Cells(np.ones((self.problem.p_x.size, self.problem.size_y), dtype=bool))
        other.blocks()["u"].declaration(every_cell)  # refuses here what is no constraint, or not DCP
        return other

    def blocks(self) -> dict[str, Block]:
        """Return every block of the model by name, with the constraints added so far."""
        return algorithm.blocks(self.problem, self.constraints)

    def solve(
        self,
        engine: str | Engine = "closed_form",
        *,
        method: str | None = None,
        accelerate: str = "auto",
        starts: int | None = None,
        seed: int = 0,
        init: ArrayLike | None = None,
        max_iter: int = 500,
        tol: float = 1e-7,
        solver: str | Sequence[str] | None = "CLARABEL",
        n_jobs: int = 1,
        progress: bool = False,
        callback: Callback | None = None,
    ) -> FunnelRun:
        """Solve from several starts and return the best run.

        Parameters
        ----------
        engine : {"closed_form", "dcp", "checked"} or Engine
            Who does the blocks: exact updates, cvxpy solvers, or both compared at each step.
        method : {"aem", "merged", "ccp"}, optional
            Which blocks are alternated (`cvxpriv_models.privacy_funnel.algorithm`); None is "aem", the paper's
            Algorithm 1, or "ccp" for a funnel with constraints.
        accelerate : {"auto", "none", "interior", "squarem", "overrelaxed"}
            What comes on top of a pass of "aem": "none" is the paper; "auto", a feasible Newton step, reaches a
            stationary point in tens of passes where the paper's iteration takes thousands; with constraints, five
            passes and Newton's method on those that bind.
        starts : int, optional
            How many; None is 30 with exact updates, 4 with constraints, and 1 where else a solver does the work. They
            are random, except that with exact updates the first comes from submodular clustering: on large tables it
            often ends lowest. On small ones more starts find less leakage, and cost little.
        seed : int
            Of the starts; start k is the same whatever `starts` and `n_jobs` are.
        init : array, (|X|, |Y|) or (starts, |X|, |Y|), optional
            Mechanisms P(Y|X) to start from in place of random ones. A zero stays a zero.
        max_iter : int
            Most iterations a start.
        tol : float
            The KKT residual, in nats, at which a start has converged.
        solver : str or sequence of str, optional
            The first of the fallback chain, or the whole chain.
        n_jobs : int
            Processes among which the starts are divided; the result does not depend on it.
        progress : bool
            A bar on a terminal.
        callback : callable, optional
            `callback(loop, iteration, measured)` after each iteration; returning True ends the run. One process only.

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
        require_counts(starts=starts, max_iter=max_iter)
        require_seed(seed)
        if callback is not None and (not callable(callback) or n_jobs != 1):
            raise ModelError(
                f"callback={callback!r} with n_jobs={n_jobs!r}: pass a function, and n_jobs=1 to call it here"
            )
        who = engine_named(engine, solver=solver)
        method = method or ("ccp" if self.constraints else "aem")
        loop = algorithm.schedule(self.problem, method, accelerate, tol, max_iter, self.constraints)
        exact = who.name == "closed_form" and not self.constraints and method == "aem"
        usual = 30 if exact else 4 if self.constraints else 1
        log_u, origins = self._initial(init, usual if starts is None else starts, seed, clustered=exact)
        parts = pieces(len(log_u), n_jobs)
        work = partial(solve_starts, self.problem, self.constraints, loop, who, callback)
        done = sweep(
            work,
            [log_u[part.start : part.stop] for part in parts],
            n_jobs=n_jobs,
            progress=progress,
            description="starts",
        )
        settings = Settings(who.name, method, accelerate, len(log_u), seed, max_iter, tol)
        return best_run(self.problem, self.constraints, done, origins, settings, time.perf_counter() - begun)

    def curve(
        self, fractions: Iterable[float] | int = 20, *, n_jobs: int = 1, progress: bool = False, **options: object
    ) -> pd.DataFrame:
        """Return the privacy-utility trade-off: the least leakage found at each rate.

        A mechanism found at a higher rate serves a lower one too, so the curve never falls as the rate rises; the
        column `found_at` names the rate at which the mechanism was found.

        Parameters
        ----------
        fractions : iterable of float, or int
            Rates as fractions of H(X); a number n stands for 1/n, 2/n, ..., 1.
        n_jobs : int
            Processes among which the rates are divided.
        progress : bool
            A bar on a terminal.
        **options
            Passed to `solve`.

        Returns
        -------
        DataFrame
            One row per rate: fraction, rate, utility, leakage (nats), kkt, converged, iterations, found_at, seconds.
            A keyboard interrupt ends it: the rates so far come back.
        """
        if isinstance(fractions, int):
            require_counts(fractions=fractions)
            fractions = np.arange(1, fractions + 1) / fractions
        rates = numbers("fractions", list(fractions) if isinstance(fractions, Iterable) else fractions).ravel().tolist()
        if not rates:
            raise ModelError(f"fractions={fractions!r} holds no rate: pass fractions of H(X), or their number")
        funnels = [self.at_rate(rate) for rate in rates]
        runs = sweep(
            partial(_solve_funnel, options),
            funnels,
            n_jobs=n_jobs,
            progress=progress,
            description="rates",
            last=lambda solved: solved.interrupted,
        )
        return lower_envelope([curve_row(rate, solved) for rate, solved in zip(rates, runs, strict=False)])

    @staticmethod
    def example_cases() -> list[Case]:
        """Return every block at an answer on the heart failure table: what `cvxpriv crosscheck --all` checks."""
        solved = PrivacyFunnel(datasets.heart_failure(), rate=0.6).solve(starts=3)
        cases = [case_of_block(block, solved.state) for block in solved.blocks().values()]
        return [replace(case, name=f"funnel {case.name}") for case in cases]

    @staticmethod
    def load_run(path: PathLike) -> FunnelRun:
        """Read a saved run: what `cvxpriv.load` calls."""
        return FunnelRun.load(path)

    def _initial(self, init: ArrayLike | None, starts: int, seed: int, clustered: bool) -> tuple[Array, Sequence[str]]:
        """Return log P(X, Y) of every start, (starts, |X|, |Y|), and where each comes from."""
        problem = self.problem
        if init is not None:
            log_u = algorithm.log_joint(problem, self._required(numbers("init", init)))
            return log_u, ["init"] * len(log_u)
        log_u = feasible_starts(problem.p_x, problem.rate, problem.size_y, starts, seed)
        origins = ["random"] * starts
        sharp = agglomerative(problem.table.probabilities, problem.rate).mechanism if clustered else None
        if sharp is not None and sharp.shape[1] <= problem.size_y:
            padded = np.pad(sharp, ((0, 0), (0, problem.size_y - sharp.shape[1])))
            log_u[0], origins[0] = softened(problem.p_x, problem.rate, padded), "clustering"
        return log_u, origins

    def _required(self, init: Array) -> Array:
        """Return a user's starts as (starts, |X|, |Y|), or raise."""
        given = init[None] if init.ndim == 2 else init
        shape = (self.problem.p_x.size, self.problem.size_y)
        if given.ndim != 3 or given.shape[1:] != shape:
            raise ModelError(f"init has shape {given.shape}, expected {shape} or (starts, {shape[0]}, {shape[1]})")
        for position, mechanism in enumerate(given):
            stochastic_matrix(mechanism, f"init[{position}]")
            if (utility := self.problem.utility(mechanism)) < self.problem.rate - FEASIBLE:
                raise ModelError(
                    f"init[{position}] has I(X;Y)={utility:.6g} nats, below rate={self.problem.rate:.6g}: "
                    "start from a mechanism that carries the rate, or lower the rate"
                )
        return given


def _solve_funnel(options: Mapping[str, object], funnel: PrivacyFunnel) -> FunnelRun:
    return funnel.solve(**options)  # type: ignore[arg-type]

"""The model's face: `InferenceAsService`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
from numpy.typing import ArrayLike

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.blocks.engines import Engine, engine_named
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.divergences import FDivergence
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import numbers, require_seed
from cvxpriv.reports.files import PathLike
from cvxpriv.schedules.independent_runs import sweep
from cvxpriv.tables.joint import JointTable

from . import algorithm
from .algorithm import AUTO, Options
from .initial_mechanisms import given, initial
from .joint import joint
from .measured import Constraints, with_constraints
from .problem import Problem
from .run import InferenceRun, Settings
from .selection import best_run
from .solve_arguments import require_solvable, warn_without_guarantee
from .solving import Callback, solve_starts
from .thresholds import CriticalBeta, critical_beta

__all__ = ["InferenceAsService"]

#: Starts and outer steps where exact updates do the work, and where a solver does.
EXACT_STARTS, SOLVER_STARTS, CONSTRAINED_STARTS = 20, 1, 6
JOINT_STEPS, EXACT_STEPS, SOLVER_STEPS = 100, 1000, 50
#: Starts that run as one batch.
PIECE = 5


class InferenceAsService:
    """Send U in place of Y: a server shall infer S from it while it tells little about Y. IAS (1).

    Parameters
    ----------
    p_sy : JointTable or array, (|S|, |Y|)
        The joint distribution of what is inferred and of the user's data.
    beta : float
        The weight of privacy, > 0.
    divergence : str or FDivergence
        f of the leakage E[f(p(u)/p(u|y))]; `cvxpriv.divergences.names()` lists the built-in ones.
    size_u : int, optional
        |U|; None is |Y| + 1. At floor 0, |Y| symbols suffice.
    floor : float
        The paper's epsilon: the least p(u|y). It is not needed, and costs accuracy.

    Raises
    ------
    DataError
        `p_sy` is no joint distribution.
    ModelError
        An argument is out of range.

    Examples
    --------
    >>> from cvxpriv.models import InferenceAsService
    >>> service = InferenceAsService([[0.30, 0.15, 0.05], [0.05, 0.15, 0.30]], beta=0.2)
    >>> solved = service.solve(starts=5, seed=0)
    >>> solved.converged, solved.mechanism.shape
    (True, (3, 4))
    """

    def __init__(
        self,
        p_sy: JointTable | ArrayLike,
        beta: float = 0.5,
        divergence: str | FDivergence = "jensen-shannon",
        size_u: int | None = None,
        floor: float = 0.0,
    ) -> None:
        self.problem = Problem.of(p_sy, beta, divergence, size_u, floor)
        self.constraints: Constraints = ()

    def __repr__(self) -> str:
        size_s, size_y = self.problem.p_s_given_y.shape
        return (
            f"InferenceAsService({size_s} x {size_y} table, beta={self.problem.beta:g}, "
            f"{self.problem.divergence.name}, |U|={self.problem.size_u}, floor={self.problem.floor:g})"
        )

    def at_beta(self, beta: float) -> InferenceAsService:
        """Return the same model at another weight of privacy."""
        problem = self.problem
        other = InferenceAsService(problem.table, beta, problem.divergence, problem.size_u, problem.floor)
        other.constraints = self.constraints
        return other

    def constrain(self, name: str, constraint: Constraint) -> InferenceAsService:
        """Return this model with one more constraint on the whole mechanism P(U|Y).

        Parameters
        ----------
        name : str
        constraint : callable
            The mechanism, a cvxpy expression (|Y|, |U|), to a constraint or an iterable of them. A second argument
            receives what is `cvxpriv.Known` of Y. `cvxpriv.constraints` has ready ones.

        Raises
        ------
        ModelError
            The name is taken, or what the function returns is no constraint, or is not DCP.

        Examples
        --------
        >>> import cvxpriv as cpv
        >>> service = InferenceAsService([[0.4, 0.1], [0.1, 0.4]], beta=0.1)
        >>> private = service.constrain("ldp", cpv.constraints.local_differential_privacy(1.0))
        >>> [name for name, _ in private.constraints]
        ['ldp']
        """
        other = self.at_beta(self.problem.beta)
        other.constraints = (*self.constraints, (name, constraint))
        # Refuses here what is no constraint, or not DCP.
        with_constraints(joint(self.problem), other.constraints).declaration()
        return other

    def blocks(self) -> dict[str, Block]:
        """Return every block of the model by name, with the constraints added so far."""
        return algorithm.blocks(self.problem, constraints=self.constraints)

    def beta_critical(self, seed: int = 0) -> CriticalBeta:
        """Return from which beta on the trivial mechanism is optimal: the local threshold, and a searched one."""
        require_seed(seed)
        return critical_beta(self.problem, seed)

    def solve(
        self,
        algorithm: str = AUTO,
        engine: str | Engine = "closed_form",
        *,
        starts: int | None = None,
        seed: int = 0,
        init: ArrayLike | None = None,
        max_iter: int | None = None,
        tol: float = 1e-7,
        rho: float = 1.0,
        inner: int = 100,
        inner_tol: float = 1e-6,
        c: float = 10.0,
        step: float | None = None,
        accelerate: bool = True,
        solver: str | Sequence[str] | None = None,
        n_jobs: int = 1,
        progress: bool = False,
        callback: Callback | None = None,
    ) -> InferenceRun:
        """Solve from several starts and return the best run.

        Parameters
        ----------
        algorithm : {"auto", "admm", "joint", "bregman", "gradient", "printed"}
            "auto" takes joint steps from a start that one convex problem over a grid of posteriors made, and single
            sweeps of ADMM from every start, and goes on from the best, and from one joint problem over the posteriors
            of all of them. "admm" is the paper's Algorithm 1, "joint" solves (10) exactly at each step, "bregman" is
            (29), "gradient" the paper's GA. "printed" is Algorithm 1 with the sign of (19) as printed: it diverges.
        engine : {"closed_form", "dcp", "checked"} or Engine
            Who does the blocks: exact updates, cvxpy solvers, or both compared at each step.
        starts : int, optional
            How many; None is 20 with exact updates, 6 with constraints, 1 where a solver does the work. Those of "auto"
            and "joint" begin with the grid start, the trivial mechanism, clustered inputs and the identity; the others
            are random. With constraints every other one is the end of a start that did not know them.
        seed : int
            Of the starts; start k is the same whatever `starts` and `n_jobs` are.
        init : array, (|Y|, |U|) or (starts, |Y|, |U|), optional
            Mechanisms P(U|Y) to start from in place of these.
        max_iter : int, optional
            Most outer steps a start (of "auto": joint steps); None is 100 for "auto" and "joint", 1000 for the others,
            and 50 where a solver does the work.
        tol : float
            The KKT residual at which a start has converged.
        rho : float
            The penalty of (16).
        inner : int
            Of "admm", "bregman" and "printed": most sweeps an outer step; 1 updates P(S|U) after every sweep.
        inner_tol : float
            The paper's eta_p: an outer step ends when no p(u) moves by more.
        c : float
            Of "bregman": the kernels' modulus.
        step : float, optional
            Of "gradient": a fixed step; None is a line search.
        accelerate : bool
            Of "auto" and "joint": whether joint steps look ahead; without it they are the plain convex-concave
            procedure, which may need thousands.
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
        require_solvable(self.problem, self.constraints, algorithm, starts, seed, callback, n_jobs)
        who = engine_named(engine, solver=solver)
        exact = who.name == "closed_form" and not self.constraints
        usual = JOINT_STEPS if algorithm in (AUTO, "joint") else EXACT_STEPS
        steps = (usual if exact else SOLVER_STEPS) if max_iter is None else max_iter
        options = Options(tol, steps, rho, inner, inner_tol, c, step, accelerate)
        warn_without_guarantee(self.problem, algorithm, options)
        count = starts or (EXACT_STARTS if exact else CONSTRAINED_STARTS if self.constraints else SOLVER_STARTS)
        mechanisms, origins = (
            initial(self.problem, self.constraints, algorithm, count, seed, who)
            if init is None
            else given(self.problem, init)
        )
        # Pieces of one size, whoever does them: how many starts share a batch decides the last bits of each.
        parts = [slice(first, first + PIECE) for first in range(0, len(mechanisms), PIECE)]
        done = sweep(
            partial(solve_starts, self.problem, self.constraints, algorithm, options, who, callback),
            [(mechanisms[part], origins[part]) for part in parts],
            n_jobs=n_jobs,
            progress=progress,
            description="starts",
        )
        settings = Settings(algorithm, who.name, len(mechanisms), seed, options)
        best = best_run(self.problem, self.constraints, done, origins, settings)
        return replace(best, seconds=time.perf_counter() - begun)

    def curve(
        self, betas: Iterable[float], *, n_jobs: int = 1, progress: bool = False, **options: object
    ) -> pd.DataFrame:
        """Return accuracy and leakage of the best mechanism found at each weight of privacy.

        Parameters
        ----------
        betas : iterable of float
        n_jobs : int
            Processes among which the weights are divided.
        progress : bool
            A bar on a terminal.
        **options
            Passed to `solve`.

        Returns
        -------
        DataFrame
            One row a beta, in the given order: beta, accuracy, leakage, objective, kkt, converged, iterations, trivial,
            seconds. A keyboard interrupt ends it: the weights so far come back.
        """
        weights = numbers("betas", list(betas) if isinstance(betas, Iterable) else betas).ravel().tolist()
        if not weights:
            raise ModelError(f"betas={betas!r} holds no weight: pass numbers > 0")
        runs = sweep(
            partial(_solve_model, options),
            [self.at_beta(weight) for weight in weights],
            n_jobs=n_jobs,
            progress=progress,
            description="betas",
            last=lambda solved: solved.interrupted,
        )
        return pd.DataFrame([_curve_row(solved) for solved in runs])

    @staticmethod
    def example_cases() -> list[Case]:
        """Return every block at an answer, for each f of the paper: what `cvxpriv crosscheck --all` checks."""
        p_sy = [[0.18, 0.12, 0.06, 0.03], [0.06, 0.12, 0.12, 0.31]]
        cases = []
        for name in ("mutual-information", "jensen-shannon", "le-cam", "hellinger"):
            solved = InferenceAsService(p_sy, beta=0.3, divergence=name, size_u=4, floor=1e-3).solve(starts=4)
            found = [case_of_block(block, solved.state) for block in solved.blocks().values()]
            cases += [replace(case, name=f"inference {name} {case.name}") for case in found]
        return cases

    @staticmethod
    def load_run(path: PathLike) -> InferenceRun:
        """Read a saved run: what `cvxpriv.load` calls."""
        return InferenceRun.load(path)


def _solve_model(options: dict[str, object], service: InferenceAsService) -> InferenceRun:
    return service.solve(**options)  # type: ignore[arg-type]


def _curve_row(solved: InferenceRun) -> dict[str, object]:
    return {
        "beta": solved.problem.beta,
        "accuracy": solved.accuracy,
        "leakage": solved.leakage,
        "objective": solved.objective,
        "kkt": solved.starts.at[solved.start, "kkt"],
        "converged": solved.converged,
        "iterations": solved.iterations,
        "trivial": solved.trivial,
        "seconds": solved.seconds,
    }

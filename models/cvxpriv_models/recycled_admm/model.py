"""The model's face: `RecycledADMM`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from cvxpriv.blocks.engines import Engine, engine_named
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError, NoGuaranteeWarning, suggest
from cvxpriv.numerics.arguments import require_counts, require_positive
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.penalties import Loss, Penalty
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.progress import track
from cvxpriv.runs.saved import read_run
from cvxpriv.schedules.history import History
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Context

from . import algorithm as algorithms, kkt
from .conditions import ConvergenceConditions, conditions, sweep
from .eta import checked_gamma, eta_table
from .problem import Problem, Shard
from .rate import linear_rate
from .run import ConsensusRun, Settings
from .updates import EDGE, PRINTED, VARIANTS

if TYPE_CHECKING:
    from .private_run import PrivateConsensusRun

__all__ = ["RecycledADMM"]

#: callback(loop, round, figures); returning True ends the run.
Callback = Callable[[str, int, Mapping[str, Array]], "bool | None"]


class RecycledADMM:
    """Fit one linear model to rows that stay with the nodes of a graph; neighbours exchange parameters. RADMM (1).

    Minimise sum_i O_i(f), O_i(f) = (C/B_i) sum_n l(x_n'f, y_n) + (reg/N) R(f), with B_i rows at node i of N.

    Parameters
    ----------
    graph : networkx.Graph or adjacency matrix, (N, N)
        Connected, undirected.
    shards : sequence of (X_i, y_i), or mapping from node to it
        Rows (B_i, d), dense or sparse, and labels (B_i,); a sequence is in the order of `graph.nodes`. For a margin
        loss there are two classes over all nodes, of any type.
    loss : {"logistic", "squared", "huber", "smoothed-hinge"} or Loss
    reg : float
        The paper's rho, >= 0.
    C : float
        In (0, min B_i]: no row weighs more than 1.
    penalty : str or Penalty
        R, convex; `l2` is (1/2)||f||^2. Others (`l1`, `nonneg`, `elastic-net:<weight>:<ratio>` ...) take proximal
        steps, node by node.

    Raises
    ------
    DataError
        A node without rows, other columns, NaN, or labels that are not two classes (the message names the node).
    ModelError
        A graph that is not connected, a loss that is not smooth and convex, reg or C out of range.

    Examples
    --------
    >>> import networkx as nx, numpy as np
    >>> from cvxpriv.models import RecycledADMM
    >>> rows = np.random.default_rng(0).normal(size=(60, 2))
    >>> labels = np.where(rows @ [1.0, -0.5] > 0.0, "yes", "no")
    >>> shards = [(rows[i::3], labels[i::3]) for i in range(3)]
    >>> run = RecycledADMM(nx.path_graph(3), shards, reg=1.0, C=20).solve(algorithm="r-admm", eta=0.5, rounds=200)
    >>> run.converged, run.optimality.relative < 1e-6, str(run.predict([[1.0, 0.0]])[0])
    (True, True, 'yes')
    """

    def __init__(
        self,
        graph: nx.Graph | ArrayLike,
        shards: Sequence[Shard] | Mapping[Any, Shard],
        loss: str | Loss = "logistic",
        reg: float = 0.22,
        C: float = 1750.0,
        *,
        penalty: str | Penalty = "l2",
    ) -> None:
        self.problem = Problem.of(graph, shards, loss, penalty, reg, C)

    def __repr__(self) -> str:
        return f"RecycledADMM({self.problem!r})"

    @property
    def optimum(self) -> Array:
        """The centralised optimum f_c, (d,), by exact Newton; kept once it is known."""
        return self.problem.optimum

    def solve(
        self,
        algorithm: str = "mr-admm",
        *,
        eta: ArrayLike = 1.0,
        growth: ArrayLike = 1.0,
        gamma: float = 0.5,
        rounds: int = 100,
        variant: str = EDGE,
        eta_cap: ArrayLike | None = None,
        engine: str | Engine = "closed_form",
        solver: str | Sequence[str] | None = None,
        tol: float = 1e-8,
        init: ArrayLike | None = None,
        progress: bool = False,
        callback: Callback | None = None,
    ) -> ConsensusRun:
        """Run consensus ADMM without privacy.

        Parameters
        ----------
        algorithm : {"mr-admm", "r-admm", "admm", "m-admm"}
            "admm" is (8)-(9) with one common eta, "r-admm" Algorithm 1 likewise; "m-admm" and "mr-admm" are their forms
            with a penalty of each node that may grow.
        eta : float, (N,) or (rounds, N)
            > 0: eta_i(2k-1) = min(eta_i growth_i^k, cap_i). A table of all rounds is taken as it is. A small eta
            converges fast on well-conditioned data.
        growth : float or (N,)
            >= 1.
        gamma : float
            >= 0, of the even step: a larger one takes shorter even steps.
        rounds : int
            Most rounds. A round uses the data once: two of the paper's iterations with an even step, one without.
        variant : {"edge", "printed"}
            "edge" puts min(eta_i, eta_j) on every edge: each eta_i is then known to neighbours. "printed" is (14)-(17)
            as they stand: with unequal eta_i its limit is not the optimum of (1) but that of sum_i O_i/eta_i, and
            `run.kkt.dual_sum` is not 0.
        eta_cap : float or (N,), optional
            None is ten times eta; inf is none. A penalty that grows without end freezes the iterates.
        engine : {"closed_form", "dcp", "checked"} or Engine
            Who does the odd steps: exact Newton on all nodes at once, cvxpy solvers node by node, or both compared.
        solver : str or sequence of str, optional
            The first of the fallback chain, or the whole chain.
        tol : float
            The relative KKT residual (`ConsensusResiduals.largest`) at which the run has converged.
        init : array, (d,) or (N, d), optional
            f(0); None is 0.
        progress : bool
            A bar on a terminal.
        callback : callable, optional
            `callback(loop, round, figures)` after each round; returning True ends the run.

        Raises
        ------
        ModelError
            An option is out of range; the message says what would do.
        SolverFailure
            No solver of the chain solved a block.
        Disagreement
            The `checked` engine found two answers.
        NotConverged
            Newton's method did not reach working precision.

        Warns
        -----
        NoGuaranteeWarning
            variant="printed" with penalties that differ between nodes.

        Notes
        -----
        A keyboard interrupt returns the last round, with `converged` False where it is not.
        """
        begun = time.perf_counter()
        require_positive(tol=tol)
        require_counts(rounds=rounds)
        table = self.eta_table(algorithm, eta, growth, eta_cap, rounds, variant)
        who = engine_named(engine, solver=solver)
        if callback is not None and not callable(callback):
            raise ModelError(f"callback={callback!r} is no function: pass one of (loop, round, figures)")
        loop = algorithms.schedule(self.problem, algorithm, variant, table, checked_gamma(gamma), tol)
        bar = iter(track(range(rounds), total=rounds, description="rounds", shown=progress))

        def each(name: str, iteration: int, figures: Mapping[str, Array]) -> bool | None:
            next(bar, None)
            return None if callback is None else callback(name, iteration, figures)

        context = Context(who, History(), each)
        state = single(run(loop, algorithms.initial_state(self.problem, init), context), 0)
        settings = Settings(algorithm, variant, who.name, float(gamma), rounds, tol, tuple(table[-1].tolist()))
        return self._finished(state, context, settings, time.perf_counter() - begun)

    def eta_table(
        self, algorithm: str, eta: ArrayLike, growth: ArrayLike, eta_cap: ArrayLike | None, rounds: int, variant: str
    ) -> Array:
        """Return eta_i(2k-1) of every round and node, (rounds, N), checked against the algorithm.

        Raises
        ------
        ModelError
            No such algorithm or variant; penalties that are not positive or fall; several for an algorithm with one.
        """
        if algorithm not in algorithms.ALGORITHMS:
            raise ModelError(f"algorithm={algorithm!r} is not known: {suggest(str(algorithm), algorithms.ALGORITHMS)}")
        if variant not in VARIANTS:
            raise ModelError(f"variant={variant!r} is not known: {suggest(str(variant), VARIANTS)}")
        table = eta_table(eta, growth, eta_cap, rounds, self.problem.nodes)
        if algorithm in algorithms.COMMON and np.ptp(table) > 0.0:
            other = {"admm": "m-admm", "r-admm": "mr-admm"}[algorithm]
            raise ModelError(
                f"algorithm={algorithm!r} has one eta for all nodes and rounds: pass algorithm={other!r} for several, "
                "or growth=1"
            )
        if variant == PRINTED and np.ptp(table, axis=1).max() > 0.0:
            warnings.warn(
                "variant='printed' with penalties that differ between nodes converges to the optimum of "
                "sum_i O_i/eta_i, not of sum_i O_i: variant='edge' converges to the latter",
                NoGuaranteeWarning,
                stacklevel=3,
            )
        return table

    def solve_private(self, *args: Any, **options: Any) -> PrivateConsensusRun:
        """Fit with differential privacy: see `private.solve_private` for the parameters."""
        from .private import solve_private

        return solve_private(self, *args, **options)

    def convergence_conditions(
        self,
        eta: ArrayLike = 1.0,
        gamma: float = 0.5,
        variant: str = EDGE,
        solvers: Sequence[str] = ("CLARABEL", "SCS"),
    ) -> ConvergenceConditions:
        """Ask whether Theorem IV.1 holds at fixed penalties: conditions (i), (ii) for some L > 0 and mu > 1.

        Parameters
        ----------
        eta : float or (N,)
            Of each node.
        gamma : float
        variant : {"edge", "printed"}
        solvers : sequence of str
            Who solves the semidefinite program.

        See Also
        --------
        linear_rate : how fast the iteration converges near the optimum, whatever the theorem says.
        """
        return conditions(self.problem, self._constant(eta, variant), checked_gamma(gamma), variant, solvers)

    def convergence_sweep(
        self,
        gammas: Iterable[float],
        eta: ArrayLike = 1.0,
        variant: str = EDGE,
        solvers: Sequence[str] = ("CLARABEL", "SCS"),
    ) -> pd.DataFrame:
        """Return `convergence_conditions` and `linear_rate` for several gammas, one row each."""
        return sweep(
            self.problem, self._constant(eta, variant), [checked_gamma(one) for one in gammas], variant, solvers
        )

    def linear_rate(
        self, eta: ArrayLike = 1.0, gamma: float = 0.5, algorithm: str = "mr-admm", variant: str = EDGE
    ) -> float:
        """Return the factor by which a round shrinks the error, near the optimum, at fixed penalties.

        The spectral radius of the iteration with each O_i replaced by its second-order form at the optimum: exact for
        the squared loss, and otherwise what a run tends to. Above 1 the iteration diverges.

        Parameters
        ----------
        eta : float or (N,)
        gamma : float
        algorithm : str
        variant : {"edge", "printed"}
        """
        table = self.eta_table(algorithm, eta, 1.0, None, 1, variant)
        recycles = algorithm in algorithms.RECYCLING
        return linear_rate(self.problem, table[0], checked_gamma(gamma) if recycles else None, variant)

    @staticmethod
    def example_cases() -> list[Case]:
        """Return the blocks of a few small problems: what `cvxpriv crosscheck --all` checks."""
        return example_cases()

    @staticmethod
    def load_run(path: PathLike) -> ConsensusRun | PrivateConsensusRun:
        """Read a saved run, private or not: what `cvxpriv.load` calls."""
        from .private_run import PrivateConsensusRun

        return PrivateConsensusRun.load(path) if read_run(path).get("private") else ConsensusRun.load(path)

    def _constant(self, eta: ArrayLike, variant: str) -> Array:
        """The penalties of conditions at fixed eta, (N,)."""
        return np.asarray(self.eta_table("mr-admm", eta, 1.0, None, 1, variant)[0])

    def _finished(self, state: Values, context: Context, settings: Settings, seconds: float) -> ConsensusRun:
        problem, report = self.problem, context.reports[algorithms.LOOP]
        found = kkt.residuals(problem, state["odd"], state["dual"])
        return ConsensusRun(
            state["odd"],
            problem.loss.name,
            problem.classes,
            problem.network.labels,
            state,
            settings,
            converged=found.largest <= settings.tol,
            rounds=int(report.iterations[0]),
            objective=float(problem.objectives(state["odd"]).sum()),
            kkt=found,
            seconds=seconds,
            problem=problem,
            log=context.history,
            interrupted=context.interrupted,
        )


def example_cases() -> list[Case]:
    """Return the odd steps of small problems, one for each loss, where a few rounds lead."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(36, 3))
    margins = rows @ np.array([1.0, -0.5, 0.0]) + 0.5 * rng.normal(size=36)
    cases = []
    for loss, penalty in (("logistic", "l2"), ("smoothed-hinge", "l2"), ("huber", "l2"), ("squared", "l1")):
        labels = np.sign(margins) if loss in ("logistic", "smoothed-hinge") else margins
        shards = [(rows[node::3], labels[node::3]) for node in range(3)]
        model = RecycledADMM(nx.complete_graph(3), shards, loss, C=10.0, penalty=penalty)
        solved = model.solve(eta=0.5, rounds=4)
        case = case_of_block(solved.blocks()["f/0"], solved.state)
        cases.append(replace(case, name=f"recycled admm {loss} {penalty} {case.name}"))
    return cases

"""The model's face: `RecycledADMM`."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks import engines
from cvxpriv.certify.cases import Case, case_of_block
from cvxpriv.errors import ModelError
from cvxpriv.learning.fit import Fit
from cvxpriv.learning.learning_model import LearningModel, best_start, initial_points
from cvxpriv.learning.schema import SchemaOption, schema_named
from cvxpriv.numerics.arguments import require_callback
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.sizes import Size, of_learning, require_feasible
from cvxpriv.privacy import noise_source
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.options import Option, declared
from cvxpriv.schedules.history import Context, History
from cvxpriv.schedules.running import run

from . import algorithm, kkt, options
from .conditions import ConvergenceConditions, conditions
from .graph import EDGE
from .on_rows import ConsensusOnRows
from .options import METHODS, PRIVATE_METHODS, RECYCLING, checked_gamma, penalty_table, usual_method
from .private import finished, planned, posed, private_passes, require_replaced
from .private_settings import GAUSSIAN, Privacy, within_bound
from .problem import Problem, Shard
from .rate import default_eta, linear_rate
from .run import ConsensusRun, PrivateConsensusRun, Settings, finished_run

#: Largest number of passes, unless told otherwise.
MAX_ITER = 1000


@door
@declared
class RecycledADMM(LearningModel):
    """Fit one linear model to rows that stay with the nodes of a graph; neighbours exchange parameters. RADMM (1).

    Minimise sum_i O_i(f), O_i(f) = (C/B_i) sum_n l(x_n'f, y_n) + (reg/N) R(f), with B_i rows at node i of N.

    On small tables a private fit loses to private fits of each node alone that are averaged, for the same guarantee.

    Parameters
    ----------
    graph : networkx.Graph or adjacency matrix, (N, N)
        Connected, undirected.
    shards : sequence of (X_i, y_i), or mapping from node to it
        Rows (B_i, d), dense or sparse, and labels (B_i,); a sequence is in the order of `graph.nodes`. For a margin
        loss there are two classes over all nodes, of any type.

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
    >>> run = RecycledADMM(nx.path_graph(3), shards, reg=1.0).solve()
    >>> run.converged, run.optimality.relative < 1e-6, str(run.predict([[1.0, 0.0]])[0])
    (True, True, 'yes')
    """

    command: ClassVar[str] = "consensus"
    on_rows: ClassVar[type[Fit]] = ConsensusOnRows
    #: The same fit of nodes in processes of their own, and the option of the command that names their file.
    apart: ClassVar[str] = "cvxpriv_models.recycled_admm.apart:ConsensusApart"
    apart_flag: ClassVar[str] = "--nodes"
    runs: ClassVar[Any] = (ConsensusRun, PrivateConsensusRun)

    @declared
    def __init__(
        self,
        graph: nx.Graph | ArrayLike,
        shards: Sequence[Shard] | Mapping[Any, Shard],
        *,
        loss: options.LossName = "logistic",
        penalty: options.PenaltyName = "l2",
        reg: options.Reg = None,
        C: options.Weight = None,
        schema: SchemaOption = None,
    ) -> None:
        self.problem = Problem.of(graph, shards, loss, penalty, reg, C, schema_named(schema))

    def __repr__(self) -> str:
        return f"RecycledADMM({self.problem!r})"

    @property
    def optimum(self) -> Array:
        """The centralised optimum f_c, (d,), by exact Newton; kept once it is known."""
        return self.problem.optimum

    @declared
    def solve(
        self,
        *,
        method: Annotated[
            shared.Method, Option(choices=METHODS, usual="r-admm, and mr-admm for penalties that differ")
        ] = None,
        engine: shared.Engine = "closed_form",
        starts: Annotated[shared.Starts, Option(usual="1: the problem is convex")] = None,
        seed: shared.Seed = 0,
        tol: Annotated[shared.Tol, Option("Relative KKT residual at which a start has converged.")] = 1e-7,
        max_iter: Annotated[
            shared.MaxIter,
            Option(
                "Most passes. A pass uses the data once: two of the paper's iterations with an even step, one without.",
                usual=str(MAX_ITER),
            ),
        ] = None,
        init: Annotated[shared.Init, Option("f(0), (d,) or (N, d).", usual="0")] = None,
        solver: shared.Solver = None,
        n_jobs: shared.NJobs = 1,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        time_limit: shared.TimeLimit = None,
        isolate: shared.Isolate = None,
        oversize: shared.Oversize = False,
        eta: options.Eta = None,
        growth: options.Growth = 1.0,
        eta_cap: options.EtaCap = None,
        gamma: options.Gamma = 0.5,
        variant: options.Variant = EDGE,
        accelerate: options.Accelerate = "auto",
    ) -> ConsensusRun:
        """Run consensus ADMM without privacy.

        The method "admm" is (8)-(9) with one common eta, "r-admm" Algorithm 1 likewise; "m-admm" and "mr-admm" are
        their forms with a penalty of each node that may grow.

        Raises
        ------
        ModelError
            An option is out of range; the message says which value would do.
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
        A keyboard interrupt returns the last pass, with `converged` False where it is not.
        """
        require_callback(callback, n_jobs)
        who = engines.engine_named(engine, solver=solver, time_limit=time_limit, isolate=isolate, residual=tol)
        problem, exact = self.problem, who.name == "closed_form"
        size = self._size(max_iter or MAX_ITER, planned=problem.nodes, starts=starts or 1, exact=exact)
        require_feasible(size.within(time_limit), oversize)
        chosen = method or usual_method(eta, growth)
        recycled = gamma if chosen in RECYCLING else None
        combines = who.name == "closed_form" and np.array_equal(growth, 1.0) and accelerate != "none"
        first = default_eta(problem, recycled, combines) if eta is None else eta
        table = penalty_table(chosen, variant, first, growth, eta_cap, max_iter, problem.nodes, MAX_ITER)
        last, combined = tuple(table[-1].tolist()), _accelerated(accelerate, who, table)
        decided = chosen, variant, who.name, checked_gamma(gamma), len(table), tol, last, combined
        joint = combined and accelerate == "auto" and variant == EDGE  # the printed form has another limit
        settings = Settings(*decided, joint=joint)
        points = initial_points(init, (problem.nodes, problem.features), starts, seed, lambda: problem.random_scale)
        work = partial(self._from, table=table, settings=settings, engine=who, callback=callback)
        return best_start(work, points, n_jobs=n_jobs, progress=progress)

    @declared
    def solve_private(
        self,
        *,
        epsilon: shared.Epsilon | None = None,
        delta: shared.Delta | None = None,
        adjacency: Annotated[shared.Adjacency, Option(choices=("replace-one",))] = None,
        noise_seed: shared.NoiseSeed = None,
        method: Annotated[
            shared.Method, Option(choices=PRIVATE_METHODS, usual="r-admm, and mr-admm for penalties that differ")
        ] = None,
        max_iter: Annotated[
            shared.MaxIter,
            Option("Number of passes; each node publishes one vector per pass.", usual="3, and 10 for Gaussian noise"),
        ] = None,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        budget: shared.BudgetOption = None,
        oversize: shared.Oversize = False,
        alpha: options.Alpha = None,
        perturbation: options.Perturbation = None,
        eta: options.PublicEta = None,
        growth: options.Growth = 1.0,
        eta_cap: options.EtaCap = None,
        gamma: options.Gamma = 0.5,
        variant: options.Variant = EDGE,
        row_bound: options.RowBound = 1.0,
        clip_rows: options.ClipRows = False,
        node_tol: options.NodeTol = 1e-9,
        init: Annotated[shared.Init, Option("f(0), (d,) or (N, d), public.", usual="0")] = None,
    ) -> PrivateConsensusRun:
        """Find a consensus with differential privacy for every record of every node.

        **It loses, on small tables, to nodes that fit alone and average once** (`ISTDP.solve_private` at each node, for
        the same guarantee): on COMPAS at epsilon 1 and five nodes log loss and AUC are .738 and .627 against .659 and
        .673.

        A pass of "mr-admm" or "r-admm" has a second iteration that is free: it follows from published values. "admm"
        is the conventional one, with noise in the objective; "dvp" has it on the dual variable, which counts twice;
        "m-admm" has it inside the penalty, where it grows with eta.

        The budget is `epsilon`, the total over all passes, which every node spends, or `alpha`, the rate of the noise.
        Without a delta the guarantee is pure, a sum over the passes. With perturbation="objective" a delta only states
        other rules beside it; with "output" the noise is then Gaussian (section VII-B). The options, C, reg, the graph
        and every node's number of rows count as public.

        Raises
        ------
        PrivacyError
            There is no budget or two, it is out of range, or the curvature alone exceeds it; the loss has no bounded
            slope and curvature; a row is beyond its bound; a node could not minimise to within `node_tol`.
        ModelError
            Another option is out of range.

        Notes
        -----
        A node's records are protected against everyone who sees what is published, the other nodes included. One
        record is replaced; a person with records at several nodes costs the sum over them.

        Examples
        --------
        >>> import networkx as nx, numpy as np
        >>> from cvxpriv.models import RecycledADMM
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.uniform(-0.5, 0.5, size=(600, 3))
        >>> labels = np.where(rows @ [2.0, -1.0, 0.5] > 0.0, 1, -1)
        >>> shards = [(rows[i::3], labels[i::3]) for i in range(3)]
        >>> run = RecycledADMM(nx.complete_graph(3), shards).solve_private(epsilon=2.0, max_iter=10)
        >>> round(run.accounting.epsilon, 9), run.accounting.releases
        (2.0, 10)
        """
        problem = self.problem
        # How many entries are not 0 is private: no error may follow from it.
        require_feasible(self._size(max_iter or GAUSSIAN.passes, planned=2 * problem.nodes, stored=0), oversize)
        require_replaced(problem, adjacency)
        chosen, asked = method or usual_method(eta, growth), Privacy(epsilon, delta, alpha, perturbation)
        public, settings, table, releases = posed(
            problem, asked, chosen, max_iter, eta, growth, eta_cap, gamma, variant, row_bound, node_tol
        )
        if budget is not None:
            planned(epsilon, delta, perturbation).spend(budget)
        clips = clip_rows or (problem.schema is not None and problem.schema.beyond == "clip")
        bounded, noise = within_bound(public, settings.row_bound, clips), noise_source(noise_seed)
        watch = with_bar(callback, len(table), progress)
        context = Context(engines.ClosedForm(), History(), watch, starts=np.arange(1), noise=noise)
        loop = private_passes(bounded, settings, table, releases)
        state = single(run(loop, algorithm.initial_state(bounded, init), context), 0)
        return finished(bounded, settings, releases, state, context, delta, noise.secure)

    @declared
    def convergence_conditions(
        self,
        *,
        eta: options.Eta = None,
        gamma: options.Gamma = 0.5,
        variant: options.Variant = EDGE,
        solvers: Sequence[str] = ("CLARABEL", "SCS"),
    ) -> ConvergenceConditions:
        """Ask whether Theorem IV.1 holds at fixed penalties: conditions (i), (ii) for some L > 0 and mu > 1.

        Parameters
        ----------
        solvers : sequence of str
            Solvers of the semidefinite program.

        See Also
        --------
        linear_rate : how fast the iteration converges near the optimum, whatever the theorem says.
        """
        return conditions(self.problem, self._constant(eta, gamma, variant), checked_gamma(gamma), variant, solvers)

    @declared
    def linear_rate(
        self,
        *,
        method: Annotated[shared.Method, Option(choices=METHODS, usual="mr-admm")] = None,
        eta: options.Eta = None,
        gamma: options.Gamma = 0.5,
        variant: options.Variant = EDGE,
    ) -> float:
        """Return the factor by which a pass shrinks the error, near the optimum, at fixed penalties.

        The spectral radius of the iteration with each O_i replaced by its second-order form at the optimum: exact for
        the squared loss, and otherwise the limit of a run. Above 1 the iteration diverges.
        """
        recycles = method is None or method in RECYCLING
        used = checked_gamma(gamma) if recycles else None
        return linear_rate(self.problem, self._constant(eta, used, variant, method or "mr-admm"), used, variant)

    @staticmethod
    def init_of(run: ConsensusRun) -> Array:
        """Return the `init` with which another fit starts at a run's answer: `cvxpriv.sweep` calls it."""
        return run.parameters

    @staticmethod
    def example_cases() -> list[Case]:
        """Return the odd steps of small problems, one for each loss, where a few passes lead."""
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(36, 3))
        margins = rows @ np.array([1.0, -0.5, 0.0]) + 0.5 * rng.normal(size=36)
        cases = []
        for loss, penalty in (("logistic", "l2"), ("smoothed-hinge", "l2"), ("huber", "l2"), ("squared", "l1")):
            labels = np.sign(margins) if loss in ("logistic", "smoothed-hinge") else margins
            shards = [(rows[node::3], labels[node::3]) for node in range(3)]
            model = RecycledADMM(nx.complete_graph(3), shards, loss=loss, C=10.0, penalty=penalty)
            solved = model.solve(eta=0.5, max_iter=4)
            case = case_of_block(solved.blocks()["f/0"], solved.state)
            cases.append(replace(case, name=f"recycled admm {loss} {penalty} {case.name}"))
        return cases

    def _constant(self, eta: ArrayLike | None, gamma: float | None, variant: str, method: str = "mr-admm") -> Array:
        """The penalties of conditions at fixed eta, (N,)."""
        first = default_eta(self.problem, gamma) if eta is None else eta
        return np.asarray(penalty_table(method, variant, first, 1.0, None, 1, self.problem.nodes, 1)[0])

    def _size(self, passes: int, **more: Any) -> Size:
        problem, nodes = self.problem, self.problem.nodes
        many = {"stored": sum(int(part.size) for part in problem.rows.parts), "factors": nodes * problem.features**2}
        return of_learning(problem.y.size, problem.features, passes=passes, blocks=nodes, **{**many, **more})

    def _from(
        self,
        point: Array,
        table: Array,
        settings: Settings,
        engine: engines.Engine,
        progress: bool,
        callback: shared.Watch | None,
    ) -> ConsensusRun:
        """Run the algorithm from one f(0), (N, d)."""
        begun = time.perf_counter()
        choices = settings.gamma, settings.tol, settings.accelerate, settings.joint
        loop = algorithm.schedule(self.problem, settings.method, settings.variant, table, *choices)
        context = Context(engine, History(), with_bar(callback, len(table), progress))
        state = single(run(loop, algorithm.initial_state(self.problem, point), context), 0)
        return self._finished(state, context, settings, time.perf_counter() - begun)

    def _finished(self, state: Values, context: Context, settings: Settings, seconds: float) -> ConsensusRun:
        problem, found = self.problem, kkt.residuals(self.problem, state["odd"], state["dual"])
        objective = float(problem.objectives(state["odd"]).sum())
        gap = kkt.optimality_gap(problem, state["odd"].mean(axis=0))
        run = finished_run(problem, state, settings, context, found, objective, gap, seconds)
        return replace(run, problem=problem, overdue=context.overdue)


def _accelerated(accelerate: str, engine: engines.Engine, table: Array) -> bool:
    fit = engine.name == "closed_form" and float(np.ptp(table, axis=0).max()) == 0.0
    if accelerate == "anderson" and not fit:
        raise ModelError("accelerate='anderson' goes with engine='closed_form' and growth=1: pass accelerate='none'")
    return fit and accelerate != "none"

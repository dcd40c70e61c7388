"""A consensus over nodes that are apart: the coordinator's side, `ConsensusApart`.

The schedule and its steps are those of `algorithm`; the odd and the even step are one message to each node and one
answer, wherever a carrier brings it. What a node published goes to its neighbours alone. The coordinator, which brings
it there, follows the multipliers, which are a function of what was published, to know when to stop.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.distributed.carriers import Carrier
from cvxpriv.distributed.messages import Message, Vocabulary
from cvxpriv.distributed.orchestrator import Orchestrator, numbers, stacked
from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.learning.learning_model import finite_run
from cvxpriv.numerics.arrays import Array, Values, single
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.options import Option, declared
from cvxpriv.schedules.history import Below, Context, History
from cvxpriv.schedules.running import run as run_schedule
from cvxpriv.schedules.steps import Loop, Sweep, Update

from . import algorithm, kkt, options, private
from .algorithm import LOOP
from .apart_messages import SPOKEN
from .apart_node import Allowance, ConsensusNode
from .apart_release import Terms, terms_of
from .blocks import dual_update, penalty_step
from .graph import EDGE
from .node_rows import network_of
from .options import METHODS, PRIVATE_METHODS, RECYCLING, checked_gamma, penalty_table, usual_method
from .private_settings import Privacy
from .problem import Problem
from .rate import fastest_eta
from .run import ConsensusRun, PrivateConsensusRun, Settings, finished_run

#: Largest number of passes, unless told otherwise.
MAX_ITER = 1000


class ConsensusApart(Orchestrator):
    """A consensus whose rows are with nodes in processes of their own.

    Parameters
    ----------
    carrier : Carrier
        The way to the nodes, whose names are the graph's.
    graph : networkx.Graph, adjacency matrix, or text
        Its nodes are the carrier's names, or numbers or a matrix in their order. A text is a spelling (`ring`, `path`,
        `star`, `complete`), or the name of a file of edges.
    loss, penalty, reg, C
        See `RecycledADMM`.
    classes : array, (2,), optional
        The labels that stand for -1 and for 1 at every node.

    Raises
    ------
    DataError
        The nodes and the graph differ, or the nodes' columns do.
    ModelError
        See `RecycledADMM`.
    PartyError
        A node does not come.

    Examples
    --------
    >>> import networkx as nx
    >>> from cvxpriv.distributed.carriers import InProcess
    >>> rows = np.random.default_rng(0).normal(size=(60, 2))
    >>> labels = np.where(rows @ [1.0, -0.5] > 0.0, 1, -1)
    >>> shards = {name: (rows[i::3], labels[i::3]) for i, name in enumerate("abc")}
    >>> nodes = {name: ConsensusNode(*shard, Allowance(exact=True)) for name, shard in shards.items()}
    >>> run = ConsensusApart(InProcess(nodes, SPOKEN), nx.path_graph(["a", "b", "c"]), reg=1.0).solve()
    >>> run.converged, run.parameters.shape
    (True, (3, 2))
    """

    #: The nodes' side of it, the limits that a node sets, and the messages.
    party: ClassVar[type[ConsensusNode]] = ConsensusNode
    allowance: ClassVar[type[Allowance]] = Allowance
    spoken: ClassVar[Vocabulary] = SPOKEN
    #: Whether the parties have labels: they hold rows, not columns.
    labelled: ClassVar[bool] = True

    def __init__(
        self,
        carrier: Carrier,
        graph: Any,
        *,
        loss: str = "logistic",
        penalty: str = "l2",
        reg: float | None = None,
        C: float | None = None,
        classes: np.ndarray[Any, Any] | None = None,
    ) -> None:
        super().__init__(carrier, loss, penalty)
        self.loss, self.penalty = loss, penalty
        network = network_of(graph, carrier.names)
        hellos = carrier.join()
        widths = {name: int(hellos[name].number("columns")) for name in carrier.names}
        if len(set(widths.values())) > 1:
            told = ", ".join(f"{name} has {width}" for name, width in widths.items())
            raise DataError(f"the nodes' columns differ ({told}): every node must hold the same features")
        counts = [int(hellos[name].number("rows")) for name in carrier.names]
        self.problem = Problem.unseen(
            network, counts, widths[carrier.names[0]], loss=loss, penalty=penalty, reg=reg, C=C, classes=classes
        )
        self.carrier.sizes["features"] = self.problem.features
        self.neighbours = [np.flatnonzero(line) for line in network.adjacency]

    @declared
    def solve(
        self,
        *,
        method: Annotated[
            shared.Method, Option(choices=METHODS, usual="r-admm, and mr-admm for penalties that differ")
        ] = None,
        tol: Annotated[shared.Tol, Option("Relative KKT residual at which the fit has converged.")] = 1e-7,
        max_iter: Annotated[shared.MaxIter, Option("Most passes.", usual=str(MAX_ITER))] = None,
        eta: options.Eta = None,
        growth: options.Growth = 1.0,
        eta_cap: options.EtaCap = None,
        gamma: options.Gamma = 0.5,
        variant: options.Variant = EDGE,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        save: PathLike | None = None,
    ) -> ConsensusRun:
        """Fit without privacy: `RecycledADMM.solve` with accelerate='none', to the last bit.

        The `gap` is another one: it follows from numbers, one a node, and no node gets a vector that is not a
        neighbour's.

        Parameters
        ----------
        save : path, optional
            The file of the last state, written if a node ends the run.

        Raises
        ------
        DataError
            The nodes' columns or classes differ in their names.
        ModelError
            An option is out of range, or the passes left the range of doubles.
        PartyError
            A node is lost, late, or refuses.
        """
        begun = time.perf_counter()
        chosen = method or usual_method(eta, growth)
        problem, gamma = self.problem, checked_gamma(gamma)
        with self.saved_if_lost(save):
            ready = self._start("begin", problem, (chosen, variant, gamma))
            if eta is None:
                least, largest = (numbers(ready, name) for name in ("least", "largest"))
                recycled = gamma if chosen in RECYCLING else None
                eta = fastest_eta(problem.network, min(least), max(largest), recycled)
            table = penalty_table(chosen, variant, eta, growth, eta_cap, max_iter, problem.nodes, MAX_ITER)
            planned = tuple(table[-1].tolist())
            settings = Settings(chosen, variant, "closed_form", gamma, len(table), tol, planned, False)
            context = Context(ClosedForm(), History(), with_bar(callback, len(table), progress))
            figures = ("loss", "stationarity")
            work = self._published("odd", "f", "odd"), self._published("even", "odd", "f", figures)
            odd = Update("odd", work[0], frozenset({"f", "eta", "pass"}), frozenset({"odd"}))
            even = Update("even", work[1], frozenset({"odd", "pass"}), frozenset({"f", *figures}))
            steps = Sweep([penalty_step(table), odd, dual_update(problem, variant), even])
            loop = Loop(steps, Below("kkt", tol), len(table), self._measure, name=LOOP)
            state = {**algorithm.initial_state(problem), "stationarity": np.zeros((1, problem.nodes))}
            del state["gradient"], state["noise"]  # with the nodes
            ended = single(run_schedule(loop, state, context), 0)
            return finite_run(self._finished(ended, context, settings, begun))

    @declared
    def solve_private(
        self,
        *,
        epsilon: shared.Epsilon | None = None,
        delta: shared.Delta | None = None,
        adjacency: shared.Adjacency = None,
        method: Annotated[
            shared.Method, Option(choices=PRIVATE_METHODS, usual="r-admm, and mr-admm for penalties that differ")
        ] = None,
        max_iter: Annotated[shared.MaxIter, Option("Passes.", usual="3, and 10 for Gaussian noise")] = None,
        budget: shared.BudgetOption = None,
        alpha: options.Alpha = None,
        perturbation: options.Perturbation = None,
        eta: options.PublicEta = None,
        growth: options.Growth = 1.0,
        eta_cap: options.EtaCap = None,
        gamma: options.Gamma = 0.5,
        variant: options.Variant = EDGE,
        row_bound: options.RowBound = 1.0,
        node_tol: options.NodeTol = 1e-9,
        progress: shared.Progress = False,
        callback: shared.Callback = None,
        save: PathLike | None = None,
    ) -> PrivateConsensusRun:
        """Fit with privacy: each node draws its own noise, and keeps its own ledger. See `RecycledADMM.solve_private`.

        Every node finds the cost itself before it agrees. It releases one vector a pass, and nothing else of its rows.

        Raises
        ------
        PrivacyError
            The budget is not valid, or the loss or the penalty bounds no sensitivity.
        ModelError
            Another option is out of range.
        DataError
            The nodes' columns or classes differ in their names.
        PartyError
            A node is lost, late, or does not allow what is asked.
        """
        if adjacency not in (None, "replace-one"):
            raise PrivacyError("adjacency='add-remove': every node's number of rows is public, and weighs them")
        chosen, asked = method or usual_method(eta, growth), Privacy(epsilon, delta, alpha, perturbation)
        problem, settings, table, releases = private.posed(
            self.problem, asked, chosen, max_iter, eta, growth, eta_cap, gamma, variant, row_bound, node_tol
        )
        if budget is not None:
            private.planned(epsilon, delta, perturbation).spend(budget)
        with self.saved_if_lost(save):
            near = [table[:, [node, *near]] for node, near in enumerate(self.neighbours)]
            terms = [terms_of(settings, etas, releases, asked, node) for node, etas in enumerate(near)]
            public = chosen, variant, settings.gamma
            agreed = self._start("begin-private", problem, public, terms, perturbation=settings.perturbation)
            secure = all(one == 1.0 for one in numbers(agreed, "secure"))
            watch = with_bar(callback, len(table), progress)
            context = Context(ClosedForm(), History(), watch, starts=np.arange(1))
            far = self._published("release", "f", "odd"), self._published("recycle", "odd", "f")
            loop = private.private_passes(problem, settings, table, releases, far)
            figures, names = private.figures_of(problem), sorted(private.RELEASED)
            loop = replace(loop, measure=lambda state: figures(self._kept(state, names)))
            state = single(run_schedule(loop, algorithm.initial_state(problem), context), 0)
        return private.finished(problem, settings, releases, state, context, delta, secure)

    def _kept(self, state: Values, names: Iterable[str]) -> Values:
        """Keep entries of a state, which is the last one that is whole; return it."""
        self.done, self.latest = int(state["pass"][0]), {name: state[name] for name in names}
        return state

    def _start(
        self, kind: str, problem: Problem, public: tuple[str, str, float], more: Sequence[Terms] = (), **texts: str
    ) -> dict[str, Message]:
        """Begin a run at every node; return what they answered.

        `public`: Method, variant and gamma. `more`: The further vectors of each node.
        """
        (method, variant, gamma), names = public, self.carrier.names
        texts |= {"method": method, "variant": variant, "loss": self.loss, "penalty": self.penalty}
        further = more or [{}] * len(names)
        own = [{"neighbours": near.astype("<u8"), **one} for near, one in zip(self.neighbours, further, strict=True)]
        answers = self.begin(kind, texts, own, nodes=problem.nodes, C=problem.C, reg=problem.reg, gamma=gamma)
        layouts = {name: int(one.vectors["layout"][0]) for name, one in answers.items()}
        if stray := [name for name in names if layouts[name] != layouts[names[0]]]:
            raise DataError(
                f"{stray[0]} and {names[0]} have other columns or classes: give every node the same --columns, "
                "--range, --category and --positive"
            )
        return answers

    def _published(self, kind: str, read: str, write: str, figures: tuple[str, ...] = ()) -> Callable[[Values], Values]:
        """Return the work of a step: every node gets its neighbours' vectors, and publishes one; the log has each edge.

        `figures`: Further numbers of the answers.
        """
        names = self.carrier.names

        def work(state: Values) -> Values:
            view, own = single(state, 0), []
            for node, near in enumerate(self.neighbours):
                for sender in near:
                    edge = Message(f"{kind} along an edge", {read: view[read][sender]})
                    self.carrier.log.note(names[sender], names[node], edge)
                etas = {"eta": view["eta"][[node, *near]]} if kind == "odd" else {}
                own.append({read: view[read][near].ravel(), **etas})
            answers = self.ask(kind, own=own, turn=int(view["pass"]))
            told = {name: stacked(answers, name)[None, :, 0] for name in figures}
            return {write: stacked(answers, write)[None], **told}

        return work

    def _measure(self, state: Values) -> dict[str, Array]:
        """Return the figures of `algorithm.figures_of`, but the distance to an optimum that nobody knows."""
        problem, view = self.problem, single(self._kept(state, state), 0)
        found = kkt.residuals_of_parts(problem, view["odd"], view["dual"], tuple(view["stationarity"].tolist()))
        figures = algorithm.figures_of_parts(problem, view, found)
        return {name: np.array([value]) for name, value in figures.items()}

    def _finished(self, state: Values, context: Context, settings: Settings, begun: float) -> ConsensusRun:
        problem, passes = self.problem, int(context.reports[LOOP].iterations[0])
        answers = self.ask("finish", turn=passes)
        told = {name: np.array(numbers(answers, name)) for name in ("loss", "stationarity", "smoothness")}
        found = kkt.residuals_of_parts(problem, state["odd"], state["dual"], tuple(told["stationarity"].tolist()))
        weights = [problem.penalty.value(own) for own in state["odd"]]
        objectives = problem.C * told["loss"] + problem.reg / problem.nodes * np.array(weights)
        gap, seconds = kkt.gap_of_parts(problem, state["odd"], found, told["smoothness"]), time.perf_counter() - begun
        return finished_run(problem, state, settings, context, found, float(objectives.sum()), gap, seconds)

"""A node of a consensus in a process of its own: its rows, its labels, its multipliers.

It answers messages of `apart_messages.SPOKEN`. Its steps are the blocks of `blocks`, on arrays of all nodes in which it
knows its own row and its neighbours' rows. A pass has two of them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.distributed import participant
from cvxpriv.distributed.messages import Message, Vocabulary
from cvxpriv.errors import DataError, PartyError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import convex_penalty, loss_named
from cvxpriv.privacy import Noise
from cvxpriv.reports.files import PathLike
from cvxpriv.schedules.history import Context
from cvxpriv.schedules.running import run as run_schedule
from cvxpriv.schedules.steps import AnyStep, Sweep

from . import kkt
from .apart_messages import SPOKEN
from .apart_release import Private, private_of
from .blocks import carry, dual_update, even_update, odd_block
from .graph import Network
from .options import RECYCLING
from .problem import Problem, checked_rows
from .rate import curvatures
from .rows import Rows


@dataclass(frozen=True)
class Allowance(participant.Allowance):
    """The limits of what leaves a node's process: see `cvxpriv.distributed.participant.Allowance`.

    Attributes
    ----------
    clip_rows : bool
        Whether rows beyond a private run's bound are shortened rather than refused.
    """

    clip_rows: bool = False


@dataclass(frozen=True)
class _Begun:
    """A run that this node takes part in: the graph as far as it knows it, and its steps."""

    problem: Problem
    alone: Problem
    place: int
    known: np.ndarray[Any, Any]
    odd: AnyStep
    even: AnyStep
    private: Private | None = None

    @property
    def zeros(self) -> dict[str, Array]:
        """The entries of a run that begins: of the node and its neighbours, or its own alone."""
        wide, one = np.zeros((self.known.size, self.problem.features)), np.zeros((1, self.problem.features))
        own = {"dual": one, "gradient": one, "loss": np.zeros(1)}
        return {"f": wide, "odd": wide, **own, "eta": np.zeros(self.known.size)}

    def spread(self, values: Array, other: float = 0.0) -> Array:
        """Return values of the node and its neighbours, (1 + V, ...), among those of all nodes, with a leading axis."""
        together = np.full((self.problem.nodes, *values.shape[1:]), other)
        together[self.known[: len(values)]] = values
        return together[None]


class ConsensusNode(participant.Participant[_Begun]):
    """The node's side of `ConsensusApart`.

    Parameters
    ----------
    rows : array or scipy.sparse, (B, d)
    y : array, (B,)
        Labels: -1 and 1 for a margin loss, or any two with `classes`.
    allowance : Allowance
    classes : pair, optional
        The labels that stand for -1 and for 1, the same at every node.
    layout : int
        A hash of what the columns are: nodes with different ones do not fit together.
    noise, folder
        See `cvxpriv.distributed.participant.Participant`.

    Raises
    ------
    DataError
        Rows or labels are malformed.
    """

    vocabulary: Vocabulary = SPOKEN
    allowance: Allowance

    def __init__(
        self,
        rows: ArrayLike | sparse.sparray,
        y: ArrayLike,
        allowance: Allowance,
        *,
        classes: tuple[Any, Any] | None = None,
        layout: int = 0,
        noise: Noise | None = None,
        folder: PathLike | None = None,
    ) -> None:
        table = Rows.of([checked_rows("rows", rows)]).parts[0]  # in one piece of memory, as in one process
        super().__init__(table, allowance, folder, noise)
        self.layout = np.array([layout], dtype="<u8")
        self.y = _labels(np.asarray(y), self.sizes["rows"], classes)
        self.sizes["features"] = int(table.shape[1])

    @property
    def coefficients(self) -> Array:
        """The node's f(2k-1), (d,)."""
        return np.asarray(self.state["odd"][0])

    def _begin(self, message: Message) -> Message:
        self.allowance.require_exact()
        begun = self._posed(message)
        self._enter(message, begun.zeros)
        self._go(begun)
        least, largest = curvatures(begun.alone)
        return Message.of("ready", layout=self.layout, least=least, largest=largest)

    def _begin_private(self, message: Message) -> Message:
        """Agree to a private run whose cost it has found itself, and write that cost down; or come back to it."""
        begun = self._posed(message)
        private = private_of(message, begun.problem, begun.place, begun.known)
        self.allowance.require(private.total)
        private = private.within(self.allowance.clip_rows)
        self._enter(message, begun.zeros, private.total, "RecycledADMM")
        self._go(replace(begun, private=private))
        return Message.of("agreed", layout=self.layout, secure=self.noise.secure)

    def _go(self, begun: _Begun) -> None:
        self.begun = begun
        self.sizes |= {"edges": (begun.known.size - 1) * begun.problem.features, "closed": begun.known.size}

    def _posed(self, message: Message) -> _Begun:
        """Return the run that a message asks for, as far as this node knows it.

        A node that is no neighbour is linked to itself alone.
        """
        loss = loss_named(message.texts["loss"])
        if loss.margin and not np.isin(self.y, (-1.0, 1.0)).all():
            raise DataError(f"loss={loss.name!r} takes labels of -1 and 1: name the two classes")
        nodes, (place, known) = int(message.number("nodes")), self._neighbourhood(message)
        adjacency = np.eye(nodes)
        adjacency[known, known] = 0.0
        adjacency[place, known[1:]] = adjacency[known[1:], place] = 1.0
        nothing = np.zeros((0, self.table.shape[1]))
        rows = Rows(tuple(self.table if node == place else nothing for node in range(nodes)))
        network, penalty = Network(tuple(range(nodes)), adjacency), convex_penalty(message.texts["penalty"])
        problem = Problem(network, rows, self.y, loss, penalty, message.number("reg"), message.number("C"))
        variant, recycles = message.texts["variant"], message.texts["method"] in RECYCLING
        last = even_update(problem, variant, message.number("gamma")) if recycles else carry()
        steps = odd_block(problem, place, variant), Sweep([dual_update(problem, variant), last])
        return _Begun(problem, problem.of_node(place), place, known, *steps)

    def _neighbourhood(self, message: Message) -> tuple[int, np.ndarray[Any, Any]]:
        """Return the place of this node, and the places of it and its neighbours."""
        nodes, place = int(message.number("nodes")), int(message.number("place"))
        known = np.array([place, *message.vectors["neighbours"].tolist()], dtype=np.intp)
        if known.size < 2 or known.max() >= nodes or known.min() < 0 or np.unique(known).size < known.size:
            raise PartyError("the neighbours that came are no nodes of a graph: the coordinator is at fault")
        return place, known

    def _stepped(self, turn: int, step: AnyStep, received: str, message: Message, eta: Array | None = None) -> None:
        """Take a step, two a pass, from what the neighbours sent, and keep this node's own rows of what it writes."""
        before, begun = self._start(turn), self.running
        told = message.vectors[received].reshape(-1, begun.problem.features)
        state = {**before, received: np.concatenate([before[received][:1], told])}
        state |= {} if eta is None else {"eta": eta}
        view: Values = {name: begun.spread(value, float(name == "eta")) for name, value in state.items()}
        context = Context(ClosedForm(), starts=np.arange(1), noise=self.noise, iteration=(turn + 1) // 2)
        done = run_schedule(step, {**view, "noise": np.zeros_like(view["f"])}, context)
        for name in ("f", "odd", "dual", "gradient", "loss"):
            state[name] = np.concatenate([done[name][0, [begun.place]], state[name][1:]])
        self._keep(turn, before, state, context.ledger)

    def _release(self, message: Message) -> Message:
        """Draw a release; one that was drawn is sent again as it was."""
        begun, number = self.running, int(message.number("pass"))
        if 2 * number - 1 != self.done:
            assert begun.private is not None  # the run is
            step = begun.private.draw(begun.problem, begun.place, number - 1)
            self._stepped(2 * number - 1, step, "f", message, begun.private.etas[number - 1])
        return Message("released", {"pass": message.vectors["pass"], "odd": self.state["odd"][0]})

    def _recycle(self, message: Message) -> Message:
        self._stepped(2 * int(message.number("pass")), self.running.even, "odd", message)
        return Message("reused", {"pass": message.vectors["pass"], "f": self.state["f"][0]})

    def _odd(self, message: Message) -> Message:
        turn = 2 * int(message.number("pass")) - 1
        self._stepped(turn, self.running.odd, "f", message, np.array(message.vectors["eta"]))
        return Message("published", {"pass": message.vectors["pass"], "odd": self.state["odd"][0]})

    def _even(self, message: Message) -> Message:
        self._stepped(2 * int(message.number("pass")), self.running.even, "odd", message)
        state = self.state
        distance = kkt.stationarity_of(self.running.alone, state["odd"][:1], state["dual"], state["gradient"])
        figures = {"loss": state["loss"], "stationarity": np.array(distance)}
        return Message("recycled", {"pass": message.vectors["pass"], **figures, "f": state["f"][0]})

    def _finish(self, message: Message) -> Message:
        """Return the node's figures, from its rows anew."""
        if 2 * int(message.number("pass")) != self.done:
            raise PartyError(f"pass {message.number('pass'):g} was the last, and this node is at step {self.done}")
        alone, odd = self.running.alone, self.state["odd"][:1]
        figures = {
            "loss": alone.node_losses(odd),
            "stationarity": np.array(kkt.stationarity_of(alone, odd, self.state["dual"])),
            "smoothness": alone.smoothness,
        }
        return Message("finished", {"pass": message.vectors["pass"], **figures})


def _labels(y: np.ndarray[Any, Any], rows: int, classes: tuple[Any, Any] | None) -> Array:
    """Return labels as numbers: -1 and 1 where classes are named."""
    if y.shape != (rows,):
        raise DataError(f"y has shape {y.shape}, expected ({rows},)")
    if classes is not None:
        if not np.isin(y, np.asarray(classes)).all():
            raise DataError(f"y holds labels that are none of classes={classes!r}: name both")
        return np.where(y == classes[1], 1.0, -1.0)
    try:
        numbers = np.asarray(y, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError("y holds texts: name the two classes, the same at every node") from error
    if not np.isfinite(numbers).all():
        raise DataError("y holds NaN or infinite labels: drop these rows")
    return numbers

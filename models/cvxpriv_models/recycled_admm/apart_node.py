"""A node of a consensus in a process of its own: its rows, its labels, its multipliers.

It answers messages of `apart_messages.SPOKEN`. Its steps are the blocks of `blocks`, on arrays of all nodes in which it
knows its own row and its neighbours' rows. Its checkpoint is written before an answer leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.distributed.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from cvxpriv.distributed.messages import Message, Vocabulary
from cvxpriv.errors import DataError, PartyError, PrivacyError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import Loss, convex_penalty, loss_named
from cvxpriv.privacy import Release
from cvxpriv.reports.files import PathLike
from cvxpriv.schedules.running import run as run_schedule
from cvxpriv.schedules.steps import AnyStep, Context, Sweep

from . import kkt
from .apart_messages import SPOKEN
from .blocks import carry, dual_update, even_update, odd_block
from .default_eta import curvatures
from .graph import Network
from .methods import RECYCLING
from .problem import Problem, checked_rows
from .rows import Rows

__all__ = ["Allowance", "ConsensusNode"]


@dataclass(frozen=True)
class Allowance:
    """The limits of what leaves a node's process.

    Attributes
    ----------
    exact : bool
        Whether exact parameters may leave it, without any privacy.
    """

    exact: bool = False


@dataclass(frozen=True)
class _Begun:
    """A run that this node takes part in: the graph as far as it knows it, and its steps."""

    problem: Problem
    alone: Problem
    place: int
    known: np.ndarray[Any, Any]
    odd: AnyStep
    even: AnyStep

    def spread(self, values: Array, other: float = 0.0) -> Array:
        """Return values of the node and its neighbours, (1 + V, ...), among those of all nodes, with a leading axis."""
        together = np.full((self.problem.nodes, *values.shape[1:]), other)
        together[self.known[: len(values)]] = values
        return together[None]


class ConsensusNode:
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
    folder : path, optional
        Folder of its checkpoint. Without one it cannot come back to a run.

    Raises
    ------
    DataError
        Rows or labels are malformed.
    """

    vocabulary: Vocabulary = SPOKEN

    def __init__(
        self,
        rows: ArrayLike | sparse.sparray,
        y: ArrayLike,
        allowance: Allowance,
        *,
        classes: tuple[Any, Any] | None = None,
        layout: int = 0,
        folder: PathLike | None = None,
    ) -> None:
        self.rows = Rows.of([checked_rows("rows", rows)]).parts[0]  # in one piece of memory, as in one process
        self.allowance, self.layout = allowance, layout
        self.y = _labels(np.asarray(y), self.rows.shape[0], classes)
        self.file = None if folder is None else Path(folder) / "checkpoint.bin"
        self.sizes: Mapping[str, int] = {"rows": int(self.rows.shape[0]), "features": int(self.rows.shape[1])}
        self.begun: _Begun | None = None
        self.run, self.turn = "", 0
        self.state: dict[str, Array] = {}
        self.before: dict[str, Array] = {}
        self.ledger: list[Release] = []  # nothing private leaves it

    @property
    def coefficients(self) -> Array:
        """The node's f(2k-1), (d,)."""
        return np.asarray(self.state["odd"][0])

    @property
    def height(self) -> float:
        """Value of a further column that the run itself gives the node, for an intercept: it gives none."""
        return 0.0

    @property
    def fitted(self) -> bool:
        """Whether there are coefficients: a run has begun."""
        return bool(self.state)

    def hello(self) -> Message:
        """See `Role`."""
        rows, columns = (np.array([float(size)]) for size in self.rows.shape)
        return Message("hello", {"rows": rows, "columns": columns, "digests": np.zeros(0, dtype="<u8")})

    def answer(self, message: Message) -> Message:
        """See `Role`.

        Raises
        ------
        PartyError
            The message is of a pass that this node is not at, or not of this run.
        PrivacyError
            Exact parameters were asked for, and its allowance does not permit them.
        DataError
            Its labels do not suit the loss.
        """
        match message.kind:
            case "begin":
                return self._begin(message)
            case "odd":
                return self._odd(message)
            case "even":
                return self._even(message)
            case "finish":
                return self._finish(message)
            case _:
                raise PartyError(f"a message {message.kind!r} came, which is for parties that hold columns")

    def _begin(self, message: Message) -> Message:
        if not self.allowance.exact:
            raise PrivacyError("exact parameters were asked for: give this node --exact to let them leave")
        loss = loss_named(message.texts["loss"])
        _require_signs(self.y, loss)
        place, known = self._neighbourhood(message)
        problem = self._posed(message, loss, place, known)
        variant, recycles = message.texts["variant"], message.texts["method"] in RECYCLING
        last = even_update(problem, variant, message.number("gamma")) if recycles else carry()
        alone = problem.of_node(place)
        steps = odd_block(problem, place, variant), Sweep([dual_update(problem, variant), last])
        self.begun = _Begun(problem, alone, place, known, *steps)
        self.sizes = {**self.sizes, "edges": (known.size - 1) * problem.features, "closed": known.size}
        self._resume(message.texts["run"])
        least, largest = curvatures(alone)
        layout = np.array([self.layout], dtype="<u8")
        return Message("ready", {"least": np.array([least]), "largest": np.array([largest]), "layout": layout})

    def _neighbourhood(self, message: Message) -> tuple[int, np.ndarray[Any, Any]]:
        """Return the place of this node, and the places of it and its neighbours."""
        nodes, place = int(message.number("nodes")), int(message.number("place"))
        known = np.array([place, *message.vectors["neighbours"].tolist()], dtype=np.intp)
        if known.size < 2 or known.max() >= nodes or known.min() < 0 or np.unique(known).size < known.size:
            raise PartyError("the neighbours that came are no nodes of a graph: the coordinator is at fault")
        return place, known

    def _posed(self, message: Message, loss: Loss, place: int, known: np.ndarray[Any, Any]) -> Problem:
        """Return the problem as far as this node knows it: a node that is no neighbour is linked to itself alone."""
        nodes = int(message.number("nodes"))
        adjacency = np.eye(nodes)
        adjacency[known, known] = 0.0
        adjacency[place, known[1:]] = adjacency[known[1:], place] = 1.0
        nothing = np.zeros((0, self.rows.shape[1]))
        rows = Rows(tuple(self.rows if node == place else nothing for node in range(nodes)))
        network, penalty = Network(tuple(range(nodes)), adjacency), convex_penalty(message.texts["penalty"])
        return Problem(network, rows, self.y, loss, penalty, message.number("reg"), message.number("C"))

    def _resume(self, run: str) -> None:
        """Take up a run where the checkpoint left it, or begin it."""
        if run == self.run:
            return
        assert self.begun is not None
        wide, one = (self.begun.known.size, self.begun.problem.features), (1, self.begun.problem.features)
        shapes = {"f": wide, "odd": wide, "dual": one, "gradient": one, "loss": (1,), "eta": wide[:1]}
        self.run, self.turn = run, 0
        self.state = {name: np.zeros(shape) for name, shape in shapes.items()}
        self.before = dict(self.state)
        found = None if self.file is None else read_checkpoint(self.file)
        if found is None or found.run != run:
            return
        try:
            self.state = {name: found.arrays[name].reshape(shape) for name, shape in shapes.items()}
            self.before = {name: found.arrays[f"before {name}"].reshape(shape) for name, shape in shapes.items()}
        except (KeyError, ValueError) as error:
            raise DataError(f"{self.file} is the checkpoint of another table: serve the table of that run") from error
        self.turn = found.passes

    def _at(self, turn: int) -> _Begun:
        """Go to a step, two a pass: the next one, or the last one again."""
        if self.begun is None or turn not in (self.turn, self.turn + 1):
            raise PartyError(f"step {turn} was asked for, and this node is at {self.turn}: its checkpoint is missing")
        if turn == self.turn:
            self.state = dict(self.before)
        else:
            self.before = dict(self.state)
        return self.begun

    def _stepped(self, begun: _Begun, step: AnyStep, turn: int, received: str, told: Array) -> None:
        """Take a step from what the neighbours sent, keep its own rows of what it writes, and write the checkpoint."""
        state = self.state
        state[received] = np.concatenate([state[received][:1], told.reshape(-1, begun.problem.features)])
        eta = begun.spread(state["eta"], 1.0)
        view: Values = {**{name: begun.spread(value) for name, value in state.items()}, "eta": eta}
        view = {**view, "noise": np.zeros_like(view["f"])}
        done = run_schedule(step, view, Context(ClosedForm()))
        for name in ("f", "odd", "dual", "gradient", "loss"):
            own = done[name][0, [begun.place]]
            state[name] = np.concatenate([own, state[name][1:]])
        self.turn = turn
        if self.file is not None:
            arrays = {**state, **{f"before {name}": value for name, value in self.before.items()}}
            write_checkpoint(self.file, Checkpoint(self.run, turn, arrays), durable=False)

    def _odd(self, message: Message) -> Message:
        turn = 2 * int(message.number("pass")) - 1
        begun = self._at(turn)
        self.state["eta"] = np.array(message.vectors["eta"])
        self._stepped(begun, begun.odd, turn, "f", message.vectors["f"])
        return Message("published", {"pass": message.vectors["pass"], "odd": self.state["odd"][0]})

    def _even(self, message: Message) -> Message:
        turn = 2 * int(message.number("pass"))
        begun, state = self._at(turn), self.state
        self._stepped(begun, begun.even, turn, "odd", message.vectors["odd"])
        distance = kkt.stationarity_of(begun.alone, state["odd"][:1], state["dual"], state["gradient"])
        figures = {"loss": state["loss"], "stationarity": np.array(distance)}
        return Message("recycled", {"pass": message.vectors["pass"], **figures, "f": state["f"][0]})

    def _finish(self, message: Message) -> Message:
        """Return the node's figures, from its rows anew."""
        if self.begun is None or self.turn != 2 * int(message.number("pass")):
            raise PartyError(f"pass {message.number('pass'):g} was the last, and this node is at step {self.turn}")
        alone, odd = self.begun.alone, self.state["odd"][:1]
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


def _require_signs(y: Array, loss: Loss) -> None:
    if loss.margin and not np.isin(y, (-1.0, 1.0)).all():
        raise DataError(f"loss={loss.name!r} takes labels of -1 and 1: name the two classes")

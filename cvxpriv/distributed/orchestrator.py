"""The orchestrator's side of any run: its questions to all parties at once, and the state kept if one is lost."""

import io
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cvxpriv.distributed.carriers import Carrier
from cvxpriv.distributed.messages import Entries, Message
from cvxpriv.errors import ModelError, PartyError, shown
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.reports.files import PathLike, write_bytes


class Orchestrator:
    """The parties, as a model's fit asks them.

    Parameters
    ----------
    carrier : Carrier
        The way to the parties.
    names : str
        Names of a loss, a penalty: the parties get no other object.

    Attributes
    ----------
    done : int
        The passes of the present run that are whole.
    latest : dict of str to ndarray
        The state after them; empty before the first.
    """

    def __init__(self, carrier: Carrier, *names: str) -> None:
        if stray := [one for one in names if not isinstance(one, str)]:
            raise ModelError(f"{shown(stray[0])} is no name of a loss or penalty: parties apart are told names")
        self.carrier = carrier
        self.done = 0
        self.latest: Values = {}

    def ask(
        self,
        kind: str,
        texts: Mapping[str, str] | None = None,
        own: Sequence[Mapping[str, Entries | float]] = (),
        opening: bool = False,
        turn: int | None = None,
        **common: Entries | float,
    ) -> dict[str, Message]:
        """Ask every party the same, and each its own; return the answers.

        `own`: Further vectors of each party, in their order.
        `opening`: Whether a party that joins again is to get the message again.
        `turn`: The pass that it is of.
        """
        common = common if turn is None else {"pass": turn, **common}
        every = own or [{}] * len(self.carrier.names)
        told = zip(self.carrier.names, every, strict=True)
        messages = {name: Message.of(kind, texts, **common, **one) for name, one in told}
        return self.carrier.step_all(messages, opening=opening)

    def begin(
        self, kind: str, texts: Mapping[str, str], own: Sequence[Mapping[str, Entries | float]], **common: Any
    ) -> dict[str, Message]:
        """Begin a run under a new name; each party is told its place."""
        placed = [{"place": place, **one} for place, one in enumerate(own)]
        return self.ask(kind, {"run": secrets.token_hex(8), **texts}, placed, True, **common)

    @contextmanager
    def saved_if_lost(self, save: PathLike | None) -> Iterator[None]:
        """Write the latest state of a run to a file, if one is named and a party ends the run; the error names it."""
        self.done, self.latest = 0, {}
        try:
            yield
        except PartyError as error:
            if save is None or not self.latest:
                raise
            file = io.BytesIO()
            np.savez(file, **{**self.latest, "passes": np.array([float(self.done)])})  # type: ignore[arg-type]
            path = write_bytes(save, file.getvalue(), private=True)
            raise type(error)(f"{error}; the state after {self.done} passes is in {path}") from error


def stacked(answers: Mapping[str, Message], name: str) -> Array:
    """Return a vector of every answer, (parties, size)."""
    return np.stack([answer.vectors[name] for answer in answers.values()])


def numbers(answers: Mapping[str, Message], name: str) -> list[float]:
    """Return a number of every answer."""
    return [answer.number(name) for answer in answers.values()]

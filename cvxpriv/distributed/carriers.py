"""The one interface between an orchestrator and its parties, and the carrier that keeps them in this process.

An orchestrator sends each party a message and gets each one's answer, `step_all`; it does not know where a party runs.
A carrier is a class with the members of `Carrier`: `InProcess` here, `FlightHolder` in `flight_holder`, `FlareHolder`
in `flare`. A further one brings `join`, `step_all` and `close`, and lets every message pass through the vocabulary's
check and the log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

from cvxpriv.distributed.kinds import REFUSAL
from cvxpriv.distributed.messages import Message, Vocabulary
from cvxpriv.errors import DataError, ModelError, PartyError, PrivacyError
from cvxpriv.numerics.packages import pd


@dataclass(frozen=True)
class Entry:
    """One message.

    Attributes
    ----------
    seconds : float
        Time since the log began.
    sender, receiver : str
    kind : str
    vectors : str
        Names and lengths of its vectors.
    bytes : int
        Bytes of its vectors.
    refused : str
        The reason of a refusal; empty for a message that was taken.
    """

    seconds: float
    sender: str
    receiver: str
    kind: str
    vectors: str
    bytes: int
    refused: str = ""


class MessageLog:
    """All messages that one end sent and received, in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._begun, self._lock = time.perf_counter(), threading.Lock()

    def note(self, sender: str, receiver: str, message: Message, refused: str = "") -> None:
        """Add a message."""
        vectors = ", ".join(f"{name}[{vector.size}]" for name, vector in message.vectors.items())
        seconds = time.perf_counter() - self._begun
        with self._lock:
            self.entries.append(Entry(seconds, sender, receiver, message.kind, vectors, message.size, refused))

    def frame(self) -> pd.DataFrame:
        """Return the log as a table, one row a message."""
        return pd.DataFrame([asdict(entry) for entry in self.entries], columns=list(Entry.__dataclass_fields__))


#: Name of the orchestrator's side in logs.
HOLDER = "holder"


class Role(Protocol):
    """A party's part in a run: it says what it has, and answers messages."""

    vocabulary: Vocabulary

    @property
    def sizes(self) -> Mapping[str, int]:
        """The lengths that vectors refer to by name."""

    def hello(self) -> Message:
        """Return the party's first message."""

    def answer(self, message: Message) -> Message:
        """Return the answer to a checked message."""


class Carrier(Protocol):
    """The way to the parties.

    Attributes
    ----------
    names : tuple of str
        The parties, in the order of their blocks.
    sizes : dict of str to int
        The lengths that vectors refer to by name; an orchestrator fills them in.
    log : MessageLog
    """

    names: tuple[str, ...]
    sizes: dict[str, int]
    log: MessageLog

    def join(self) -> dict[str, Message]:
        """Wait for every party, and return its `hello`."""

    def step_all(self, messages: Mapping[str, Message], *, opening: bool = False) -> dict[str, Message]:
        """Send messages, all at once, and return the answer of each receiver.

        Parameters
        ----------
        messages : mapping of str to Message
        opening : bool
            Whether a party that joins again is to get the message again.

        Raises
        ------
        PartyError
            A party is lost, late, or refuses.
        """

    def close(self, how: str = "done") -> None:
        """Tell the parties that the run has ended."""


class InProcess:
    """Parties in this process; their messages are checked and logged as those from far away.

    Parameters
    ----------
    roles : mapping of str to Role
    vocabulary : Vocabulary
    """

    def __init__(self, roles: Mapping[str, Role], vocabulary: Vocabulary) -> None:
        self.roles, self.vocabulary, self.names = dict(roles), vocabulary, tuple(roles)
        self.sizes: dict[str, int] = {}
        self.log = MessageLog()

    def join(self) -> dict[str, Message]:
        """See `Carrier`."""
        return {name: self._received(name, role.hello()) for name, role in self.roles.items()}

    def step_all(self, messages: Mapping[str, Message], *, opening: bool = False) -> dict[str, Message]:
        """See `Carrier`."""
        answers = {}
        for name, message in messages.items():
            role = self.roles[name]
            self.log.note(HOLDER, name, self.vocabulary.check(message, "holder", role.sizes))
            answer = self._received(name, role.answer(message))
            answers[name] = require_willing(name, self.vocabulary.answers(answer, message))
        return answers

    def close(self, how: str = "done") -> None:
        """See `Carrier`."""

    def _received(self, name: str, message: Message) -> Message:
        self.log.note(name, HOLDER, self.vocabulary.check(message, "party", self.sizes))
        return message


def refusal(error: Exception) -> Message:
    """Return the message by which a party refuses: of an error, its class alone leaves the party."""
    reasons = {DataError: "data", ModelError: "option", PrivacyError: "privacy", PartyError: "order"}
    reason = next((said for kind, said in reasons.items() if isinstance(error, kind)), "failure")
    return Message(REFUSAL, texts={"reason": reason})


def require_willing(name: str, answer: Message) -> Message:
    """Return an answer that is no refusal.

    Raises
    ------
    PartyError
    """
    if answer.kind == REFUSAL:
        reasons = {
            "data": "its data do not fit",
            "option": "an option does not suit it",
            "privacy": "its own budget or bounds do not allow it",
            "order": "it is not at that pass: it came back without its checkpoint, or another run has its folder",
            "failure": "it failed",
        }
        raise PartyError(f"{name} refused what it was asked: {reasons[answer.texts['reason']]}; its own log says more")
    return answer

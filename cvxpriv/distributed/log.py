"""The log of a run across parties: every message with its size, those refused included, and no content."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass

from cvxpriv.distributed.messages import Message
from cvxpriv.numerics.later import pd

__all__ = ["Entry", "MessageLog"]


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

"""The messages between parties: named vectors of known kinds and lengths, and short texts. Nothing of them is run.

A vocabulary lists every kind of message, and the vectors and texts of each with what they say of the data. It is the
check of what comes in, and the statement of what crosses: both are read from the same list.

On the wire a message is a line of JSON, which names the protocol, the session, the sequence number, the kind, the
vectors with their types and lengths, and the texts; the vectors follow as plain little-endian numbers of 8 bytes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cvxpriv.distributed.kinds import COMMON, REFUSAL, Kind, Vector
from cvxpriv.errors import MessageRefused, shown

#: Version of the protocol: both ends must speak the same.
PROTOCOL = "cvxpriv-parties/1"
#: Largest message, in bytes: thirty million numbers.
LARGEST = 256 * 2**20
#: Longest header and longest text.
LONGEST_HEADER, LONGEST_TEXT = 65_536, 4_096
#: Types of the entries of a vector.
TYPES = {"real": np.dtype("<f8"), "word": np.dtype("<u8")}

Entries: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Message:
    """A message: its kind, its vectors and its texts."""

    kind: str
    vectors: Mapping[str, Entries] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: str, texts: Mapping[str, str] | None = None, /, **vectors: Entries | float) -> "Message":
        """Return a message; a number is a vector of one."""
        told = {name: one if isinstance(one, np.ndarray) else np.array([float(one)]) for name, one in vectors.items()}
        return cls(kind, told, texts or {})

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        return sum(vector.nbytes for vector in self.vectors.values())

    def number(self, name: str) -> float:
        """Return the entry of a vector of one."""
        return float(self.vectors[name][0])


@dataclass(frozen=True)
class Envelope:
    """The session that a message belongs to, and its number there, from 1."""

    session: str = ""
    sequence: int = 0


class Vocabulary:
    """All kinds of messages that are spoken; every other one is refused.

    Parameters
    ----------
    kinds : iterable of Kind

    Examples
    --------
    >>> spoken = Vocabulary([Kind("share", "party", {"values": Vector("rows", "one number a row")})])
    >>> spoken.check(Message("share", {"values": np.ones(3)}), "party", {"rows": 3}).kind
    'share'
    >>> spoken.check(Message("share", {"values": np.array([1.0, np.nan, 0.0])}), "party", {"rows": 3})
    Traceback (most recent call last):
    cvxpriv.errors.MessageRefused: a message 'share' was refused: its vector 'values' holds NaN or infinity
    """

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = {kind.name: kind for kind in (*COMMON, *kinds)}

    def statement(self, sender: str) -> Iterator[tuple[str, str, str]]:
        """Yield (kind, vector or text, what it says) for everything that one side may send."""
        for kind in self.kinds.values():
            if kind.sender == sender:
                yield from ((kind.name, name, vector.says) for name, vector in kind.vectors.items())
                yield from ((kind.name, name, text.says) for name, text in kind.texts.items())

    def check(self, message: Message, sender: str, sizes: Mapping[str, int]) -> Message:
        """Return a message that its sender may send, with vectors of the right lengths and finite entries.

        Raises
        ------
        MessageRefused
        """
        kind = self.kinds.get(message.kind)
        if kind is None or kind.sender != sender:
            raise MessageRefused(f"a message {shown(message.kind)} was refused: the {sender} has none of that kind")
        for what, given, known in (("vector", message.vectors, kind.vectors), ("text", message.texts, kind.texts)):
            if set(given) != set(known):
                raise _refused(kind.name, f"its {what}s are {sorted(given)}, expected {sorted(known)}")
        for name, vector in kind.vectors.items():
            _check_vector(kind.name, name, message.vectors[name], vector, sizes)
        for name, text in kind.texts.items():
            said = message.texts[name]
            if len(said) > LONGEST_TEXT or not said.isprintable() or (text.choices and said not in text.choices):
                raise _refused(kind.name, f"its text {name!r} is {shown(said)}")
        return message

    def answers(self, answer: Message, request: Message) -> Message:
        """Return an answer that belongs to a request: of its kind, and of the same pass where it has one.

        Raises
        ------
        MessageRefused
        """
        wanted = self.kinds[request.kind].answer
        if answer.kind not in (wanted, REFUSAL):
            raise _refused(answer.kind, f"a message {wanted!r} was expected")
        if "pass" in answer.vectors and answer.number("pass") != request.number("pass"):
            raise _refused(answer.kind, f"it is of pass {answer.number('pass'):g}, not {request.number('pass'):g}")
        return answer

    def encode(self, message: Message, envelope: Envelope = Envelope()) -> bytes:
        """Return the bytes of a message.

        Raises MessageRefused: They would be more than the other end takes.
        """
        vectors = {name: np.ascontiguousarray(vector) for name, vector in message.vectors.items()}
        header = {
            "protocol": PROTOCOL,
            "session": envelope.session,
            "sequence": envelope.sequence,
            "kind": message.kind,
            "vectors": [[name, "word" if one.dtype.kind == "u" else "real", one.size] for name, one in vectors.items()],
            "texts": dict(message.texts),
        }
        head = json.dumps(header).encode() + b"\n"
        if (size := len(head) + sum(one.nbytes for one in vectors.values())) > LARGEST:
            raise MessageRefused(f"a message of {size:,} bytes is not sent: at most {LARGEST:,} are allowed")
        return b"".join([head, *(one.view(np.uint8).data for one in vectors.values())])

    def decode(self, data: Any, sender: str, sizes: Mapping[str, int]) -> tuple[Envelope, Message]:
        """Return the checked message of received bytes; its vectors are views of them.

        Raises
        ------
        MessageRefused
            It is too large, malformed, of another protocol, or not of the vocabulary.
        """
        view = memoryview(data).cast("B")
        if view.nbytes > LARGEST:
            raise MessageRefused(f"a message of {view.nbytes:,} bytes was refused: at most {LARGEST:,} are allowed")
        head, start = _header(view)
        vectors: dict[str, Entries] = {}
        for name, type_name, length in head["vectors"]:
            entries = TYPES[type_name]
            end = start + length * entries.itemsize
            if end > view.nbytes:
                raise MessageRefused(f"a message was refused: its vector {shown(name)} is cut off")
            vectors[name] = np.frombuffer(view[start:end], dtype=entries)
            start = end
        if start != view.nbytes:
            raise MessageRefused(f"a message was refused: {view.nbytes - start} bytes follow its vectors")
        message = self.check(Message(head["kind"], vectors, head["texts"]), sender, sizes)
        return Envelope(head["session"], head["sequence"]), message


def _header(view: memoryview) -> tuple[dict[str, Any], int]:
    """Return the header of a message with every part of the right type, and where its vectors begin."""
    start = bytes(view[: LONGEST_HEADER + 1]).find(b"\n")
    if start < 0:
        raise MessageRefused("a message was refused: it has no header, or one that is too long")
    try:
        head = json.loads(bytes(view[:start]).decode())
    except (ValueError, RecursionError) as error:
        raise MessageRefused(f"a message was refused: its header is no JSON ({shown(str(error))})") from error
    if not isinstance(head, dict) or head.get("protocol") != PROTOCOL:
        spoken = head.get("protocol") if isinstance(head, dict) else head
        raise MessageRefused(f"a message was refused: it speaks {shown(spoken)}, and this end {PROTOCOL}")
    if not _well_formed(head):
        raise MessageRefused("a message was refused: a part of its header is missing or malformed")
    return head, start + 1


def _well_formed(head: Mapping[str, Any]) -> bool:
    session, sequence, kind = head.get("session"), head.get("sequence"), head.get("kind")
    vectors, texts = head.get("vectors"), head.get("texts")
    named = isinstance(session, str) and isinstance(kind, str) and type(sequence) is int and 0 <= sequence < 2**53
    if not (named and isinstance(vectors, list) and isinstance(texts, dict)):
        return False
    listed = all(
        isinstance(one, list)
        and len(one) == 3
        and isinstance(one[0], str)
        and one[1] in ("real", "word")
        and type(one[2]) is int
        and 0 <= one[2] <= LARGEST
        for one in vectors
    )
    distinct = listed and len({one[0] for one in vectors}) == len(vectors)
    return distinct and all(isinstance(text, str) for text in texts.values())


def _check_vector(kind: str, name: str, entries: Entries, vector: Vector, sizes: Mapping[str, int]) -> None:
    wanted = sizes.get(vector.length, -1) if isinstance(vector.length, str) else vector.length
    if entries.ndim != 1 or (vector.length != "" and entries.size != wanted):
        raise _refused(kind, f"its vector {name!r} has {entries.size} entries, expected {wanted}")
    if entries.dtype != TYPES[vector.type]:
        raise _refused(kind, f"its vector {name!r} holds entries of another type")
    if vector.type == "word" or entries.size == 0:
        return
    low, high = float(entries.min()), float(entries.max())  # NaN passes on to both
    if not (np.isfinite(low) and np.isfinite(high)):
        raise _refused(kind, f"its vector {name!r} holds NaN or infinity")
    if low < vector.low or high > vector.high:
        raise _refused(kind, f"its vector {name!r} leaves {vector.low:g} to {vector.high:g}")


def _refused(kind: str, reason: str) -> MessageRefused:
    return MessageRefused(f"a message {kind!r} was refused: {reason}")

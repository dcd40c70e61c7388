"""Kinds of messages: the vectors and texts of each, with their meaning, their bounds, and the run that it is of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

#: The kind of message by which a party refuses what it is asked.
REFUSAL = "refusal"


@dataclass(frozen=True)
class Vector:
    """A vector that a message has.

    Attributes
    ----------
    length : str or int
        Its length; a text names one that both ends know, such as the number of rows. An empty text allows any.
    says : str
        The information that its receiver gets.
    low, high : float
        Bounds of its entries, which are finite.
    type : str
        "real", or "word": whole numbers of 64 bits.
    """

    length: str | int
    says: str
    low: float = -np.inf
    high: float = np.inf
    type: str = "real"


@dataclass(frozen=True)
class Text:
    """A text that a message has: one of some choices, or any short one."""

    says: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A kind of message.

    Attributes
    ----------
    name : str
    sender : str
        "party" or "holder".
    vectors : mapping of str to Vector
    texts : mapping of str to Text
    answer : str
        The kind of message that answers it; empty where none does.
    run : str
        The run that it is of: "exact", or "private"; "release" where its answer is a release too. Empty is of any.
    """

    name: str
    sender: str
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    texts: Mapping[str, Text] = field(default_factory=dict)
    answer: str = ""
    run: str = ""


#: The vector that all messages of a pass have.
PASS = {"pass": Vector(1, "the number of the pass", low=0.0, high=2.0**52)}


def exchange(
    asked: str,
    sent: Mapping[str, Vector],
    answer: str,
    told: Mapping[str, Vector],
    texts: Mapping[str, Text] | None = None,
    run: str = "",
) -> tuple[Kind, Kind]:
    """Return the kinds of a request of the orchestrator and of a party's answer."""
    return Kind(asked, "holder", sent, texts or {}, answer, run), Kind(answer, "party", told)


#: The kinds that every protocol has: joining, waiting, refusing, and the alignment of rows.
COMMON = (
    Kind(
        "hello",
        "party",
        {
            "rows": Vector(1, "how many rows the party has", low=1.0),
            "columns": Vector(1, "how many columns its table has, encoded", low=1.0),
            "digests": Vector(
                "", "a keyed hash of each row's identifier; nothing where rows are in order", type="word"
            ),
        },
    ),
    Kind("poll", "party"),
    Kind("wait", "holder"),
    Kind(REFUSAL, "party", texts={"reason": Text("why it refuses", ("data", "option", "privacy", "order", "failure"))}),
    *exchange(
        "positions",
        {"positions": Vector("", "which of the party's rows all parties have, in a common order", type="word")},
        "aligned",
        {"rows": Vector(1, "how many rows are left", low=1.0)},
    ),
    Kind("end", "holder", texts={"how": Text("how the run ended", ("done", "failed"))}),
)

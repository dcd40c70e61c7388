"""A model's names for the two sides of a joint table and for the output of its mechanism."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from cvxpriv.tables.datasets import SOURCES


@dataclass(frozen=True)
class Side:
    """One side of a table.

    `symbol`: The symbol, such as "S".
    `title`: The title, such as "private S".
    `flag`: The option on the command line that names its columns, such as ``--private``.
    `help`: The help text of that option.
    `embedded`: The columns of the embedded tables that are used where none are named.
    """

    symbol: str
    title: str
    flag: str
    help: str
    embedded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Sides:
    """A model's names for the sides of its table, and for its output.

    `private`, `public`: The sides of a `JointTable`: the private data, and the input of the mechanism.
    `output`: The symbol of the released output.
    """

    private: Side
    public: Side
    output: str

    def named(self, text: str) -> str:
        """Return a text about S, X and Y, such as a note of a `Disclosure`, in the symbols of the model.

        >>> sides = Sides(Side("S", "inferred S", "--infer", ""), Side("Y", "data Y", "--data", ""), "U")
        >>> sides.named("I(S;Y) is at most I(S;X)")
        'I(S;U) is at most I(S;Y)'
        """
        symbols = {"S": self.private.symbol, "X": self.public.symbol, "Y": self.output}
        return re.sub(r"\b[SXY]\b", lambda found: symbols[found.group()], text)


#: The sides as most models name them: Y is released in place of X, and should reveal little of S.
PRIVATE_AND_PUBLIC = Sides(
    Side(
        "S",
        "private S",
        "--private",
        "Columns of S, what is to be hidden: age,income.",
        {name: source.private for name, source in SOURCES.items()},
    ),
    Side(
        "X",
        "public X",
        "--public",
        "Columns of X, what Y is to tell of.",
        {name: source.public for name, source in SOURCES.items()},
    ),
    "Y",
)

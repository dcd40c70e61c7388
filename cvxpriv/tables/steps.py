"""Steps that prepare a column: each one is a function from a symbol to a symbol, with its parameters written down.

A step that is applied twice does no more than once, so rows that were prepared already pass unchanged.
"""

import bisect
import itertools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from cvxpriv.errors import DataError, shown, suggest
from cvxpriv.numerics.arrays import Array, IntArray
from cvxpriv.numerics.sizes import counted
from cvxpriv.tables.encodings import SIGNS
from cvxpriv.tables.frames import symbol

OTHER = "other"
"""The symbol that rare ones are merged into."""
NAMED = 5
"""Number of strange values that a message names."""
_TIMED = re.compile(r"([0-9]+[-/.][0-9]+[-/.][0-9]+)[T ]+[0-9]{1,2}:[0-9]{2}.*")
"""A date, and a time of day behind it."""
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Bins:
    """Numbers in classes: below the first edge, from each edge to below the next, from the last one upwards.

    `edges`: Numbers in rising order, at least one.
    `whole`: Whether the column counts whole numbers: 26 to below 33 is then named ``26 to 32``.
    `from_data`: Whether the edges were read off the private rows.
    Raises DataError: No edge; one that is not finite, or not above the one before.

    >>> ages = Bins("age", (26, 33, 41))
    >>> ages.labels
    ('below 26', '26 to 32', '33 to 40', '41 and above')
    >>> ages("33"), ages("33 to 40")
    ('33 to 40', '33 to 40')
    """

    column: str
    edges: tuple[float, ...]
    whole: bool = True
    from_data: bool = False

    def __post_init__(self) -> None:
        edges = tuple(map(float, self.edges))
        rising = all(low < high for low, high in itertools.pairwise(edges))
        if not edges or not rising or not all(map(math.isfinite, edges)):
            raise DataError(
                f"bins of {self.column!r} have the edges {', '.join(map(symbol, edges)) or '(none)'}: expected finite "
                "numbers in rising order, such as 26,33,41"
            )
        object.__setattr__(self, "edges", edges)
        if len(set(self.labels)) < len(self.labels):
            raise DataError(f"bins of {self.column!r} have two classes of one name: take edges further apart")

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in order."""
        edges = self.edges
        between = (self._between(low, high) for low, high in itertools.pairwise(edges))
        return (f"below {symbol(edges[0])}", *between, f"{symbol(edges[-1])} and above")

    def _between(self, low: float, high: float) -> str:
        if not self.whole:
            return f"{symbol(low)} to below {symbol(high)}"
        return symbol(low) if high - low == 1.0 else f"{symbol(low)} to {symbol(high - 1.0)}"

    def __call__(self, text: str) -> str:
        if text in self.labels:
            return text
        return self.labels[bisect.bisect_right(self.edges, numbers_in([text], self.column)[0])]

    @property
    def description(self) -> str:
        """One line for readers."""
        origin = " (edges from the data: private facts)" if self.from_data else ""
        return f"{self.column} in {len(self.labels)} classes: {', '.join(self.labels)}{origin}"


@dataclass(frozen=True)
class First:
    """The first characters of a symbol, or with a negative length the last: the month of a date, a postcode's region.

    A time of day behind a date does not count.

    >>> First("admitted", 7)("2024-03-31"), First("admitted", -4)("31.03.2024 9:45"), First("zip", 2)("01230")
    ('2024-03', '2024', '01')
    """

    column: str
    length: int

    def __call__(self, text: str) -> str:
        text = _TIMED.sub(r"\1", text)
        return symbol(text[: self.length] if self.length > 0 else text[self.length :])

    @property
    def description(self) -> str:
        """One line for readers."""
        many, side = abs(self.length), "first" if self.length > 0 else "last"
        return f"{self.column}: its {side} {counted(many, 'character')}"


@dataclass(frozen=True)
class Merge:
    """Several symbols become one: those of a list, or all numbers on one side of a bound.

    `into`: The name of the merged symbol.
    `values`: The symbols that are merged; empty with a comparison.
    `comparison`: {"", "<=", "<", ">=", ">"}.
    Raises DataError: Neither values nor a comparison, an unknown comparison, no finite bound, an empty name.

    >>> school = Merge("education", "low", comparison="<=", bound=8)
    >>> school("7"), school("9"), school("none")
    ('low', '9', 'none')
    """

    column: str
    into: str
    values: tuple[str, ...] = ()
    comparison: str = ""
    bound: float | None = None

    def __post_init__(self) -> None:
        if bool(self.values) == bool(self.comparison):
            raise DataError(f"merge of {self.column!r} into {self.into!r}: give values, or a bound such as <=8")
        if self.comparison and self.comparison not in COMPARISONS:
            raise DataError(f"merge of {self.column!r}: {suggest(self.comparison, COMPARISONS)}")
        if self.comparison and (self.bound is None or not math.isfinite(self.bound)):
            raise DataError(f"merge of {self.column!r} has the bound {self.bound}: expected a finite number")
        if not symbol(self.into):
            raise DataError(f"merge of {self.column!r} has no name for the merged symbol: give one, such as 'low'")
        object.__setattr__(self, "into", symbol(self.into))
        object.__setattr__(self, "values", tuple(map(symbol, self.values)))

    def __call__(self, text: str) -> str:
        return self.into if self.takes(text) else text

    def takes(self, text: str) -> bool:
        """Return whether a symbol is merged."""
        if not self.comparison or self.bound is None:
            return text in self.values
        try:
            number = float(text)
        except ValueError:
            return False
        return COMPARISONS[self.comparison](number, self.bound)

    @property
    def description(self) -> str:
        """One line for readers."""
        what = f"{self.comparison} {symbol(self.bound)}" if self.comparison else ", ".join(self.values)
        return f"{self.column}: {what} merged into {self.into!r}"


@dataclass(frozen=True)
class Kept:
    """The symbols that stay; all others, those of later rows too, become `OTHER`.

    `kept`: Read off the private rows.
    `why`: Description of the kept symbols, such as "of 5 records or more".
    """

    column: str
    kept: tuple[str, ...]
    why: str = ""

    def __call__(self, text: str) -> str:
        return text if text in self.kept else OTHER

    @property
    def description(self) -> str:
        """One line for readers."""
        count = f"{counted(len(self.kept), 'symbol')}{' ' * bool(self.why)}{self.why}"
        return f"{self.column}: {count} kept, others merged into {OTHER!r} (chosen from the data: a private fact)"


Step: TypeAlias = "Bins | First | Merge | Kept"
KINDS: dict[str, Callable[..., Step]] = {"bins": Bins, "first": First, "merge": Merge, "kept": Kept}


def document_of_step(step: Step) -> dict[str, Any]:
    """Return a step as plain data."""
    kind = type(step).__name__.lower()
    return {"kind": kind, **{key: list(v) if isinstance(v, tuple) else v for key, v in asdict(step).items()}}


def step_of(document: Mapping[str, Any]) -> Step:
    """Return the step that plain data describe.

    Raises DataError: An unknown kind, a key that is missing or unknown, a value that does not fit.
    """
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise DataError(f"a step of the recipe is of kind {shown(kind)}: {suggest(str(kind), KINDS)}")
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in document.items() if key != "kind"}
    kinds = {
        "whole": bool,
        "from_data": bool,
        "edges": tuple,
        "values": tuple,
        "kept": tuple,
        "bound": object,
        "length": int,
    }
    for key, value in given.items():
        inner = value if isinstance(value, tuple) else () if value is None else (value,) if key == "bound" else ()
        each = (int, float) if key in ("edges", "bound") else (str, int, float)
        right = isinstance(value, kinds.get(key, str)) and all(isinstance(one, each) for one in inner)
        if not right:
            raise DataError(f"a step of the recipe has {key}={shown(value)}: expected {kinds.get(key, str).__name__}")
    try:
        return KINDS[kind](**given)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"a step of the recipe of kind {kind!r} is malformed ({error}): write it again") from error


def numbers_in(texts: Sequence[str], column: str) -> list[float]:
    """Return symbols as numbers; a sign of a percentage or of money around one is left out.

    Raises DataError: Some are none; the message names the column and them.
    """
    numbers, strange = [], []
    for text in texts:
        try:
            numbers.append(float(text.strip(SIGNS + " ")))
        except ValueError:
            numbers.append(math.nan)
        if not math.isfinite(numbers[-1]):
            strange.append(text)
    if not strange:
        return numbers
    named = ", ".join(map(repr, strange[:NAMED])) + ", ..." * (len(strange) > NAMED)
    some, they = ("is no number", "it stands") if len(strange) == 1 else ("are no numbers", "they stand")
    if any(text.replace(",", "").lstrip("+-").isdigit() for text in strange):
        remedy = (
            "a comma can part decimals or thousands: say which, decimal=',' or decimal='.', when the file is read; "
            "where columns differ, take out the commas between thousands first"
        )
    elif 2 * len(strange) > len(texts) > 1:
        remedy = "edges part numbers: take the first or last characters of texts, first:3 or last:4, or merge by name"
    else:
        spelt = ",".join(f'"{text}"' if "," in text else text for text in [*strange[:NAMED], "NA"])
        remedy = (
            f"where {they} for a missing value, say so: missing-text '{spelt}' (in place of "
            f"the usual spellings); or leave the bins and merge values by name"
        )
    raise DataError(f"bins of {column!r}: {named} {some}: {remedy}")


def quantile_edges(numbers: Array, weights: IntArray, parts: int) -> tuple[float, ...]:
    """Return the distinct edges of classes of as many records each, all above the least number."""
    order = np.argsort(numbers, kind="stable")
    rising, total = numbers[order], np.cumsum(weights[order])
    places = np.searchsorted(total, total[-1] * np.arange(1, parts) / parts, side="right")
    values = np.unique(numbers)
    least = values[1] if len(values) > 1 else np.inf  # a class below the least number would be empty
    edges = np.unique(np.maximum(rising[np.minimum(places, len(total) - 1)], least))
    return tuple(edges[edges <= values[-1]].tolist())

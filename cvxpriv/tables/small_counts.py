"""Small counts: whether records are enough for a table, and which counts a page for others withholds.

Of n records of independent S and X, the table still shows about ``(|S| - 1)(|X| - 1) / 2n`` nats between them (Miller,
1955; Paninski, 2003). Where that is most of I(S;X), the table tells nothing of the leakage in the population.

A count of 1 to 5 is withheld, in the cells and in the totals alike, so that no subtraction gives it back. Who knows the
other counts, the totals and this rule can still bound a withheld one: all tables that agree with what is shown, and
have at least 1 wherever something is withheld, are possible to them. A small count is safe where one of these tables
has more than 5 in its place. This is the largest value of a linear program, whose corners are whole numbers, as the
constraints are those of a network. Where a small count is not safe, further counts are withheld: the least one in its
row, its column, or their totals.
"""

import re
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from cvxpriv.errors import DataError, SolverFailure
from cvxpriv.numerics.arrays import Array, Flags, IntArray
from cvxpriv.tables.alphabets import Alphabet
from cvxpriv.tables.joint import JointTable

_DATE = re.compile(r"(?P<year>[12][0-9]{3}[-/.])?[0-9]{1,2}[-/.][0-9]{1,2}(?(year)|[-/.][12][0-9]{3}(?=$|[T ]))")
"""A date whose year comes first, or last."""
FEWEST = 30
"""Number of records below which a column of distinct values is nothing unusual."""


@dataclass(frozen=True)
class Judgement:
    """The sizes of a table, and what they allow.

    `records`, `private`, `public`: Number of records, and of symbols of S and X.
    `information`: I(S;X) of the table in nats.
    `constant`: Columns of one value.

    >>> few = Judgement(records=333, private=4, public=93, information=0.45)
    >>> few.sizes
    '333 records for 4 x 93 cells, 0.90 a cell'
    >>> round(few.chance, 4), few.estimable
    (0.4144, False)
    """

    records: int
    private: int
    public: int
    information: float
    constant: tuple[str, ...] = ()

    @property
    def chance(self) -> float:
        """The information in nats that independent S and X would show on average."""
        return (self.private - 1) * (self.public - 1) / (2.0 * self.records)

    @property
    def estimable(self) -> bool:
        """Whether at most half of I(S;X) is chance; a table without information claims none."""
        return self.chance <= 0.5 * self.information or self.chance < 0.01

    @property
    def sizes(self) -> str:
        """One line of sizes."""
        cells = self.private * self.public
        return (
            f"{self.records:,} records for {self.private:,} x {self.public:,} cells, {self.records / cells:.2f} a cell"
        )

    @property
    def warning(self) -> str:
        """The warning, empty where there is none."""
        told = "has one value, which tells nothing: leave it out, or choose other bins"
        one_value = "; ".join(f"{name} {told}" for name in self.constant)
        if self.estimable:
            return one_value
        return f"{one_value}{'; ' * bool(one_value)}" + (
            f"{self.records:,} records for {self.public:,} symbols: what they tell is not estimable, since about "
            f"{self.chance:.3g} of the {self.information:.3g} nats between both sides are chance; merge symbols"
        )


def judged(table: JointTable) -> Judgement | None:
    """Return the judgement of a table; None where it came as probabilities."""
    if table.records is None:
        return None
    sides = (table.private, table.public)
    constant = tuple(
        name for side in sides for name, one in zip(side.columns, _values(side), strict=True) if len(one) < 2
    )
    return Judgement(table.records, len(table.private), len(table.public), table.information, constant)


def require_repeated(table: JointTable) -> None:
    """Refuse columns, and public symbols, of which most records have one of their own.

    Raises DataError: The message names the column and a recipe.

    >>> require_repeated(JointTable.from_counts([[1] * 40], public_labels=list(range(40))))
    Traceback (most recent call last):
    cvxpriv.errors.DataError: column 'X' has 40 values in 40 records, most with a value of their own: nothing ...
    """
    records = table.records
    if records is None or records < FEWEST:
        return
    for side in (table.private, table.public):
        for column, values in zip(side.columns, _values(side), strict=True):
            if 2 * len(values) > records:
                raise DataError(
                    f"column {column!r} has {len(values):,} values in {records:,} records, most with a value of their "
                    f"own: nothing can be estimated; leave it out (an identifier?), or {_remedy(column, values)}"
                )
    if 2 * len(table.public) > records:
        column, values = _widest(table.public)
        raise DataError(
            f"{', '.join(table.public.columns)} make {len(table.public):,} symbols in {records:,} records, most with a "
            f"symbol of their own: nothing can be estimated; leave a column out, or {_remedy(column, values)}"
        )


def _values(side: Alphabet) -> list[set[str]]:
    """Return the values of each column."""
    return [{row[place] for row in side.symbols} for place in range(len(side.columns))]


def _widest(side: Alphabet) -> tuple[str, set[str]]:
    values = _values(side)
    place = max(range(len(values)), key=lambda place: len(values[place]))
    return side.columns[place], values[place]


def _remedy(column: str, values: set[str]) -> str:
    """Return a recipe: classes for numbers, the most frequent or merged ones of other symbols."""
    dates = [found for text in values if (found := _DATE.match(text))]
    if 2 * len(dates) > len(values):
        side = "first" if dates[0]["year"] else "last"
        return f"keep the year of dates, --bins '{column}={side}:4', or the month, {side}:7"
    numbers = sum(text.lstrip("+-").replace(".", "", 1).isdigit() for text in values)
    if 2 * numbers > len(values):
        codes = ", or codes by their first digits, first:2" * (len({len(text) for text in values}) == 1)
        return f"put it in classes, --bins '{column}=quantiles:5' or by edges of your own{codes}"
    return f"keep the most frequent symbols, --top '{column}=20', or merge some, --rare '{column}=5'"


SMALL = 5
"""Largest count that is small."""


def with_totals(counts: IntArray) -> IntArray:
    """Return a table of counts with the total of each row and column, and of all.

    >>> with_totals(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2, 3], [3, 4, 7], [4, 6, 10]]
    """
    wide = np.column_stack([counts, counts.sum(axis=1)])
    return np.asarray(np.vstack([wide, wide.sum(axis=0)]), dtype=np.int64)


def withheld(counts: IntArray) -> Flags:
    """Return which counts of `with_totals` must be withheld, so that no count of 1 to 5 can be known for small.

    `counts`: ``(|S|, |X|)``.
    Returns ``(|S| + 1, |X| + 1)``.
    Raises SolverFailure: A linear program was not solved.

    >>> withheld(np.array([[2, 40, 60], [30, 50, 70]])).astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    """
    whole = with_totals(counts)
    small = (whole >= 1) & (whole <= SMALL)
    hidden = small.copy()
    safe = ~small
    while not safe.all():
        place = tuple(np.argwhere(~safe)[0])
        possible = _largest(whole, hidden, place)
        safe |= possible > SMALL
        if not safe[place] and not _more(whole, hidden, place):
            break  # everything that is linked to it is withheld
    return hidden


def _more(whole: IntArray, hidden: Flags, place: tuple[int, ...]) -> bool:
    """Withhold one more count that is linked to a withheld one; returns whether there was one.

    A count in lines with a single withheld one comes first, since subtraction undoes those; then a cell before a total,
    one in the same line, and the least.
    """
    rows, columns = hidden.sum(axis=1), hidden.sum(axis=0)
    cells = np.argwhere(((rows > 0)[:, None] | (columns > 0)[None, :]) & ~hidden & (whole > 0))
    if not len(cells):
        return False
    row, column = cells.T
    alone = (rows[row] == 1).astype(int) + (columns[column] == 1)
    total = (row == len(rows) - 1) | (column == len(columns) - 1)
    beside = (row == place[0]) | (column == place[1])
    best = np.lexsort((whole[row, column], ~beside, total, -alone))[0]
    hidden[row[best], column[best]] = True
    return True


def _largest(whole: IntArray, hidden: Flags, place: tuple[int, ...]) -> Array:
    """Return the possible table in which a withheld count is largest; 0 where nothing is withheld."""
    index = np.full(whole.shape, -1)
    index[hidden] = np.arange(hidden.sum())
    lines = np.zeros((sum(whole.shape), int(hidden.sum())))
    ends: list[float] = []
    for sideways in (whole, whole.T):
        numbers, covered = (index, hidden) if sideways is whole else (index.T, hidden.T)
        for line, counts in enumerate(sideways):
            weights = np.append(np.ones(len(counts) - 1), -1.0)  # the cells less their total are 0
            here = np.flatnonzero(covered[line])
            lines[len(ends), numbers[line, here]] = weights[here]
            ends.append(-float(weights @ np.where(covered[line], 0, counts)))
    cost = np.zeros(int(hidden.sum()))
    cost[index[place]] = -1.0
    answer = linprog(cost, A_eq=lines, b_eq=ends, bounds=(1.0, float(whole.sum())))
    if answer.status != 0 or answer.x is None:
        raise SolverFailure(f"the range of a withheld count was not found ({answer.message}): report this as a fault")
    found = np.zeros(whole.shape)
    found[hidden] = np.rint(answer.x)
    return found

"""The way from raw rows to a recipe: classes of numbers, merged symbols, rare ones, missing values.

Symbols that look like another spelling of one symbol, or like a missing value, are told, and never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from cvxpriv.errors import DataError, PrivacyError, suggest, told_nothing, warn
from cvxpriv.numerics.arguments import is_whole, real_numbers
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.tables.arrays import count_column
from cvxpriv.tables.frames import listed, require_columns, require_present, symbol
from cvxpriv.tables.headers import DASHES, MISSING_WORDS
from cvxpriv.tables.recipe import MISSING, Prepared, Recipe, blank
from cvxpriv.tables.recipe_texts import characters_in, merge_of, quantiles_in
from cvxpriv.tables.steps import OTHER, Bins, First, Kept, Merge, Step, numbers_in, quantile_edges

SHOWN = 5
"""Number of sentences on suspicious symbols that a warning holds."""
_CODE = re.compile(r"-?(?:9+|8+|7+)")
"""Numbers by which surveys write that there is no answer: 99, -9, 888."""
FARTHER = 2.0
"""A positive code counts as one where it is this many times the next number."""
BLIND = "make a missing value a symbol, and leave every value in some class"
"""The remedy where a row fits no step of a public recipe."""
Sizes: TypeAlias = "int | Mapping[str, int] | None"


class SuspectWarning(UserWarning):
    """Symbols of a column look like spellings of one symbol, or like missing values."""


@door
def prepare(
    frame: pd.DataFrame,
    bins: Mapping[str, Sequence[float] | str] | None = None,
    merge: Mapping[str, Mapping[str, Sequence[object] | str]] | None = None,
    rare: Sizes = None,
    top: Sizes = None,
    missing: str = "refuse",
    columns: Sequence[str] | None = None,
    count: str | None = None,
    missing_text: Sequence[str] | None = None,
    public_recipe: bool = False,
) -> Prepared:
    """Prepare raw rows for a table, and write down how.

    The order is: missing values, bins, merges, rare symbols, most frequent symbols.

    Parameters
    ----------
    frame : DataFrame
        One record a row, or with ``count`` several.
    bins : mapping of str to sequence of float or str, optional
        For each column its public edges, or ``"quantiles:5"`` for classes of as many records each. Edges of quantiles
        are read off the rows: they are private facts, and the recipe says so. ``"first:7"`` takes the first seven
        characters: the month of a date such as 2024-03-31, or with fewer the region of a postcode. ``"last:4"``
        takes the last four: the year of 31.03.2024.
    merge : mapping of str to mapping, optional
        For each column the merged symbols by their new name: a list, or a bound such as ``"<=8"``.
    rare : int or mapping of str to int, optional
        Symbols of fewer records become "other", in all columns or in each that is named. Where "other" would itself be
        rare, the next symbols join it.
    top : int or mapping of str to int, optional
        The number of most frequent symbols that stay; all others become "other".
    missing : {"refuse", "drop", "symbol"}
    columns : sequence of str, optional
        The columns to prepare. By default all except ``count``.
    count : str, optional
        The column with the number of records.
    missing_text : sequence of str, optional
        The symbols that stand for a missing value, such as "?" or -99, beside empty cells.
    public_recipe : bool
        Whether the recipe must be the same whatever the rows are, as `private_table` needs it. Quantiles, ``rare`` and
        ``top`` are then refused, merged symbols need not occur, classes are named by their edges alone ("30 to below
        50"), and no warning speaks of the rows.

    Raises
    ------
    DataError
        An unknown column, a value that fits no step, a merged symbol that does not occur, missing values.
    PrivacyError
        A public recipe would be read off the rows.

    Warns
    -----
    SuspectWarning
        Symbols look like spellings of one symbol (Yes, yes), or like missing values ("n/a", 999). They stay.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [25, 31, 52, 40], "job": ["clerk", "typist", "smith", "clerk"]})
    >>> made = prepare(people, bins={"age": [30, 50]}, merge={"job": {"office": ["clerk", "typist"]}})
    >>> made.frame.to_dict("list")
    {'age': ['below 30', '30 to 49', '50 and above', '30 to 49'], 'job': ['office', 'office', 'smith', 'office']}
    >>> later = pd.DataFrame({"age": [29], "job": ["typist"]})
    >>> made.recipe.apply(later).to_dict("list")
    {'age': ['below 30'], 'job': ['office']}
    """
    chosen = [name for name in frame.columns if name != count] if columns is None else listed(columns, "columns")
    require_columns(frame, chosen, "columns")
    if public_recipe:
        _require_public(bins, rare, top)
    spelt = None if missing_text is None else tuple(listed(missing_text, "missing_text"))
    first = Recipe((), missing, () if columns is None and count is None else tuple(chosen), spelt)
    with told_nothing(public_recipe, BLIND):
        kept = first.apply(frame)
        weights = pd.Series(count_column(kept, count), index=kept.index)
    steps: list[Step] = []
    for name, edges in _by_column(bins, chosen, "bins").items():
        classes = _bins(first, kept[name].iloc[:0] if public_recipe else kept[name], weights, name, edges)
        steps.append(replace(classes, whole=False) if public_recipe and isinstance(classes, Bins) else classes)
    for name, merges in _by_column(merge, chosen, "merge").items():
        for into, values in _by_column(merges, None, f"merge of {name!r}").items():
            step = merge_of(name, into, values)
            if not public_recipe:
                step = _merge(set(_current(kept, name, first, steps)), step)
            elif names := _named(name, steps):
                step = _merge(names, step)
            steps.append(step)
    for sizes, argument in ((rare, "rare"), (top, "top")):
        for name, size in _sizes(sizes, chosen, argument).items():
            steps += _kept(_current(kept, name, first, steps), weights, name, argument, size)
    recipe = replace(first, steps=tuple(steps))
    with told_nothing(public_recipe, BLIND):
        made = recipe.apply(kept)
    if not public_recipe:
        _tell_suspects(kept, made, recipe, chosen)
    return Prepared(made, recipe, len(frame) - len(kept))


def _require_public(bins: object, rare: object, top: object) -> None:
    """Refuse steps that are read off the rows."""
    edges = bins.items() if isinstance(bins, Mapping) else ()
    quantiles = [f"bins of {name!r}" for name, text in edges if isinstance(text, str) and text.startswith("quantiles")]
    given = [name for name, sizes in (("rare", rare), ("top", top)) if sizes]
    if named := [*quantiles, *given]:
        raise PrivacyError(
            f"{named[0]}: the step would be read off the records, and no noise covers that: give public edges, or name "
            "the values to merge"
        )


def _named(column: str, steps: Sequence[Step]) -> set[str]:
    """Return the symbols that a column has by its classes, and by what they were merged into; none without classes."""
    mine = [step for step in steps if step.column == column]
    classes = {label for step in mine if isinstance(step, Bins) for label in step.labels}
    return classes and classes | {step.into for step in mine if isinstance(step, Merge)}


def _tell_suspects(kept: pd.DataFrame, made: pd.DataFrame, recipe: Recipe, columns: Sequence[str]) -> None:
    """Warn of symbols that look like other spellings or like missing values; cells are looked at before bins."""
    binned = {step.column for step in recipe.steps if isinstance(step, (Bins, First))}
    told = []
    for name in columns:
        values = (kept if name in binned else made)[name]
        texts = set(map(symbol, values.dropna().unique())) - ({MISSING} if recipe.missing == "symbol" else set())
        told += [f"{name}: {sentence}" for sentence in suspects_of(texts)]
    if told:
        shown = "; ".join(told[:SHOWN]) + (f"; and {len(told) - SHOWN} more" if len(told) > SHOWN else "")
        warn(f"{shown}. Nothing was changed: merge spellings, or name missing values by missing-text", SuspectWarning)


def suspects_of(symbols: Iterable[str]) -> list[str]:
    """Return sentences on the symbols of one column.

    >>> suspects_of(["Yes", "yes", "no"]), suspects_of(["17", "64", "999"])
    (["'Yes' and 'yes' are two symbols"], ["'999' looks like a missing value"])
    >>> suspects_of(["1", "2", "n/a"]), suspects_of(["8", "9", "10"])
    (["'n/a' looks like a missing value"], [])
    """
    distinct = sorted(set(symbols))
    alike: dict[str, list[str]] = {}
    for text in distinct:
        alike.setdefault(" ".join(text.casefold().split()), []).append(text)
    twice = [spelt for spelt in alike.values() if len(spelt) > 1]
    sentences = [f"{' and '.join(map(repr, spelt))} are {_count(len(spelt))} symbols" for spelt in twice[:3]]
    absent = [text for text in distinct if text.casefold() in MISSING_WORDS or DASHES.fullmatch(text)]
    if absent := [*absent, *_codes(distinct)]:
        looks = "looks like a missing value" if len(absent) == 1 else "look like missing values"
        sentences.append(f"{' and '.join(map(repr, absent[:4]))} {looks}")
    return sentences


def _count(number: int) -> str:
    return {2: "two", 3: "three"}.get(number, str(number))


def _codes(symbols: list[str]) -> list[str]:
    """Return numbers that stand apart from all others as codes do: negative ones below none, far ones above all."""
    numbers = {}
    for text in symbols:
        try:
            numbers[text] = float(text)
        except ValueError:
            continue
    codes = {text for text in numbers if _CODE.fullmatch(text)}
    others = [value for text, value in numbers.items() if text not in codes]
    if not others or len(others) < len(codes):
        return []
    least, most = min(others), max(others)
    return [
        text
        for text in sorted(codes, key=numbers.__getitem__)
        if (numbers[text] < 0.0 <= least) or (numbers[text] >= FARTHER * most > 0.0 and len(text) > 1)
    ]


def _by_column(given: Any, columns: Sequence[str] | None, argument: str) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise DataError(f"{argument} is of type {type(given).__name__}: expected a mapping, such as {{'age': ...}}")
    for name in given or {} if columns is not None else ():
        if name not in (columns or ()):
            raise DataError(
                f"{argument} names {name!r}, no column of those prepared: {suggest(str(name), columns or ())}"
            )
    return dict(given or {})


def _sizes(given: Sizes, columns: Sequence[str], argument: str) -> dict[str, int]:
    sizes = _by_column(given, columns, argument) if isinstance(given, Mapping) else dict.fromkeys(columns, given)
    for name, size in sizes.items():
        if size is not None and not is_whole(size, 1):
            raise DataError(f"{argument} of {name!r} is {size!r}: expected a whole number >= 1")
    return {name: int(size) for name, size in sizes.items() if size is not None}


def _current(frame: pd.DataFrame, column: str, first: Recipe, steps: Sequence[Step]) -> pd.Series[Any]:
    """Return the symbols of a column after the steps so far."""
    require_present(column, int(blank(frame[column]).sum()) * (first.missing == "refuse"), len(frame))
    done = replace(first, steps=tuple(steps), columns=(column,)).apply(frame[[column]])[column]
    return done.astype(object).map(symbol)


def _bins(
    first: Recipe, values: pd.Series[Any], weights: pd.Series[int], column: str, edges: Sequence[float] | str
) -> Bins | First:
    if isinstance(edges, str) and edges.startswith(("first", "last")):
        return First(column, characters_in(edges, column))
    require_present(column, int(blank(values).sum()) * (first.missing == "refuse"), len(values))
    texts = values[~blank(values)].astype(object).map(symbol)
    skipped = MISSING if first.missing == "symbol" else None
    distinct = [text for text in texts.unique() if text != skipped]
    numbers = texts.map(dict(zip(distinct, numbers_in(distinct, column), strict=True))).dropna().astype(float)
    if not isinstance(edges, str):
        given = tuple(map(float, real_numbers(listed(edges, f"bins of {column!r}"), f"bins of {column!r}")))
        return Bins(column, given, whole=_whole([*given, *numbers]))
    if numbers.empty:
        raise DataError(f"bins of {column!r}: the column holds no number; leave it out")
    found = quantile_edges(
        np.array(numbers, dtype=np.float64),
        np.array(weights.loc[numbers.index], dtype=np.int64),
        quantiles_in(edges, column),
    )
    if not found:
        raise DataError(f"bins of {column!r}: its quantiles all coincide; give edges, or leave the column as it is")
    return Bins(column, found, whole=_whole([*found, *numbers]), from_data=True)


def _whole(numbers: Sequence[float]) -> bool:
    return all(float(number).is_integer() for number in numbers)


def _merge(present: set[str], merge: Merge) -> Merge:
    for value in merge.values:
        if value not in present:
            raise DataError(
                f"merge of {merge.column!r} names {value!r}, which does not occur: {suggest(value, present)}"
            )
    if not any(map(merge.takes, present)):
        raise DataError(
            f"merge of {merge.column!r} into {merge.into!r} takes no value: change the bound. {suggest('', present)}"
        )
    return merge


def _kept(values: pd.Series[Any], weights: pd.Series[int], column: str, argument: str, size: int) -> list[Kept]:
    records = {str(text): int(n) for text, n in weights.loc[values.index].groupby(values.to_numpy()).sum().items()}
    others = records.pop(OTHER, 0)
    falling = sorted(records.items(), key=lambda one: (-one[1], one[0]))
    if argument == "top":
        stay, why = falling[:size], f"of most records (at most {size})"
    else:
        stay, why = [one for one in falling if one[1] >= size], f"of {size} records or more"
        others, few = others + sum(n for _, n in falling[len(stay) :]), len(stay)
        while stay and 0 < others < size:
            others += stay.pop()[1]
        if joined := [repr(text) for text, _ in falling[len(stay) : few]]:
            why += f" (less {', '.join(joined)}: the rarer ones alone would be fewer)"
    if len(stay) == len(falling):
        return []
    return [Kept(column, tuple(sorted(text for text, _ in stay)), why)]

"""Symbols that look like another spelling of one symbol, or like a missing value: told, never changed."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MISSING = frozenset(
    {"na", "n/a", "n.a.", "n.a", "k.a.", "#n/a", "nan", "null", "nil", "none", "missing", "not available", "?", "."}
)
_DASHES = re.compile(r"[-\u2010-\u2015_]+")
_CODE = re.compile(r"-?(?:9+|8+|7+)")
"""Numbers by which surveys write that there is no answer: 99, -9, 888."""
FARTHER = 2.0
"""A positive code counts as one where it is this many times the next number."""


class SuspectWarning(UserWarning):
    """Symbols of a column look like spellings of one symbol, or like missing values."""


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
    absent = [text for text in distinct if text.casefold() in _MISSING or _DASHES.fullmatch(text)]
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

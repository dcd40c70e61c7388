"""The bundle of a release: the rows, and all that a recipient needs to read them.

A folder or a zip file with one set of files: ``rows.csv``, ``codebook.csv``, ``README.txt`` with the promise in words,
and ``bundle.json``, from which `cvxpriv.decode` reads. P(Y|X) is in it only where it may be published: a mechanism
without noise in its table tells of that table.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cvxpriv.errors import json_text
from cvxpriv.mechanisms.codebook import Codebook, Stated, codebook
from cvxpriv.mechanisms.frequencies import column_utility
from cvxpriv.mechanisms.likelihood import most_likely
from cvxpriv.mechanisms.noisy_frequencies import NoisyCounts
from cvxpriv.mechanisms.release import RELEASED, Channel
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.reports.document import records
from cvxpriv.reports.files import MANIFEST, PathLike, encoded, write_bytes
from cvxpriv.reports.formatting import DIGITS, exact_zero, format_number, paragraph, table
from cvxpriv.reports.sets import manifest, write_set
from cvxpriv.reports.text import csv_text
from cvxpriv.tables.recipe import Recipe

FORMAT, VERSION = "cvxpriv bundle", 2
FILES = DOCUMENT, ROWS, BOOK, README = "bundle.json", "rows.csv", "codebook.csv", "README.txt"
STEP = 0.05
"""Step to which the codebook is rounded where P(Y|X) stays at home."""
FEWER = 3
"""Significant digits of the figures of a private table."""
WITHHELD = (
    "P(Y|X) is not in this bundle: it was designed on private data without noise, and tells of them. The codebook is "
    f"rounded to steps of {STEP:.0%}, and made with the frequencies below; what is left in it, and the figures, come "
    "from the same data."
)
STATED = (
    "How often the values of a column occur among these rows is stated by their owner, rounded to steps of {step:.0%}, "
    "for the outputs seldom determine it. cvxpriv.decode makes intervals of it."
)
NOISY = (
    "The shares below are those of the table that the mechanism was designed on, by its noisy counts, which stand in "
    "bundle.json and are as public as P(Y|X). cvxpriv.decode makes intervals of them, for the noise and for the number "
    "of records, or from the outputs where these tell more."
)
PROMISE = (
    "Each row was drawn once from P(Y|X), and the figures are averages over the population of the table that the "
    "mechanism was designed on. They promise nothing about a single person, about other attributes, or about columns "
    "that were kept beside the output. A second release of the same rows is not covered: two outputs of a person can "
    "tell together what neither tells alone."
)
DECODE = (
    'In Python, with the package cvxpriv, cvxpriv.decode("this folder").frequencies("COLUMN") estimates how often each '
    "value of a column occurs, with intervals. Do not count the likeliest values of the codebook: that is biased "
    "towards frequent ones. "
    "The package reads bundle.json; manifest.json has the SHA-256 of every file."
)
MEANT = {
    "utility": "Utility is what an output tells of the replaced columns, leakage what it tells of the private ones, in "
    "nats (1 nat is 1.44 bits). 0 in that table is no 0 in the population.",
    "accuracy": "Accuracy is what an output tells of the column to be inferred, in nats (1 nat is 1.44 bits); leakage "
    "is what it tells of the replaced columns, by the divergence of the design.",
}
"""Meanings of the figures, by the figure that only its kind of mechanism has."""


class Designed(Channel, Protocol):
    """The parts of a mechanism that a bundle needs."""

    @property
    def figures(self) -> Mapping[str, float]: ...

    @property
    def recipe(self) -> Recipe | None: ...

    @property
    def origin(self) -> Mapping[str, Any]: ...

    @property
    def noisy(self) -> NoisyCounts | None: ...

    @property
    def publishable(self) -> bool: ...


def is_bundle(path: PathLike) -> bool:
    """Return whether a path names a bundle: a zip file, a folder, or a name without a suffix.

    >>> is_bundle("bundle/"), is_bundle("release.zip"), is_bundle("released.csv")
    (True, True, False)
    """
    suffix = Path(path).suffix.lower()
    return suffix == ".zip" or suffix == "" or str(path).endswith(("/", "\\")) or Path(path).is_dir()


def contents_of(
    mechanism: Designed,
    released: pd.DataFrame,
    symbols: Array,
    matrix: bool | None = None,
    name: str = RELEASED,
    given: int | None = None,
) -> dict[str, str]:
    """Return the files of a bundle by name.

    `released`: The rows that the mechanism released.
    `symbols`: Number of these rows by symbol of X, ``(|X|,)``; not looked at where the mechanism may be published.
    `matrix`: Whether P(Y|X) goes into the bundle. None: where it may be published.
    `name`: Name of the released column.
    `given`: Number of rows that came in, of which some may have been left out. None: as many as were released.
    """
    shown = mechanism.publishable if matrix is None else matrix
    drawn = released[name].value_counts().reindex(list(mechanism.outputs), fill_value=0)
    counts = np.array(drawn.tolist(), dtype=np.float64)
    stated = mechanism.noisy if mechanism.publishable else Stated.of(mechanism.inputs, symbols)
    prior = most_likely(mechanism.array, counts).p if stated is None else stated.likely
    book = codebook(mechanism.array, mechanism.inputs, mechanism.outputs, counts, prior, 0.0 if shown else STEP)
    document = _document(mechanism, released, book, stated, shown, name, len(released) if given is None else given)
    return {
        ROWS: csv_text(released),
        BOOK: csv_text(book.frame),
        README: _readme(document, book, mechanism.array),
        DOCUMENT: json_text(document, indent=1) + "\n",
    }


def write_bundle(path: PathLike, contents: Mapping[str, str]) -> list[Path]:
    """Write a bundle as a folder, or as a zip file where the path ends in ``.zip``; whole or not at all.

    Raises DataError: It cannot be written.
    """
    if Path(path).suffix.lower() != ".zip":
        return write_set(path, contents)
    data, packed = {name: encoded(text, path) for name, text in contents.items()}, io.BytesIO()
    hashes = {name: hashlib.sha256(one).hexdigest() for name, one in data.items()}
    with zipfile.ZipFile(packed, "w") as archive:
        for name, one in sorted({**data, MANIFEST: manifest(hashes).encode()}.items()):
            archive.writestr(zipfile.ZipInfo(name), one, zipfile.ZIP_DEFLATED)
    return [write_bytes(path, packed.getvalue())]


def _document(
    mechanism: Designed,
    released: pd.DataFrame,
    book: Codebook,
    stated: Stated | NoisyCounts | None,
    shown: bool,
    name: str,
    given: int,
) -> dict[str, Any]:
    kept = [str(column) for column in released.columns if column != name]
    return {
        "format": FORMAT,
        "version": VERSION,
        "column": name,
        "rows": len(released),
        "left_out": given - len(released),
        "kept": kept,
        "columns": list(mechanism.inputs.columns),
        "symbols": [list(symbol) for symbol in mechanism.inputs.symbols],
        "outputs": list(mechanism.outputs),
        "labels": list(book.labels),
        "recipe": list(mechanism.recipe.description) if shown and mechanism.recipe is not None else [],
        "matrix": mechanism.array.tolist() if shown else None,
        "withheld": "" if shown else WITHHELD,
        "posterior": book.posterior.tolist(),
        "posterior_step": book.step,
        "frequencies": None if stated is None else stated.document(),
        "utility": _utility(mechanism, book, stated, shown, kept),
        "figures": _figures(mechanism.figures, shown),
        "publish": str(mechanism.origin.get("publish", "")),
        "promise": PROMISE,
    }


def _utility(
    mechanism: Designed, book: Codebook, stated: Stated | NoisyCounts | None, shown: bool, kept: Sequence[str]
) -> list[dict[str, Any]]:
    """Return what the rows tell of each column, by the codebook's distribution; whole per cent without P(Y|X)."""
    recipe, rows = mechanism.recipe if shown else None, int(book.counts.sum())
    found = column_utility(mechanism.array, mechanism.inputs, book.prior, recipe, rows, stated)
    measured = found.select_dtypes(float).columns
    found[measured] = found[measured].round(4 if shown else 2)
    whole = {"guess_nothing": None, "guess_y": 1.0, "guess_x": 1.0, "row_worth": 1.0, "within": None}
    return [*records(found), *({"column": name, "role": "kept", **whole} for name in kept)]


def _figures(figures: Mapping[str, float], shown: bool) -> dict[str, float]:
    """Return the figures; of a private table fewer digits, as all single it out among the tables that fit."""
    found = {name: exact_zero(figures[name]) for name in ("leakage", "utility", "accuracy") if name in figures}
    return found if shown else {name: float(f"{value:.{FEWER}g}") for name, value in found.items()}


def within(one: Mapping[str, Any]) -> str:
    """Return how well frequencies of a column are known, in words.

    >>> within({"within": 0.0712})
    'frequencies within 7 points'
    """
    points = f"{100 * one['within']:.0f}" if one["within"] >= 0.01 else f"{100 * one['within']:.1g}"
    return f"frequencies within {points} point{'' if points == '1' else 's'}"


def told(utility: Sequence[Mapping[str, Any]]) -> str:
    """Return the use of the rows by column, in words."""
    rows = []
    for one in utility:
        if one["role"] == "kept":
            rows.append([one["column"], "as it is"])
            continue
        guess = f"guessed right from {one['guess_nothing']:.0%} (from nothing) to {one['guess_y']:.0%} (from a row)"
        known = one["within"] is not None and one["within"] < 0.5
        rows.append([one["column"], f"{guess}; {within(one) if known else 'frequencies are not determined'}"])
    return table([], rows)


def _readme(document: Mapping[str, Any], book: Codebook, matrix: Array) -> str:
    digits = DIGITS if document["matrix"] is not None else FEWER
    figures = ", ".join(f"{name} {format_number(value, digits)}" for name, value in document["figures"].items())
    sizes = (
        f"{document['rows']:,} rows. The column {document['column']!r} of {ROWS} is drawn in place of "
        f"{', '.join(document['columns'])}, by P(Y|X), the chance of each output Y for each combination X of their "
        f"values: {matrix.shape[0]} combinations, {matrix.shape[1]} outputs."
    )
    left_out = f"Rows left out: {document['left_out']:,}. A value is missing there, or it has no symbol."
    meant = [text for name, text in MEANT.items() if name in document["figures"]]
    kept = f"Columns kept as they are: {', '.join(document['kept'])}." if document["kept"] else ""
    alike: dict[tuple[str, str], list[int]] = {}
    for place in np.flatnonzero(book.counts):
        alike.setdefault((book.labels[place], book.meanings[place]), []).append(int(place))
    words = [
        paragraph(f"{', '.join(book.outputs[place] for place in places)}: {label} ({_rows(book.counts[places])})")
        + "\n"
        + paragraph(meaning, indent="      ", hanging="      ")
        for (label, meaning), places in alike.items()
    ]
    given = "P(Y|X) is in bundle.json." if document["matrix"] is not None else WITHHELD
    stated = document["frequencies"]
    parts: Sequence[str] = [
        "A release of rows",
        *(
            paragraph(text, indent="", hanging="")
            for text in (
                sizes,
                left_out * bool(document["left_out"]),
                kept,
                f"Figures of the mechanism, in the table that it was designed on: {figures}. {' '.join(meant)}",
            )
            if text
        ),
        "What is promised, and what is not\n" + paragraph(document["promise"]),
        "What each output means (the codebook, codebook.csv, has all numbers)\n" + "\n".join(words),
        "What these rows tell of each column, and no longer tell\n" + told(document["utility"]),
        "How to estimate statistics\n" + paragraph(DECODE) + "\n" + paragraph(given),
        *(
            []
            if stated is None
            else [
                "How often values occur\n"
                + paragraph(STATED.format(step=min(stated["step"], 1.0)) if "step" in stated else NOISY)
                + "\n"
                + _stated(stated)
            ]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _rows(counts: Array) -> str:
    return counted(int(counts.sum()), "row")


def _stated(told: Mapping[str, Any]) -> str:
    rows = [
        [column, ", ".join(f"{value} {share:.0%}" for value, share in values.items())]
        for column, values in told["columns"].items()
    ]
    return table([], rows)

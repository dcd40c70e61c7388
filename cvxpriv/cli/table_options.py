"""Options that read a joint table, and those that put noise in its counts before anything is computed from them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import pandas as pd

from cvxpriv.cli.drawn_rows import require_target
from cvxpriv.cli.options import NAMES, packed, reading_options
from cvxpriv.cli.preparation import SPOKEN, preparation_options, prepared, read_rows
from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.numerics.arguments import names_in
from cvxpriv.privacy.private_tables import Domain, private_table
from cvxpriv.runs.sides import Sides
from cvxpriv.tables.datasets import PAPER_SMOOTHING, SOURCES, load_table
from cvxpriv.tables.encodings import DetectedWarning
from cvxpriv.tables.frames import require_roles
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.protection import ADJACENCIES
from cvxpriv.tables.small_counts import require_repeated


@dataclass(frozen=True)
class TableOptions:
    """The table's columns and how it is read; with a public recipe nothing that is said depends on its records."""

    sides: Sides
    private: tuple[str, ...]
    public: tuple[str, ...]
    count: str | None
    smoothing: float | None
    smoothing_on: str
    keep_unseen: bool
    allow_overlap: bool
    separator: str | None
    encoding: str | None = None
    decimal: str | None = None
    bins: tuple[Any, ...] = ()
    merge: tuple[Any, ...] = ()
    rare: tuple[Any, ...] = ()
    top: tuple[Any, ...] = ()
    missing: str | None = None
    missing_text: tuple[str, ...] | None = None
    public_recipe: bool = False

    def load(self, source: str) -> JointTable:
        """Return the joint table of a file, or of the embedded one of that name.

        Raises DataError: No such file, not a table, or columns that are missing or contradict each other.
        """
        try:
            if is_embedded(source):
                return self._embedded(source)
            table = self._read(source)
            if not self.public_recipe:
                require_repeated(table)
            return table
        except DataError as error:
            raise DataError(self._as_typed(str(error))) from error

    def rows(self, source: str) -> pd.DataFrame:
        """Return the rows of a file, as they are.

        Raises DataError.
        """
        return read_rows(source, self.separator, self.missing_text, self.encoding, self.decimal)

    def require_records(self, source: str, release: str, folder: Path) -> None:
        """Check, before any work, that the records of a file can be released to a file."""
        if self.count or is_embedded(source):
            raise DataError(
                f"--release={release!r}: {source} holds counts and no records: leave --release out, and then apply the "
                f"mechanism to the records: cvxpriv release {folder / 'mechanism.json'} RECORDS.csv"
            )
        if Path(release).absolute() == folder.absolute():
            raise DataError(f"--release={release!r} is the folder of --out, which stays at home: choose another name")
        require_target(release, source, option="--release")

    def _read(self, source: str) -> JointTable:
        for flag, columns in ((self.sides.private.flag, self.private), (self.sides.public.flag, self.public)):
            if not columns:
                raise DataError(f"{flag} names no column of {source}: name at least one, such as {flag} age,sex")
        frame = self.rows(source)
        require_roles(frame, list(self.private), list(self.public), self.count, self.allow_overlap)
        rows = prepared(frame, self.public, self.private, self.count, vars(self))
        return JointTable.from_frame(
            rows,
            list(self.private),
            list(self.public),
            self.count,
            self.smoothing or 0.0,
            self.smoothing_on,
            self.keep_unseen,
            self.allow_overlap,
        )

    def _embedded(self, source: str) -> JointTable:
        if self.count:
            raise DataError(f"--count={self.count!r}: {source} is an embedded table, which counts itself: leave it out")
        private, public = (side.embedded[source] for side in (self.sides.private, self.sides.public))
        smoothing = PAPER_SMOOTHING if self.smoothing is None else self.smoothing
        private, public = self.private or private, self.public or public
        frame = load_table(source)
        require_roles(frame, list(private), list(public), "count", allow_overlap=True)
        rows = prepared(frame, public, private, "count", vars(self))
        return JointTable.from_frame(
            rows,
            list(private),
            list(public),
            "count",
            smoothing,
            self.smoothing_on,
            keep_unseen=smoothing > 0,
            allow_overlap=self.allow_overlap or not (self.private or self.public),
        )

    def _as_typed(self, message: str) -> str:
        """Return a message about the arguments of `JointTable` in the command line's words."""
        private, public = self.sides.private.flag, self.sides.public.flag
        spoken = {
            "private=": f"{private}=",
            "public=": f"{public}=",
            "is private and public": f"stands in {private} and {public}",
            "a private or public column": f"a column of {private} or {public}",
            "private and public columns": f"the columns of {private} and {public}",
            "allow_overlap=True": "give --allow-overlap",
            "keep_unseen=True": "--keep-unseen",
            **SPOKEN,
        }
        for there, here in spoken.items():
            message = message.replace(there, here)
        return message


def is_embedded(source: str) -> bool:
    """Return whether a name is that of an embedded table, and of no file."""
    return source in SOURCES and not Path(source).exists()


def title_of(source: str) -> str:
    """Return a table's name for readers."""
    return SOURCES[source].title if is_embedded(source) else Path(source).name


def table_options(sides: Sides) -> Callable[[Any], Any]:
    """Give a command the options for reading a table; it gets them as one `TableOptions`, ``columns``."""
    options = [
        click.option(sides.private.flag, "private", type=NAMES, default=(), help=sides.private.help),
        click.option(sides.public.flag, "public", type=NAMES, default=(), help=sides.public.help),
        click.option(
            "--count", metavar="COLUMN", help="Column with the number of records; without it a row is one record."
        ),
        click.option(
            "--smoothing",
            type=float,
            metavar="NUMBER",
            help="Number added to each cell.  [default: 0; embedded tables 1e-3]",
        ),
        click.option(
            "--smoothing-on",
            metavar="[counts|probabilities]",
            default="counts",
            show_default=True,
            help="Quantity that smoothing is added to.",
        ),
        click.option(
            "--keep-unseen",
            is_flag=True,
            help=f"Keep cells of {sides.public.flag} that do not occur (wants --smoothing).",
        ),
        click.option("--allow-overlap", is_flag=True, help="Allow a column on both sides."),
        reading_options,
        *preparation_options(),
    ]
    names = [field.name for field in fields(TableOptions) if field.name not in ("sides", "public_recipe")]
    return packed("columns", partial(TableOptions, sides), names, options)


@dataclass(frozen=True)
class TableNoise:
    """The noise asked for; none without `table_epsilon`."""

    table_epsilon: float | None = None
    table_delta: float = 0.0
    adjacency: str = "replace-one"
    domain: tuple[str, ...] = ()
    table_noise_seed: int | None = None
    budget: str | None = None

    def load(self, source: str, columns: TableOptions) -> JointTable:
        """Return the table of a file or of an embedded one, with the noise that was asked for.

        Raises DataError: As for `TableOptions.load` and `private_table`.
        Raises PrivacyError: No domain, or a budget that is out of range or does not hold the noise.
        """
        if self.table_epsilon is None:
            if unused := [
                f"--{name.replace('_', '-')}" for name in ("table_delta", "domain", "budget") if getattr(self, name)
            ]:
                raise DataError(f"{unused[0]} is given without --table-epsilon: give both, or neither")
            return columns.load(source)
        if columns.smoothing:
            raise DataError(
                f"--smoothing={columns.smoothing:g} with --table-epsilon: noise fills the cells; leave it out"
            )
        domain = self._domain()
        columns = replace(columns, smoothing=0.0, decimal=columns.decimal or "none", public_recipe=True)
        table = _read_row_by_row(columns, source)
        try:
            return private_table(
                table,
                self.table_epsilon,
                self.table_delta,
                domain=domain,
                adjacency=self.adjacency,
                budget=self.budget,
                noise_seed=self.table_noise_seed,
            )
        except PrivacyError as error:
            text = re.sub(r"domain=\{'([^']*)': \[\.\.\.\]\}", r"--domain '\1=A,B,...'", str(error))
            raise PrivacyError(text.replace('domain="table"', "--domain table")) from error

    def _domain(self) -> Domain:
        if self.domain == ("table",):
            return "table"
        found: dict[str, tuple[str, ...]] = {}
        for text in self.domain:
            column, between, values = text.partition("=")
            if not between or column in found:
                raise DataError(f"--domain={text!r}: expected COLUMN=VALUE,VALUE once for each column, or table")
            found[column] = names_in(values)
        return found


def _read_row_by_row(columns: TableOptions, source: str) -> JointTable:
    """Return a table of which no row was read as others tell: with noise, each record may change its own cell alone.

    Raises PrivacyError: The encoding would be found from the bytes of single rows.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", DetectedWarning)
        try:
            return columns.load(source)
        except DetectedWarning as found:
            raise PrivacyError(
                f"{found}; with --table-epsilon no record may change how others are read: give --encoding"
            ) from None


def noise_options() -> Callable[[Any], Any]:
    """Give a command the options for noise in its table; it gets them as one `TableNoise`, ``noise``."""
    options = [
        click.option(
            "--table-epsilon",
            type=float,
            metavar="NUMBER",
            help="Put noise in the counts first: everything is then differentially private and may be published.",
        ),
        click.option(
            "--table-delta",
            type=float,
            default=0.0,
            show_default=True,
            help="Delta of that noise: 0 for Laplace, else Gaussian.",
        ),
        click.option(
            "--adjacency",
            metavar=f"[{'|'.join(ADJACENCIES)}]",
            default="replace-one",
            show_default=True,
            help="What a neighbouring table is, for --table-epsilon.",
        ),
        click.option(
            "--domain",
            multiple=True,
            metavar="COLUMN=VALUE,VALUE",
            help="All values that a column may have, known without the records; once a column, those with edges in "
            "--bins left out. 'table': those that occur are public.",
        ),
        click.option(
            "--table-noise-seed", type=int, help="Seed of that noise, for tests.  [default: the system's randomness]"
        ),
        click.option("--budget", metavar="FILE", help="File of a budget that --table-epsilon spends from."),
    ]
    return packed("noise", TableNoise, [field.name for field in fields(TableNoise)], options)

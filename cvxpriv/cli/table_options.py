"""Options that read a joint table, and those that put noise in its counts before anything is computed from them."""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cvxpriv.cli.drawn_rows import require_target
from cvxpriv.cli.options import names, on_the_command_line, packed
from cvxpriv.cli.preparation import Preparation
from cvxpriv.cli.terminal import SPOKEN, spoken
from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.numerics.arguments import names_in
from cvxpriv.privacy.private_tables import Domain, private_table
from cvxpriv.runs.options import Option
from cvxpriv.runs.sides import PRIVATE_AND_PUBLIC, Sides
from cvxpriv.tables.datasets import PAPER_SMOOTHING, SOURCES, load_table
from cvxpriv.tables.frames import require_roles
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.protection import ADJACENCIES
from cvxpriv.tables.small_counts import require_repeated


@dataclass(frozen=True, kw_only=True)
class TableOptions(Preparation):
    """The table's columns and how it is read; with a public recipe nothing that is said depends on its records.

    `sides`: The model's names for the sides of its table.
    """

    sides: Sides = PRIVATE_AND_PUBLIC
    private: Annotated[tuple[str, ...], Option(read=names)] = ()
    public: Annotated[tuple[str, ...], Option(read=names)] = ()
    count: Annotated[
        str | None, Option("Column with the number of records; without it a row is one record.", metavar="COLUMN")
    ] = None
    smoothing: Annotated[
        float | None, Option("Number added to each cell.", usual="0; embedded tables 1e-3", metavar="NUMBER")
    ] = None
    smoothing_on: Annotated[str, Option("Quantity that smoothing is added to.", metavar="[counts|probabilities]")] = (
        "counts"
    )
    keep_unseen: Annotated[bool, Option("Keep cells of {public} that do not occur (wants --smoothing).")] = False
    allow_overlap: Annotated[bool, Option("Allow a column on both sides.")] = False

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
        frame = self.rows(source, self.public_recipe)
        require_roles(frame, list(self.private), list(self.public), self.count, self.allow_overlap)
        rows = self.prepared(frame, self.public, self.private, self.count)
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
        rows = self.prepared(frame, public, private, "count")
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
        words = {
            "is private and public": f"stands in {private} and {public}",
            "a private or public column": f"a column of {private} or {public}",
            "private and public columns": f"the columns of {private} and {public}",
            **SPOKEN,
        }
        return spoken(message, words)


def is_embedded(source: str) -> bool:
    """Return whether a name is that of an embedded table, and of no file."""
    return source in SOURCES and not Path(source).exists()


def title_of(source: str) -> str:
    """Return a table's name for readers."""
    return SOURCES[source].title if is_embedded(source) else Path(source).name


def table_options(sides: Sides) -> Callable[[Any], Any]:
    """Give a command the options for reading a table; it gets them as one `TableOptions`, ``columns``."""
    declared = on_the_command_line(TableOptions)
    roles = {"private": sides.private, "public": sides.public}
    for place, one in enumerate(declared):
        if (side := roles.get(one.name)) is not None:
            declared[place] = replace(one, option=replace(one.option, flag=side.flag, help=side.help))
        elif one.name == "keep_unseen":
            text = one.option.help.format(public=sides.public.flag)
            declared[place] = replace(one, option=replace(one.option, help=text))
    return packed("columns", partial(TableOptions, sides=sides), declared)


_SPOKEN_OF_NOISE = {
    'domain="table"': "--domain table",
    "make a missing value a symbol": "give --missing symbol",
    'adjacency="add-remove"': "--adjacency add-remove",
    "epsilon=": "--table-epsilon=",
    "delta=": "--table-delta=",
}
"""Words of messages about noise in a table, and those of the command line."""


@dataclass(frozen=True)
class TableNoise:
    """The noise asked for; none without `table_epsilon`."""

    table_epsilon: Annotated[
        float | None,
        Option(
            "Put noise in the counts first: everything is then differentially private and may be published.",
            metavar="NUMBER",
        ),
    ] = None
    table_delta: Annotated[float, Option("Delta of that noise: 0 for Laplace, else Gaussian.")] = 0.0
    adjacency: Annotated[
        str, Option("What a neighbouring table is, for --table-epsilon.", metavar=f"[{'|'.join(ADJACENCIES)}]")
    ] = "replace-one"
    domain: Annotated[
        tuple[str, ...],
        Option(
            "All values that a column may have, known without the records; once a column, those with edges in --bins "
            "left out. 'table': those that occur are public.",
            many=True,
            metavar="COLUMN=VALUE,VALUE",
        ),
    ] = ()
    table_noise_seed: Annotated[
        int | None, Option("Seed of that noise, for tests.", usual="the system's randomness")
    ] = None
    budget: Annotated[str | None, Option("File of a budget that --table-epsilon spends from.", metavar="FILE")] = None

    def load(self, source: str, columns: TableOptions) -> JointTable:
        """Return the table of a file or of an embedded one, with the noise that was asked for.

        Raises DataError: As for `TableOptions.load` and `private_table`.
        Raises PrivacyError: No domain, or a budget that is out of range or does not hold the noise.
        """
        if self.table_epsilon is None:
            if unused := [one.name for one in fields(self) if getattr(self, one.name) != one.default]:
                option = unused[0].replace("_", "-")
                raise DataError(f"--{option} is given without --table-epsilon: give both, or neither")
            return columns.load(source)
        if columns.smoothing:
            raise DataError(
                f"--smoothing={columns.smoothing:g} with --table-epsilon: noise fills the cells; leave it out"
            )
        domain = self._domain()
        columns = replace(columns, smoothing=0.0, decimal=columns.decimal or "none", public_recipe=True)
        table = columns.load(source)
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
            raise PrivacyError(spoken(text, _SPOKEN_OF_NOISE)) from error

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

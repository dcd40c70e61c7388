"""Options for noise in the counts of a table, before anything is computed from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, TypeVar

import click

from cvxpriv.cli.table_options import TableOptions
from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.privacy.private_tables import Domain, private_table
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.name_lists import names_in
from cvxpriv.tables.protection import ADJACENCIES

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class TableNoise:
    """The noise asked for; none without `table_epsilon`."""

    table_epsilon: float | None = None
    table_delta: float = 0.0
    adjacency: str = "replace-one"
    domain: tuple[str, ...] = ()
    table_noise_seed: int | None = None

    def load(self, source: str, columns: TableOptions) -> JointTable:
        """Return the table of a file or of an embedded one, with the noise that was asked for.

        Raises DataError: As for `TableOptions.load` and `private_table`.
        Raises PrivacyError: No domain, or a budget that is out of range.
        """
        if self.table_epsilon is None:
            if unused := [f"--{name.replace('_', '-')}" for name in ("table_delta", "domain") if getattr(self, name)]:
                raise DataError(f"{unused[0]} is given without --table-epsilon: give both, or neither")
            return columns.load(source)
        if columns.smoothing:
            raise DataError(
                f"--smoothing={columns.smoothing:g} with --table-epsilon: noise fills the cells; leave it out"
            )
        if not self.domain:
            raise PrivacyError(
                "--table-epsilon needs a public domain, for which cells occur tells of the records: give --domain "
                "sex=F,M once for every column without --bins, or --domain table where the values that occur are public"
            )
        table = replace(columns, smoothing=0.0).load(source)
        return private_table(
            table,
            self.table_epsilon,
            self.table_delta,
            domain=self._domain(),
            adjacency=self.adjacency,
            noise_seed=self.table_noise_seed,
        )

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


def noise_options(command: Command) -> Command:
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
            help="All values that a column may have, known without the records; once a column, those with --bins left "
            "out. 'table': those that occur are public.",
        ),
        click.option(
            "--table-noise-seed", type=int, help="Seed of that noise, for tests.  [default: the system's randomness]"
        ),
    ]
    names = [field.name for field in fields(TableNoise)]

    @wraps(command)
    def collected(*args: Any, **kwargs: Any) -> Any:
        chosen = {name: kwargs.pop(name) for name in names}
        return command(*args, noise=TableNoise(**chosen), **kwargs)

    wrapped: Any = collected
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]

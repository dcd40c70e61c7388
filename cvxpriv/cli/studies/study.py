"""What a study holds: a table, the run on it, and what was asked for beside."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import click
import pandas as pd

from cvxpriv.certify.check import CrossCheck
from cvxpriv.cli.options import NAMES, packed
from cvxpriv.errors import NotConverged
from cvxpriv.mechanisms.disclosure import Disclosure
from cvxpriv.reports.layout import number
from cvxpriv.runs.mechanism_run import MechanismRun
from cvxpriv.tables.joint import JointTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cvxpriv.reports.facts import Facts

__all__ = ["CERTIFIED", "SOLVERS", "Extras", "Study", "exact_zero", "extra_options", "solvers_option"]

Command = TypeVar("Command", bound=Callable[..., Any])

CERTIFIED = 2_000
"""Mechanisms with more cells are cross-checked only on demand: SCS needs minutes for 160 x 161."""
SOLVERS = ("CLARABEL", "ECOS", "SCS")
ROUNDING = 1e-12
"""What sums of a few thousand terms of size at most 1 may be off."""


Run = TypeVar("Run", bound=MechanismRun[Any, Any])


@dataclass(frozen=True)
class Extras:
    """What is computed beside the mechanism.

    Attributes
    ----------
    certify : bool, optional
        None is up to `CERTIFIED` cells of the mechanism.
    solvers : tuple of str
        Who cross-checks.
    bootstrap : int
        Replicates for intervals; 0 for none.
    """

    certify: bool | None = None
    solvers: tuple[str, ...] = SOLVERS
    bootstrap: int = 200


@dataclass
class Study(ABC, Generic[Run]):
    """What was found; what was not asked for, or not reached before an interrupt, is None.

    Attributes
    ----------
    source : str
        The table's name, for people.
    table : JointTable
    run : MechanismRun
    tol : float
        The KKT residual asked for.
    interrupted : bool
    curve : DataFrame, optional
        One row a point, `kkt` and `converged` among the columns.
    check : CrossCheck, optional
    found : Disclosure, optional
    """

    #: How a model calls the table's sides, and X and Y of a `Disclosure`.
    sides: ClassVar[tuple[str, str]] = ("private S", "public X")
    symbols: ClassVar[Mapping[str, str]] = {}

    source: str
    table: JointTable
    run: Run
    tol: float
    interrupted: bool = False
    curve: pd.DataFrame | None = None
    check: CrossCheck | None = None
    found: Disclosure | None = None

    @abstractmethod
    def figures(self) -> dict[str, object]:
        """Return what the model says of its run, as JSON holds it."""

    @abstractmethod
    def text(self) -> str:
        """Return what the terminal says."""

    @abstractmethod
    def report(self) -> Facts:
        """Return the page."""

    @abstractmethod
    def picture(self) -> Figure:
        """Return the picture of the curve."""

    @property
    def kkt(self) -> float:
        """The residual of the best start that `tol` was asked of."""
        return float(self.run.starts["kkt"].to_numpy()[self.run.start])

    @property
    def best_of(self) -> str:
        """How many starts there were, in words."""
        count = len(self.run.starts)
        return f"the best of {count} starts" if count > 1 else "the only start"

    @property
    def unconverged(self) -> int:
        """How many points of the curve have a residual above the tolerance."""
        return 0 if self.curve is None else int((~self.curve["converged"].astype(bool)).sum())

    @property
    def missed(self) -> str:
        """What is above the tolerance where a run did not converge."""
        return f"KKT residual of {number(self.kkt, 2)} nats"

    def named(self, text: str) -> str:
        """Return a text of a `Disclosure` with X and Y under the names that they have here."""
        return re.sub(r"\b[XY]\b", lambda found: self.symbols.get(found.group(), found.group()), text)

    def raise_if_not_converged(self) -> None:
        """Raise unless the mechanism and every point of the curve met the tolerance.

        Raises
        ------
        NotConverged
        """
        if not self.run.converged:
            raise NotConverged(
                f"{self.best_of} has a {self.missed} after {self.run.iterations} iterations, above tol={self.tol:g}: "
                "raise --max-iter or --starts, or allow a larger --tol"
            )
        if self.curve is not None and self.unconverged:
            raise NotConverged(
                f"{self.unconverged} of {len(self.curve)} points of the curve did not converge to tol={self.tol:g} "
                f"(worst KKT residual {self.curve['kkt'].max():.1e} nats): raise --max-iter or --starts"
            )

    def document(self) -> dict[str, object]:
        """Return the findings as JSON holds them."""
        run, table = self.run, self.table
        private, public = (side.split()[0] for side in self.sides)
        return {
            "source": self.source,
            "table": {
                private: table.private.columns,
                public: table.public.columns,
                "shape": table.shape,
                "records": table.records,
                "smoothing": table.smoothing,
            },
            "unit": "nats",
            "information": table.information,
            **self.figures(),
            "kkt": self.kkt,
            "converged": run.converged,
            "interrupted": self.interrupted,
            "start": run.start,
            "iterations": run.iterations,
            "seconds": run.seconds,
            "settings": asdict(run.settings),
            "disclosure": None if self.found is None else self._disclosed(self.found),
            "curve": None if self.curve is None else self.curve.astype(object).to_dict(orient="records"),
        }

    def _disclosed(self, found: Disclosure) -> list[dict[str, object]]:
        measures = found.frame["measure"].map(self.named)
        records = found.frame.assign(measure=measures).reset_index().to_dict(orient="records")
        return [{str(name): value for name, value in record.items()} for record in records]


def exact_zero(value: float) -> float:
    """Return 0 for a sum that is only rounding, at most `ROUNDING`.

    >>> exact_zero(3e-17), exact_zero(0.25)
    (0.0, 0.25)
    """
    return 0.0 if abs(value) <= ROUNDING else value


def solvers_option(command: Command) -> Command:
    """Give a command ``--solvers``, who cross-checks."""
    text = "Who cross-checks."
    return click.option("--solvers", type=NAMES, default=",".join(SOLVERS), show_default=True, help=text)(command)


def extra_options(command: Command) -> Command:
    """Give a command the options of what is computed beside the mechanism; it gets them as one `Extras`, ``extras``."""
    options = [
        click.option(
            "--certify/--no-certify",
            default=None,
            help=f"Cross-check every block by every solver.  [default: up to {CERTIFIED:,} cells of the mechanism]",
        ),
        solvers_option,
        click.option(
            "--bootstrap",
            type=int,
            default=Extras.bootstrap,
            show_default=True,
            callback=lambda context, parameter, value: _replicates(value),
            help="Replicates for the intervals; 0 for none.",
        ),
    ]
    return packed(command, Extras, "extras", options)


def _replicates(value: int) -> int:
    if value < 0 or value == 1:  # before the solve, not after it
        raise click.BadParameter(f"bootstrap={value}: expected a whole number >= 2 (200 serves), or 0 for no intervals")
    return value

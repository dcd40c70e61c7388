"""One table, one rate, everything that a command shows of it: the run, the curve, the cross-check, the disclosure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.studies import Extras, Study, curve_points, solve_watched, studied
from cvxpriv.cli.terminal import Terminal
from cvxpriv.tables.joint import JointTable

from .curve import lower_envelope
from .model import PrivacyFunnel
from .run import FunnelRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cvxpriv.reports.facts import Facts

__all__ = ["FunnelStudy", "SolveOptions", "solved", "study"]


@dataclass(frozen=True)
class SolveOptions:
    """What `PrivacyFunnel` and its `solve` are asked for; the names are theirs."""

    rate: float = 0.8
    rate_unit: str = "fraction"
    size_y: int | None = None
    engine: str = "closed_form"
    method: str | None = None
    accelerate: str = "auto"
    starts: int | None = None
    seed: int = 0
    solver: str | tuple[str, ...] = "CLARABEL"
    max_iter: int = 500
    tol: float = 1e-7
    jobs: int = 1

    def funnel(self, table: JointTable) -> PrivacyFunnel:
        """Return the funnel of a table."""
        return PrivacyFunnel(table, self.rate, self.rate_unit, self.size_y)

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments of `PrivacyFunnel.solve` that do not depend on who watches."""
        names = ("engine", "method", "accelerate", "starts", "seed", "solver", "max_iter", "tol")
        return {name: getattr(self, name) for name in names}


@dataclass
class FunnelStudy(Study[FunnelRun]):
    """A study of the funnel; the curve is as `PrivacyFunnel.curve` returns it."""

    def figures(self) -> dict[str, object]:
        """See `Study`."""
        run = self.run
        figures = {"rate": run.problem.rate, "utility": run.utility, "leakage": run.leakage}
        return {"entropy_x": self.table.entropy_x, **figures}

    def text(self) -> str:
        """See `Study`."""
        from .findings import findings

        return findings(self)

    def report(self) -> Facts:
        """See `Study`."""
        from .page import page

        return page(self)

    def picture(self) -> Figure:
        """See `Study`."""
        from .page import curve_figure

        return curve_figure(self)


def study(
    terminal: Terminal, source: str, table: JointTable, options: SolveOptions, extras: Extras, rates: int = 0
) -> FunnelStudy:
    """Design the mechanism, then the curve at so many rates, and what `extras` asks for.

    Raises
    ------
    ModelError, SolverFailure, Disagreement
        From the funnel.
    KeyboardInterrupt
        Before there was any mechanism.
    """
    funnel = options.funnel(table)

    def begin(interrupt: Interrupt) -> FunnelStudy:
        return FunnelStudy(source, table, solved(terminal, funnel, options, interrupt), options.tol)

    def curve(interrupt: Interrupt) -> pd.DataFrame | None:
        return _curve(terminal, funnel, options, [rate / rates for rate in range(1, rates + 1)], interrupt)

    return studied(terminal, extras, begin, curve if rates else None)


def solved(terminal: Terminal, funnel: PrivacyFunnel, options: SolveOptions, interrupt: Interrupt) -> FunnelRun:
    """Return the funnel's run at its own rate, with a bar."""

    def solve(**watching: Any) -> FunnelRun:
        return funnel.solve(**options.keywords, **watching)

    return solve_watched(terminal, interrupt, options.jobs, options.max_iter, solve)


def _curve(
    terminal: Terminal, funnel: PrivacyFunnel, options: SolveOptions, fractions: Sequence[float], interrupt: Interrupt
) -> pd.DataFrame | None:
    """Return the curve; after an interrupt only the rates that were finished."""
    if options.jobs != 1:
        return funnel.curve(fractions, n_jobs=options.jobs, progress=terminal.progress, **options.keywords)

    def point(fraction: float, **watching: Any) -> pd.DataFrame:
        return funnel.curve([fraction], **options.keywords, **watching)

    points = curve_points(terminal, interrupt, fractions, "rates", point)
    return lower_envelope(points) if points else None

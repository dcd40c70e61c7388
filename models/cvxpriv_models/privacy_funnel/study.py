"""One table, one rate, everything that a command shows of it: the run, the curve, the cross-check, the disclosure."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from cvxpriv.cli.interrupts import Interrupt, watched
from cvxpriv.cli.terminal import Terminal
from cvxpriv.crosschecks.check import CrossCheck
from cvxpriv.disclosure import Disclosure, disclosure
from cvxpriv.distributions import JointTable
from cvxpriv.errors import NotConverged
from cvxpriv.progress import track

from .curve import lower_envelope
from .model import PrivacyFunnel
from .run import FunnelRun

__all__ = ["Extras", "SolveOptions", "Study", "exact_zero", "solved", "study"]

ROUNDING = 1e-12
"""What sums of a few thousand terms of size at most 1 may be off, in nats."""


@dataclass(frozen=True)
class SolveOptions:
    """What `PrivacyFunnel` and its `solve` are asked for; the names are theirs."""

    rate: float
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
    def keywords(self) -> dict[str, object]:
        """The arguments of `PrivacyFunnel.solve` that do not depend on who watches."""
        names = ("engine", "method", "accelerate", "starts", "seed", "solver", "max_iter", "tol")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Extras:
    """What is computed beside the mechanism.

    Attributes
    ----------
    curve : int
        Rates of the privacy-utility curve; 0 for none.
    certify : bool
    solvers : tuple of str
        Who cross-checks.
    bootstrap : int
        Replicates for intervals; 0 for none.
    """

    curve: int = 0
    certify: bool = True
    solvers: tuple[str, ...] = ("CLARABEL", "ECOS", "SCS")
    bootstrap: int = 200


@dataclass
class Study:
    """What was found; what was not asked for, or not reached before an interrupt, is None.

    Attributes
    ----------
    source : str
        The table's name, for people.
    table : JointTable
    options : SolveOptions
    run : FunnelRun
    interrupted : bool
    curve : DataFrame, optional
        As `PrivacyFunnel.curve` returns it.
    check : CrossCheck, optional
    found : Disclosure, optional
    """

    source: str
    table: JointTable
    options: SolveOptions
    run: FunnelRun
    interrupted: bool = False
    curve: pd.DataFrame | None = None
    check: CrossCheck | None = None
    found: Disclosure | None = None

    @property
    def kkt(self) -> float:
        """The residual of the best start that `tol` was asked of, in nats."""
        return float(self.run.starts["kkt"].to_numpy()[self.run.start])

    @property
    def unconverged_rates(self) -> int:
        """How many points of the curve have a residual above the tolerance."""
        return 0 if self.curve is None else int((~self.curve["converged"].astype(bool)).sum())

    def raise_if_not_converged(self) -> None:
        """Raise unless the mechanism and every point of the curve met the tolerance.

        Raises
        ------
        NotConverged
        """
        run, tol = self.run, self.options.tol
        if not run.converged:
            raise NotConverged(
                f"{_starts(run)} has a KKT residual of {run.kkt.largest:.1e} nats after "
                f"{run.iterations} iterations, above tol={tol:g}: raise --max-iter or --starts, or allow a larger --tol"
            )
        if self.curve is not None and self.unconverged_rates:
            raise NotConverged(
                f"{self.unconverged_rates} of {len(self.curve)} rates of the curve did not converge to tol={tol:g} "
                f"(worst KKT residual {self.curve['kkt'].max():.1e} nats): raise --max-iter or --starts"
            )

    def document(self) -> dict[str, object]:
        """Return the findings as JSON holds them."""
        run, table = self.run, self.table
        return {
            "source": self.source,
            "table": {
                "private": table.private.columns,
                "public": table.public.columns,
                "shape": table.shape,
                "records": table.records,
                "smoothing": table.smoothing,
            },
            "unit": "nats",
            "entropy_x": table.entropy_x,
            "information": table.information,
            "rate": run.problem.rate,
            "utility": run.utility,
            "leakage": run.leakage,
            "kkt": run.kkt.largest,
            "converged": run.converged,
            "interrupted": self.interrupted,
            "start": run.start,
            "iterations": run.iterations,
            "seconds": run.seconds,
            "settings": asdict(run.settings),
            "disclosure": None if self.found is None else self.found.frame.reset_index().to_dict(orient="records"),
            "curve": None if self.curve is None else self.curve.astype(object).to_dict(orient="records"),
        }


def exact_zero(value: float) -> float:
    """Return 0 for an information that is only rounding, at most `ROUNDING` nats.

    >>> exact_zero(3e-17), exact_zero(0.25)
    (0.0, 0.25)
    """
    return 0.0 if abs(value) <= ROUNDING else value


def _starts(run: FunnelRun) -> str:
    return f"the best of {run.settings.starts} starts" if run.settings.starts > 1 else "the only start"


def study(terminal: Terminal, source: str, table: JointTable, options: SolveOptions, extras: Extras) -> Study:
    """Design the mechanism, then what `extras` asks for, in this order: curve, cross-check, disclosure.

    A keyboard interrupt ends the work and leaves what there is.

    Raises
    ------
    ModelError, SolverFailure, Disagreement
        From the funnel.
    KeyboardInterrupt
        Before there was any mechanism.
    """
    with watched() as interrupt:
        funnel = options.funnel(table)
        run = solved(terminal, funnel, options, interrupt)
        found = Study(source, table, options, run)
        try:
            if extras.curve and not interrupt.pressed:
                found.curve = _curve(terminal, funnel, options, extras.curve, interrupt)
            if extras.certify and not interrupt.pressed:
                with terminal.phase(f"cross-checking by {', '.join(extras.solvers)}"):
                    found.check = run.certify(extras.solvers)
            if not interrupt.pressed:
                with terminal.phase("resampling the records"):
                    bootstrap = extras.bootstrap if table.counts is not None else 0
                    found.found = disclosure(table, run.mechanism, bootstrap=bootstrap, seed=options.seed)
        except KeyboardInterrupt:
            pass
        found.interrupted = interrupt.pressed
    return found


def solved(terminal: Terminal, funnel: PrivacyFunnel, options: SolveOptions, interrupt: Interrupt) -> FunnelRun:
    """Return the funnel's run at its own rate, with a bar."""
    if options.jobs != 1:
        return funnel.solve(**options.keywords, n_jobs=options.jobs, progress=terminal.progress)  # type: ignore[arg-type]
    with terminal.iterations("solving", options.max_iter, "kkt") as moved:

        def watch(loop: str, iteration: int, measured: dict[str, object]) -> bool:
            moved(loop, iteration, measured)
            return interrupt.pressed

        return funnel.solve(**options.keywords, callback=watch)  # type: ignore[arg-type]


def _curve(
    terminal: Terminal, funnel: PrivacyFunnel, options: SolveOptions, rates: int, interrupt: Interrupt
) -> pd.DataFrame | None:
    """Return the curve; after an interrupt only the rates that were finished."""
    keywords: dict[str, Any] = dict(options.keywords)
    if options.jobs != 1:
        return funnel.curve(rates, n_jobs=options.jobs, progress=terminal.progress, **keywords)
    keywords["callback"] = lambda *_: interrupt.pressed
    points: list[dict[str, Any]] = []
    fractions = [rate / rates for rate in range(1, rates + 1)]
    with contextlib.suppress(KeyboardInterrupt):
        for fraction in track(fractions, total=rates, description="rates", shown=terminal.progress):
            point = funnel.curve([fraction], **keywords).to_dict("records")[0]
            if interrupt.pressed:  # the solve swallowed it and returned its best so far: no point of the curve
                break
            points.append({str(name): value for name, value in point.items()})
    return lower_envelope(points) if points else None

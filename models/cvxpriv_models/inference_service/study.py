"""One table, one weight of privacy, everything that a command shows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from cvxpriv.blocks.declaration import Known
from cvxpriv.cli.divergences import divergence_or_text
from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.studies import Extras, Study, curve_points, solve_watched, studied
from cvxpriv.cli.terminal import Terminal, solvers_silent
from cvxpriv.constraints import ReadyConstraint, parse
from cvxpriv.reports.layout import number
from cvxpriv.tables.joint import JointTable

from .model import InferenceAsService
from .run import InferenceRun
from .thresholds import CriticalBeta, critical_beta

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cvxpriv.reports.facts import Facts

__all__ = ["ServiceStudy", "SolveOptions", "solved", "study"]

#: The weight where none is given: this share of the threshold from which on nothing is worth telling.
SHARE = 0.25
#: The weight where there is no such threshold: the default of `InferenceAsService`.
BETA = 0.5
#: A threshold that is only rounding: S and Y are independent.
ROUNDING = 1e-9


@dataclass(frozen=True)
class SolveOptions:
    """What `InferenceAsService` and its `solve` are asked for, as a command line has it."""

    beta: float | None = None
    divergence: str = "jensen-shannon"
    constraint: tuple[str, ...] = ()
    size: int | None = None
    floor: float = 0.0
    algorithm: str = "auto"
    engine: str = "closed_form"
    starts: int | None = None
    seed: int = 0
    solver: str | tuple[str, ...] | None = None
    max_iter: int | None = None
    tol: float = 1e-7
    jobs: int = 1

    @cached_property
    def constraints(self) -> Mapping[str, ReadyConstraint]:
        """The constraints by their texts.

        Raises
        ------
        ModelError, DataError
            A text is none.
        """
        return {text: parse(text) for text in self.constraint}

    def service(self, table: JointTable) -> InferenceAsService:
        """Return the model of a table, with its constraints."""
        divergence = divergence_or_text(self.divergence)
        beta = BETA if self.beta is None else self.beta
        service = InferenceAsService(table, beta, divergence, self.size, self.floor)
        if self.beta is None:
            threshold = service.beta_critical(self.seed).searched
            service = service.at_beta(SHARE * threshold if ROUNDING < threshold < np.inf else BETA)
        for text, constraint in self.constraints.items():
            service = service.constrain(text, constraint)
        return service

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments of `InferenceAsService.solve` that do not depend on who watches."""
        names = ("algorithm", "engine", "starts", "seed", "solver", "max_iter", "tol")
        return {name: getattr(self, name) for name in names}


@dataclass
class ServiceStudy(Study[InferenceRun]):
    """A study of the service; the curve is as `InferenceAsService.curve` returns it.

    Attributes
    ----------
    constraints : mapping of str to ReadyConstraint
        The constraints by their texts.
    """

    sides: ClassVar[tuple[str, str]] = ("inferred S", "data Y")
    symbols: ClassVar[Mapping[str, str]] = {"X": "Y", "Y": "U"}

    constraints: Mapping[str, ReadyConstraint] = field(default_factory=dict)

    @cached_property
    def critical(self) -> CriticalBeta:
        """From which beta on the trivial mechanism is optimal."""
        return critical_beta(self.run.problem, self.run.settings.seed)

    @property
    def trivial_is_optimal(self) -> bool:
        """Whether beta is at or above the threshold."""
        return self.run.problem.beta >= self.critical.searched

    @cached_property
    def violations(self) -> dict[str, float]:
        """By how much the mechanism misses each constraint."""
        known = Known.of_table(self.table)
        return {text: constraint.violation(self.run.mechanism, known) for text, constraint in self.constraints.items()}

    @cached_property
    def whole_leakage(self) -> float:
        """The leakage of Y itself; may be inf."""
        with np.errstate(all="ignore"):
            return self.run.problem.leakage(np.eye(len(self.table.public)))

    @property
    def missed(self) -> str:
        """See `Study`."""
        return super().missed + (f" and a gap of {number(self.run.gap, 2)} nats" if self.constraints else "")

    def figures(self) -> dict[str, object]:
        """See `Study`."""
        run, critical = self.run, self.critical
        return {
            "divergence": run.problem.divergence.name,
            "beta": run.problem.beta,
            "beta_critical": {"searched": critical.searched, "local": critical.local, "sharp": critical.sharp},
            "trivial_is_optimal": self.trivial_is_optimal,
            "accuracy": run.accuracy,
            "leakage": run.leakage,
            "objective": run.objective,
            "gap": run.gap,
            "constraints": self.violations,
            "note": run.note,
        }

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
    terminal: Terminal,
    source: str,
    table: JointTable,
    options: SolveOptions,
    extras: Extras,
    betas: Sequence[float] = (),
) -> ServiceStudy:
    """Design the mechanism, then the curve at some weights of privacy, and what `extras` asks for.

    Raises
    ------
    ModelError, SolverFailure, Disagreement
        From the model.
    KeyboardInterrupt
        Before there was any mechanism.
    """
    service = options.service(table)
    for beta in betas:
        service.at_beta(beta)  # refuses a wrong one before the solve

    def begin(interrupt: Interrupt) -> ServiceStudy:
        return solved(terminal, source, service, options, interrupt)

    def curve(interrupt: Interrupt) -> pd.DataFrame | None:
        return _curve(terminal, service, options, betas, interrupt)

    return studied(terminal, extras, begin, curve if betas else None)


def solved(
    terminal: Terminal, source: str, service: InferenceAsService, options: SolveOptions, interrupt: Interrupt
) -> ServiceStudy:
    """Return the study of a model's run at its own beta, which is solved with a bar."""

    def solve(**watching: Any) -> InferenceRun:
        return service.solve(**options.keywords, **watching)

    # "auto" runs several loops, each with its own limit.
    with solvers_silent():
        run = solve_watched(terminal, interrupt, options.jobs, None, solve)
    return ServiceStudy(source, service.problem.table, run, options.tol, constraints=options.constraints)


def _curve(
    terminal: Terminal, service: InferenceAsService, options: SolveOptions, betas: Sequence[float], interrupt: Interrupt
) -> pd.DataFrame | None:
    """Return the curve; after an interrupt only the weights that were finished."""
    if options.jobs != 1:
        return service.curve(betas, n_jobs=options.jobs, progress=terminal.progress, **options.keywords)

    def point(beta: float, **watching: Any) -> pd.DataFrame:
        return service.curve([beta], **options.keywords, **watching)

    points = curve_points(terminal, interrupt, betas, "betas", point)
    return pd.DataFrame(points) if points else None

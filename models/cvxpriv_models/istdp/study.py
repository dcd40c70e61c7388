"""Rows, a sparse fit, and everything that a command shows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxpriv.cli.fits.finish import worked
from cvxpriv.cli.fits.fit import Fit, scored
from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.rows import Rows
from cvxpriv.cli.terminal import Terminal
from cvxpriv.learning.linear import LinearFit
from cvxpriv.penalties import penalty_named
from cvxpriv.privacy.gaussian import require_budget

from .model import ISTDP
from .private_run import PrivateSparseRun
from .run import SparseRun

if TYPE_CHECKING:
    from cvxpriv.reports.facts import Facts

__all__ = ["SparseFitted", "SparseOptions", "study"]

#: The part of a row's largest gradient that counts, unless `clip` is named: few gradients of a fitted model are longer.
COUNTED = 0.5
#: Of a fit without privacy, on rows of norm at most 1.
PENALTY = "mcp:0.001:50"


@dataclass(frozen=True)
class SparseOptions:
    """What `ISTDP`, its `solve` and its `solve_private` are asked for; the names are theirs."""

    penalty: str | None = None
    loss: str = "logistic"
    intercept: bool = True
    max_iter: int | None = None
    tol: float = 1e-7
    epsilon: float | None = None
    delta: float = 1e-6
    clip: float | None = None
    step: str = "lipschitz"
    adjacency: str = "replace-one"
    public_rows: int | None = None
    output: str = "last"
    noise_seed: int | None = None

    @property
    def private(self) -> bool:
        """Whether a guarantee is asked for."""
        return self.epsilon is not None

    @property
    def chosen(self) -> str:
        """The penalty, or its default: a private one follows from public numbers, once the rows are there."""
        return self.penalty or ("auto" if self.private else PENALTY)

    def check(self) -> None:
        """Refuse, before any row is read, a budget or a penalty that is none.

        Raises
        ------
        PrivacyError
            epsilon or delta is out of range.
        ModelError
            There is no such penalty.
        """
        if self.penalty is not None:
            penalty_named(self.penalty)
        if self.epsilon is not None:
            require_budget(self.epsilon, self.delta)


@dataclass
class SparseFitted(Fit):
    """A fit of ISTDP; the coefficients of a private one are released.

    Attributes
    ----------
    options : SparseOptions
    """

    run: SparseRun | PrivateSparseRun
    options: SparseOptions = field(default_factory=SparseOptions)

    def figures(self) -> dict[str, object]:
        """See `Fit`."""
        features = self.rows.encoding.features
        found: dict[str, object] = {
            "penalty": self.named_penalty,
            "support": [features[place] for place in self.run.support],
        }
        if isinstance(self.run, SparseRun):
            found |= {
                "objective": self.run.objective,
                "kkt": self.run.kkt.largest,
                "converged": self.run.converged,
                "iterations": self.run.iterations,
                "seconds": self.run.seconds,
            }
        return found

    @property
    def named_penalty(self) -> str:
        """The penalty as it was asked for, or what was chosen from public numbers."""
        return self.options.penalty or (self.run.penalty.name if self.private else PENALTY)

    @property
    def statements(self) -> tuple[str, ...]:
        """See `Fit`."""
        from .findings import statements

        return statements(self)

    def text(self) -> str:
        """See `Fit`."""
        from .findings import findings

        return findings(self)

    def report(self) -> Facts:
        """See `Fit`."""
        from .page import page

        return page(self)


def study(terminal: Terminal, rows: Rows, options: SparseOptions, certify: bool) -> SparseFitted:
    """Fit, then, where it is not private, without a penalty too; and cross-check.

    Raises
    ------
    ModelError, PrivacyError, DataError
        From the model.
    KeyboardInterrupt
        Before there was any fit.
    """
    model = ISTDP(
        rows.x,
        rows.y,
        loss=options.loss,
        penalty=options.chosen,
        intercept=options.intercept,
        allow_constant=True,
    )
    log_odds = options.loss == "logistic"

    def begin(interrupt: Interrupt) -> SparseFitted:
        if options.private:
            with terminal.phase("fitting"):
                run: SparseRun | PrivateSparseRun = _private(model, rows, options)
        else:
            run = _solved(terminal, model, options, interrupt)
        found = scored(f"this model, {run.support.size} columns", _linear(run), rows, log_odds)
        return SparseFitted(rows, run, found, options.private, options=options)

    def compare(fit: SparseFitted) -> None:
        bare = model.with_penalty(penalty_named("l2:1e-6")).solve(max_iter=options.max_iter, tol=1e-6)
        fit.compared.append(scored(f"hardly penalised, {bare.support.size} columns", _linear(bare), rows, log_odds))

    return worked(terminal, begin, None if options.private else compare, certify)


def _solved(terminal: Terminal, model: ISTDP, options: SparseOptions, interrupt: Interrupt) -> SparseRun:
    with terminal.iterations("fitting", None, "kkt") as moved:

        def watch(loop: str, iteration: int, figures: Any) -> bool:
            moved(loop, iteration, figures)
            return interrupt.pressed

        return model.solve(max_iter=options.max_iter, tol=options.tol, callback=watch)


def _private(model: ISTDP, rows: Rows, options: SparseOptions) -> PrivateSparseRun:
    """Fit privately; the encoding gives the public bound of the rows' norms."""
    assert options.epsilon is not None
    bound = float(np.hypot(rows.encoding.row_bound(), 1.0)) if options.intercept else rows.encoding.row_bound()
    slope = model.problem.loss.slope
    clip = options.clip
    if clip is None and np.isfinite(slope):
        clip = COUNTED * slope * bound
    return model.solve_private(
        epsilon=options.epsilon,
        delta=options.delta,
        max_iter=options.max_iter,
        clip=clip,
        step=options.step,
        adjacency=options.adjacency,
        public_rows=options.public_rows,
        output=options.output,
        row_bound=None if np.isfinite(slope) else bound,
        noise_seed=options.noise_seed,
    )


def _linear(run: SparseRun | PrivateSparseRun) -> LinearFit:
    return LinearFit(run.coefficients, run.intercept)

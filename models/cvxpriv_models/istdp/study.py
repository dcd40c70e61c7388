"""Rows, a sparse fit, and everything that a command shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxpriv.cli.fits.finish import worked
from cvxpriv.cli.fits.fit import scored
from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.rows import Rows
from cvxpriv.cli.terminal import Terminal
from cvxpriv.learning.linear import LinearFit
from cvxpriv.penalties import penalty_named
from cvxpriv.reports.facts import Facts

from .findings import findings, statements
from .fit_data import COUNTED, SparseFitted, SparseOptions
from .model import ISTDP
from .page import page
from .private_run import PrivateSparseRun
from .run import SparseRun

__all__ = ["SparseStudy", "study"]


@dataclass
class SparseStudy(SparseFitted):
    """A fit, and all that the command shows of it."""

    @property
    def statements(self) -> tuple[str, ...]:
        """See `Fit`."""
        return statements(self)

    def text(self) -> str:
        """See `Fit`."""
        return findings(self)

    def report(self) -> Facts:
        """See `Fit`."""
        return page(self)


def study(terminal: Terminal, rows: Rows, options: SparseOptions, certify: bool) -> SparseStudy:
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

    def begin(interrupt: Interrupt) -> SparseStudy:
        if options.private:
            with terminal.phase("fitting"):
                run: SparseRun | PrivateSparseRun = _private(model, rows, options)
        else:
            run = _solved(terminal, model, options, interrupt)
        found = scored(f"this model, {run.support.size} columns", _linear(run), rows, log_odds)
        return SparseStudy(rows, run, found, options.private, options=options)

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

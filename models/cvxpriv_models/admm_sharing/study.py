"""Rows, parties, a fit, and everything that a command shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxpriv.cli.fits.finish import worked
from cvxpriv.cli.fits.fit import scored
from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.rows import Rows
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError
from cvxpriv.learning.linear import LinearFit
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Facts

from .bounds import ADJACENCIES
from .findings import findings, statements
from .fit_data import Parties, SharingFit, SharingOptions
from .intercept import Intercept, bounds_with_ones, model_with_intercept
from .model import ADMMSharing
from .page import page
from .private_run import PrivateSharingRun
from .run import SharingRun

__all__ = ["SharingStudy", "columns_of", "study"]


@dataclass
class SharingStudy(SharingFit):
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


def columns_of(parties: Parties) -> list[str]:
    """Return the columns of all parties.

    Raises
    ------
    DataError
        No party, or a column that two of them have.
    """
    columns = [name for names in parties for name in names]
    if not columns:
        raise DataError("--party names no columns: give each party's, such as --party age,education --party hours")
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise DataError(f"column {twice[0]!r} stands in --party twice: each column is held by one party")
    return columns


def study(terminal: Terminal, rows: Rows, parties: Parties, options: SharingOptions, certify: bool) -> SharingStudy:
    """Fit, then, where it is not private, each party alone; and cross-check.

    Raises
    ------
    ModelError, PrivacyError, DataError
        From the model.
    KeyboardInterrupt
        Before there was any fit.
    """

    def begin(interrupt: Interrupt) -> SharingStudy:
        with terminal.iterations("fitting", None, "kkt") as moved:

            def watch(loop: str, iteration: int, figures: Mapping[str, Array]) -> bool:
                moved(loop, iteration, figures)
                return interrupt.pressed

            run, linear = _fitted(rows, parties, options, watch)
        model = scored("all parties together", linear, rows, options.loss == "logistic")
        return SharingStudy(rows, run, model, options.private, parties=parties, options=options)

    return worked(terminal, begin, None if options.private or len(parties) == 1 else _compare, certify)


def _compare(fit: SharingFit) -> None:
    """Fit each party's columns alone, by the same model."""
    for m, names in enumerate(fit.parties):
        _, linear = _fitted(fit.rows, (names,), fit.options, None)
        fit.compared.append(scored(f"party {m + 1} alone", linear, fit.rows, fit.options.loss == "logistic"))


def _fitted(
    rows: Rows, parties: Parties, options: SharingOptions, callback: Any
) -> tuple[SharingRun | PrivateSharingRun, LinearFit]:
    """Return the run, and its coefficients in the order of the encoded columns."""
    places = [rows.encoding.positions(names) for names in parties]
    parts = [rows.x[:, place] for place in places]
    posed: dict[str, Any] = {"loss": options.loss, "penalty": options.penalty, "lam": options.weight}
    where: Intercept | None = None
    if options.intercept:
        model, where = model_with_intercept(parts, rows.y, **posed, private=options.private)
    else:
        model = ADMMSharing(parts, rows.y, **posed)
    run = _private(model, rows, parties, options, callback) if options.private else _solved(model, options, callback)
    found = run.coefficients if isinstance(run, SharingRun) else run.not_private.coefficients
    coefficients, intercept = (found, 0.0) if where is None else where.split(found)
    together = np.zeros(rows.x.shape[1])
    for place, x in zip(places, coefficients, strict=True):
        together[place] = x
    return run, LinearFit(together, intercept)


def _solved(model: ADMMSharing, options: SharingOptions, callback: Any) -> SharingRun:
    return model.solve(
        method=options.method, rho=options.rho, max_iter=options.max_iter, tol=options.tol, callback=callback
    )


def _private(
    model: ADMMSharing, rows: Rows, parties: Parties, options: SharingOptions, callback: Any
) -> PrivateSharingRun:
    assert options.epsilon is not None
    names = {relation: name for relation, (name, _) in ADJACENCIES.items()}
    bounds: dict[str, Any] = {}
    if options.adjacency in names:  # else the model refuses it, and says what is known
        found = _bounds(rows, parties, options.adjacency)
        bounds[names[options.adjacency]] = (
            bounds_with_ones(found, options.adjacency, rows.y.size) if options.intercept else found
        )
    return model.solve_private(
        epsilon=options.epsilon,
        delta=options.delta,
        adjacency=options.adjacency,
        method=options.method,
        max_iter=options.max_iter,
        clip=options.clip,
        clip_entries=options.clip_entries,
        labels=options.labels,
        rho=options.rho,
        noise_seed=options.noise_seed,
        callback=callback,
        **bounds,
    )


def _bounds(rows: Rows, parties: Parties, adjacency: str) -> list[float]:
    """The bounds that the encoding gives: entries lie in [0, 1], and a column's part of a row has norm at most 1."""
    if adjacency == "cell":
        return [1.0] * len(parties)
    if adjacency == "column":
        return [float(np.sqrt(rows.y.size))] * len(parties)
    return [rows.encoding.row_bound(names) for names in parties]

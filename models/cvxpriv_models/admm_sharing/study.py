"""Rows, parties, a fit, and everything that a command shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cvxpriv.cli.fits.finish import worked
from cvxpriv.cli.fits.fit import Fit, scored
from cvxpriv.cli.interrupts import Interrupt
from cvxpriv.cli.rows import Rows
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError
from cvxpriv.learning.linear import LinearFit
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy.gaussian import require_budget
from cvxpriv.reports.files import PathLike

from .bounds import ADJACENCIES
from .intercept import Intercept, bounds_with_ones, model_with_intercept
from .model import ADMMSharing
from .private_run import PrivateSharingRun
from .run import SharingRun

if TYPE_CHECKING:
    from cvxpriv.reports.facts import Facts

__all__ = ["SharingFit", "SharingOptions", "columns_of", "study"]

#: Weight of the penalty unless named: noise in the shares asks for more of it.
LAM, PRIVATE_LAM = 1.0, 30.0

Parties = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SharingOptions:
    """What `ADMMSharing`, its `solve` and its `solve_private` are asked for; the names are theirs."""

    lam: float | None = None
    loss: str = "logistic"
    penalty: str = "l2"
    intercept: bool = True
    rho: float | None = None
    method: str = "averaged"
    max_iter: int | None = None
    tol: float = 1e-7
    epsilon: float | None = None
    delta: float = 1e-6
    adjacency: str = "replace-one"
    labels: str = "shared"
    clip: float | None = None
    clip_entries: float | None = None
    noise_seed: int | None = None
    not_private: bool = False

    @property
    def private(self) -> bool:
        """Whether a guarantee is asked for."""
        return self.epsilon is not None

    @property
    def weight(self) -> float:
        """lam, or its default."""
        if self.lam is not None:
            return self.lam
        return PRIVATE_LAM if self.private else LAM

    def check(self) -> None:
        """Refuse, before any row is read, a budget that is none.

        Raises
        ------
        PrivacyError
            epsilon or delta is out of range.
        """
        if self.epsilon is not None:
            require_budget(self.epsilon, self.delta)


@dataclass
class SharingFit(Fit):
    """A fit of ADMM sharing.

    Attributes
    ----------
    parties : tuple of tuple of str
        The columns of each.
    options : SharingOptions
    """

    run: SharingRun | PrivateSharingRun
    parties: Parties = ()
    options: SharingOptions = field(default_factory=SharingOptions)

    def figures(self) -> dict[str, object]:
        """See `Fit`."""
        found: dict[str, object] = {"parties": self.parties, "lam": self.options.weight}
        if isinstance(self.run, SharingRun):
            found |= {
                "objective": self.run.objective,
                "gap": self.run.gap,
                "kkt": self.run.kkt.largest,
                "converged": self.run.converged,
                "iterations": self.run.iterations,
                "seconds": self.run.seconds,
            }
        return found

    @property
    def shows_coefficients(self) -> bool:
        """See `Fit`: those of a private fit are not covered by its guarantee."""
        return not self.private or self.options.not_private

    def save(self, path: PathLike) -> Path:
        """See `Fit`."""
        if isinstance(self.run, SharingRun):
            return self.run.save(path)
        return self.run.save(path, not_private=self.options.not_private)

    @property
    def coefficients(self) -> pd.DataFrame:
        """One row an encoded column: feature, party, coefficient; the intercept last."""
        owner = {name: f"party {m + 1}" for m, names in enumerate(self.parties) for name in names}
        owners = [owner[column.name] for column in self.rows.encoding.columns for _ in column.features]
        table = super().coefficients
        table.insert(1, "party", [*owners, "party 1" if self.private else ""])
        return table

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


def study(terminal: Terminal, rows: Rows, parties: Parties, options: SharingOptions, certify: bool) -> SharingFit:
    """Fit, then, where it is not private, each party alone; and cross-check.

    Raises
    ------
    ModelError, PrivacyError, DataError
        From the model.
    KeyboardInterrupt
        Before there was any fit.
    """

    def begin(interrupt: Interrupt) -> SharingFit:
        with terminal.iterations("fitting", None, "kkt") as moved:

            def watch(loop: str, iteration: int, figures: Mapping[str, Array]) -> bool:
                moved(loop, iteration, figures)
                return interrupt.pressed

            run, linear = _fitted(rows, parties, options, watch)
        model = scored("all parties together", linear, rows, options.loss == "logistic")
        return SharingFit(rows, run, model, options.private, parties=parties, options=options)

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

"""What a private run may keep: its accounting as plain data, and its history without the times, which tell of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from cvxpriv.errors import DataError
from cvxpriv.privacy.accounting import Accounting, Claim
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.saved import read_run
from cvxpriv.schedules.history import History

__all__ = ["accounting_document", "accounting_of", "finite_or_none", "history_of_loop", "none_as_infinite", "read_fit"]

#: Columns of a history that nothing public is in.
_HIDDEN = ["block", "seconds", "engine", "solver", "status"]


def accounting_document(accounting: Accounting) -> dict[str, Any]:
    """Return an accounting as plain data, which JSON can hold: an infinite epsilon or mu is None.

    Examples
    --------
    >>> from cvxpriv.privacy import account
    >>> found = account([0.1, 0.2], 1e-5, neighbours="one row replaced")
    >>> accounting_of(accounting_document(found)) == found
    True
    """
    document = asdict(accounting)
    document["mu"] = finite_or_none(accounting.mu)
    document["claims"] = [{**one, "epsilon": finite_or_none(one["epsilon"])} for one in document["claims"]]
    return document


def accounting_of(document: Mapping[str, Any]) -> Accounting:
    """Return the accounting that `accounting_document` described."""
    claims = tuple(Claim(**{**one, "epsilon": none_as_infinite(one["epsilon"])}) for one in document["claims"])
    return Accounting(**{**document, "claims": claims, "mu": none_as_infinite(document["mu"])})


def history_of_loop(log: History, loop: str) -> pd.DataFrame:
    """Return what a loop measured, one row an iteration, without who solved what and in which time."""
    if not log.records:
        return pd.DataFrame()
    table = log.frame(0)
    return table[table["block"] == loop].drop(columns=_HIDDEN).reset_index(drop=True)


def read_fit(path: PathLike, model: str, *, private: bool) -> dict[str, Any]:
    """Return the document of a model's saved run, private or not.

    Raises
    ------
    DataError
        See `read_run`; or the run is of the other kind.
    """
    document = read_run(path, model)
    if bool(document.get("private")) is not private:
        kind = "is not private" if private else "is private"
        raise DataError(f"path={str(path)!r} holds a run of {model} that {kind}: read it by cvxpriv.load")
    return document


def finite_or_none(value: float) -> float | None:
    """Return a number as JSON holds it: None where it is not finite."""
    return float(value) if np.isfinite(value) else None


def none_as_infinite(value: float | None) -> float:
    """Return the number that `finite_or_none` wrote, where it was finite or inf."""
    return float("inf") if value is None else value

"""What a command that learns holds: rows, a fitted linear model, how it scores, and what is guaranteed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from cvxpriv.certify.check import CrossCheck
from cvxpriv.cli.rows import Rows
from cvxpriv.errors import NotConverged
from cvxpriv.learning.linear import LinearFit
from cvxpriv.learning.scores import Scores, scores_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Accounting
from cvxpriv.reports.files import PathLike

if TYPE_CHECKING:
    from pathlib import Path

    from cvxpriv.reports.facts import Facts

__all__ = ["Fit", "Model", "scored"]


@dataclass(frozen=True)
class Model:
    """One fitted model, and how it scores on the rows held out.

    Attributes
    ----------
    name : str
        For people: "all parties together".
    linear : LinearFit
        Over the encoded columns; 0 where the model does not see one.
    margin : ndarray, (held out,)
        Its predictions there.
    scores : Scores, optional
        None where no rows are held out.
    """

    name: str
    linear: LinearFit
    margin: Array
    scores: Scores | None


def scored(name: str, linear: LinearFit, rows: Rows, log_odds: bool) -> Model:
    """Return a model with its scores on the rows held out."""
    margin = linear.margin(rows.test_x)
    scores = scores_of(rows.test_y, margin, log_odds=log_odds) if rows.test_y.size else None
    return Model(name, linear, margin, scores)


@dataclass
class Fit(ABC):
    """A model fitted to rows, and all that a command shows of it.

    Attributes
    ----------
    rows : Rows
    run : object
        What the model's `solve` or `solve_private` returned.
    model : Model
    private : bool
    compared : list of Model
        Other models, fitted without privacy; empty in a private fit, as their scores would tell of the rows.
    check : CrossCheck, optional
    interrupted : bool
    """

    rows: Rows
    run: Any
    model: Model
    private: bool
    compared: list[Model] = field(default_factory=list)
    check: CrossCheck | None = None
    interrupted: bool = False

    @abstractmethod
    def figures(self) -> dict[str, object]:
        """Return what the model says of its run, as JSON holds it; nothing unreleased in a private fit."""

    @abstractmethod
    def text(self) -> str:
        """Return what the terminal says."""

    @abstractmethod
    def report(self) -> Facts:
        """Return the page."""

    @property
    @abstractmethod
    def statements(self) -> tuple[str, ...]:
        """What is guaranteed and what is not, one sentence or two each, the guarantee first."""

    @property
    def shows_coefficients(self) -> bool:
        """Whether files may hold the coefficients."""
        return True

    @property
    def accounting(self) -> Accounting | None:
        """What the releases of a private fit guarantee together."""
        return self.run.accounting if self.private else None

    @property
    def models(self) -> list[Model]:
        """The model and those it is compared with."""
        return [self.model, *self.compared]

    @property
    def history(self) -> pd.DataFrame:
        """The run's history; that of a private run has no times and no unreleased figures."""
        table: pd.DataFrame = self.run.history
        return table

    @property
    def coefficients(self) -> pd.DataFrame:
        """One row an encoded column, and the intercept last: feature, coefficient.

        Of columns from 0 to 1: the run's own are larger where the rows are scaled (`Encoding.scaled`).
        """
        names, linear = [*self.rows.encoding.features, "(intercept)"], self.model.linear
        own = linear.coefficients / self.rows.encoding.divisor
        return pd.DataFrame({"feature": names, "coefficient": [*own, linear.intercept]})

    def save(self, path: PathLike) -> Path:
        """Write the run as its model saves it."""
        written: Path = self.run.save(path)
        return written

    @property
    def about_bounds(self) -> tuple[str, ...]:
        """What a private fit has to say of bounds that were read off its rows, of rows left out, or of scores."""
        said = []
        if self.rows.dropped:
            said.append(
                "which rows were left out, and so how many there are, counts as public: the guarantee is for rows that "
                "lack nothing"
            )
        if self.rows.encoding.read_off:
            names = ", ".join(self.rows.encoding.read_off)
            said.append(f"the bounds of {names} were read off the rows: the guarantee does not cover them")
        if self.model.scores is not None:
            said.append(
                "the scores are of other people's rows, held out of the fit: the guarantee does not cover those"
            )
        return tuple(said)

    def raise_if_not_converged(self) -> None:
        """Raise where a fit that is not private missed its tolerance.

        Raises
        ------
        NotConverged
        """
        if not self.private and not self.run.converged:
            raise NotConverged(
                f"the KKT residual is {self.run.kkt.largest:.1e} after {self.run.iterations} iterations, above "
                f"tol={self.run.settings.tol:g}: raise --max-iter, or allow a larger --tol"
            )

    def document(self) -> dict[str, object]:
        """Return the findings as JSON holds them."""
        claims = None
        if self.accounting is not None:
            valid = any(claim.holds for claim in self.accounting.claims)
            claims = {
                "epsilon": self.accounting.epsilon if valid else None,
                "delta": self.accounting.delta if valid else None,
                "neighbours": self.accounting.neighbours,
                "releases": self.accounting.releases,
                "rules": [asdict(claim) for claim in self.accounting.claims],
            }
        scores = {one.name: None if one.scores is None else asdict(one.scores) for one in self.models}
        return {
            "rows": self.rows.document(),
            "private": self.private,
            "scores": scores,
            **self.figures(),
            "accounting": claims,
            "statements": self.statements,
            "interrupted": self.interrupted,
        }


def settings_of(run: Any) -> Mapping[str, object]:
    """Return the options that decided a run, by name."""
    return {name.replace("_", " "): value for name, value in asdict(run.settings).items()}

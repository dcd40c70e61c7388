"""A model fitted to encoded rows: how it is posed, what it is compared with, and what is said of it beside its run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import pandas as pd

from cvxpriv.certify.check import CrossCheck
from cvxpriv.learning.linear import LinearFit
from cvxpriv.learning.rows import Rows
from cvxpriv.learning.scores import Scores, scores_of
from cvxpriv.numerics.arrays import Array
from cvxpriv.reports.facts import Fact, Section
from cvxpriv.runs.options import Option
from cvxpriv.tables.frames import names_in

__all__ = ["Columns", "Fit", "Scored"]

Columns = Annotated[
    tuple[str, ...] | None,
    Option(
        "Columns to learn from.",
        kind="tuple of str",
        usual="all but the label",
        metavar="A,B,...",
        read=names_in,
    ),
]


@dataclass(frozen=True)
class Scored:
    """A fitted linear model, and how it scores on the rows held out.

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


@dataclass(kw_only=True, eq=False)
class Fit(ABC):
    """A model fitted to rows. A subclass belongs to one model, and declares its layout: parties, a graph.

    Attributes
    ----------
    rows : Rows
    private : bool
    intercept : bool
    model : object
        The posed model.
    solving : mapping of str to object
        The options of its `solve` or `solve_private` that were given.
    run : object
        What its `solve` or `solve_private` returned.
    scored : list of Scored
        The run first, then what it is compared with: fits without privacy, so none beside a private one.
    check : CrossCheck, optional
    interrupted : bool
    """

    #: Whether rows are divided by the square root of the number of columns.
    scaled: ClassVar[bool] = True
    #: Options of `solve_private` of which one asks for privacy.
    budgets: ClassVar[tuple[str, ...]] = ("epsilon",)
    #: What stands for an option that is not given, in words, where it is not the model's own default.
    usual: ClassVar[Mapping[str, str]] = {}
    #: Options that the rows decide.
    decided: ClassVar[frozenset[str]] = frozenset({"row_bound"})
    #: What is fitted: the title of its page, and what its coefficients are.
    title: ClassVar[str]
    coefficients_text: ClassVar[str] = (
        "What a column adds to the prediction, the log odds of a logistic loss, where it goes from the lower end of "
        "its range to the upper one."
    )

    rows: Rows
    private: bool
    intercept: Annotated[bool, Option("Fit an intercept.")] = True
    model: Any = field(default=None, init=False)
    solving: Mapping[str, Any] = field(default_factory=dict, init=False)
    run: Any = field(default=None, init=False)
    scored: list[Scored] = field(default_factory=list, init=False)
    check: CrossCheck | None = field(default=None, init=False)
    interrupted: bool = field(default=False, init=False)

    @classmethod
    def reads(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return which columns are read: to learn from, `columns`, and `beside` these. It is asked before any row is.

        Raises
        ------
        DataError, ModelError, PrivacyError
            An option is wrong whatever the rows are.
        """
        return {"columns": given["columns"]}

    @abstractmethod
    def pose(self, kind: Any, options: Mapping[str, Any]) -> None:
        """Set `model`: one of class `kind` on the rows, with options of its `__init__`."""

    @abstractmethod
    def public_numbers(self) -> dict[str, Any]:
        """Return the options of `solve_private` that follow from the encoding or are usual; `solving` replaces them."""

    @abstractmethod
    def linear(self, run: Any) -> LinearFit:
        """Return a run's coefficients in the order of the encoded columns."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the run's model is called beside others."""

    @abstractmethod
    def compared(self, kind: Any, options: Mapping[str, Any]) -> list[Scored]:
        """Return other models of the same rows; fitted without privacy."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """What was fitted, up to "predicts": "A linear model of 3 nodes"."""

    @property
    @abstractmethod
    def layout(self) -> list[Fact]:
        """Who holds what, and what poses the problem."""

    def own_facts(self) -> list[Fact]:
        """Return what is known of the run beside other models."""
        return []

    def layout_sections(self) -> list[Section]:
        """Return who holds what, as sections."""
        return []

    def own_sections(self) -> list[Section]:
        """Return what else the model has to say."""
        return []

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """Return what else a program may want."""
        return {}

    @property
    def crosschecked(self) -> str:
        """What a cross-check solved again."""
        return "Each convex block of the method, at the answer,"

    @property
    def released(self) -> str:
        """What a private fit released, in a sentence."""
        found = self.run.accounting
        return f"{found.releases} releases with Gaussian noise, at delta = {found.claims[0].delta:g}."

    @property
    def shows_coefficients(self) -> bool:
        """Whether files may hold the coefficients."""
        return True

    @property
    def more_promises(self) -> Sequence[str]:
        """What is guaranteed and what is not beside what the run says."""
        return ()

    def document(self) -> dict[str, Any]:
        """Return what a file holds of the run, as plain data."""
        found: dict[str, Any] = self.run.document()
        return found

    @property
    def coefficients(self) -> pd.DataFrame:
        """One row an encoded column, and the intercept last: feature, coefficient.

        Of columns from 0 to 1: the run's own are larger where the rows are scaled (`Encoding.scaled`).
        """
        names, linear = [*self.rows.encoding.features, "(intercept)"], self.scored[0].linear
        own = linear.coefficients / self.rows.encoding.divisor
        return pd.DataFrame({"feature": names, "coefficient": [*own, linear.intercept]})

    def score(self, name: str, linear: LinearFit) -> Scored:
        """Return a model with its scores on the rows held out."""
        margin, labels = linear.margin(self.rows.test_x), self.rows.test_y
        log_odds = self.model.problem.loss.name == "logistic"
        return Scored(name, linear, margin, scores_of(labels, margin, log_odds=log_odds) if labels.size else None)

    def found(self, run: Any) -> None:
        """Take a run for what was fitted."""
        self.run = run
        self.scored = [self.score(self.name, self.linear(run))]

"""A model fitted to encoded rows: how it is posed, its comparisons, and the facts beside its run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from cvxpriv.certify.check import CrossCheck
from cvxpriv.learning.labels import LinearFit
from cvxpriv.learning.rows import Rows
from cvxpriv.learning.schema import RELATIONS, relation_of
from cvxpriv.learning.scores import Scores, private_scores, scores_of
from cvxpriv.numerics.arguments import names_in
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import counted
from cvxpriv.privacy import Plan, gaussian_epsilon
from cvxpriv.privacy.gaussian import composed
from cvxpriv.reports.facts import Fact, Section
from cvxpriv.reports.formatting import at_most
from cvxpriv.runs.options import Option

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
    """A fitted linear model with its scores on the held-out rows.

    `name`: A name for readers, such as "all parties together".
    `linear`: The model over the encoded columns; 0 where it does not see one.
    `margin`, (held out,): Its predictions on the held-out rows.
    `scores`: Its scores; None where no rows are held out, or a budget does not cover them.
    """

    name: str
    linear: LinearFit
    margin: Array
    scores: Scores | None


@dataclass(kw_only=True, eq=False)
class Fit(ABC):
    """A model fitted to rows. A subclass belongs to one model and declares its layout, such as parties or a graph.

    `model`: The posed model.
    `solving`: The given options of its `solve` or `solve_private`.
    `run`: The result of its `solve` or `solve_private`.
    `scored`: The run first, then those to compare it with. Other fits are without privacy, so a private run has none.
    """

    #: Whether rows are divided by the square root of the number of columns.
    scaled: ClassVar[bool] = True
    #: Options of `solve_private`; giving one of them asks for privacy.
    budgets: ClassVar[tuple[str, ...]] = ("epsilon",)
    #: Coverage of predictions: whether they follow from what a private fit releases.
    predicts_released: ClassVar[bool] = True
    #: Texts that stand for options that are not given, where these differ from the model's own defaults.
    usual: ClassVar[Mapping[str, str]] = {}
    #: Options that the rows determine.
    decided: ClassVar[frozenset[str]] = frozenset({"row_bound"})
    #: The title of the page, which also names the coefficients.
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
        """Return the columns to read, `columns` to learn from and `beside`, before any row is read.

        Raises DataError, ModelError, PrivacyError: An option is wrong whatever the rows are.
        """
        return {"columns": given["columns"]}

    @classmethod
    @abstractmethod
    def plan(cls, options: Mapping[str, Any], adjacency: str) -> Plan:
        """Return what a private fit with these options of `solve_private` is going to spend."""

    @abstractmethod
    def pose(self, kind: Any, options: Mapping[str, Any]) -> None:
        """Set `model`: one of class `kind` on the rows, with options of its `__init__`."""

    @abstractmethod
    def public_numbers(self) -> dict[str, Any]:
        """Return the options of `solve_private` that follow from the encoding or are usual; `solving` replaces them."""

    @abstractmethod
    def linear(self, run: Any) -> LinearFit:
        """Return a run's linear model over the encoded columns."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the run's model among others."""

    @abstractmethod
    def compared(self, kind: Any, options: Mapping[str, Any]) -> list[Scored]:
        """Return other models of the same rows, fitted without privacy."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """Description of the fit, up to "predicts", such as "A linear model of 3 nodes"."""

    @property
    @abstractmethod
    def layout(self) -> list[Fact]:
        """The layout in words: which party or node holds which data, and the options that pose the problem."""

    def own_facts(self) -> list[Fact]:
        """Return the facts of the run beside other models."""
        return []

    def layout_sections(self) -> list[Section]:
        """Return the layout as sections: which party or node holds which data."""
        return []

    def own_sections(self) -> list[Section]:
        """Return further sections of the model."""
        return []

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """Return further tables for programs."""
        return {}

    @property
    def crosschecked(self) -> str:
        """Description of the problem that a cross-check solved again."""
        return "Each convex block of the method, at the answer,"

    @property
    def released(self) -> str:
        """The release of a private fit, in a sentence."""
        found = self.run.accounting
        return f"{counted(found.releases, 'release')} with Gaussian noise, at delta = {at_most(found.claims[0].delta)}."

    @property
    def shows_coefficients(self) -> bool:
        """Whether files may hold the coefficients."""
        return True

    @property
    def more_promises(self) -> Sequence[str]:
        """Sentences on which guarantees hold and which do not, beyond those of the run."""
        return ()

    def document(self) -> dict[str, Any]:
        """Return the file's record of the run, as plain data."""
        found: dict[str, Any] = self.run.document()
        return found

    @property
    def coefficients(self) -> pd.DataFrame:
        """One row per encoded column, and the intercept last: feature, coefficient.

        They belong to columns from 0 to 1: the run's own are larger where the rows are scaled (`Encoding.scaled`).
        """
        names, linear = [*self.rows.encoding.features, "(intercept)"], self.scored[0].linear
        own = linear.coefficients / self.rows.encoding.divisor
        return pd.DataFrame({"feature": names, "coefficient": [*own, linear.intercept]})

    def score(self, name: str, linear: LinearFit) -> Scored:
        """Return a model with its scores on the held-out rows."""
        margin, labels = linear.margin(self.rows.test_x), self.rows.test_y
        log_odds = self.model.problem.loss.name == "logistic"
        if not labels.size:
            return Scored(name, linear, margin, None)
        if self.budgeted:
            return Scored(name, linear, margin, self._released_scores(labels, margin, log_odds))
        return Scored(name, linear, margin, scores_of(labels, margin, log_odds=log_odds))

    @property
    def budgeted(self) -> bool:
        """Whether a budget covers the rows held out too: then their scores are released with noise, or not at all."""
        return self.private and self.solving.get("budget") is not None

    def _released_scores(self, labels: Array, margin: Array, log_odds: bool) -> Scores | None:
        """Return noisy scores that the fit's own entry in the budget covers, or None where there are none.

        A row is learned from or held out. The scores have the Gaussian part of the fit's plan, so that a row of either
        kind is covered by what the fit spent (parallel composition).
        """
        options = {**self.public_numbers(), **self.solving}
        relation, delta = relation_of(self.rows.known, options.get("adjacency")), options.get("delta")
        spent = self.plan(options, relation)
        mu = composed([entry.mu for entry in spent.releases if entry.mu is not None])
        if not (self.predicts_released and mu and delta and relation in RELATIONS):
            return None
        seed = options.get("noise_seed")
        found = private_scores(
            labels,
            margin,
            epsilon=gaussian_epsilon(delta=delta, mu=mu) * (1.0 - 1e-9),
            delta=delta,
            adjacency=relation,
            noise_seed=None if seed is None else seed + 1,
        )
        return Scores(found.accuracy, found.log_loss if log_odds else None, None, labels.size)

    def found(self, run: Any) -> None:
        """Take a run as the result of the fit."""
        self.run = run
        self.scored = [self.score(self.name, self.linear(run))]

    def constant(self) -> list[Scored]:
        """Return the best model without columns: the classes' shares of the held-out rows, for every one of them.

        A fit that does not beat it has learned nothing. There is none for noisy scores, nor for rows of one class.
        """
        share = float((self.rows.test_y > 0.0).mean()) if self.rows.test_y.size else 0.0
        if self.budgeted or not 0.0 < share < 1.0:
            return []
        shares = LinearFit(np.zeros(self.rows.test_x.shape[1]), math.log(share / (1.0 - share)))
        return [self.score("no column, the larger class", shares)]

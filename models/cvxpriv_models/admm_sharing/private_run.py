"""What a private fit returns: `PrivateSharingRun`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from cvxpriv.errors import DataError, PrivacyError
from cvxpriv.numerics.arguments import require_counts, require_seed
from cvxpriv.numerics.arrays import Values
from cvxpriv.penalties import L2, loss_named
from cvxpriv.privacy import Accounting, Release, ledger_document, ledger_of
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.learning_run import PrivateLearningRun
from cvxpriv.runs.private_records import accounting_document, accounting_of, finite_or_none, none_as_infinite, read_fit
from cvxpriv.runs.saved import write_run

from . import algorithm
from .algorithm import Posed
from .blocks import centre
from .labels import LABELS, flip_probability, unbiased
from .private_settings import FOR_LABELS, PrivateSettings
from .problem import Problem
from .run import ROWS, Fitted, sampled
from .schemes import scheme_named

if TYPE_CHECKING:
    from cvxpriv.certify.check import CrossCheck

__all__ = ["AT_HOME", "DEGENERATE", "LEAK", "SEEDED", "NotPrivate", "PrivateSharingRun"]

AT_HOME = (
    "the guarantee is about what parties send each other while they fit; each party's coefficients are exact and stay "
    "with it: to publish them, or predictions, is a release of its own"
)
LEAK = (
    "labels='shared': every party knows every label, and the broadcast dual shows them to whoever sees it; "
    "labels='held' protects them"
)
DEGENERATE = (
    "noise='printed' gives no differential privacy at any delta < 1: D_m xi lies in the range of D_m, which moves with "
    "the data, so that one release tells two candidates for D_m apart with certainty; use noise='gaussian'"
)
SEEDED = "noise from a seed: the guarantee holds only while the seed is secret"


@dataclass(frozen=True, eq=False)
class NotPrivate(Fitted):
    """What a private fit gives and no guarantee covers: coefficients, predictions, times.

    Coefficients are the mean over the passes since the first release. Each party computes its own, and keeps them.

    Attributes
    ----------
    seconds : float
        Not in a file.
    """

    seconds: float = float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateSharingRun(PrivateLearningRun):
    """What a private fit came to: what was released, and behind `not_private` what was not.

    Attributes
    ----------
    loss_name : str
    classes : ndarray, (2,), optional
        The labels as the user gave them, of -1 and of 1; None for a residual loss.
    columns : tuple of int
        Of each party.
    settings : PrivateSettings
    accounting : Accounting
        Of the ledger: exact composition, the looser constraints beside it, and Corollary 1 as printed.
    ledger : tuple of Release
        Every release: of which party in which pass, what it costs, and whom.
    released : mapping of str to ndarray
        What everyone knows at the end: `v/m` (N,), `z`, `y`, `noise/m`, `sensitivity/m`, `kept/m`, the `weights`, and
        the `labels` that the centre used: public ones, or flipped ones, which its dual shows.
    warnings : tuple of str
        What the guarantee does not cover.
    history : DataFrame
        One row a pass, public figures only: iteration, gap (||S - z||), and of each party noise, sensitivity and the
        part kept.
    hidden : NotPrivate, optional
        See `not_private`.
    interrupted : bool
        Whether the keyboard or a callback ended the run; the accounting is then of what was released.
    """

    model: ClassVar[str] = "ADMMSharing"

    loss_name: str
    classes: np.ndarray | None
    columns: tuple[int, ...]
    settings: PrivateSettings
    accounting: Accounting
    ledger: tuple[Release, ...]
    released: Values
    warnings: tuple[str, ...]
    history: pd.DataFrame = field(repr=False)
    hidden: NotPrivate | None = field(default=None, repr=False)
    interrupted: bool = False

    def own_promises(self) -> tuple[str, ...]:
        """See `PrivateLearningRun`."""
        return self.warnings

    @property
    def not_private(self) -> NotPrivate:
        """Coefficients and predictions, **which the guarantee does not cover** (see `warnings`).

        It is for whoever may see all parties' coefficients, as in a simulation.

        Raises
        ------
        PrivacyError
            The run was read from a file that was written without them.
        """
        if self.hidden is None:
            raise PrivacyError(
                "the file of this run holds what was released, and no coefficients: each party keeps its own; "
                "save(path, not_private=True) writes them"
            )
        return self.hidden

    def certify(
        self,
        solvers: Sequence[str] | None = ("CLARABEL", "ECOS", "SCS"),
        rows: int | None = ROWS,
        seed: int = 0,
        *,
        model: Posed | None = None,
        **options: Any,
    ) -> CrossCheck:
        """Pose the step that would follow the last release again, to every solver, and judge the answers.

        The centre's step reads released values alone. A party's step reads its columns too, which a private run does
        not keep: with the `model` they are posed as well.

        Parameters
        ----------
        solvers : sequence of str, optional
            None is every installed solver that takes the block's cones.
        rows, seed
            See `SharingRun.certify`.
        model : ADMMSharing, optional
            The one that was fitted.
        **options
            Passed to `cvxpriv.certify.check.crosscheck`.

        Raises
        ------
        DataError
            The model has other rows or columns than the fit.
        ModelError
            The loss is a user's own, and known by its name only.
        """
        from cvxpriv.certify.check import case_of_block, crosscheck

        require_counts(rows=rows)
        require_seed(seed)
        scheme = scheme_named(self.settings.scheme)
        problem = self._problem()
        view: Values = {**self.released, "rho": np.asarray(self.settings.rho)}
        cases = []
        if model is not None:
            self._require_fitted(model)
            view = {**view, **{f"x/{m}": x for m, x in enumerate(self.not_private.coefficients)}}
            blocks = algorithm.blocks(model.problem, scheme, model.factors, model.constraints)
            cases = [case_of_block(block, view) for name, block in blocks.items() if name != "z"]
        if problem.loss.expression is not None:
            problem, view = sampled(problem, view, rows, seed)
            cases.append(case_of_block(centre(problem, scheme), view))
        return crosscheck(cases, solvers, **options)

    def save(self, path: PathLike, *, not_private: bool = False) -> Path:
        """Write the run to a JSON file, whole or not at all: what was released.

        Parameters
        ----------
        path : path
        not_private : bool
            Write every party's coefficients too, **which the guarantee does not cover**.
        """
        hidden = {"not_private": [x.tolist() for x in self.not_private.coefficients]} if not_private else {}
        document = {
            **hidden,
            "columns": self.columns,
            "loss": self.loss_name,
            "classes": None if self.classes is None else self.classes.tolist(),
            "private": True,
            "settings": _settings_document(self.settings),
            "accounting": accounting_document(self.accounting),
            "ledger": ledger_document(self.ledger),
            "released": {name: values.tolist() for name, values in self.released.items()},
            "warnings": self.warnings,
            "history": self.history.to_dict(orient="list"),
            "interrupted": self.interrupted,
        }
        return write_run(path, "ADMMSharing", document)

    @classmethod
    def load(cls, path: PathLike) -> PrivateSharingRun:
        """Read what `save` wrote.

        Raises
        ------
        DataError
            No such file, not a saved run of sharing, or of another version.
        """
        document = read_fit(path, "ADMMSharing", private=True)
        classes, settings = document["classes"], document["settings"]
        infinite = {name: none_as_infinite(settings[name]) for name in ("clip", "clip_entries")}
        bounds = tuple(none_as_infinite(bound) for bound in settings["bounds"])
        labels = None if classes is None else np.array(classes)
        hidden = document.get("not_private")
        return cls(
            loss_name=document["loss"],
            classes=labels,
            columns=tuple(document["columns"]),
            hidden=None if hidden is None else NotPrivate([np.array(x) for x in hidden], document["loss"], labels),
            settings=PrivateSettings(**{**settings, **infinite, "bounds": bounds}),
            accounting=accounting_of(document["accounting"]),
            ledger=ledger_of(document["ledger"]),
            released={name: np.array(values) for name, values in document["released"].items()},
            warnings=tuple(document["warnings"]),
            history=pd.DataFrame(document["history"]),
            interrupted=document["interrupted"],
        )

    def _problem(self) -> Problem:
        """The problem as the centre knows it: everything but the parties' columns."""
        labels, loss = self.released[LABELS], loss_named(self.loss_name)
        if self.settings.labels == "held":
            loss = unbiased(loss, flip_probability(FOR_LABELS * self.settings.epsilon))
        unknown = tuple(np.zeros((labels.size, 0)) for _ in self.columns)
        none = (L2(0.0),) * len(unknown)
        return Problem(unknown, labels, loss, none, 0.0, self.released["weights"])

    def _require_fitted(self, model: Posed) -> None:
        shapes = [part.shape for part in model.problem.parts]
        expected = [(self.released[LABELS].size, columns) for columns in self.columns]
        if shapes != expected:
            raise DataError(f"model has parts of shapes {shapes}, the fit {expected}: pass the model that was fitted")


def _settings_document(settings: PrivateSettings) -> dict[str, Any]:
    """Return the settings as JSON holds them: a bound that is infinite is None."""
    document = asdict(settings)
    for name in ("clip", "clip_entries"):
        document[name] = finite_or_none(document[name])
    document["bounds"] = [finite_or_none(bound) for bound in settings.bounds]
    return document

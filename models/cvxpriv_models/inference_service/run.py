"""What a solve of inference as a service returns: `InferenceRun`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cvxpriv.block import Block
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.errors import DataError, ModelError
from cvxpriv.files import PathLike
from cvxpriv.history import History
from cvxpriv.kkt import Residuals
from cvxpriv.mechanism import Mechanism, provenance
from cvxpriv.runs import read_run, write_run
from cvxpriv.state import Array, Values
from cvxpriv.tables.documents import table_document, table_of

from . import algorithm, kkt
from .algorithm import Options
from .convergence import Moduli, moduli
from .figures import Rules
from .kkt import PointResiduals
from .problem import Problem

if TYPE_CHECKING:
    from cvxpriv.crosschecks.check import CrossCheck

__all__ = ["InferenceRun", "Settings"]

#: A mechanism that tells less than this about S is the trivial one.
NOTHING = 1e-9


@dataclass(frozen=True)
class Settings:
    """The options of `InferenceAsService.solve` that decide its result."""

    algorithm: str
    engine: str
    starts: int
    seed: int
    options: Options


@dataclass(frozen=True, eq=False)
class InferenceRun:
    """The best of a solve's starts.

    Attributes
    ----------
    problem : Problem
    state : mapping of str to ndarray
        The final state of the best start, without a leading axis.
    starts : DataFrame
        One row per start: origin, objective, accuracy, leakage, kkt, iterations (outer), converged.
    start : int
        Which start is the best.
    settings : Settings
    seconds : float
        Wall time of the whole solve.
    log : History
    rules : tuple of (str, Rule)
    note : str
        What a reader must know of the answer; empty when there is nothing.
    interrupted : bool
        Whether the keyboard or a callback ended the solve.
    """

    problem: Problem
    state: Values
    starts: pd.DataFrame
    start: int
    settings: Settings
    seconds: float
    log: History = field(default_factory=History, repr=False)
    rules: Rules = ()
    note: str = ""
    interrupted: bool = False

    @property
    def mechanism(self) -> Array:
        """P(U|Y), (|Y|, |U|), rows sum to 1."""
        return self.state["mechanism"]

    @cached_property
    def accuracy(self) -> float:
        """I(S;U) in nats."""
        return self.problem.accuracy(self.mechanism)

    @cached_property
    def leakage(self) -> float:
        """E[f(p(u)/p(u|y))]."""
        return self.problem.leakage(self.mechanism)

    @property
    def objective(self) -> float:
        """IAS (1): accuracy - beta * leakage."""
        return self.accuracy - self.problem.beta * self.leakage

    @property
    def trivial(self) -> bool:
        """Whether U tells nothing of S."""
        return self.accuracy <= NOTHING

    @property
    def converged(self) -> bool:
        """Whether the best start's KKT residual is within the tolerance asked for; with rules, or else its gap.

        A solver's point is right to about 1e-8 in value, and its residual then to the root of that.
        """
        met = bool(self.starts.at[self.start, "converged"])
        return met or (bool(self.rules) and not self.interrupted and self.gap <= self.settings.options.tol)

    @cached_property
    def gap(self) -> float:
        """By how much some mechanism can be better while the server reads U as it does now: F* - F of IAS (10).

        A certified bound of that; with rules NaN where no solver's dual certifies one.
        """
        from .gap import certified_gap

        return certified_gap(self.problem, self.state, self.rules)

    @property
    def iterations(self) -> int:
        """Outer steps of the best start."""
        return int(self.starts["iterations"].iloc[self.start])

    @property
    def history(self) -> pd.DataFrame:
        """The best start, step by step: iteration, block, objective, accuracy, leakage, kkt, seconds, engine, ..."""
        return self.log.frame(self.start)

    @cached_property
    def kkt(self) -> PointResiduals | Residuals:
        """The whole problem's residuals at the mechanism.

        With user rules: those of the joint block at its own point, which stays there iff the point is stationary.
        """
        if self.rules:
            return self.blocks()["joint"].residual(self.state, self.state)
        return kkt.residuals(self.problem, self.mechanism[None]).of(0)

    @property
    def moduli(self) -> Moduli:
        """The constants that the convergence proof of Bregman ADMM asks for, l_g among them."""
        return moduli(self.problem, self.settings.options.c, self.settings.options.rho)

    def blocks(self) -> dict[str, Block]:
        """The model's blocks, with the constraints added so far."""
        return algorithm.blocks(self.problem, self.settings.options.rho, self.rules)

    def certify(self, solvers: Sequence[str] | None = ("CLARABEL", "ECOS", "SCS"), **options: Any) -> CrossCheck:
        """Solve every block again at the final point by every solver, and judge the answers.

        Parameters
        ----------
        solvers : sequence of str, optional
            None is every installed solver that takes the block's cones.
        **options
            Passed to `cvxpriv.crosschecks.check.crosscheck`.
        """
        from cvxpriv.crosschecks.check import case_of_block, crosscheck

        return crosscheck([case_of_block(block, self.state) for block in self.blocks().values()], solvers, **options)

    def as_mechanism(self) -> Mechanism:
        """Return the mechanism with its alphabets and figures, ready to be saved and applied to rows.

        What is inferred is no private column of it: a release needs the data's columns only, and may keep S beside U to
        train a server on. The figures then do not cover S.
        """
        table = self.problem.table
        facts = {name: value for name, value in asdict(self.settings).items() if name != "options"}
        return Mechanism(
            self.mechanism,
            inputs=table.public,
            outputs=[f"u{index}" for index in range(self.problem.size_u)],
            model="InferenceAsService",
            figures={
                "accuracy": self.accuracy,
                "leakage": self.leakage,
                "objective": self.objective,
                "beta": self.problem.beta,
                "kkt": self.kkt.largest,
            },
            origin=provenance(
                divergence=self.problem.divergence.name,
                inferred=", ".join(table.private.columns),
                constraints=", ".join(name for name, _ in self.rules),
                **facts,
            ),
        )

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all.

        The file holds the joint table, unlike that of `as_mechanism`: keep it where the table is kept. User rules and a
        user's own divergence are code and are not saved; a divergence is saved by name.
        """
        document = {
            **table_document(self.problem.table),
            "beta": self.problem.beta,
            "divergence": self.problem.divergence.name,
            "size_u": self.problem.size_u,
            "floor": self.problem.floor,
            "state": {name: np.asarray(value).tolist() for name, value in self.state.items()},
            "starts": self.starts.to_dict(orient="list"),
            "start": self.start,
            "settings": asdict(self.settings),
            "seconds": self.seconds,
            "note": self.note,
            "constraints": [name for name, _ in self.rules],
        }
        return write_run(path, "InferenceAsService", document)

    @classmethod
    def load(cls, path: PathLike, own: FDivergence | None = None) -> InferenceRun:
        """Read what `save` wrote; the history and the user's rules are not in it.

        Parameters
        ----------
        path : path
        own : FDivergence, optional
            The divergence of the run, if it was a user's own.

        Raises
        ------
        DataError
            No such file, not a saved run, of another version, or with a divergence that is not known here.
        """
        document = read_run(path)
        problem = Problem(
            table_of(document), document["beta"], _divergence(document, own), document["size_u"], document["floor"]
        )
        settings = dict(document["settings"])
        return cls(
            problem,
            {name: np.array(value) for name, value in document["state"].items()},
            pd.DataFrame(document["starts"]).rename_axis("start"),
            document["start"],
            Settings(**{**settings, "options": Options(**settings["options"])}),
            document["seconds"],
            note=document["note"],
        )


def _divergence(document: dict[str, Any], own: FDivergence | None) -> FDivergence:
    name = document["divergence"]
    if own is not None and own.name == name:
        return own
    try:
        return divergence(name)
    except ModelError as error:
        raise DataError(
            f"the run's divergence {name!r} is not built in: pass it to InferenceRun.load(path, own=...)"
        ) from error

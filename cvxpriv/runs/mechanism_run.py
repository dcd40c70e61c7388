"""What every model that designs a mechanism returns: the best of its starts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import pandas as pd

from cvxpriv.blocks.block import Block
from cvxpriv.blocks.declaration import Constraint
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.schedules.history import History
from cvxpriv.tables.documents import table_document
from cvxpriv.tables.joint import JointTable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from cvxpriv.certify.check import CrossCheck

__all__ = ["MechanismRun", "restored"]


class OnTable(Protocol):
    """The data of a model: among them the joint table of what is private and what the mechanism sees."""

    @property
    def table(self) -> JointTable: ...


Problem = TypeVar("Problem", bound=OnTable)
Settings = TypeVar("Settings", bound="DataclassInstance")


@dataclass(frozen=True, eq=False)
class MechanismRun(ABC, Generic[Problem, Settings]):
    """The best of a solve's starts.

    Attributes
    ----------
    problem : Problem
    state : mapping of str to ndarray
        The final state of the best start, without a leading axis.
    starts : DataFrame
        One row per start; among the columns origin, kkt, iterations, converged, and the model's figures in nats.
    start : int
        Which start is the best.
    settings : Settings
    seconds : float
        Wall time of the whole solve.
    log : History
    constraints : tuple of (str, Constraint)
        The user's constraints.
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
    constraints: tuple[tuple[str, Constraint], ...] = ()
    interrupted: bool = False

    @property
    @abstractmethod
    def mechanism(self) -> Array:
        """The channel, one row an input, rows sum to 1."""

    @abstractmethod
    def blocks(self) -> dict[str, Block]:
        """The model's blocks, with the constraints added so far."""

    @abstractmethod
    def as_mechanism(self) -> Mechanism:
        """Return the mechanism with its alphabets and figures, ready to be saved and applied to rows."""

    @property
    def converged(self) -> bool:
        """Whether the best start's KKT residual is within the tolerance asked for."""
        return bool(self.starts["converged"].iloc[self.start])

    @property
    def iterations(self) -> int:
        """Of the best start."""
        return int(self.starts["iterations"].iloc[self.start])

    @property
    def history(self) -> pd.DataFrame:
        """The best start, step by step: iteration, block, the model's figures, kkt, seconds, engine, solver, status."""
        return self.log.frame(self.start)

    def certify(self, solvers: Sequence[str] | None = ("CLARABEL", "ECOS", "SCS"), **options: Any) -> CrossCheck:
        """Solve every block again at the final point by every solver, and judge the answers.

        Parameters
        ----------
        solvers : sequence of str, optional
            None is every installed solver that takes the block's cones.
        **options
            Passed to `cvxpriv.certify.check.crosscheck`.
        """
        from cvxpriv.certify.check import case_of_block, crosscheck

        return crosscheck([case_of_block(block, self.state) for block in self.blocks().values()], solvers, **options)

    def saved(self) -> dict[str, Any]:
        """Return what a file of any such run holds: the table, the state and the starts; constraints by name only."""
        return {
            **table_document(self.problem.table),
            "state": {name: np.asarray(value).tolist() for name, value in self.state.items()},
            "starts": self.starts.to_dict(orient="list"),
            "start": self.start,
            "settings": asdict(self.settings),
            "seconds": self.seconds,
            "constraints": [name for name, _ in self.constraints],
        }


def restored(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a run that `MechanismRun.saved` wrote, but for the problem and the settings."""
    return {
        "state": {name: np.array(value) for name, value in document["state"].items()},
        "starts": pd.DataFrame(document["starts"]).rename_axis("start"),
        "start": document["start"],
        "seconds": document["seconds"],
    }

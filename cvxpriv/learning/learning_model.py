"""The face of a model that learns from rows, as the command line and `cvxpriv.load` use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from cvxpriv.certify.cases import Case
from cvxpriv.learning.fit import Fit
from cvxpriv.numerics.doors import door
from cvxpriv.reports.files import PathLike
from cvxpriv.runs.learning_run import LearningRun, PrivateLearningRun


@door
class LearningModel(ABC):
    """A model that learns from rows, with or without privacy.

    A subclass declares its options in the signatures of `__init__`, `solve` and `solve_private`; the command line is
    made from them.
    """

    #: The kind of command that the model has, and its name.
    task: ClassVar[str] = "learning"
    command: ClassVar[str]
    #: The class of fits of the model to encoded rows.
    on_rows: ClassVar[type[Fit]]
    #: The classes of runs that `solve` and `solve_private` return.
    runs: ClassVar[tuple[type[LearningRun], type[PrivateLearningRun]]]

    @abstractmethod
    def solve(self, *args: Any, **options: Any) -> LearningRun:
        """Fit without privacy."""

    @abstractmethod
    def solve_private(self, *args: Any, **options: Any) -> PrivateLearningRun:
        """Fit with differential privacy."""

    @staticmethod
    @abstractmethod
    def example_cases() -> list[Case]:
        """Return blocks at answers, which `cvxpriv crosscheck --all` checks."""

    @classmethod
    def run_of(cls, document: Mapping[str, Any], path: PathLike) -> LearningRun | PrivateLearningRun:
        """Return the run that a file holds, private or not; `cvxpriv.load` calls it."""
        clear, private = cls.runs
        return private.opened(document, path) if document.get("private") else clear.opened(document, path)

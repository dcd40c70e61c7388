"""The base of every model's result: a run has facts, and is certified, drawn, saved and read again."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cvxpriv.certify.cases import Case
from cvxpriv.certify.check import CrossCheck, crosscheck
from cvxpriv.errors import DataError
from cvxpriv.numerics.doors import door
from cvxpriv.reports.facts import Facts
from cvxpriv.reports.files import PathLike
from cvxpriv.reports.readers import INTERNAL
from cvxpriv.reports.text import facts_html, facts_lines
from cvxpriv.runs.saved import damage_told, read_run, write_run
from cvxpriv.solvers.registry import DEFAULT_CHAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 4
"""Number of facts in the text of a run, one line each."""


@door
class Run(ABC):
    """A run of a model; a subclass is a dataclass of its results."""

    #: The model's name in `cvxpriv.models`.
    model: ClassVar[str]

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.model}\n{facts_lines(self.facts.main[:SHOWN])}"

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, self.model, self.facts.main)

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """The facts of the run: numbers with unit and sentence, tables, pictures, promises."""

    @abstractmethod
    def cases(self) -> list[Case]:
        """Return the blocks at the answer, which `certify` checks; a model may have options that choose among them."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the content of the run's file, as plain data."""

    @classmethod
    @abstractmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Return the run whose `document` a file holds."""

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the run.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. By default a new figure.
        """

    def certify(self, solvers: Sequence[str] | None = DEFAULT_CHAIN, **options: Any) -> CrossCheck:
        """Solve every block again at the final point by every solver, and judge the answers.

        Parameters
        ----------
        solvers : sequence of str, optional
            Names of solvers. None is every installed solver that takes the block's cones.
        **options
            Those of this run's `cases`, which choose among the blocks, and those of `cvxpriv.certify.check.crosscheck`.
        """
        chosen = {name: options.pop(name) for name in inspect.signature(self.cases).parameters if name in options}
        return crosscheck(self.cases(**chosen), solvers, **options)

    def report(self, path: PathLike, page: str = INTERNAL) -> Path:
        """Write the facts to an HTML page.

        Parameters
        ----------
        path : path
        page : {"internal", "shareable"}
            Readers of the page: "shareable" withholds what tells of private data (`cvxpriv.reports.page`).

        Raises
        ------
        DataError
            The file cannot be written, or an unknown page.
        ModelError
            Jinja2 is missing.
        """
        from cvxpriv.reports.page import write

        return write(self.facts, path, page)

    def save(self, path: PathLike) -> Path:
        """Write the run to a JSON file, whole or not at all.

        Raises
        ------
        ModelError
            It holds a user's own code.
        """
        return write_run(path, self.model, self.document())

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a run that `save` wrote; the history is not in the file.

        Raises
        ------
        DataError
            There is no such file, it is not a saved run of this kind, or it has another version.
        """
        return cls.opened(read_run(path, cls.model), path)

    @classmethod
    def opened(cls, document: Mapping[str, Any], path: PathLike, **more: Any) -> Self:
        """Return the run that a file holds, after its claims were compared with its own figures.

        Parameters
        ----------
        document : mapping
            The file's content, as `read_run` returns it.
        path : path
            The file, named in messages.
        **more
            Further arguments of `of_document`, beside the document.

        Raises
        ------
        DataError
            A value is missing or of another kind; or the run's own figures contradict its claims.
        """
        with damage_told(path):
            run = cls.of_document(document, **more)
            if found := run.contradiction():
                raise DataError(f"path={str(path)!r}: {found}: solve again")
        return run

    def contradiction(self) -> str:
        """Return a claim of the file that the run itself contradicts; "" where there is none."""
        return ""

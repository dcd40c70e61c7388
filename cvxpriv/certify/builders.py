"""Problems named on a command line: ``my_problem.py:build``, ``my_problem.py`` or ``package.module:build``."""

from __future__ import annotations

import _thread
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from cvxpriv.errors import CvxprivError, DataError, ModelError, suggest
from cvxpriv.solvers.isolation import TIME_LIMIT


@contextmanager
def _in_time(late: str) -> Iterator[None]:
    """Interrupt a user's code at `TIME_LIMIT`, on the main thread alone.

    `late`: The beginning of the error's sentence.
    """
    ended = threading.Event()

    def end() -> None:
        ended.set()
        _thread.interrupt_main()

    timer = threading.Timer(TIME_LIMIT, end)
    timer.daemon = True
    if threading.current_thread() is threading.main_thread():
        timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if not ended.is_set():
            raise
        raise DataError(f"{late} within {TIME_LIMIT:g} s: mend it first") from None
    finally:
        timer.cancel()


BUILD = "build"
"""The function that a file alone stands for."""


@dataclass(frozen=True)
class Builder:
    """A function without arguments that returns a cvxpy problem, given by its place.

    It is loaded when it is called, so that it can be sent to another process whatever its module is.

    `source`: An absolute path to a file, or the name of a module. `name`: Name of the function.
    """

    source: str
    name: str

    @property
    def __name__(self) -> str:  # what a cross-check calls the case
        return self.name

    def __call__(self) -> Any:
        function = self.function()
        try:
            with _in_time(f"{self.name} of {self.source} did not return"):
                return function()
        except CvxprivError:
            raise
        except (Exception, SystemExit) as error:  # the user's own code: whatever it raises is about their function
            raise DataError(
                f"{self.name} of {self.source} raised {type(error).__name__}: {error}; "
                "it must take no argument and return a cvxpy problem"
            ) from error

    def function(self) -> Callable[[], Any]:
        """Load the function.

        Raises DataError: There is no such file or module, or it raises an error when it is loaded. ModelError: The file
        or module has no such function.
        """
        with _in_time(f"{self.source} was not loaded"):
            module = load_module(self.source)
        found = getattr(module, self.name, None)
        if not callable(found):
            own = {name: value for name, value in vars(module).items() if name[0] != "_" and callable(value)}
            functions = [name for name, value in own.items() if getattr(value, "__module__", "") == module.__name__]
            meant = f". A file alone means its function {BUILD!r}: write {self.source}:NAME" * (self.name == BUILD)
            raise ModelError(f"{self.source} has no function {self.name!r}: {suggest(self.name, functions)}{meant}")
        loaded: Callable[[], Any] = found
        return loaded


def builder_named(text: str) -> Builder:
    """Return the builder that a text such as ``my_problem.py:build`` names; it is loaded once, as a check.

    A file alone, ``my_problem.py``, means its function ``build``.

    Raises DataError: The text names no place, or the place cannot be loaded. ModelError: There is no such function.

    >>> builder_named("cvxpriv.solvers.registry:installed").name
    'installed'
    """
    source, separator, name = (text, ":", BUILD) if text.endswith(".py") else text.rpartition(":")
    if not (separator and source and name.isidentifier()):
        raise DataError(f"problem={text!r} names no function: write my_problem.py:build, or package.module:build")
    builder = Builder(os.path.abspath(source) if source.endswith(".py") else source, name)
    builder.function()
    return builder


def load_module(source: str) -> ModuleType:
    """Load a module by its name or by the path of its file.

    Raises DataError: There is no such module, or it raises an error when it is loaded.
    """
    try:
        return _from_file(Path(source)) if source.endswith(".py") else importlib.import_module(source)
    except FileNotFoundError as error:
        raise DataError(f"{source!r} cannot be read: check the path") from error
    except (Exception, SystemExit) as error:  # the user's own code may raise anything
        raise DataError(f"{source} cannot be loaded ({type(error).__name__}: {error}): mend it first") from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(path)
    name = f"cvxpriv_problem_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up there
    folder = str(path.parent)
    sys.path.insert(0, folder)  # as if it were run: its neighbours can be imported
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module

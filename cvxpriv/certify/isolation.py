"""A call in a process of its own, with a time limit, so that a crash or a hang there loses nothing here.

Functions and their arguments travel by cloudpickle, so that closures and problems that were never solved can; the
child finds the same modules as its parent. What the child prints is not shown.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cvxpriv.errors import ModelError

__all__ = ["HERE", "TIME_LIMIT", "Ending", "Place", "isolated", "work"]

TIME_LIMIT = 300.0
"""Default time limit in seconds. The start of a process takes about two seconds, which do not count."""
START = 60.0
"""Time limit in seconds for the start of the process."""
_PROGRAM = "import sys; from cvxpriv.certify.isolation import work; work(*sys.argv[1:])"


@dataclass(frozen=True)
class Ending:
    """The ending of an isolated call.

    Attributes
    ----------
    status : str
        ``"returned"``, ``"raised"``, ``"crashed"`` or ``"timed out"``.
    value : object
        The returned value.
    error : str
        The error in a sentence, for any other ending.
    seconds : float
        Wall time of the call.
    """

    status: str
    value: Any = None
    error: str = ""
    seconds: float = float("nan")


@dataclass(frozen=True)
class Place:
    """The place where a solver is called: this process, or a new one for each call.

    Attributes
    ----------
    isolate : bool
    time_limit : float, optional
        Seconds for each call in its process. None is `TIME_LIMIT`.
    """

    isolate: bool = False
    time_limit: float | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Ending:
        """Call a function at the place; in this process its errors are raised."""
        if self.isolate:
            return isolated(function, *arguments, time_limit=self.time_limit)
        begun = time.perf_counter()
        value = function(*arguments)
        return Ending("returned", value, seconds=time.perf_counter() - begun)


HERE = Place()


def isolated(function: Callable[..., Any], *arguments: Any, time_limit: float | None = None) -> Ending:
    """Call a function in a new process and wait for it.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for the call, after which its process is killed. None is `TIME_LIMIT`.

    Raises
    ------
    ModelError
        The function or its arguments cannot be sent to another process, or the limit is not positive.

    Examples
    --------
    >>> isolated(max, 1, 2).value
    2
    """
    limit = TIME_LIMIT if time_limit is None else float(time_limit)
    if not limit > 0.0:
        raise ModelError(f"time_limit={time_limit!r} must be a positive number of seconds")
    with tempfile.TemporaryDirectory(prefix="cvxpriv-") as folder:
        request, begun, answer = (Path(folder) / name for name in ("request", "begun", "answer"))
        request.write_bytes(_packed(function, arguments))
        with open(Path(folder) / "stderr", "w+b") as errors:
            child = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(request), str(begun), str(answer)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
            try:
                started = _started(child, begun)
                clock = time.perf_counter()
                if started:
                    child.wait(limit)
                seconds = time.perf_counter() - clock
            except subprocess.TimeoutExpired:
                return Ending("timed out", error=f"no answer within {limit:g} s", seconds=limit)
            finally:
                if child.poll() is None:
                    child.kill()
                    child.wait()
            if child.returncode == 0 and answer.exists():
                return _read(answer, seconds)
            errors.seek(0)
            return Ending("crashed", error=_epitaph(child.returncode, errors.read()), seconds=seconds)


def work(request: str, begun: str, answer: str) -> None:
    """Do the child's part: read the request, report the start, call, and write the ending."""
    import cvxpy.lin_ops.lin_utils as identifiers

    count, packed = pickle.loads(Path(request).read_bytes())
    # Expressions carry numbers; new ones made here must not repeat those that came.
    identifiers.ID_COUNTER.count = max(identifiers.ID_COUNTER.count, count)
    function, arguments = pickle.loads(packed)
    Path(begun).touch()
    try:
        ending = ("returned", function(*arguments), "")
        packed = pickle.dumps(ending)
    except Exception as error:  # whatever it is, the parent is to hear of it
        packed = pickle.dumps(("raised", None, f"{type(error).__name__}: {error}"))
    partial = Path(f"{answer}.part")
    partial.write_bytes(packed)
    partial.replace(answer)


def _packed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    import cloudpickle
    import cvxpy.lin_ops.lin_utils as identifiers

    try:
        packed = cloudpickle.dumps((function, arguments))
    except Exception as error:  # objects of any package may refuse, each in its own way
        raise ModelError(
            f"the problem cannot be sent to a process of its own ({error}): pass a function of a module that returns "
            "the problem, or isolate=False"
        ) from error
    return pickle.dumps((identifiers.ID_COUNTER.count, packed))


def _started(child: subprocess.Popen[bytes], begun: Path) -> bool:
    """Wait until the call begins; return False if the child ended before."""
    deadline = time.perf_counter() + START
    while not begun.exists():
        if child.poll() is not None:
            return begun.exists()
        if time.perf_counter() > deadline:
            raise subprocess.TimeoutExpired(child.args, START)
        time.sleep(0.005)
    return True


def _read(answer: Path, seconds: float) -> Ending:
    status, value, error = pickle.loads(answer.read_bytes())
    return Ending(status, value, error, seconds)


def _epitaph(code: int, errors: bytes) -> str:
    if code < 0:
        try:
            how = f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            how = f"was killed by signal {-code}"
    else:
        how = f"ended with exit code {code}"
    lines = errors.decode(errors="replace").strip().splitlines()
    last = lines[-1].strip() if lines else ""
    return f"its process {how}" + (f": {last[:200]}" if last else "")

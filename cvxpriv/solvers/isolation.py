"""A call in a process of its own, with a time limit, so that a crash or a hang there loses nothing here.

Functions and their arguments travel by cloudpickle, so that closures and problems that were never solved can; the
child finds the same modules as its parent. What the child prints is not shown.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, TypeVar, cast

from cvxpriv.errors import CvxprivError, ModelError, SolverFailure

Result = TypeVar("Result")

TIME_LIMIT = 300.0
"""Default time limit in seconds. The start of a process takes about two seconds, which do not count."""
START = 60.0
"""Time limit in seconds for the start of the process."""
GRACE = 5.0
"""Seconds that a process has to end by itself once it has said its last."""
KEPT = 32
"""Number of functions that a child keeps with their compiled problems."""
_PROGRAM = "from cvxpriv.solvers.isolation import serve; serve()"
_BEGUN = b"begun"
_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class Ending:
    """The ending of an isolated call.

    `status`: ``"returned"``, ``"raised"``, ``"crashed"`` or ``"timed out"``.
    `value`: The returned value.
    `error`: The error in a sentence, for any other ending.
    `seconds`: Wall time of the call.
    """

    status: str
    value: Any = None
    error: str = ""
    seconds: float = float("nan")


def isolated(function: Callable[..., Any], *arguments: Any, time_limit: float | None = None) -> Ending:
    """Call a function in a new process and wait for it.

    `time_limit`: Seconds for the call, after which its process is killed. None is `TIME_LIMIT`.

    >>> isolated(max, 1, 2).value
    2
    """
    worker = Worker()
    try:
        return worker.call(function, *arguments, time_limit=time_limit)
    finally:
        worker.close()


def answered_apart(
    what: str, function: Callable[..., Result], *arguments: Any, seconds: float, worker: Worker | None = None
) -> Result:
    """Return what a function returns in a process of its own, or raise its typed error here.

    `what`: Its name in messages.
    `seconds`: After them it is ended, wherever it stands.
    `worker`: The process; None: a new one.

    Raises SolverFailure: It did not return in time, or its process ended.

    >>> answered_apart("the sum", sum, (1, 2), seconds=60.0)
    3
    """
    ending = (isolated if worker is None else worker.call)(_typed, function, arguments, time_limit=seconds)
    if ending.status != "returned":
        raise SolverFailure(f"{what} did not come from its process: {ending.error}; raise isolate, or leave it out")
    if isinstance(ending.value, CvxprivError):
        raise ending.value
    return cast(Result, ending.value)


def _typed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return a function's result, or its typed error."""
    try:
        return function(*arguments)
    except CvxprivError as error:
        return error


class Worker:
    """A process that does one call after the other; a call that ends it, or is late, costs a new process for the next.

    A function that comes again finds its own attributes again: a block its compiled problem.
    """

    def __init__(self) -> None:
        self._child: _Child | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_child": None}

    def call(self, function: Callable[..., Any], *arguments: Any, time_limit: float | None = None) -> Ending:
        """Call a function there: see `isolated`."""
        limit = TIME_LIMIT if time_limit is None else float(time_limit)
        if not limit > 0.0:
            raise ModelError(f"time_limit={time_limit!r} must be a positive number of seconds")
        limit = min(limit, threading.TIMEOUT_MAX)  # centuries: a longer wait overflows
        request = _packed(function, arguments)
        if self._child is None:
            self._child = _Child()
        try:
            ending = self._child.answer_to(request, limit)
        except BaseException:  # an interrupt: the late answer is not to be taken for that of the next call
            self.close()
            raise
        if ending.status in ("crashed", "timed out"):
            self.close()
        return ending

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.end()
            self._child = None


class _Child:
    """A running process: requests go to its standard input, and a thread reads its answers."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(self._process.stdout, self._said), daemon=True).start()
        self.end = weakref.finalize(self, _ended, self._process)

    def answer_to(self, request: bytes, limit: float) -> Ending:
        # Written by a thread: a child that reads nothing would hold us at a full pipe.
        threading.Thread(target=_say, args=(self._process.stdin, request), daemon=True).start()
        wait, clock = START, time.perf_counter()
        try:
            if self._said.get(timeout=START) == _BEGUN:
                wait, clock = limit, time.perf_counter()
                if (answer := self._said.get(timeout=limit)) is not None:
                    status, value, error = pickle.loads(answer)
                    return Ending(status, value, error, time.perf_counter() - clock)
        except queue.Empty:
            return Ending("timed out", error=f"no answer within {wait:g} s", seconds=wait)
        seconds = time.perf_counter() - clock
        code = self._code()
        self._errors.seek(0)
        return Ending("crashed", error=_epitaph(code, self._errors.read()), seconds=seconds)

    def _code(self) -> int:
        """Return the exit code of a process that said what it should not, or nothing: it ends now, or is ended."""
        try:
            return self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def serve() -> None:
    """Do the child's part: read a request, report the start, call, and report the ending, until nothing comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to answer
    asked = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as told:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        work(asked, told)


def work(asked: IO[bytes], told: IO[bytes]) -> None:
    """Answer requests of one stream on another."""
    import cvxpy.lin_ops.lin_utils as identifiers

    known: dict[bytes, Any] = {}
    while (request := _read(asked)) is not None:
        count, packed, rest = pickle.loads(request)
        # Expressions carry numbers; new ones made here must not repeat those that came.
        identifiers.ID_COUNTER.count = max(identifiers.ID_COUNTER.count, count)
        function = known.pop(packed) if packed in known else pickle.loads(packed)
        known[packed] = function
        while len(known) > KEPT:
            del known[next(iter(known))]
        arguments = pickle.loads(rest)
        _write(told, _BEGUN)
        _write(told, _outcome(function, arguments))


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps(("returned", function(*arguments), ""))
    except Exception as error:  # whatever it is, the parent is to hear of it
        return pickle.dumps(("raised", None, f"{type(error).__name__}: {error}"))


def _packed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    import cloudpickle
    import cvxpy.lin_ops.lin_utils as identifiers

    try:
        packed, rest = cloudpickle.dumps(function), cloudpickle.dumps(arguments)
    except Exception as error:  # objects of any package may refuse, each in its own way
        raise ModelError(
            f"the problem cannot be sent to a process of its own ({error}): pass a function of a module that returns "
            "the problem, or isolate=False"
        ) from error
    return pickle.dumps((identifiers.ID_COUNTER.count, packed, rest))


def _listen(stream: IO[bytes], said: queue.SimpleQueue[bytes | None]) -> None:
    while (message := _read(stream)) is not None:
        said.put(message)
    said.put(None)
    stream.close()


def _say(stream: IO[bytes], message: bytes) -> None:
    try:
        _write(stream, message)
    except (OSError, ValueError):  # the child is gone: the listening thread tells
        return


def _read(stream: IO[bytes]) -> bytes | None:
    """Return one message; None at the end of the stream, or where it breaks off."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    message = stream.read(length)
    return message if len(message) == length else None


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def _ended(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


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

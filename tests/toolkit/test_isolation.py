"""A worker's next answer is its own, whatever happened to the call before."""

from __future__ import annotations

import signal
import time
from types import FrameType

import pytest

from cvxpriv.solvers import isolation
from cvxpriv.solvers.isolation import Worker

SLEEPER = """
import os, pickle, sys, time
from cvxpriv.solvers.isolation import _BEGUN, _read, _write
told = os.fdopen(os.dup(1), "wb")
while (request := _read(sys.stdin.buffer)) is not None:
    (seconds,) = pickle.loads(pickle.loads(request)[2])
    _write(told, _BEGUN)
    time.sleep(abs(seconds))
    if seconds < 0.0:  # it says its last, and does not end
        told.close()
        os.close(1)
        time.sleep(60.0)
    _write(told, pickle.dumps(("returned", seconds, "")))
"""


class Pressed(BaseException):
    """Stands for Ctrl-C, and for an alarm of the caller's."""


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setattr(isolation, "_PROGRAM", SLEEPER)
    monkeypatch.setattr(isolation, "GRACE", 0.1)
    return Worker()


def test_the_call_after_an_interrupted_one_gets_its_own_answer(worker: Worker) -> None:
    def press(signum: int, frame: FrameType | None) -> None:
        raise Pressed

    assert worker.call(time.sleep, 0.0).value == 0.0
    before = signal.signal(signal.SIGALRM, press)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Pressed):
            worker.call(time.sleep, 0.5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert worker.call(time.sleep, 0.01).value == 0.01
    worker.close()


def test_a_limit_of_more_than_a_clock_counts_is_a_limit(worker: Worker) -> None:
    assert worker.call(time.sleep, 0.01, time_limit=1e300).value == 0.01
    worker.close()


def test_a_process_that_says_its_last_and_does_not_end_is_ended(worker: Worker) -> None:
    ending = worker.call(time.sleep, -0.01)
    assert ending.status == "crashed"
    assert "SIGKILL" in ending.error
    worker.close()

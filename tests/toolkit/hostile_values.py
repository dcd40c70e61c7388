"""Values of every kind that nobody expects, and a call that says what is wrong with how it ends."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy import sparse

from cvxpriv.errors import LONGEST_MESSAGE, CvxprivError

LONGEST = 30
"""Seconds of one call on a machine that is busy with other work."""


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class Hang(KeyboardInterrupt):
    """An interrupt of a call, which is taken for no solver's failure: no other solver is asked."""


def values() -> dict[str, Any]:
    """Return values by a name; some are used up by a call, so that each call gets its own."""
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    return {
        "none": None,
        "huge": 10**5000,
        "minus huge": -(10**5000),
        "billion": 10**9,
        "longest": 2**63 - 1,
        "unspeakable": Unspeakable(),
        "endless": endless,
        "deep": deep,
        "huge in a list": [10**5000],
        "escapes": "\x1b[2J" * 100,
        "null": "\0",
        "half a pair": "\ud800",
        "empty text": "",
        "long text": "x" * 10**5,
        "number as text": "0.5",
        "nan": float("nan"),
        "minus infinity": float("-inf"),
        "complex": 1j,
        "zero": 0,
        "minus one": -1,
        "half": 0.5,
        "true": True,
        "far": 1e300,
        "tiny": 5e-324,
        "bytes": b"\xff",
        "empty list": [],
        "texts": ["a", "b"],
        "ragged": [[1, 2], [3]],
        "indices": [1, 2],
        "pair": (1, "a"),
        "mapping": {1: {2: 3}},
        "empty mapping": {},
        "set": {1, 2},
        "class": int,
        "module": np,
        "function": lambda *_, **__: None,
        "iterator": iter([1, 2]),
        "range": range(3),
        "error": ValueError,
        "objects": np.array([None, object()], dtype=object),
        "nans": np.full((2, 3), np.nan),
        "no rows": np.zeros((0, 3)),
        "scalar array": np.array(3.0),
        "date": np.datetime64("2020-01-01"),
        "masked": np.ma.masked,
        "sparse": sparse.csr_array(np.eye(2)),
        "frame": pd.DataFrame({"s": [1, None], "x": ["a", 2]}),
        "empty frame": pd.DataFrame(),
        "doubled columns": pd.DataFrame([[1, 2]], columns=["s", "s"]),
        "series": pd.Series([1, 2]),
        "graph": nx.path_graph(2),
    }


def fault(call: Callable[[], Any]) -> str:
    """Return what is wrong with how a call ends; "" where it answers, or raises what it may."""
    try:
        with warnings.catch_warnings(), within(LONGEST):
            warnings.simplefilter("ignore")
            call()
    except CvxprivError as error:
        said = str(error)
        return "" if said and len(said) <= LONGEST_MESSAGE and "\x1b" not in said else f"message {said[:80]!r}"
    except Exception as error:
        return f"{type(error).__name__} {_said(error)}"
    return ""


def _said(error: Exception) -> str:
    try:
        return str(error)[:120]
    except Exception:  # the error quotes what has no text
        return "without a text"


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Interrupt what takes longer, by the clock of the process's wall, and raise, whoever answered the interrupt."""
    late = []

    def over(_: int, __: FrameType | None) -> None:
        late.append(seconds)
        raise Hang

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if late:
            raise TimeoutError(f"no end within {seconds} s")

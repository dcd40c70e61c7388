"""Large grids of cases: a part of each is fast, the rest is left to `make check-all`."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all cases of a grid but the first and each `every`-th after it as slow.

    An `every` without a common factor with the number of one axis meets each value of that axis.
    """
    places: Counter[str] = Counter()
    for item in items:
        if grid := item.get_closest_marker("grid"):
            test = item.nodeid.partition("[")[0]
            if places[test] % grid.kwargs["every"]:
                item.add_marker(pytest.mark.slow)
            places[test] += 1


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep modules and items, millions of objects that stay, out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


FLUSH = os.fsync


@pytest.fixture(scope="session", autouse=True)
def _files_are_not_waited_for() -> Iterator[None]:
    """Let no test wait for the disk: processes are killed in tests, machines are not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flush as users do: a process that is killed at a random moment is then where theirs would be."""
    monkeypatch.setattr(os, "fsync", FLUSH)

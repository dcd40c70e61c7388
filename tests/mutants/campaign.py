"""The tests of one module, collected once; each mutant runs them in a process forked from the collection.

First the tests that enter the mutant's function, the fastest first, until one fails; then the others. A changed
constant of the module that survives is tried once more in a process that imports everything with the mutant in place.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.mutants.changes import Mutant
from tests.mutants.planting import plant, watched
from tests.mutants.targets import Target

__all__ = ["Outcome", "run_target"]

ROOT = Path(__file__).parents[2]
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-m", "not slow", "-o", "addopts=")
#: A mutant counts as noticed when its tests take this many times their usual seconds, and this much more: it hangs.
PATIENCE, SECONDS = 5.0, 30.0


@dataclass(frozen=True)
class Outcome:
    """Which test noticed a mutant; None where none did."""

    mutant: Mutant
    noticed_by: str | None


@dataclass
class Measured:
    """Of the tests of a module without any mutant: seconds, and the functions that each enters."""

    failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    entered: dict[str, set[str]] = field(default_factory=dict)


def run_target(target: Target, mutants: Sequence[Mutant], jobs: int, tell: Callable[[str], None]) -> list[Outcome]:
    """Return the outcome of each mutant of a target. Call it in a process of its own: it imports and collects."""
    campaign = _Campaign(target, mutants, jobs, tell)
    doctests = ["--doctest-modules"] if target.doctests else []
    paths = [*target.tests, *([target.path] if target.doctests else [])]
    code = pytest.main([*OPTIONS, *doctests, *paths], plugins=[campaign])
    if campaign.problem or code not in (0, 5):
        raise RuntimeError(campaign.problem or f"{target.module}: its tests could not be collected")
    return campaign.outcomes


class _Campaign:
    """A pytest plugin in place of the run of the tests."""

    def __init__(self, target: Target, mutants: Sequence[Mutant], jobs: int, tell: Callable[[str], None]) -> None:
        self.target, self.mutants, self.jobs, self.tell = target, mutants, jobs, tell
        self.outcomes: list[Outcome] = []
        self.problem = ""
        self.measured = Measured()
        self.running: set[str] = set()
        self.of_fixtures: dict[Any, set[str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        _derandomise()
        self.measured = _answer(lambda: self._measure(session))
        if self.measured.failed:
            self.problem = f"{self.target.module}: without any mutant these fail: {', '.join(self.measured.failed)}"
            return True
        limit = SECONDS + PATIENCE * sum(self.measured.seconds.values())
        self.tell(f"{len(session.items)} tests, {sum(self.measured.seconds.values()):.0f} s")
        work = [(mutant, lambda mutant=mutant: self._planted(session, mutant)) for mutant in self.mutants]
        found: dict[int, str | None] = {}
        for at, noticed in _at_once([job for _, job in work], self.jobs, limit):
            if noticed is None and not self.mutants[at].function:
                noticed = _in_time(lambda at=at: _afresh(self.target, self.mutants[at]), limit)
            found[at] = noticed
            left = sum(one is None for one in found.values())
            self.tell(f"{len(found)} of {len(work)}, {left} survive" if noticed else f"survives: {self.mutants[at]}")
        self.outcomes = [Outcome(mutant, found[at]) for at, mutant in enumerate(self.mutants)]
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.measured.seconds[report.nodeid] += report.duration
        if report.failed:
            self.measured.failed.append(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Remember what a fixture enters: every test that takes it depends on that."""
        outer, self.running = self.running, set()
        try:
            return (yield)
        finally:
            self.of_fixtures.setdefault(fixturedef.argname, set()).update(self.running)
            self.running = outer | self.running

    def _measure(self, session: pytest.Session) -> Measured:
        module = import_module(self.target.module)
        source = (ROOT / self.target.path).read_text(encoding="utf-8")
        vars(module)["__entered__"] = lambda name: self.running.add(name)
        plant(module, watched(source, "__entered__"))
        own: dict[str, set[str]] = {}
        for item, after in _followed(session.items):
            self.running = set()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            own[item.nodeid] = self.running
        for item in session.items:
            fixtures = [self.of_fixtures.get(name, set()) for name in getattr(item, "fixturenames", ())]
            self.measured.entered[item.nodeid] = own[item.nodeid].union(*fixtures)
        return self.measured

    def _planted(self, session: pytest.Session, mutant: Mutant) -> str | None:
        """Run the tests with the mutant in place; return the one that fails."""
        own, seconds = self.measured.entered, dict(self.measured.seconds)
        self.measured = Measured()
        try:
            plant(import_module(self.target.module), mutant.source)
        except Exception as error:
            return f"import: {type(error).__name__}"

        def order(item: pytest.Item) -> tuple[bool, int, str, float]:
            took = seconds.get(item.nodeid, 0.0)
            class_of_speed = sum(took > limit for limit in (0.1, 1.0, 5.0))  # within it, files share their fixtures
            return mutant.function not in own[item.nodeid], class_of_speed, str(item.path), took

        for item, after in _followed(sorted(session.items, key=order)):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.measured.failed:
                return self.measured.failed[0]
        return None


def _followed(items: Sequence[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _derandomise() -> None:
    from hypothesis import settings

    settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    settings.load_profile("mutants")


# -- processes -------------------------------------------------------------------------------------------------------


def _fork(job: Callable[[], Any]) -> tuple[int, int]:
    """Start a job in a forked process; return its number and where its answer can be read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child's coverage is not measured
        os.setsid()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(job(), pipe)
            pipe.flush()
            os._exit(0)
    os.close(writing)
    return child, reading


def _answer(job: Callable[[], Any]) -> Any:
    child, reading = _fork(job)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if not said:
        raise RuntimeError("the tests ended their own process")
    return pickle.loads(said)


def _at_once(jobs: Sequence[Callable[[], str | None]], most: int, limit: float) -> Iterator[tuple[int, str | None]]:
    """Yield (place, answer) of each job as it ends, `most` at once; one beyond the limit is ended."""
    waiting = list(range(len(jobs)))[::-1]
    at_work: dict[int, tuple[int, int, float]] = {}
    while waiting or at_work:
        while waiting and len(at_work) < most:
            place = waiting.pop()
            child, reading = _fork(jobs[place])
            at_work[child] = (place, reading, time.monotonic() + limit)
        for child, (place, reading, end) in list(at_work.items()):
            done, _ = os.waitpid(child, os.WNOHANG)
            late = time.monotonic() > end
            if not done and late:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
            if done or late:
                del at_work[child]
                with os.fdopen(reading, "rb") as pipe:
                    said = pipe.read() if done else b""
                yield place, pickle.loads(said) if said else ("it takes too long" if late else "its process ends")
        time.sleep(0.005)


def _in_time(job: Callable[[], str | None], limit: float) -> str | None:
    ((_, answer),) = _at_once([job], 1, limit)
    return answer


class _Planted(MetaPathFinder):
    """Imports one module from a source that is given."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> Any:
        return spec_from_loader(fullname, self, origin=str(self.path)) if fullname == self.name else None

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self.path)
        exec(compile(self.source, str(self.path), "exec"), vars(module))


def _afresh(target: Target, mutant: Mutant) -> str | None:
    """The test that fails where everything is imported with the mutant in place."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("cvxpriv", "cvxpriv_models", "tests")]:
        if not name.startswith("tests.mutants"):
            del sys.modules[name]
    sys.meta_path.insert(0, _Planted(target.module, ROOT / target.path, mutant.source))
    try:
        import_module(target.module)  # before pytest, whose own finder would come first: it rewrites plugins' packages
    except Exception as error:
        return f"import: {type(error).__name__}"
    failed: list[str] = []

    class First:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    code = pytest.main([*OPTIONS, "-x", *target.tests], plugins=[First()])
    return failed[0] if failed else (None if code in (0, 5) else "import")

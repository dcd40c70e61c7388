"""`make mutate`: make wrong changes of the code that guards privacy and certificates, and run the tests that belong.

    python -m tests.mutants                      # every target
    python -m tests.mutants sensitivities        # those of one group
    python -m tests.mutants --list               # groups, modules, counts; nothing is run

A mutant that its tests do not notice survives and is printed. The command ends with 1 where one survives in a group
that allows none. Each mutant runs in a process of its own, forked from one that has imported the heavy packages.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.changes import Mutant, mutants_of
from tests.mutants.targets import GROUPS, Target

ROOT = Path(__file__).parents[2]
COPIED = ("cvxpriv", "models", "tests", "pyproject.toml")
LIMIT = 300
"""Seconds until a mutant counts as noticed: it hangs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants; return 1 where one survives in a group that allows none."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; none is all")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(arguments)
    if unknown := set(asked.groups) - set(GROUPS):
        parser.error(f"no group is called {', '.join(sorted(unknown))}: choose from {', '.join(GROUPS)}")
    failed = False
    for name in asked.groups or GROUPS:
        group = GROUPS[name]
        work = [(target, mutant) for target in group.targets for mutant in _of(target)]
        print(f"{name}: {len(work)} mutants of {len(group.targets)} modules")
        if not asked.list:
            survivors = _run(work, asked.jobs)
            failed |= bool(survivors) and group.none_may_survive
            print(f"{name}: {len(work) - len(survivors)} of {len(work)} noticed")
            for target, mutant in survivors:
                print(f"  survives  {target.module}: {mutant}")
    return int(failed)


def _of(target: Target) -> list[Mutant]:
    path = ROOT / target.path
    found = mutants_of(path.read_text(encoding="utf-8"), target.functions)
    return [mutant for mutant in found if (mutant.before, mutant.after) not in target.equal]


def _run(work: Sequence[tuple[Target, Mutant]], jobs: int) -> list[tuple[Target, Mutant]]:
    import cvxpy  # noqa: F401  imported once, before the processes are forked
    import hypothesis  # noqa: F401
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        copies = [Path(folder) / str(job) for job in range(jobs)]
        for copy in copies:
            for part in COPIED:
                source = ROOT / part
                if source.is_dir():
                    shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
                else:
                    shutil.copy(source, copy / part)
        free = list(copies)

        def noticed(one: tuple[Target, Mutant]) -> bool:
            copy = free.pop()
            try:
                return _noticed(copy, *one)
            finally:
                free.append(copy)

        answers = list(pool.map(noticed, work))
    return [one for one, was in zip(work, answers, strict=True) if not was]


def _noticed(copy: Path, target: Target, mutant: Mutant) -> bool:
    """Whether the tests fail with the mutant in place, or hang."""
    path = copy / target.path
    own = path.read_text(encoding="utf-8")
    path.write_text(mutant.source, encoding="utf-8")
    try:
        return _fails(copy, target.tests)
    finally:
        path.write_text(own, encoding="utf-8")


def _fails(copy: Path, tests: Sequence[str]) -> bool:
    child = os.fork()
    if child == 0:  # pragma: no cover - the child's coverage is not measured
        _test(copy, tests)
    ended = time.monotonic() + LIMIT
    while time.monotonic() < ended:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _test(copy: Path, tests: Sequence[str]) -> None:
    """Run the tests in this (forked) process, and end it with pytest's exit code."""
    import pytest

    os.setsid()
    os.chdir(copy)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(copy), str(copy / "models")]
    for name in [name for name in sys.modules if name.split(".")[0] in ("cvxpriv", "cvxpriv_models", "tests")]:
        del sys.modules[name]
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:doctest", "-m", "not slow"]
        code = pytest.main([*options, "-o", "addopts=", *tests])
    os._exit(int(code))


if __name__ == "__main__":
    raise SystemExit(main())

"""Sets of files: whole after every kill, without litter, and nobody's other files lost."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.certify.bug_scripts import Trial
from cvxpriv.certify.bugs import BugReport
from cvxpriv.distributed.checkpoint import Checkpoint, write_checkpoint
from cvxpriv.errors import DataError
from cvxpriv.privacy import Release
from cvxpriv.reports import files, sets
from cvxpriv.reports.files import MANIFEST, read_text
from cvxpriv.reports.sets import require_whole, write_set

Contents = dict[str, str | bytes | Callable[[Path], Path]]


def version(number: int) -> Contents:
    """Return a set whose files all say the same number."""
    return {f"{name}.txt": f"{number}\n" * 2000 for name in "abcdef"} | {"note.txt": str(number)}


def numbers_in(folder: Path) -> set[str]:
    return {(folder / name).read_text().split()[0] for name in require_whole(folder)}


@pytest.mark.usefixtures("flushing")
@pytest.mark.parametrize("kills", [6, pytest.param(50, marks=pytest.mark.slow)])  # of four kinds: 200 in all
@pytest.mark.parametrize("exchanging", [True, False])
@pytest.mark.parametrize("inside", [False, True])
def test_a_kill_leaves_the_old_set_or_the_new_one(
    tmp_path: Path, exchanging: bool, inside: bool, kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchanging:
        monkeypatch.setattr(sets, "_exchanged", lambda stage, target: False)
    folder, rng = tmp_path / "out", np.random.default_rng(7)
    write_set(folder, version(0))
    if inside:  # a folder of somebody else's: the set cannot change places
        (folder / "theirs").mkdir()
    whole = 0
    for _ in range(kills):
        killed_at_work(folder, float(rng.uniform(0.002, 0.03)))
        if (folder / MANIFEST).exists():
            assert len(numbers_in(folder)) == 1
            whole += 1
    assert not exchanging or inside or whole == kills
    write_set(folder, version(10**6))
    assert numbers_in(folder) == {str(10**6)}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("exchanging", [True, False])
@pytest.mark.parametrize("inside", [False, True])
def test_a_kill_before_any_step_of_a_write_mixes_no_sets(
    tmp_path: Path, exchanging: bool, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchanging:
        monkeypatch.setattr(sets, "_exchanged", lambda stage, target: False)
    folder = tmp_path / "out"
    write_set(folder, version(0))
    if inside:
        (folder / "theirs").mkdir()
    left = []
    while killed_at_step(folder, len(left) + 1):
        left.append(numbers_in(folder) if (folder / MANIFEST).exists() else set())
    assert len(left) > 10
    assert all(len(one) <= 1 for one in left)
    assert all(left) or not exchanging or inside
    assert left[0] == {"0"}
    assert numbers_in(folder) == {str(len(left) + 1)}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


#: What a write of a set does to the disk.
STEPS = ("fsync", "link", "open", "rename", "replace", "rmdir", "unlink")


def killed_at_step(folder: Path, step: int) -> bool:
    """Let a process write a set that says `step`, killed before its `step`-th step; return whether it was."""
    process = os.fork()
    if process == 0:
        steps = itertools.count(1)

        def counted(act: Callable[..., Any]) -> Callable[..., Any]:
            def acting(*arguments: Any, **options: Any) -> Any:
                if next(steps) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return act(*arguments, **options)

            return acting

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            write_set(folder, version(step))
            os._exit(0)
        finally:
            os._exit(1)
    ended = os.waitpid(process, 0)[1]
    assert ended in (0, signal.SIGKILL)
    return ended != 0


def killed_at_work(folder: Path, seconds: float) -> None:
    """Let a process write sets without end, and kill it."""
    process = os.fork()
    if process == 0:
        try:
            for number in range(1, 10**6):
                write_set(folder, version(number))
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def test_two_writers_leave_one_whole_set(tmp_path: Path) -> None:
    writers = []
    for number in (1, 2):
        process = os.fork()
        if process == 0:
            for _ in range(20):
                write_set(tmp_path / "out", version(number))
            os._exit(0)
        writers.append(process)
    assert [os.waitpid(process, 0)[1] for process in writers] == [0, 0]
    assert numbers_in(tmp_path / "out") in ({"1"}, {"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_writer_of_a_folder_that_cannot_move_waits_for_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    replace, others = os.replace, list[int]()

    def slow(source: Path, target: Path) -> None:
        replace(source, target)
        if target == tmp_path / "a.txt" and not others:
            others.append(os.fork())
            if not others[0]:
                write_set(tmp_path, version(2))
                os._exit(0)
            time.sleep(0.1)

    monkeypatch.setattr(sets.os, "replace", slow)
    write_set(tmp_path, version(1))
    assert os.waitpid(others[0], 0)[1] == 0
    assert numbers_in(tmp_path) == {"2"}


def test_files_of_another_writer_s_set_are_nobody_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the manifest of a set and the names of its files, another set may take its place."""
    folder, found = tmp_path / "out", sets.listed
    write_set(folder, {"a.txt": "1"})
    between = iter([{"a.txt": "1", "curve.csv": "1"}])

    def listed(at: Path) -> dict[str, str]:
        before = found(at)
        for contents in between:
            monkeypatch.setattr(sets, "listed", found)
            write_set(folder, contents)
            monkeypatch.setattr(sets, "listed", listed)
        return before

    monkeypatch.setattr(sets, "listed", listed)
    write_set(folder, {"a.txt": "2"})
    assert {path.name for path in folder.iterdir()} == {"a.txt", MANIFEST}


def test_a_set_takes_texts_bytes_and_what_writes_itself(tmp_path: Path) -> None:
    def itself(path: Path) -> Path:
        path.write_text("self")
        return path

    written = write_set(tmp_path / "new" / "folder", {"a.txt": "text", "b.png": b"\x89", "c.json": itself})
    assert [path.read_bytes() for path in written] == [b"text", b"\x89", b"self"]


def test_files_of_the_old_set_go_and_other_files_stay(tmp_path: Path) -> None:
    write_set(tmp_path / "out", {"report.txt": "old", "curve.csv": "old"})
    (tmp_path / "out" / "mine.txt").write_text("mine")
    write_set(tmp_path / "out", {"report.txt": "new"})
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir() if path.name != MANIFEST} == {
        "report.txt": "new",
        "mine.txt": "mine",
    }


def test_what_cannot_be_made_leaves_the_old_set(tmp_path: Path) -> None:
    def failing(path: Path) -> Path:
        raise DataError("no")

    write_set(tmp_path / "out", version(1))
    with pytest.raises(DataError, match="no"):
        write_set(tmp_path / "out", {**version(2), "late.txt": failing})
    assert numbers_in(tmp_path / "out") == {"1"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("fits", range(8))
def test_a_full_disk_leaves_the_old_set(
    fits: int, inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, write, written = tmp_path / "out", files._write_new, 0
    write_set(folder, version(0))
    if inside:
        (folder / "theirs").mkdir()

    def full(path: Path, data: bytes, mode: int) -> None:
        nonlocal written
        written += 1
        write(path, data if written <= fits else data[: len(data) // 2], mode)
        if written > fits:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "_write_new", full)
    with pytest.raises(DataError, match="No space left"):
        write_set(folder, version(1))
    monkeypatch.undo()
    assert numbers_in(folder) == {"0"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_the_current_folder_is_written_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    write_set(".", version(3))
    assert tmp_path.stat().st_ino == before
    assert numbers_in(Path()) == {"3"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.write_text("2"), "is not the file that"),
        (lambda path: (path.unlink(), path.mkdir()), "is not the file that|it is a folder"),
        (Path.unlink, "is missing: it is a file that|No such file"),
    ],
)
def test_a_changed_file_of_a_set_is_named(tmp_path: Path, change: Callable[[Path], object], said: str) -> None:
    write_set(tmp_path, version(1))
    assert set(require_whole(tmp_path)) == set(version(1))
    assert read_text(tmp_path / "a.txt") == version(1)["a.txt"]
    change(tmp_path / "a.txt")
    for read in (lambda: require_whole(tmp_path), lambda: read_text(tmp_path / "a.txt")):
        with pytest.raises(DataError, match=rf"a\.txt' .*({said})"):
            read()
    (tmp_path / MANIFEST).write_text(json.dumps({"format": "another"}))
    with pytest.raises(DataError, match="no manifest"):
        require_whole(tmp_path)


def test_a_reader_beside_a_writer_meets_no_changed_file(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_set(folder, version(0))
    process = os.fork()
    if process == 0:
        for number in range(1, 60):
            write_set(folder, version(number))
        os._exit(0)
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        assert len(set(read_text(folder / "a.txt").split())) == 1


@pytest.fixture
def born(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, int]]:
    """The mode with which each file was made, by its inode, for a user who hides nothing."""
    modes, opened, mask = dict[int, int](), os.open, os.umask(0)

    def watched(path: Any, flags: int, mode: int = 0o777, **rest: Any) -> int:
        new = flags & os.O_CREAT and not os.path.lexists(path)
        handle = opened(path, flags, mode, **rest)
        if new:
            modes[os.fstat(handle).st_ino] = stat.S_IMODE(os.fstat(handle).st_mode)
        return handle

    monkeypatch.setattr(os, "open", watched)
    yield modes
    os.umask(mask)


def private_files() -> dict[str, Callable[[Path], Path]]:
    """What tells of private rows, by its name: each writes itself."""
    run = cpv.models.PrivacyFunnel(cpv.JointTable.from_counts([[12, 3], [1, 8]]), 0.6).solve()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.Variable(2, name="x") - 1.0)))
    fit = cpv.models.ISTDP(np.eye(4, 2), [1.0, -1.0, 1.0, -1.0]).solve(max_iter=2)
    state = Checkpoint("r", 1, {"x": np.ones(2)}, [], {})
    bug = BugReport("SCS", problem, Trial("WRONG", "", "optimal", 0.0, {}, 1.0, {}, "optimal", ""), "data")
    return {
        "run": run.save,
        "certificate": run.bound.certificate.save,
        "fit": fit.save,
        "alternation": cpv.alternate(problem, starts=1).save,
        "bug": bug.write,
        "budget": lambda path: (cpv.Budget(1.0, 1e-5, path).spend([Release(epsilon=0.1)]), path)[1],
        "state": lambda path: (write_checkpoint(path, state, durable=True), path)[1],
        "passing state": lambda path: (write_checkpoint(path, state, durable=False), path)[1],
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_files_of_private_rows_are_their_owner_s_alone_from_the_first_byte(
    tmp_path: Path, born: dict[int, int]
) -> None:
    writers, folder = private_files(), tmp_path / "out"
    for name, write in writers.items():
        write(tmp_path / name)
        (tmp_path / name).chmod(0o666)  # what stands there is replaced, and its mode is forgotten
        write(tmp_path / name)
    write_set(folder, {**writers, "report.txt": "all may read it"})
    for place in (tmp_path, folder):
        for name in writers:
            found = (place / name).stat()
            assert (name, stat.S_IMODE(found.st_mode), born[found.st_ino]) == (name, 0o600, 0o600)
    assert stat.S_IMODE((folder / "report.txt").stat().st_mode) == 0o666

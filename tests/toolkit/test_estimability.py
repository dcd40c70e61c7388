"""What records allow: the chance part of I(S;X), and columns of which each record has a value of its own."""

from __future__ import annotations

import numpy as np
import pytest

from cvxpriv import JointTable
from cvxpriv.errors import DataError
from cvxpriv.reports.facts import Fact
from cvxpriv.tables.small_counts import judged, require_repeated


def test_the_chance_part_is_what_independent_records_show() -> None:
    draw = np.random.default_rng(5)
    found = []
    for _ in range(200):
        counts = draw.multinomial(2000, np.full(40, 1 / 40)).reshape(4, 10)
        found.append(JointTable.from_counts(counts).information)
    judgement = judged(JointTable.from_counts(counts))
    assert judgement is not None
    assert judgement.chance == 27 / 4000
    # The deviation of one table is sqrt(2 * 27) / 4000 = 0.0018, of the mean of 200 a fourteenth of it; 4 of these, and
    # the next term of the expansion, of order 1 / n^2.
    assert abs(np.mean(found) - judgement.chance) < 4 * 0.0018 / 14 + 1e-4


def test_few_records_are_not_estimable_and_many_are() -> None:
    few = judged(JointTable.from_counts(np.ones((4, 80), dtype=int) + np.eye(4, 80, dtype=int)))
    assert few is not None
    assert not few.estimable
    assert "324 records for 80 symbols: what they tell is not estimable" in few.warning
    many = judged(JointTable.from_counts([[900, 100], [100, 900]]))
    assert many is not None
    assert many.estimable
    assert many.warning == ""
    alone = judged(JointTable.from_counts([[900], [100]]))
    assert alone is not None
    assert alone.warning == "X has one value, which tells nothing: leave it out, or choose other bins"
    assert judged(JointTable.from_array([[0.5, 0.5]])) is None


@pytest.mark.parametrize(
    ("labels", "remedy"),
    [
        ([f"{1000 + i}" for i in range(40)], "--bins 'X=quantiles:5'"),
        ([f"2024-{1 + i % 12:02d}-{1 + i // 12:02d}" for i in range(40)], "--bins 'X=first:4'"),
        ([f"name {i}" for i in range(40)], "--top 'X=20'"),
    ],
)
def test_one_value_a_record_is_refused_with_a_recipe(labels: list[str], remedy: str) -> None:
    with pytest.raises(DataError, match=f"40 values in 40 records.*{remedy}"):
        require_repeated(JointTable.from_counts(np.ones((1, 40), dtype=int), public_labels=labels))
    require_repeated(JointTable.from_counts(np.full((1, 40), 3), public_labels=labels))
    require_repeated(JointTable.from_counts(np.ones((1, 20), dtype=int)))


def test_a_headline_is_the_interval_where_the_value_alone_says_too_little() -> None:
    zero = Fact("leakage", 0.0, "nats", detail="none", interval=(0.0, 0.09))
    assert (zero.headline, zero.remark) == ("0 to 0.09000", "0 nats in the table; none; 95% interval")
    sure = Fact("leakage", 0.1, "nats", interval=(0.09, 0.11))
    assert (sure.headline, sure.remark) == ("0.1000", "95% interval 0.09000 to 0.1100")

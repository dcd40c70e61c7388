"""Pages for others: what they withhold, and that nothing on them gives a small count back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.errors import DataError
from cvxpriv.models import InferenceAsService, PrivacyFunnel
from cvxpriv.reports.facts import Fact, Facts, Section
from cvxpriv.reports.page import for_page
from cvxpriv.runs.mechanism_run import Beside
from cvxpriv.runs.sides import PRIVATE_AND_PUBLIC, counts_section
from cvxpriv.tables.joint import JointTable
from cvxpriv.tables.small_counts import with_totals, withheld

COUNTS = np.array([[37, 3, 41], [29, 31, 67]])


def largest_possible(counts: np.ndarray, most: int = 22) -> np.ndarray:
    """The largest value of each count among tables that agree with what is shown, and have at least 1 elsewhere."""
    whole, hidden = with_totals(counts), withheld(counts)
    cells = list(itertools.product(range(2), range(2)))
    axes = [np.arange(1, most) if hidden[cell] else np.array([counts[cell]]) for cell in cells]
    a, b, c, d = (one.ravel() for one in np.meshgrid(*axes, indexing="ij"))
    found = np.stack([a, b, a + b, c, d, c + d, a + c, b + d, a + b + c + d], axis=-1).reshape(-1, 3, 3)
    fits = ((found == whole) | hidden).all(axis=(1, 2)) & ((found >= 1) | ~hidden).all(axis=(1, 2))
    assert fits.any()
    return np.asarray(found[fits].max(axis=0))


@pytest.mark.parametrize("counts", [[[2, 9], [8, 7]], [[3, 8], [0, 9]], [[5, 6], [9, 6]], [[1, 20], [20, 7]]])
def test_an_attacker_who_knows_the_rule_cannot_say_that_a_withheld_count_is_small(counts: list[list[int]]) -> None:
    table = np.array(counts)
    whole = with_totals(table)
    small = (whole >= 1) & (whole <= 5)
    assert withheld(table)[small].all()
    assert (largest_possible(table)[small] > 5).all()


def test_no_line_has_a_single_count_withheld() -> None:
    hidden = withheld(np.array([[2, 9, 40], [8, 7, 50]]))
    assert ((hidden.sum(axis=0) != 1).all(), (hidden.sum(axis=1) != 1).all()) == (True, True)


def test_a_table_without_small_counts_is_shown_whole_and_zeros_are_no_small_counts() -> None:
    assert not withheld(np.array([[10, 0], [20, 30]])).any()


def test_one_small_count_takes_three_others_with_it_and_no_total() -> None:
    assert withheld(np.array([[2, 40, 60], [30, 50, 70]])).sum() == 4


@pytest.fixture(scope="module")
def table() -> JointTable:
    return JointTable.from_counts(COUNTS, ["well", "ill"], ["young", "middle", "old"])


def facts_of(model: Any, points: Sequence[float]) -> Facts:
    curve, mechanisms = model.traced(points)
    shown = cpv.disclosure(model.problem.table, mechanisms[0], bootstrap=20)
    return model.solve().described(Beside("patients", curve, disclosure=shown, mechanisms=mechanisms))


@pytest.fixture(scope="module")
def facts(table: JointTable) -> Facts:
    return facts_of(PrivacyFunnel(table, rate=0.6), [0.6, 1.0])


@pytest.fixture(scope="module", params=["funnel", "inference"])
def any_facts(request: pytest.FixtureRequest, facts: Facts, table: JointTable) -> Facts:
    if request.param == "funnel":
        return facts
    return facts_of(InferenceAsService(table, divergence="js", beta=0.1), [0.1234, 0.5678])


def test_the_page_for_others_has_two_digits_and_no_mechanism_count_or_option(
    any_facts: Facts, table: JointTable
) -> None:
    facts = any_facts
    from cvxpriv.reports.page import render

    html = render(for_page(facts, "shareable"))
    body = html[html.index("<body>") : html.index("<footer>")]
    words = re.sub(r"<svg.*?</svg>", "", re.sub(r"<[^>]+>", " ", body.replace(str(table.public.labels[0]), "")))
    for number in re.findall(r"(?<![\w.#-])\d+\.\d+(?![\w.])", words):
        assert len(number.replace(".", "").lstrip("0")) <= 2, number
    assert "208" not in words  # the number of records
    assert not re.search(r"(?<![\d.])(37|41|29|31|67|81|127)\b(?!%)", words)  # a share in percent is no count
    assert 'class="shares"' not in html
    assert '"cells"' not in html
    assert "not differentially private" in words
    assert "max_iter" not in words
    assert "--curve" not in words
    assert {"private", "public"} <= {fact.name for fact in for_page(facts, "shareable").about}


def test_the_internal_page_says_first_that_it_is_private(facts: Facts) -> None:
    assert for_page(facts, "internal").messages[0].startswith("Private: do not publish.")
    (counts,) = [section for section in facts.sections if section.title == "Counts of X and S"]
    assert counts.tables[0].frame.loc["middle", "well"] == 3
    assert counts.shared is not None
    shown = counts.shared.tables[0].frame
    assert shown.loc["middle", "well"] == "*"
    assert shown.loc["all", "all"] == 210  # 208, rounded to 5
    assert (shown == "*").to_numpy().sum() == 4


def test_a_section_of_which_nothing_was_said_is_withheld() -> None:
    facts = Facts("x", facts=[Fact("n", 61, main=True), Fact("who", "a", main=True)], published=False)
    shown = for_page(Facts(**{**vars(facts), "sections": [Section("Secret", "61 rows")]}), "shareable")
    assert shown.sections == []
    assert [fact.name for fact in shown.facts] == ["n"]


def test_with_noise_in_the_table_the_page_for_others_shows_everything(table: JointTable) -> None:
    with pytest.warns(UserWarning, match="seed"):
        noisy = cpv.private_table(table, 5.0, domain="table", noise_seed=1)
    facts = PrivacyFunnel(noisy, rate=0.6).solve().facts
    assert facts.published
    shared = for_page(facts, "shareable")
    assert shared.sections == facts.sections
    assert "may be published" in shared.messages[0]
    assert for_page(facts, "internal") is facts
    assert "Laplace" in counts_section(noisy, PRIVATE_AND_PUBLIC)[0].text


def test_python_writes_either_page_and_refuses_another(table: JointTable, tmp_path: Path) -> None:
    run = PrivacyFunnel(table, rate=0.6).solve()
    assert "do not publish" in run.report(tmp_path / "a.html").read_text()
    assert "208" not in run.report(tmp_path / "b.html", "shareable").read_text().partition("<footer>")[0]
    with pytest.raises(DataError, match="page='public'"):
        run.report(tmp_path / "c.html", "public")

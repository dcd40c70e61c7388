"""No verdict on the small problems contradicts what is known, and some solver's answer is right."""

from __future__ import annotations

import pytest

from cvxpriv.certify import Stored, crosscheck, task
from cvxpriv.certify.corpus.known import INFEASIBLE, OPTIMAL, UNBOUNDED, false_verdicts
from tests.toolkit.small_problems import SMALL, known_of


@pytest.mark.grid(every=4)
@pytest.mark.parametrize("name", SMALL)
def test_no_verdict_on_a_small_problem_is_false(name: str) -> None:
    known = known_of(name)
    denials = {one: Stored(None, status=one) for one in (INFEASIBLE, UNBOUNDED) if one != known.status}
    table = crosscheck(known.problem, answers=denials).table
    assert not false_verdicts(known, table), table[["solver", "verdict", "objective", "reason"]].to_string()
    own = table[~table["solver"].isin(denials)]
    assert own["verdict"].isin(["agrees", "loose"]).any(), table[["solver", "verdict", "reason"]].to_string()
    if known.status == OPTIMAL:
        right = own.loc[own["verdict"] == "agrees", "objective"]
        assert right.size == 0 or max(map(known.error, right)) < 1e-5


@pytest.mark.parametrize("name", list(SMALL)[::9])
def test_what_is_beyond_doubt_is_not_changed_by_settling_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = ["solver", "verdict", "known_by"]
    usual = crosscheck(SMALL[name][0]()).table[told]
    monkeypatch.setattr(task, "_beyond_doubt", lambda *_: False)
    assert crosscheck(SMALL[name][0]()).table[told].equals(usual)

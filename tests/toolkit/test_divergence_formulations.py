"""The same divergence in several ways: each way is the divergence, and all agree on one problem."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cvxpriv.certify.formulations import Formulations
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.divergences.formulations import LARGEST, TANGENTS, formulations, pair_block, ways_of
from cvxpriv.divergences.verification.agreement import FormAt, joint_form, why_not_dcp
from cvxpriv.errors import ModelError

from .divergence_cases import BUILT_IN

#: The others are slow: each takes a second or more.
SOON = ("mutual-information", "le-cam")


@cache
def stated(name: str) -> Formulations:
    return formulations(name, 4, ["CLARABEL"])


WAYS = [(name, way) for name in BUILT_IN for way in ways_of(divergence(name))]


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_divergence_has_at_least_two_ways_beside_tangents(name: str) -> None:
    assert len(ways_of(divergence(name))) >= 2
    assert TANGENTS not in ways_of(divergence(name))


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_a_way_is_dcp_and_its_value_is_the_divergence_on_points_that_are_no_distributions(name: str, way: str) -> None:
    f = divergence(name)
    written = replace(f, expression=ways_of(f)[way], auxiliary=None)
    assert why_not_dcp(joint_form(written, (2,))) == ""
    form = FormAt(written, 3, "variable")
    for p, q in (([0.2, 1.5, 0.03], [0.4, 0.3, 0.06]), ([2.0, 0.1, 0.7], [0.5, 0.2, 0.7])):
        expected = f.between(np.array(p), np.array(q))
        # Solvers reach 1e-7 on these cells; the smallest value here is 0.05.
        assert form.value(np.array(p), np.array(q)) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    "name", [name if name in SOON else pytest.param(name, marks=pytest.mark.slow) for name in BUILT_IN]
)
def test_all_ways_and_tangents_agree_on_the_stated_problem(name: str) -> None:
    found = stated(name)
    assert set(found.table["formulation"]) == {*ways_of(divergence(name)), TANGENTS}
    assert set(found.table["verdict"]) <= {"agrees", "loose"}, str(found)
    assert found.table["accuracy"].max() < 1e-6  # tangents close their gap to 5e-8, cones reach 1e-8
    assert found.why.startswith(next(iter(ways_of(divergence(name)))))


def test_cones_and_sizes_tell_the_ways_apart() -> None:
    table = stated("le-cam").table.set_index("formulation")
    assert table.loc["second-order cones", "cones"] == "zero 4, nonneg 16, soc 4"
    assert table.loc["power cones", "cones"] == "zero 4, nonneg 16, power 4"
    assert "soc" not in table.loc[TANGENTS, "cones"]
    assert table.loc["perspective of quad_over_lin", "rows"] > table.loc["second-order cones", "rows"]


def test_a_users_f_is_compared_with_tangents_alone_and_a_users_form_with_both() -> None:
    quartic = FDivergence("quartic", f=lambda t: (t - 1.0) ** 4, fprime=lambda t: 4.0 * (t - 1.0) ** 3)
    alone = formulations(quartic, 4, ["CLARABEL", "ECOS"])
    assert set(alone.table["formulation"]) == {TANGENTS}
    mine = replace(divergence("neyman"), name="mine")
    both = formulations(mine, 4, ["CLARABEL"])
    assert set(both.table["formulation"]) == {"own expression", TANGENTS}
    assert both.table["accuracy"].max() < 1e-6


def test_a_wrong_form_among_the_ways_is_said_to_be_another_problem() -> None:
    wrong = replace(divergence("chi-square"), name="wrong", expression=divergence("neyman").expression)
    table = formulations(wrong, 4, ["CLARABEL"]).table.set_index("formulation")
    assert "not the same problem" in table.loc[TANGENTS, "reason"]


def test_the_problem_keeps_ratios_away_from_one() -> None:
    uniform = np.full(6, 1.0 / 6.0)
    written, _ = pair_block(divergence("jensen-shannon"), 6).solve({"p": uniform, "q": uniform})
    ratios = written["q"] / written["p"]
    assert ratios.min() < 0.5
    assert ratios.max() > 2.0


@pytest.mark.parametrize("size", [2, LARGEST + 1, 4.0, True])
def test_a_size_out_of_range_is_refused(size: object) -> None:
    with pytest.raises(ModelError, match="give a whole number from 3 to"):
        formulations("js", size)  # type: ignore[arg-type]

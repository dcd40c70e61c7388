"""`cvxpriv constraints`: the list of ready constraints, and one of them."""

from __future__ import annotations

import json

import pytest

from cvxpriv import constraints
from cvxpriv.constraints.text import FORMS, FUNCTIONS

from .conftest import Run, one_error_line


def test_every_ready_constraint_is_listed_with_its_text_and_what_it_asks(run: Run) -> None:
    said = run("constraints").stdout
    assert max(map(len, said.splitlines())) <= 100
    listed = json.loads(run("constraints", "--json").stdout)["constraints"]
    assert {one["name"] for one in listed} >= set(FORMS)
    for one in listed:
        assert " ".join(one["text"].split()) in " ".join(said.split())
        assert one["asks"]


def test_the_functions_of_all_texts_are_those_of_the_package() -> None:
    makers = set(constraints.__all__) - {"FORMS", "couples_rows", "from_document", "parse", "to_document"}
    assert {FUNCTIONS.get(name, name) for name in FORMS} == makers - {"ReadyConstraint"}


@pytest.mark.parametrize("name", ["ldp", "ldp=1.0"])
def test_one_is_shown_by_its_name_or_its_text(run: Run, name: str) -> None:
    said = run("constraints", name).stdout
    assert "--constraint ldp=EPSILON or ldp=EPSILON:DELTA" in said
    assert "p(u|y) <= exp(epsilon) p(u|y')" in said
    assert ("local_differential_privacy(epsilon=1)" in said.splitlines()[0]) == ("=" in name)


def test_an_unknown_one_and_a_bad_text_are_refused(run: Run) -> None:
    assert "did you mean 'ldp'" in one_error_line(run("constraints", "ldpp"))
    assert "write ldp=EPSILON" in one_error_line(run("constraints", "ldp=a"))

"""Facts are said once: a page, a text, JSON and a table are made from the same ones."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from cvxpriv.certify.verdicts import VERDICTS
from cvxpriv.errors import DataError
from cvxpriv.mechanisms.plots import plot_curve
from cvxpriv.reports import page
from cvxpriv.reports.document import document_of, error_document
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.page import grid, render
from cvxpriv.reports.text import section_text, text_of

CURVE = pd.DataFrame({"rate": [0.5, 1.0], "kkt": [1.234e-9, float("nan")], "converged": [True, False]})
FACTS = Facts(
    "Privacy funnel: people",
    "A mechanism.",
    [
        Fact("leakage", 0.25, "nats", "What Y tells of S.", "Leakage I(S;Y)", "half of it", (0.2, 0.3), main=True),
        Fact("accuracy_y", 0.441, "right", "Best guess.", percent=True),
    ],
    [
        Section(
            "Curve",
            "All of it.",
            [Picture(lambda: 1 / 0, "A line")],
            brief=Section("In brief", tables=[Table(CURVE, digits={"kkt": 1})], notes=["Mind it."]),
        ),
        Section("For the page alone"),
    ],
    about=[Fact("private", ("age", "sex"), label="private S", detail="4 symbols")],
    settings=[Fact("tol", 1e-7, "nats", "Where it stops.")],
    messages=["Give a smaller beta."],
    promises=["Nothing about a single person."],
    tables={"curve": CURVE},
    converged=True,
)


def test_a_terminal_shows_what_it_is_about_the_facts_and_the_brief_sections() -> None:
    assert text_of(FACTS) == (
        "Privacy funnel: people\n"
        "  private S  age, sex (4 symbols)\n"
        "\n"
        "  Leakage I(S;Y)  0.2500 nats  half of it; 95% interval 0.2000 to 0.3000\n"
        "  accuracy y      44.1% right\n"
        "\n"
        "Give a smaller beta.\n"
        "\n"
        "In brief\n"
        "    rate   kkt  converged\n"
        "  0.5000  1e-9  yes\n"
        "   1.000     -  no\n"
        "  - Mind it.\n"
        "\n"
        "What this promises, and what it does not\n"
        "  - Nothing about a single person."
    )


def test_long_remarks_are_broken_into_lines_below_their_own_column() -> None:
    text = text_of(Facts("T", facts=[Fact("a", 1.0, detail="word " * 40), Fact("b", 2.0)]))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 96
    assert lines[1].startswith("  a  1.000  word")
    assert lines[2].startswith(" " * 12 + "word")
    assert lines[-1] == "  b  2.000"


def test_a_document_has_a_schema_version_and_every_fact_with_unit_and_sentence() -> None:
    document = json.loads(json.dumps(document_of(FACTS, "funnel", [Path("out/report.html")]), allow_nan=False))
    assert document["schema_version"] == 1
    assert document["facts"]["leakage"] == {
        "value": 0.25,
        "unit": "nats",
        "label": "Leakage I(S;Y)",
        "sentence": "What Y tells of S.",
        "detail": "half of it",
        "interval": [0.2, 0.3],
        "level": 0.95,
    }
    assert document["about"] == {"private": ["age", "sex"]}
    assert document["settings"] == {"tol": 1e-7}
    assert document["tables"]["curve"][1] == {"rate": 1.0, "kkt": None, "converged": False}
    assert document["files"] == ["out/report.html"]
    assert document["converged"] is True
    assert document["messages"] == ["Give a smaller beta."]


def test_an_error_is_a_document_too() -> None:
    document = error_document(DataError("no such\n file"), 2)
    assert document == {
        "schema_version": 1,
        "error": {"type": "DataError", "message": "no such file", "exit_code": 2},
    }


def test_pictures_are_drawn_by_the_page_alone() -> None:
    text_of(FACTS)
    document_of(FACTS)
    with pytest.raises(ZeroDivisionError):
        render(FACTS)


def test_the_page_shows_every_fact_with_its_sentence_and_the_settings() -> None:
    figure = plot_curve(pd.DataFrame({"utility": [0.0, 1.0], "leakage": [0.0, 0.5]}))
    section = Section("Curve", pictures=[Picture(lambda: figure, "A line")])
    page = render(Facts("T", "", FACTS.facts, [section], FACTS.about, FACTS.settings, promises=FACTS.promises))
    for text in ("44.1%", "What Y tells of S.", "age, sex (4 symbols)", "Where it stops.", "data:image/svg+xml"):
        assert text in page


def test_a_fact_is_found_by_its_name() -> None:
    assert FACTS["accuracy_y"].value == 0.441
    assert FACTS["tol"].sentence == "Where it stops."
    assert "rate" not in FACTS
    with pytest.raises(DataError, match="name='leakag' is no fact: did you mean 'leakage'"):
        FACTS["leakag"]


def test_the_page_colours_the_verdicts_that_there_are() -> None:
    assert (*(name.lower() for name in reversed(VERDICTS)), "other") == page.BADGES


def test_shares_stand_flush_right_in_the_terminal_and_on_the_page() -> None:
    shown = Table(pd.DataFrame({"column": ["age", "sex"], "from Y": ["8.5%", "100.0%"], "within": ["", "± 7.3%"]}))
    assert section_text(Section("s", tables=[shown])).splitlines()[1:] == [
        "  column  from Y  within",
        "  age       8.5%",
        "  sex     100.0%  ± 7.3%",
    ]
    assert [cell.kind for cell in grid(shown).rows[1]] == ["short", "number", "number"]

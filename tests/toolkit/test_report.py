"""A report: one page that holds everything, loads nothing and believes no text."""

from __future__ import annotations

import base64
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvxpriv.certify.verdicts import VERDICTS
from cvxpriv.errors import DataError, ModelError
from cvxpriv.mechanisms.plots import plot_curve
from cvxpriv.reports import page as report_module
from cvxpriv.reports.facts import Fact, Facts, Picture, Section, Table
from cvxpriv.reports.formatting import format_cell, format_number
from cvxpriv.reports.page import render, write
from cvxpriv.reports.pictures import blank

VOID = {"meta", "img"}


class Page(HTMLParser):
    """Tags with their attributes, the texts, and whether every tag is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style" and data.strip():
            self.texts.append(data.strip())

    def rows(self) -> list[tuple[str, str]]:
        """Class of each cell of tables, in order, and of headings."""
        return [(tag, attrs.get("class") or "") for tag, attrs in self.tags if tag in ("th", "td")]


def full_report() -> Facts:
    checks = pd.DataFrame(
        {
            "solver": ["CLARABEL", "SCS", "ECOS", "OSQP", "new"],
            "gap": [1.23456e-9, 4.5e-5, np.nan, 3e-7, 0.0],
            "verdict": ["agrees", "WRONG", "failed", "loose", "unsure"],
        }
    )
    figure = plot_curve(pd.DataFrame({"utility": [0.0, 1.0], "leakage": [0.0, 0.5]}))
    return Facts(
        "Funnel",
        "First paragraph,\nstill first.\n\nSecond paragraph.",
        [
            Fact("leakage", 0.0123456, "nats", detail="half of it", interval=(0.01, 0.02), main=True),
            Fact("state", "converged", main=True),
        ],
        [
            Section("Curve", "Text.", [Picture(lambda: figure, "A rising line", "Down is better.")]),
            Section("Checks", tables=[Table(checks, "Residuals are exact.")], notes=["Mind SCS."]),
            Section("Promise", "Not differentially private."),
        ],
    )


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render(full_report()))


def test_the_page_is_well_formed_and_says_what_it_was_given(page: Page) -> None:
    assert page.open == []
    for text in (
        "Funnel", "First paragraph, still first.", "Second paragraph.", "0.01235", "nats",
        "half of it; 95% interval 0.01000 to 0.02000", "converged", "Curve", "Down is better.",
        "Residuals are exact.", "Mind SCS.", "Not differentially private.",
    ):  # fmt: skip
        assert text in page.texts
    assert f"numpy {np.__version__}" in page.texts


def test_the_page_loads_nothing_and_runs_nothing(page: Page) -> None:
    assert not {"script", "link", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "srcset", "action", "data"):
                assert (value or "").startswith(("data:image/", "#section-"))
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert not re.search(r"url\(|@import|@font-face", render(full_report()))


def test_links_of_the_contents_lead_to_the_sections(page: Page) -> None:
    ids = {attributes.get("id") for tag, attributes in page.tags if tag == "section"}
    links = {(attributes["href"] or "")[1:] for tag, attributes in page.tags if tag == "a"}
    assert links == ids == {"section-1", "section-2", "section-3"}


def test_pictures_are_embedded_with_their_alternative_text(page: Page) -> None:
    (image,) = [attributes for tag, attributes in page.tags if tag == "img"]
    kind, data = (image["src"] or "").split(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(data).startswith(b"<?xml")
    assert image["alt"] == "A rising line"


def test_texts_are_escaped_wherever_they_stand() -> None:
    evil = "<script>alert('x')</script>\"'&"
    frame = pd.DataFrame({evil: [evil], "verdict": [evil]}, index=pd.Index([evil], name=evil))
    section = Section(
        evil, evil, [Picture(lambda: blank(1.0, 1.0), evil, evil)], [Table(frame, evil, index=True)], [evil]
    )
    html = render(
        Facts(
            evil,
            evil,
            [Fact(evil, evil, evil, evil, evil, evil, main=True)],
            [section],
            messages=[evil],
            promises=[evil],
        )
    )
    assert "<script" not in html
    assert "alert(&#39;x&#39;)" in html
    assert Page(html).open == []
    assert {tag for tag, _ in Page(html).tags}.isdisjoint({"script"})


def test_what_stands_between_backticks_is_code_and_still_escaped() -> None:
    html = render(Facts("t", "", promises=["run `python <x>.py` twice"]))
    assert "run <code>python &lt;x&gt;.py</code> twice" in html


def test_verdicts_come_first_with_a_colour_each_and_are_counted_worst_first(page: Page) -> None:
    start = page.texts.index("1 WRONG")
    assert page.texts[start : start + 5] == ["1 WRONG", "1 failed", "1 loose", "1 agrees", "1 unsure"]
    heading = page.texts.index("verdict")
    assert page.texts[heading : heading + 3] == ["verdict", "solver", "gap"]
    badges = [a["class"] for tag, a in page.tags if tag == "span" and (a.get("class") or "").startswith("badge")]
    assert badges[5:] == ["badge agrees", "badge wrong", "badge failed", "badge loose", "badge other"]


def test_every_verdict_of_the_toolkit_has_a_colour_in_the_light_and_in_the_dark() -> None:
    html = render(Facts("x"))
    for verdict in VERDICTS:
        assert f".{verdict.lower()} {{ color: var(--{verdict.lower()})" in html
        assert html.count(f"--{verdict.lower()}-back: #") == 3  # light, dark, print


def test_columns_of_numbers_are_aligned_as_numbers_and_missing_ones_are_dashes() -> None:
    frame = pd.DataFrame({"n": [1, 32561], "p": [0.5, np.nan], "who": ["a", None], "never": [None, None]})
    page = Page(render(Facts("x", sections=[Section("s", tables=[Table(frame)])])))
    assert page.rows()[:2] == [("th", "number")] * 2
    assert page.rows()[4:] == 2 * [("td", kind) for kind in ("number", "number", "short", "short")]
    heading = page.texts.index("n")
    assert page.texts[heading + 4 : heading + 12] == ["1", "0.5000", "a", "–", "32,561", "–", "–", "–"]


def test_only_columns_of_short_texts_are_kept_on_one_line() -> None:
    frame = pd.DataFrame({"solver": ["closed form"], "why": ["every exact residual is small"]})
    page = Page(render(Facts("x", sections=[Section("s", tables=[Table(frame)])])))
    assert page.rows()[2:] == [("td", "short"), ("td", "text")]


def test_the_index_is_shown_when_asked() -> None:
    frame = pd.DataFrame({"value": [1.0]}, index=pd.MultiIndex.from_tuples([("30", "F")], names=["age", "sex"]))
    page = Page(render(Facts("x", sections=[Section("s", tables=[Table(frame, index=True)])])))
    heading = page.texts.index("age")
    assert page.texts[heading : heading + 6] == ["age", "sex", "value", "30", "F", "1.000"]


def test_an_empty_report_and_an_empty_table_are_pages_too() -> None:
    assert Page(render(Facts("x"))).open == []
    empty = pd.DataFrame({"solver": [], "verdict": []})
    page = Page(render(Facts("x", sections=[Section("s", tables=[Table(empty)])])))
    heading = page.texts.index("verdict")
    assert page.texts[heading : heading + 2] == ["verdict", "solver"]
    assert ("td", "number") not in page.rows()


def test_the_same_report_gives_the_same_page() -> None:
    assert render(full_report()) == render(full_report())


def test_the_page_names_no_host_no_user_and_no_folder() -> None:
    import getpass
    import platform

    foot = render(full_report()).split("<footer>")[1]
    assert str(Path.cwd()) not in foot
    assert str(Path.home()) not in foot or str(Path.home()) == "/"
    for name in (platform.node(), getpass.getuser()):
        assert f">{name}<" not in foot
        assert f" {name}<" not in foot


def test_a_failure_while_rendering_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(full_report(), tmp_path / "out" / "report.html")
    before = path.read_text()

    def fail(_: object) -> str:
        raise RuntimeError

    monkeypatch.setattr(report_module, "grid", fail)
    with pytest.raises(RuntimeError):
        write(full_report(), path)
    assert path.read_text() == before
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_without_jinja_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ModelError, match=r'reports need Jinja2.*pip install "cvxpriv\[report\]"'):
        render(Facts("x"))


def test_a_picture_needs_a_text() -> None:
    with pytest.raises(DataError, match="say in a sentence what it shows"):
        Picture(lambda: blank(1.0, 1.0), "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00012345, "0.0001234"),
        (0.000099996, "0.0001000"),
        (0.00009999, "9.999e-5"),
        (9999.9, "10,000"),
        (1234567.0, "1,234,567"),
        (9999999.9, "1.000e7"),
        (-0.25, "-0.2500"),
        (-1e-12, "-1.000e-12"),
        (-0.0, "0"),
        (float("-inf"), "-∞"),
        (np.float64(0.5), "0.5000"),
        (np.int64(-1200), "-1,200"),
    ],
)
def test_numbers_have_four_digits_and_an_exponent_only_where_needed(value: float, text: str) -> None:
    assert format_number(value) == text


def test_cells_that_are_no_numbers_read_as_words() -> None:
    assert [format_cell(v) for v in (pd.NA, pd.NaT, np.bool_(False), ("a", 1), "x")] == ["–", "–", "no", "a, 1", "x"]

"""A curve that a reader walks along, and shaded tables: what the page holds, with and without its script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from cvxpriv.models import PrivacyFunnel
from cvxpriv.reports.facts import Facts, Section, Table
from cvxpriv.reports.formatting import Heatmap, given_outputs, heatmap_of
from cvxpriv.reports.page import grid, render
from cvxpriv.reports.sliders import Slider, Stop
from cvxpriv.runs.mechanism_run import Beside
from cvxpriv.tables.joint import JointTable

EVIL = "</script><b>'\""


def slider(name: str = "half") -> Slider:
    heat = Heatmap(np.array([[0.25, 0.75]]), ["old"], ["y0", "y1"], "age")
    stops = [
        Stop(name, 0.5, 0.1, 0.05, [("leakage", "0.1000")], heat),
        Stop("all", 1.0, 0.4, 0.4, [("leakage", "0.4")]),
    ]
    return Slider("Rate", "utility", "leakage", stops, "A rising line", ("I(S;X)", 0.4), (1.0, 0.4), 1)


class Attributes(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_holds_the_picture_the_control_and_the_state_of_every_stop() -> None:
    html = render(Facts("x", sections=[Section("Curve", slider=slider(EVIL))]))
    assert EVIL not in html
    tags = Attributes(html).found
    held = next(attributes for _, attributes in tags if attributes.get("class") == "slider")
    states = json.loads(held["data-states"] or "")
    assert [state["name"] for state in states] == [EVIL, "all"]
    assert states[0]["cells"] == [[["25", 25], ["75", 75]]]
    control = next(attributes for tag, attributes in tags if attributes.get("class") == "control")
    assert "hidden" in control  # until the script shows it
    bar = next(attributes for tag, attributes in tags if tag == "input")
    assert (bar["type"], bar["max"], bar["value"]) == ("range", "1", "1")
    picture = next(attributes for tag, attributes in tags if tag == "svg")
    assert (picture["role"], picture["aria-label"]) == ("img", "A rising line")


def test_the_policy_allows_this_script_alone_and_nothing_from_elsewhere() -> None:
    html = render(Facts("x", sections=[Section("Curve", slider=slider())]))
    script = re.search(r"<script>(.*?)</script>", html, re.S)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert "innerHTML" not in script[1]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)


def test_the_marker_stands_on_the_line_and_the_band_reaches_down_to_the_bound() -> None:
    states, svg = json.loads(slider().states), slider().svg
    here = re.search(r'class="here" cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert here is not None
    assert (float(here[1]), float(here[2])) == (states[1]["x"], states[1]["y"])
    line = re.search(r'class="line" points="([^"]+)"', svg)
    assert line is not None
    assert line[1] == " ".join(f"{state['x']:.1f},{state['y']:.1f}" for state in states)
    band = re.search(r'class="band" points="([^"]+)"', svg)
    assert band is not None
    ups = [float(point.split(",")[1]) for point in band[1].split()]
    assert ups[0] < ups[3]  # SVG counts downwards: the bound of the first point lies below it


def test_a_shaded_table_names_rows_and_columns_and_says_what_it_leaves_out() -> None:
    matrix = np.array([[0.0, 0.999, 0.001], [1.0, 0.0, 0.0]])
    shown = heatmap_of(matrix, ["0", "1"], "age")
    assert given_outputs(matrix).tolist() == [1, 0]
    assert list(shown.columns) == ["y1", "y0"]
    assert "Without 1 output of P(Y|X) < 0.005." in shown.caption
    assert shown.cells == [[("99", 99), ("", 0)], [("", 0), ("100", 100)]]
    html = render(Facts("x", sections=[Section("Mechanism", heatmaps=[shown])]))
    scopes = [attributes.get("scope") for tag, attributes in Attributes(html).found if tag == "th"]
    assert scopes == ["col", "col", "col", "row", "row"]
    assert "<script" not in html


def test_the_points_of_a_column_of_numbers_stand_below_each_other() -> None:
    cells = [row[0] for row in grid(Table(pd.DataFrame({"value": [0.5, 12.3456, 3.0e-8, np.nan]}))).rows]
    behind = [len(cell.text.partition(".")[2]) + 0.5 * ("." in cell.text) + cell.pad for cell in cells]
    assert behind == [behind[0]] * 4


@pytest.fixture(scope="module")
def table() -> JointTable:
    return JointTable.from_counts([[14, 10, 6], [4, 9, 17]], ["low", "high"], ["young", "middle", "old"])


def test_the_page_of_a_run_walks_along_its_curve_with_the_adversary_and_the_mechanism(table: JointTable) -> None:
    funnel = PrivacyFunnel(table, rate=0.6)
    curve, mechanisms = funnel.traced([0.4, 0.6, 1.0])
    run = funnel.solve()
    section = run.described(Beside("", curve, mechanisms=mechanisms)).sections[0]
    assert section.slider is not None
    states = json.loads(section.slider.states)
    guess = (table.probabilities @ mechanisms[0]).max(axis=0).sum()
    assert states[0]["shown"][-1] == f"{guess:.1%}"
    assert states[2]["shown"][0] == "1.093"  # H(18/60, 19/60, 23/60)
    assert section.slider.first == 1
    assert section.tables[0].frame["best guess of S"].iloc[0] == f"{guess:.1%}"
    assert section.pictures[0].beside  # the file curve.png stays, the page shows the slider
    for place, row in enumerate(curve.itertuples()):
        joint = table.probabilities @ mechanisms[place]
        assert abs(funnel.problem.leakage(mechanisms[place]) - row.leakage) < 1e-12  # the same mechanism
        assert abs(joint.sum() - 1.0) < 1e-12

"""The papers' pictures: each has a verdict, the numbers behind it, and a script whose fast run still gives them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

PAPERS = Path(__file__).parents[1] / "examples/papers"
PICTURES = Path(__file__).parents[1] / "docs/pictures"
RECORD: dict[str, dict[str, Any]] = json.loads((PICTURES.parent / "papers.json").read_text(encoding="utf-8"))
DRAWN = {
    script: [Path(name) for verdict in entry["verdicts"] for name in verdict["pictures"]]
    for script, entry in RECORD.items()
}
#: Those whose fast run takes a few seconds of processor time.
QUICK = ("istdp_path",)
#: Share of an axis by which a point may move before the picture is stale: what a reader begins to see.
SEEN = 0.01


@pytest.fixture(scope="module")
def papers() -> Any:
    """Return the module that draws and records them."""
    import importlib.util

    sys.path.insert(0, str(PAPERS))
    try:
        found = importlib.util.spec_from_file_location("papers_main", PAPERS / "__main__.py")
        assert found
        assert found.loader
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(PAPERS))


def kept(name: Path, folder: str = "") -> list[dict[str, Any]]:
    """Return the numbers behind a picture."""
    found: list[dict[str, Any]] = json.loads(
        (PICTURES / folder / name.with_suffix(".json")).read_text(encoding="utf-8")
    )
    return found


def test_every_picture_has_one_script_and_every_script_its_verdicts() -> None:
    named = [str(name) for names in DRAWN.values() for name in names]
    assert sorted(named) == sorted({*named})
    there = {path.name for path in PICTURES.glob("*") if path.suffix in {".png", ".md"}}
    assert there <= set(named)
    assert {str(name) for script, names in DRAWN.items() if RECORD[script]["digest"] for name in names} <= there
    assert {path.stem for path in PAPERS.glob("*_*.py") if "_case" not in path.name} - {"__main__"} == set(RECORD)
    kinds = {"agrees", "agrees in part", "the paper is wrong", "not reproducible"}
    assert {verdict["kind"] for entry in RECORD.values() for verdict in entry["verdicts"]} <= kinds


def test_the_record_and_the_readme_say_what_the_scripts_say(papers: Any) -> None:
    assert papers.entries({}, RECORD) == RECORD
    readme = (PAPERS / "README.md").read_text(encoding="utf-8")
    assert papers.written(readme, papers.sections(RECORD)) == readme


@pytest.mark.parametrize("script", [name for name in DRAWN if RECORD[name]["digest"]])
def test_a_picture_was_committed_with_its_numbers_and_those_of_its_fast_run(script: str, papers: Any) -> None:
    import drawn

    assert papers.digest(script) == RECORD[script]["digest"]
    for name in DRAWN[script]:
        assert drawn.words(kept(name)) == drawn.words(kept(name, "fast"))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name in DRAWN
        if RECORD[name]["digest"] and name != "sharing_fig2"  # whose data the user brings
    ],
)
def test_a_fast_run_gives_the_numbers_that_are_kept(script: str, papers: Any, tmp_path: Path) -> None:
    import drawn

    papers.drawn(script, True, tmp_path)
    for name in DRAWN[script]:
        assert (tmp_path / name).exists()
        new = json.loads((tmp_path / name.with_suffix(".json")).read_text(encoding="utf-8"))
        assert drawn.apart(kept(name, "fast"), new) <= SEEN, f"{name} is stale: make papers"


def test_the_default_number_of_noisy_gradients_lies_between_the_two_best_that_were_tried() -> None:
    _, spent = kept(Path("istdp_floor"), "fast")
    tried, rule = spent["series"]
    excess = dict(zip(tried["x"], tried["y"], strict=True))
    low, high = sorted(sorted(excess, key=excess.__getitem__)[:2])
    assert low < rule["x"][0] < high


def test_a_point_that_moves_and_a_label_that_changes_are_seen(papers: Any) -> None:
    import drawn

    axis = {"label": "t", "scale": "log", "limits": [1.0, 100.0]}
    old = [{"title": "a", "x": axis, "y": axis, "series": [{"name": "b", "x": [1.0, 10.0], "y": [1.0, 10.0]}]}]
    new: list[dict[str, Any]] = json.loads(json.dumps(old))
    assert drawn.apart(old, new) == 0.0
    new[0]["series"][0]["y"][1] = 20.0
    assert drawn.apart(old, new) == pytest.approx(0.1505, abs=1e-4)  # log10(2) / 2
    new[0]["y"]["label"] = "nats"
    assert drawn.apart(old, new) == float("inf")

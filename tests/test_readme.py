"""The README's examples run as they are pasted, and print what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
_EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n(?:\nprints\n\n```\n(?P<output>.*?)```)?", re.DOTALL)
EXAMPLES = [(found["code"], found["output"]) for found in _EXAMPLE.finditer(README.read_text(encoding="utf-8"))]


def test_the_readme_has_examples_with_their_output() -> None:
    assert sum(output is not None for _, output in EXAMPLES) >= 2


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(place, marks=pytest.mark.slow if place == 0 else ())  # the first is the longest
        for place, (_, output) in enumerate(EXAMPLES)
        if output is not None
    ],
)
def test_an_example_prints_what_the_readme_says(place: int, tmp_path: Path) -> None:
    code, output = EXAMPLES[place]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == output


@pytest.mark.slow
@pytest.mark.parametrize("place", [place for place, (_, output) in enumerate(EXAMPLES) if output is None])
def test_an_example_without_output_runs(place: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[place][0]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]

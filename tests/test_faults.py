"""The table of faults names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
ROWS = re.findall(r"\| `(test_\w+\.py)::(test_\w+)` \|", (TESTS.parent / "docs" / "faults.md").read_text("utf-8"))


def test_every_row_of_the_table_of_faults_is_a_test() -> None:
    assert len(ROWS) >= 15
    for file, name in ROWS:
        (path,) = TESTS.rglob(file)
        assert f"def {name}(" in path.read_text("utf-8"), name

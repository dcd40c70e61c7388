"""README and documentation: the commands of every shell block run as they are pasted, in order, in one folder.

A command whose output a page shows prints it, but for numbers that are times or rounding.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cvxpriv import datasets
from cvxpriv.cli import main

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
#: Commands that are not run here: they fetch rows, wait for other processes, or take hours.
ELSEWHERE = {
    "cvxpriv sparse adult ": "fetches rows; cli/test_sparse.py",
    "cvxpriv consensus adult ": "fetches rows; cli/test_consensus.py",
    "cvxpriv party serve ": "waits for a label holder; cli/test_parties.py and test_nodes.py",
    "cvxpriv sharing --parties ": "waits for parties; cli/test_parties.py",
    "cvxpriv consensus --nodes nodes.toml ": "waits for nodes; cli/test_nodes.py",
    "cvxpriv crosscheck --all": "every block by every solver; cli/test_crosscheck.py",
    "cvxpriv corpus run ": "hundreds of problems; cli/test_corpus.py",
}
#: Exit codes other than 0 that the page speaks of.
ENDS = {"cvxpriv verify mine.py:f": 1}
#: How lines of answers begin, which end with milliseconds.
VERDICTS = ("agrees", "loose", "WRONG", "failed")
MINE = """import cvxpriv as cpv
import cvxpy as cp
import numpy as np

f = cpv.FDivergence("mine", f=lambda t: t * np.log(t), expression=lambda P, Q: (cp.sum(cp.kl_div(Q, P)), []))
"""
PROBLEM = """import cvxpy as cp


def build():
    x = cp.Variable(2)
    return cp.Problem(cp.Minimize(cp.sum_squares(x) - x[0]), [cp.sum(x) == 1, x >= 0])
"""
PLAN = """model = "PrivacyFunnel"

[data]
source = "heart-failure"

[grid]
rate = [0.2, 0.6]
"""


def shell(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands of a page, each with the output that the page shows, empty where it shows none."""
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["language"]:
            continue
        text = block["text"].replace("\\\n", " ")
        if text.startswith("$ "):
            command, _, shown = text.removeprefix("$ ").partition("\n")
            yield command, shown
        else:
            yield from ((line, "") for line in text.splitlines() if line.startswith("cvxpriv "))


PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if any(shell(page))]
COMMANDS = [(page, command) for page in PAGES for command, _ in shell(page)]


def is_elsewhere(command: str) -> bool:
    return any(command.startswith(begin) for begin in ELSEWHERE)


def files_in(folder: Path) -> None:
    """Write the files that the pages speak of, made up."""
    rng = np.random.default_rng(0)
    counts = datasets.load_table("heart-failure")
    patients = counts.loc[counts.index.repeat(counts["count"])].drop(columns="count").reset_index(drop=True)
    rows = len(patients)
    age = rng.integers(18, 90, rows)
    jobs = rng.choice(["clerk", "typist", "smith", "pilot"], rows, p=[0.4, 0.3, 0.29, 0.01])
    died = np.where(rng.random(rows) < age / 120, "yes", "no")
    patients = patients.assign(age=age, job=jobs, income=rng.integers(10, 99, rows) * 100, died=died)
    patients.to_csv(folder / "patients.csv", index=False)
    groups = np.where(age < 40, "young", "old")
    people = pd.DataFrame({"income": np.where(rng.random(rows) < age / 120, "high", "low"), "age": groups})
    people = people.assign(sex=rng.choice(["F", "M"], rows), education_num=rng.integers(8, 11, rows), count=1)
    people.to_csv(folder / "people.csv", index=False)
    people.drop(columns="income").to_csv(folder / "raw.csv", index=False)
    symptoms = rng.choice(["cough", "none"], rows)
    table = pd.DataFrame({"disease": died, "symptom": symptoms, "age": groups})
    table.to_csv(folder / "table.csv", index=False)
    adult = pd.DataFrame({"age": age, "education-num": rng.integers(1, 17, rows), "income": people["income"]})
    adult = adult.assign(**{"hours-per-week": rng.integers(1, 99, rows)}, occupation=jobs)
    adult.to_csv(folder / "adult.csv", index=False)
    for name, text in (("mine.py", MINE), ("my_problem.py", PROBLEM), ("plan.toml", PLAN)):
        (folder / name).write_text(text)


def stable(text: str) -> list[str]:
    """Return the lines of an output, blanks as one. Numbers are left out, but for whole ones that are no times."""
    found = []
    for line in (" ".join(line.split()) for line in text.splitlines()):
        kept = r"\d{1,3}(?![\d,.e])" if not line.startswith(VERDICTS) else r"(?!)"
        found.append(re.sub(rf"(?<![\d,.e-])(?!{kept})\d[\d,.]*(?:e[-+]?\d+)?", "#", line))
    return [line for line in found if line and line != "..."]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_commands_of_a_page_run_as_pasted(page: Path, tmp_path: Path) -> None:
    files_in(tmp_path)
    with chdir(tmp_path):
        for command, shown in shell(page):
            if is_elsewhere(command):
                continue
            ended = CliRunner().invoke(main, shlex.split(command, comments=True)[1:])
            assert ended.exit_code == ENDS.get(command, 0), f"{command}\n{ended.output}"
            printed = iter(stable(ended.stdout))
            missing = [line for line in stable(shown) if line not in printed]
            assert missing == [], f"{command}\n{ended.stdout}"


def test_every_command_of_a_page_is_run_or_named_with_its_reason() -> None:
    assert len(COMMANDS) >= 40
    for begin in ELSEWHERE:
        assert any(command.startswith(begin) for _, command in COMMANDS), begin
    assert sum(is_elsewhere(command) for _, command in COMMANDS) <= 13

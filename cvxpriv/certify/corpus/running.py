"""The run of a corpus: every problem by every solver, and the number of verdicts that contradict the truth."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cvxpriv.certify.check import crosscheck
from cvxpriv.certify.corpus.items import Item
from cvxpriv.certify.corpus.known import false_verdicts
from cvxpriv.certify.verdicts import VERDICTS
from cvxpriv.errors import CvxprivError
from cvxpriv.numerics.packages import pd, versions
from cvxpriv.reports.facts import Fact, Facts, Section, Table
from cvxpriv.solvers.registry import installed, package_of

PACKAGES = {name: package_of(name) for name in installed()}
"""The package of each solver."""
CLAIM = "claim"
"""Name of the answers that come with a problem."""


@dataclass(frozen=True, eq=False)
class CorpusRun:
    """The result of a run of a corpus.

    `table`: One row per answer: source, problem, solver, version, status, verdict, known_by, seconds, objective,
    reason.
    `problems`: One row per problem: source, problem, variables, constraints, seconds (of all its answers and verdicts),
    false (the number of false verdicts).
    `false`: Verdicts that contradict the known truth.
    `skipped`: Problems that were not judged, and the reason.
    """

    table: pd.DataFrame
    problems: pd.DataFrame
    false: tuple[str, ...]
    skipped: Mapping[str, str]

    @property
    def by_solver(self) -> pd.DataFrame:
        """Number of each verdict for each version of a solver, and the median time of an answer in seconds."""
        rows = []
        for (solver, version), group in self.table.groupby(["solver", "version"], sort=False):
            counts = {verdict: int((group["verdict"] == verdict).sum()) for verdict in VERDICTS}
            median = float(group["seconds"].median())
            rows.append({"solver": solver, "version": version, "answers": len(group), **counts, "median s": median})
        return pd.DataFrame(rows)

    @property
    def by_source(self) -> pd.DataFrame:
        """Number of problems and of false verdicts for each source, and the median time of a problem."""
        groups = self.problems.groupby("source", sort=False)
        answers = self.table.groupby("source", sort=False).size()
        return pd.DataFrame(
            {
                "problems": groups.size(),
                "answers": answers,
                "false verdicts": groups["false"].sum(),
                "median s": groups["seconds"].median(),
            }
        ).reset_index()

    @property
    def facts(self) -> Facts:
        """The benchmark as a page, a terminal and a program show it."""
        answers, false = len(self.table), len(self.false)
        rate = false / answers if answers else 0.0
        median = float(self.problems["seconds"].median()) if len(self.problems) else 0.0
        brought = "Claims and stored answers are brought by the corpus: no solver ran for them."
        shown = [
            Section("By solver", notes=[brought], tables=[Table(self.by_solver, digits={"median s": 2})]),
            Section("By source", tables=[Table(self.by_source, digits={"median s": 2})]),
            *([Section("False verdicts", notes=list(self.false))] if self.false else []),
        ]
        sections = [replace(section, brief=section) for section in shown]
        skipped = pd.DataFrame({"problem": list(self.skipped), "why": list(self.skipped.values())})
        if len(skipped):
            brief = Section("Not judged", f"{len(skipped)} problems; skipped.csv and the page say why.")
            sections.append(Section("Not judged", tables=[Table(skipped)], brief=brief))
        return Facts(
            "Corpus of problems",
            "Every problem by every solver that takes it. A verdict is false where it contradicts what is known: a "
            "right answer is called WRONG, or a wrong one agrees.",
            [
                Fact("problems", len(self.problems), main=True),
                Fact("answers", answers, main=True),
                Fact("false_verdicts", false, "", "Verdicts that contradict what is known.", main=True),
                Fact("false_rate", rate, "", "Share of the verdicts that are false.", percent=True, main=True),
                Fact("median_seconds", median, "s", "All solvers and verdicts of a problem.", "median time", main=True),
            ],
            sections,
            tables={
                "answers": self.table,
                "problems": self.problems,
                "solvers": self.by_solver,
                "sources": self.by_source,
                "skipped": skipped,
            },
        )


def run_corpus(
    corpus: Iterable[Item], solvers: tuple[str, ...] | None = None, *, time_limit: float | None = None
) -> CorpusRun:
    """Judge every problem of a corpus.

    `solvers`: Names of solvers. None is every installed one.
    `time_limit`: Seconds for each solve, which then has a process of its own.
    """
    frames, rows, false, skipped = [], [], [], {}
    judge = partial(crosscheck, solvers=solvers, isolate=time_limit is not None, time_limit=time_limit)
    installed = versions(PACKAGES.values())
    for item in corpus:
        if item.known is None:
            skipped[item.name] = item.skipped
            continue
        begun = time.perf_counter()
        try:
            claims: dict[str, Any] = {name: dict(values) for name, values in item.known.answers.items()}
            check = judge(item.known.problem, answers={**claims, **item.stored})
        except CvxprivError as error:
            skipped[item.name] = str(error)
            continue
        seconds = time.perf_counter() - begun
        contradictions = _false(item, check.table)
        false += contradictions
        frames.append(_answers(item, check.table, installed))
        problem = item.known.problem
        size, count = sum(one.size for one in problem.variables()), len(problem.constraints)
        rows.append((item.source, item.name, size, count, seconds, len(contradictions)))
    columns = ["source", "problem", "variables", "constraints", "seconds", "false"]
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=_COLUMNS)
    return CorpusRun(table, pd.DataFrame(rows, columns=columns), tuple(false), skipped)


_COLUMNS = ["source", "problem", "solver", "version", "status", "verdict", "known_by", "seconds", "objective", "reason"]


def _false(item: Item, table: pd.DataFrame) -> list[str]:
    """Return the verdicts on an item's answers that contradict its known truth."""
    assert item.known is not None
    told = table[table["solver"].isin(item.stored)]
    wrong = told[~told["verdict"].isin(item.allowed)]
    stored = [f"{item.name}: the stored lie is called {row.verdict}, {row.reason}" for row in wrong.itertuples()]
    return [*stored, *false_verdicts(item.known, table[~table["solver"].isin(item.stored)])]


def _answers(item: Item, table: pd.DataFrame, installed: Mapping[str, str]) -> pd.DataFrame:
    """Return an item's answers, each with the version of its solver."""
    solvers = [
        f"stored {item.stored[name].solver}" if name in item.stored else name if name in PACKAGES else CLAIM
        for name in table["solver"]
    ]
    given = [
        item.stored[name].version if name in item.stored else installed[PACKAGES[name]] if name in PACKAGES else ""
        for name in table["solver"]
    ]
    return table.assign(source=item.source, problem=item.name, version=given, solver=solvers)[_COLUMNS]

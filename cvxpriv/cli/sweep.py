"""`cvxpriv sweep plan.toml`: a model at every point of a grid, with a checkpoint, to CSV and JSON."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cvxpriv.cli.options import applied
from cvxpriv.cli.results import Results, endings
from cvxpriv.cli.terminal import Terminal
from cvxpriv.numerics.sizes import counted

if TYPE_CHECKING:
    import pandas as pd

    from cvxpriv.reports.facts import Facts

_BRIEF = ("leakage", "utility", "accuracy", "objective", "epsilon", "gap", "kkt", "seconds")
_TASK_COLUMNS = ("task", "task_seed", "warnings", "error_type", "error")


@click.command()
@click.argument("plan", metavar="PLAN.toml")
@click.option("--jobs", type=int, default=1, show_default=True, help="Worker processes; -1 is one per core.")
@click.option("--backend", metavar="[dask]", help="Workers of a Dask cluster.  [default: processes of this machine]")
@click.option("--scheduler", metavar="ADDRESS", help="Scheduler of that cluster.  [default: a new one here]")
@click.option(
    "--checkpoint", metavar="FILE", help="File that gets each result at once.  [default: the plan's, or none]"
)
@click.option("--resume/--no-resume", default=True, show_default=True, help="Take the results of the checkpoint.")
@click.option("--retry", is_flag=True, help="Do tasks again that failed.")
@partial(applied, options=endings())
def sweep(
    terminal: Terminal,
    plan: str,
    jobs: int,
    backend: str | None,
    scheduler: str | None,
    checkpoint: str | None,
    resume: bool,
    retry: bool,
    results: Results,
) -> None:
    """Solve a model at every point of a grid, on all cores or a Dask cluster.

    \b
    model = "PrivacyFunnel"
    checkpoint = "runs/funnel.jsonl"
    [data]
    source = "heart-failure"
    [grid]
    rate = [0.2, 0.4, 0.6]
    [solve]
    method = "aem"

    A run that is killed goes on where it was, when the command is given again. Writes sweep.csv, sweep.json and
    report.html into the folder. Exits with 3 when a task fails or does not converge.
    """
    from cvxpriv.cli.results import finish
    from cvxpriv.cli.sweep_plan import read_plan
    from cvxpriv.runs.sweep import sweep as swept

    with terminal.phase("reading the data"):
        read = read_plan(plan)
    options = {**read.options, **({"checkpoint": checkpoint} if checkpoint else {})}
    frame = swept(
        read.model,
        read.data,
        n_jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        resume=resume,
        retry=retry,
        progress=terminal.progress,
        **options,
        **read.grid,
    )
    finish(terminal, _facts(read.model.__name__, frame, list(read.grid)), results, "sweep")


def _facts(model: str, frame: pd.DataFrame, names: list[str]) -> Facts:
    from cvxpriv.reports.facts import Fact, Facts, Section, Table

    count = {status: int((frame["status"] == status).sum()) for status in ("done", "failed", "waiting")}
    loose = int((frame["converged"] == False).sum())  # noqa: E712  None of a private fit is no failure
    varied = [name for name in ("table", "seed", *names) if name in frame and frame[name].astype(str).nunique() > 1]
    told = ["status", *(["converged"] if loose else [])]
    short = frame[[*varied, *told, *(name for name in _BRIEF if name in frame and name not in varied)]]
    whole = frame[[name for name in frame.columns if name not in _TASK_COLUMNS]]
    failed = frame[frame["status"] == "failed"]
    unmet = [f"{count['failed']} of {len(frame)} tasks failed (--retry does them again)"] if count["failed"] else []
    unmet += [f"{loose} of {len(frame)} tasks did not converge"] if loose else []
    return Facts(
        title=f"Sweep of {model}: {counted(len(frame), 'task')}",
        facts=[
            Fact("tasks", len(frame), "", "Points of the grid, times tables and seeds.", main=True),
            Fact("done", count["done"], "", "Tasks with a result.", main=True),
            Fact("failed", count["failed"], "", "Tasks that ended with an error.", main=True),
            Fact("waiting", count["waiting"], "", "Tasks that an interrupt left undone.", aside=not count["waiting"]),
            Fact("not_converged", loose, "", "Results above their tolerance.", main=bool(loose), aside=not loose),
        ],
        sections=[
            Section("Tasks", tables=[Table(whole, sortable=True)], brief=Section("Tasks", tables=[Table(short)]))
        ],
        messages=[f"{row['error_type']}: {row['error']}" for row in failed.drop_duplicates("error").to_dict("records")],
        tables={"sweep": frame},
        files={"sweep.json": lambda path: _write_json(path, frame)},
        converged=not unmet and not count["waiting"],
        interrupted=bool(count["waiting"]),
        unmet="; ".join(unmet),
    )


def _write_json(path: Path, frame: pd.DataFrame) -> Path:
    from cvxpriv.numerics.packages import versions
    from cvxpriv.reports.document import records
    from cvxpriv.reports.files import write_text

    return write_text(path, json.dumps({"versions": versions(), "rows": records(frame)}, indent=1) + "\n")

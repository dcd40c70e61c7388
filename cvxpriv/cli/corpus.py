"""`cvxpriv corpus run`: judge the judge, on problems with known answers and on a user's own files."""

import click

from cvxpriv.cli.options import NAMES, output_options, require_writable
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import Disagreement
from cvxpriv.reports.readers import INTERNAL


@click.group()
@output_options
def corpus() -> None:
    """Judge solvers, and the judge itself, on a corpus of problems."""


@corpus.command(short_help="Every problem of the corpus by every solver.", epilog="Exit code 3 for a false verdict.")
@click.option("--sources", type=NAMES, help="Names among cvxpy, adversarial, liars.  [default: all]")
@click.option("--count", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Adversarial problems.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the adversarial problems.")
@click.option(
    "--folder", metavar="DIR", help="Further problems: .mps, .qps, .lp (also .gz), or .mat with P, q, r, A, l, u."
)
@click.option(
    "--largest",
    type=click.IntRange(1),
    default=400,
    show_default=True,
    help="Largest number of variables or rows of a file.",
)
@click.option("--solvers", type=NAMES, help="Solvers.  [default: every installed solver]")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Seconds for each solve, in a process of its own.")
@click.option("--out", metavar="FOLDER", help="Folder for report.html and the tables as CSV.")
@output_options
@click.pass_obj
def run(
    terminal: Terminal,
    sources: tuple[str, ...] | None,
    count: int,
    seed: int,
    folder: str | None,
    largest: int,
    solvers: tuple[str, ...] | None,
    time_limit: float | None,
    out: str | None,
) -> None:
    """Solve every problem by every solver, judge the answers, and count the verdicts that are false.

    \b
    cvxpy        the problems by which cvxpy tests solvers
    adversarial  problems that mislead, with known answers
    liars        false answers that solvers once gave

    A verdict is false where it contradicts a known answer: a right answer is called WRONG, or a wrong one agrees. For a
    problem from a file, no answer is known: there, answers that agree must not contradict each other.
    """
    from cvxpriv.certify.corpus.items import SOURCES, items
    from cvxpriv.certify.corpus.running import run_corpus
    from cvxpriv.cli.results import write

    target = None if out is None else require_writable(out)
    chosen = SOURCES if sources is None else sources
    problems = items(chosen, count=count, seed=seed, folder=folder, largest=largest)
    with terminal.phase("judging"):
        found = run_corpus(problems, solvers, time_limit=time_limit)
    write(terminal, found.facts, target, "corpus run", page=None if target is None else INTERNAL)
    if found.false:
        raise Disagreement(f"{len(found.false)} of {len(found.table)} verdicts are false: {'; '.join(found.false)}")

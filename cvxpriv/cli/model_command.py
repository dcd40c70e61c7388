"""The end of any command that found something: the check of its proof, its files, its text or JSON, and its exit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import click

from cvxpriv.cli.drawn_rows import Drawn
from cvxpriv.cli.options import Results
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import NotConverged
from cvxpriv.reports.document import document_of
from cvxpriv.reports.facts import Facts
from cvxpriv.reports.formatting import paragraph
from cvxpriv.reports.page import for_page, render
from cvxpriv.reports.readers import SHAREABLE
from cvxpriv.reports.sets import Content, write_set
from cvxpriv.reports.text import csv_text, text_of
from cvxpriv.runs.mechanism_run import MechanismRun

Release: TypeAlias = Callable[[], Drawn]


def finish(terminal: Terminal, facts: Facts, results: Results, command: str, release: Release | None = None) -> None:
    """Write the files of facts, show them, and end as their work ended."""
    undone = facts.interrupted or bool(facts.unmet)
    write(terminal, facts, results.folder, command, results.page, None if undone else release)
    if undone and release is not None:
        terminal.warn("no row was released, for the mechanism is not finished")
    if facts.interrupted:
        terminal.warn(f"interrupted: {results.folder}/ holds what was ready")
        raise click.Abort
    if facts.unmet:
        raise NotConverged(facts.unmet)


def write(
    terminal: Terminal,
    facts: Facts,
    folder: Path | None,
    command: str,
    page: str | None = None,
    release: Release | None = None,
) -> None:
    """Write the files of facts into a folder, if there is one, and show the facts.

    All contents are prepared before the first file is written, and all is said before rows are released.
    """
    files = [] if folder is None else write_set(folder, _contents(facts, page))
    terminal.say(text_of(facts))
    if files:
        names = f"Written to {folder}/: {', '.join(file.name for file in files)}"
        terminal.say("\n" + paragraph(names, indent="", hanging="  "))
        if page == SHAREABLE and facts.published is False:
            terminal.say(paragraph("Hand on report.html alone: the other files tell of the private data.", indent=""))
    drawn = None if release is None else release()
    if terminal.json:
        more = {} if drawn is None else {"release": drawn.document}
        terminal.result(document_of(facts, command, files) | more)
    if drawn is not None:
        terminal.say("\n" + drawn.text)


def _contents(facts: Facts, page: str | None) -> dict[str, Content]:
    """Return the files of facts by name; saved runs and certificates write themselves, for their owner alone."""
    contents: dict[str, Content] = {}
    if page is not None:
        contents["report.html"] = render(for_page(facts, page))
        contents |= {one.file: one.image("png") for one in facts.pictures if one.file}
    contents |= {f"{name}.csv": csv_text(frame) for name, frame in facts.tables.items()}
    return {**contents, **facts.files}


def certify_option(command: Any) -> Any:
    """Give a command ``--certify``."""
    text = (
        "Derive the certificate again in exact arithmetic before it is written, and exit with 3 unless it proves the "
        "mechanism to be within --gap of the best possible one."
    )
    return click.option("--certify", is_flag=True, help=text)(command)


def proved(terminal: Terminal, run: MechanismRun[Any, Any], facts: Facts) -> Facts:
    """Return the facts of a run with what the check of its certificate found.

    Raises DataError: The certificate does not prove what it claims.
    """
    bound: Any = getattr(run, "bound", None)
    certificate = getattr(bound, "certificate", None)
    if certificate is None:
        missing = "nothing is proved of this mechanism: leave method, engine and starts as they are, or --certify out"
        if bound is not None:
            missing = f"no certificate of the bound can be made ({bound.no_certificate})"
    else:
        with terminal.phase("deriving the certificate again in exact arithmetic"):
            certificate.verify()
        missing = f"the gap is not proved: {bound.reason}; raise --time-limit or --gap" if bound.reason else ""
        left = [*bound.ignored, *getattr(bound, "uncertified", ())]
        if left:
            missing = f"the certificate leaves out {', '.join(left)}: no proof with that is known"
    if missing:
        return replace(facts, unmet=facts.unmet or missing, messages=[*facts.messages, f"Not certified: {missing}."])
    return replace(facts, messages=[*facts.messages, "The certificate was derived again in exact arithmetic."])

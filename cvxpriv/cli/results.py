"""The results of a command: where they go, for whom their page is, their text or JSON, and the command's end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import click

from cvxpriv.cli.drawn_rows import Drawn
from cvxpriv.cli.options import output_options, packed, require_report_packages, require_writable
from cvxpriv.cli.terminal import Terminal
from cvxpriv.errors import DataError, NotConverged, suggest
from cvxpriv.reports.document import document_of
from cvxpriv.reports.facts import Facts
from cvxpriv.reports.formatting import paragraph
from cvxpriv.reports.page import for_page, render
from cvxpriv.reports.readers import INTERNAL, PAGES, SHAREABLE
from cvxpriv.reports.sets import Content, write_set
from cvxpriv.reports.text import csv_text, text_of
from cvxpriv.runs.options import Option, options_of

Release: TypeAlias = Callable[[], Drawn]


@dataclass(frozen=True)
class Results:
    """The folder of a command's results, and the readers of its page; None for no page."""

    folder: Path
    page: str | None


def results_asked(
    report: Annotated[bool, Option("Write report.html and pictures.")] = True,
    page: Annotated[
        str,
        Option(
            "Readers of report.html: shareable withholds the mechanism, small counts and exact numbers, unless noise "
            "protects the table.",
            choices=PAGES,
        ),
    ] = INTERNAL,
    out: Annotated[str, Option("Folder for the files.", metavar="FOLDER")] = "out",
) -> Results:
    """Return the results that options ask for, after a check, before any work, that they can be written."""
    if page not in PAGES:
        raise DataError(f"--page={page!r}: {suggest(page, PAGES)}")
    if report:
        require_report_packages("give --no-report")
    return Results(require_writable(out), page if report else None)


def endings(*left_out: str) -> list[Any]:
    """Return the last options of a command, which gets its `Results`, and how they are shown."""
    parameters = [one for one in options_of(results_asked) if one.name not in left_out]
    return [packed("results", results_asked, parameters), output_options, click.pass_obj]


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
    contents: dict[str, Content] = {}
    if page is not None:
        contents["report.html"] = render(for_page(facts, page))
        contents |= {one.file: one.image("png") for one in facts.pictures if one.file}
    contents |= {f"{name}.csv": csv_text(frame) for name, frame in facts.tables.items()}
    # Saved runs and certificates write themselves, for their owner alone.
    files = [] if folder is None else write_set(folder, {**contents, **facts.files})
    terminal.say(text_of(facts))
    if files:
        names = f"Written to {folder}/: {', '.join(file.name for file in files)}"
        terminal.say("\n" + paragraph(names, indent="", hanging="  "))
        if page == SHAREABLE and facts.published is False:
            terminal.say(paragraph("Hand on report.html alone: the other files tell of the private data.", indent=""))
    drawn = None if release is None else release()
    if terminal.json:
        terminal.result(document_of(facts, command, files) | ({} if drawn is None else {"release": drawn.document}))
    if drawn is not None:
        terminal.say("\n" + drawn.text)

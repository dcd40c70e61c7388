"""Facts as one self-contained HTML page, for any model.

The page loads nothing, neither scripts nor fonts nor pictures, and its content policy forbids it to: it can be mailed,
kept and read without a network. A page with sortable tables or a slider holds one script, and its policy allows that
one by its hash; without it the tables are read as they are, and a curve stands with the numbers of all its points. It
needs Jinja2, which comes with ``pip install "cvxpriv[report]"``; importing this module does not.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path

from cvxpriv.errors import ModelError
from cvxpriv.numerics.later import pd
from cvxpriv.reports.facts import Facts, Section, Table
from cvxpriv.reports.files import PathLike, write_text
from cvxpriv.reports.grids import grid
from cvxpriv.reports.provenance import machine, versions
from cvxpriv.reports.readers import INTERNAL
from cvxpriv.reports.sharing import for_page


def render(facts: Facts) -> str:
    """Return the page as a text. All texts are escaped.

    Raises ModelError: Jinja2 is missing, or matplotlib where there are pictures.

    >>> from cvxpriv.reports.facts import Fact
    >>> page = render(Facts("Funnel", "2 < 3", [Fact("leakage", 0.0123456, "nats", main=True)]))
    >>> "0.01235" in page, "2 &lt; 3" in page
    (True, True)
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ModelError('reports need Jinja2, which is missing: pip install "cvxpriv[report]"') from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(grid=grid, paragraphs=_paragraphs)
    sections = _sections(facts)
    script = _script(sections)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    page: str = environment.from_string(_template("report.html")).render(
        title=facts.title,
        paragraphs=[*_paragraphs(facts.summary), *facts.messages],
        main=facts.main,
        sections=sections,
        made_with={**versions(), **machine()},
        script=script,
        digest=digest,
    )
    return page


def write(facts: Facts, path: PathLike, page: str = INTERNAL) -> Path:
    """Write the page to a file, whole or not at all.

    `page`, {"internal", "shareable"}: Readers of the page: see `cvxpriv.reports.sharing`.
    Raises DataError: The file cannot be written, or an unknown page.
    Raises ModelError: Jinja2 is missing.
    """
    return write_text(path, render(for_page(facts, page)))


def _sections(facts: Facts) -> list[Section]:
    """Return the promises, the sections, every fact with its meaning, and the inputs."""
    promised = [Section(facts.promised, "\n\n".join(facts.promises))] if facts.promises else []
    return [*promised, *facts.sections, *_every_fact(facts), *_settings(facts)]


def _script(sections: list[Section]) -> str:
    """Return the script of the page: empty where nothing is sorted or moved."""
    sorts = any(table.sortable for part in sections for table in part.tables)
    slides = any(part.slider is not None for part in sections)
    parts = [_template(name) for name, needed in (("sort.js", sorts), ("slide.js", slides)) if needed]
    return "\n".join(['"use strict";', *parts]) if parts else ""


def _every_fact(facts: Facts) -> list[Section]:
    if not any(fact.sentence for fact in facts.facts):
        return []
    frame = pd.DataFrame(
        {
            "fact": [fact.title for fact in facts.facts],
            "value": [" ".join(filter(None, [fact.shown, fact.unit])) for fact in facts.facts],
            "compared": [fact.remark for fact in facts.facts],
            "what it says": [fact.sentence for fact in facts.facts],
        }
    )
    return [Section("Every figure", tables=[Table(frame)])]


def _settings(facts: Facts) -> list[Section]:
    every = [*facts.about, *facts.settings]
    if not every:
        return []
    values = [" ".join(filter(None, [fact.shown, fact.unit])) for fact in every]
    columns = {
        "setting": [fact.title for fact in every],
        "value": [
            f"{value} ({fact.detail})" if fact.detail else value for value, fact in zip(values, every, strict=True)
        ],
        "what it is": [fact.sentence for fact in every],
    }
    if not any(columns["what it is"]):
        del columns["what it is"]
    return [Section("Settings", tables=[Table(pd.DataFrame(columns))])]


def _template(name: str) -> str:
    return (resources.files("cvxpriv.reports") / "templates" / name).read_text(encoding="utf-8")


def _paragraphs(text: str) -> list[str]:
    parts = (" ".join(part.split()) for part in text.replace("\r\n", "\n").split("\n\n"))
    return [part for part in parts if part]

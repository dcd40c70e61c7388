"""What the site's builder does beside Markdown: equations as MathML, and pages made of files that stand elsewhere.

MathML needs no script and no network. mkdocs calls the functions whose names start with ``on_``.
"""

from __future__ import annotations

import html
import inspect
import posixpath
import re
import tomllib
from pathlib import Path
from pydoc import locate
from typing import Any

import griffe
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
#: The pages that are files of the repository's top, or of the examples.
ELSEWHERE = {
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
    "gallery.md": "examples/papers/README.md",
}
#: The page that shows what stands in a file.
PAGES = {source: page for page, source in ELSEWHERE.items()} | {"docs/status.toml": "status.md"}
_EQUATION = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)
_CODE = re.compile(r"<code.*?</code>", re.DOTALL)
_TEX = re.compile(r"\\[a-zA-Z]{2,}")
_TEST = re.compile(r"`(?P<file>test_\w+\.py)::test_(?P<name>\w+)`")
_LINK = re.compile(r"\]\((?P<to>[^)#:]+)(?P<anchor>#[^)]*)?\)")


class Completed(griffe.Extension):
    """Reads the docstrings of models as Python shows them: with the options that are declared once."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Take the docstring of a class or function, where there is one to be completed."""
        if ".model." in obj.path and (obj.is_class or obj.is_function) and obj.docstring:
            obj.docstring.value = inspect.getdoc(locate(obj.path)) or obj.docstring.value


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of files elsewhere."""
    for page, source in ELSEWHERE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_relinked(text, posixpath.dirname(source))))
    files.append(File.generated(config, "status.md", content=_status()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links of the sources to files outside of the site into their names, and tests into links."""
    folder = posixpath.dirname(page.file.src_uri)
    if page.file.src_uri == "faults.md":
        markdown = _TEST.sub(_test_of_a_fault, markdown)
    return _LINK.sub(lambda found: _kept(found, posixpath.join("docs", folder)), markdown)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Write equations as MathML, and shapes in the types of parameters without the marks of their source.

    Raises
    ------
    PluginError
        If an equation is left as it was written.
    """
    content = _EQUATION.sub(_mathml, content).replace("``", "")
    if found := _TEX.search(_CODE.sub("", content)):
        raise PluginError(f"{page.file.src_uri}: the equation with {found[0]} was not read: a | in a table?")
    return content


def _status() -> str:
    """Return the page of what is there, from `status.toml`."""
    sections = tomllib.loads((ROOT / "docs/status.toml").read_text(encoding="utf-8"))
    lines = [
        "# What is there, proved",
        "",
        "Every row names the test that holds it; `make test` and `make check-all` run them.",
    ]
    for section in sections.values():
        lines += ["", f"## {section['title']}", "", "| what | held by |", "| --- | --- |"]
        for what, test in section["rows"]:
            path, _, name = test.partition("::test_")
            lines.append(f"| {what} | {_as_sentence(path, name)} |")
    return "\n".join(lines) + "\n"


def _as_sentence(path: str, name: str) -> str:
    """Return a link to a test, whose name is a sentence."""
    return f"[{name.replace('_', ' ')}](https://github.com/cvxpriv/cvxpriv/blob/main/tests/{path})"


def _test_of_a_fault(found: re.Match[str]) -> str:
    (path,) = (ROOT / "tests").rglob(found["file"])
    return _as_sentence(path.relative_to(ROOT / "tests").as_posix(), found["name"])


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found["tag"] == "div" else "inline"
    return str(convert(html.unescape(found["tex"]).strip(), display=display))


def _relinked(text: str, folder: str) -> str:
    """Return a text of the repository's folder with links as from the top of the site."""

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found["to"]))
        inside = PAGES.get(target) or (posixpath.relpath(target, "docs") if target.startswith("docs/") else "")
        return f"]({inside}{found['anchor'] or ''})" if inside else f"]({posixpath.relpath(target, 'docs')})"

    return _LINK.sub(moved, text)


def _kept(found: re.Match[str], folder: str) -> str:
    target = posixpath.normpath(posixpath.join(folder, found["to"]))
    if target in PAGES:
        return f"]({posixpath.relpath(posixpath.join('docs', PAGES[target]), folder)}{found['anchor'] or ''})"
    if target.startswith("docs/"):
        return found[0]
    return f"](https://github.com/cvxpriv/cvxpriv/blob/main/{target}{found['anchor'] or ''})"

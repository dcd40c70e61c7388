"""The prose: first sentences that a stranger reads once, whole, in one spelling of English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FILES = [path for floor in ("cvxpriv", "models") for path in sorted((ROOT / floor).rglob("*.py"))]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MOST_CHARACTERS, MOST_WORDS = 125, 30
#: How a clipped sentence begins: a question's word in the place of a noun, or a preposition without its noun.
CLIPPED = re.compile(
    r"(What|Who|Whom|Whose|Which|Whatever|Where|How|Why|When|Of|By|To|From|At|In|On|With|Without|Over|Up|For) "
    r"(?!in which)|Whether what"
)
#: In a parameter's description these are whole answers: "Whether ...", and what a callable is given to.
ALLOWED = re.compile(r"(In \[|In place|At least|At most|From 0|With probability|For (a|an|each|every|any) )")
AMERICAN = re.compile(
    r"\b(\w*(?:optimi|minimi|maximi|normali|regulari|summari|recogni|organi|initiali|randomi|parametri|penali|reali"
    r"|generali|lineari|vectori|discreti|standardi|categori|symmetri|factori|stabili|speciali)z(?:e|es|ed|er|ers|ing"
    r"|ation|ations)|neighbor\w*|behavior\w*|color(?:s|ed|ing)?|favor\w*|centers|centered|centering|analyz\w+|catalog|gray"
    r"|modeling|modeled|labeled|labeling|traveled|canceled|fulfill|defense|judgment)\b"
)
#: Names of other packages' objects, and code, which keep their own spelling.
CODE = re.compile(r"`+[^`]*`+|\"[^\"]*\"|'\w+'|>>> .*|\.\.\. .*|https?://\S+|LICENSE|\w+_\w+|\w+\.\w+|\w+=\S+")


class Docstring(NamedTuple):
    where: str
    text: str
    public: bool

    @property
    def first(self) -> str:
        paragraph = " ".join(self.text.split("\n\n")[0].split())
        return re.split(r"(?<=[.!?:])\s+(?=[A-Z`0-9(])", paragraph)[0] if paragraph else ""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _docstrings() -> Iterator[Docstring]:
    """Yield the docstring of every module, class and function; public are those without an underscore anywhere."""
    for path in FILES:
        tree = tree_of(path)
        place = str(path.relative_to(ROOT))
        yield Docstring(place, ast.get_docstring(tree) or "", True)
        nodes: list[tuple[ast.AST, bool]] = [(tree, True)]
        while nodes:
            node, public = nodes.pop()
            for child in ast.iter_child_nodes(node):
                if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
                    seen = public and not child.name.startswith("_") and not isinstance(node, ast.FunctionDef)
                    yield Docstring(f"{place}:{child.lineno} {child.name}", ast.get_docstring(child) or "", seen)
                    nodes.append((child, seen))
                elif isinstance(child, ast.stmt):
                    nodes.append((child, public))


@pytest.fixture(scope="module")
def docstrings() -> list[Docstring]:
    return list(_docstrings())


def test_modules_classes_and_functions_that_others_may_import_have_a_docstring() -> None:
    silent = []
    for path in FILES:
        tree = tree_of(path)
        named = [node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
        if path.name.startswith("check_"):  # the checkers of certificates are as short as can be
            named = []
        said = {node.name for node in named if ast.get_docstring(node)}  # of overloads the last one
        silent += [f"{path.name} {node.name}" for node in named if node.name not in said and node.name[0] != "_"]
        silent += [] if ast.get_docstring(tree) else [path.name]
    assert silent == []


def test_the_first_paragraph_ends_as_a_sentence_does(docstrings: list[Docstring]) -> None:
    open_ended = [
        one.where
        for one in docstrings
        if one.text
        and one.public
        and not one.text.split("\n\n")[0].rstrip().endswith((".", ":", "?", ".)", "]", ".json"))
    ]
    assert open_ended == []


def test_first_sentences_are_short(docstrings: list[Docstring]) -> None:
    long = [
        (one.where, len(one.first), len(one.first.split()))
        for one in docstrings
        if len(one.first) > MOST_CHARACTERS or len(one.first.split()) > MOST_WORDS
    ]
    assert long == []


def test_first_sentences_name_their_subject(docstrings: list[Docstring]) -> None:
    assert [(one.where, one.first) for one in docstrings if CLIPPED.match(one.first)] == []


def test_descriptions_of_constants_name_their_subject() -> None:
    clipped = re.compile(r"^\s*(?:#: |\"\"\")(?:What|How|Where|Which|Who|Of|By how|From which|Up to) .*", re.MULTILINE)
    found = [(path.name, clipped.findall(path.read_text(encoding="utf-8"))) for path in FILES]
    assert [one for one in found if one[1]] == []


def _described(text: str) -> Iterator[str]:
    """Yield the first line of each description in a docstring's sections of parameters and attributes."""
    lines, section = text.splitlines(), ""
    for at, line in enumerate(lines):
        if at + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[at + 1].strip()):
            section = line.strip()
        elif (
            section in ("Parameters", "Attributes") and line.startswith("    ") and not lines[at - 1].startswith("    ")
        ):
            yield line.strip()


def test_descriptions_of_parameters_name_their_subject(docstrings: list[Docstring]) -> None:
    clipped = [
        (one.where, line)
        for one in docstrings
        for line in _described(one.text)
        if CLIPPED.match(line) and not ALLOWED.match(line)
    ]
    assert clipped == []


def test_docstrings_and_pages_are_in_british_english(docstrings: list[Docstring]) -> None:
    texts = {one.where: one.text for one in docstrings} | {
        path.name: path.read_text(encoding="utf-8") for path in PAGES
    }
    found = {
        where: words
        for where, text in texts.items()
        if (
            words := [
                match[0] for match in AMERICAN.finditer(CODE.sub(" ", re.sub(r"```.*?```", "", text, flags=re.S)))
            ]
        )
    }
    assert found == {}

"""The house: rooms in an order, arrows only downwards, no circle, and names that say something."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from tests.test_prose import tree_of

ROOT = Path(__file__).parents[1]
#: The toolkit's rooms, the lowest first: a room imports only rooms that stand before it.
ROOMS = (
    "errors",
    "numerics",
    "reports",
    "solvers",
    "kkt",
    "tables",
    "blocks",
    "certify",
    "divergences",
    "constraints",
    "privacy",
    "schedules",
    "mechanisms",
    "penalties",
    "distributed",
    "models",
    "runs",
    "learning",
    "bounds",
    "cli",
    "__main__",
)
OPAQUE = {
    *("attempts", "asking", "beginning", "posing", "placing", "concluding", "ending", "tidying", "best", "figures"),
    *("ways", "other", "object", "nested", "utils", "helpers", "misc", "common"),
}
PAGES = ("cvxpriv.cli", "cvxpriv.reports.page")
MOST_ENTRIES = 22


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "models" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {_name(path): path for floor in ("cvxpriv", "models") for path in sorted((ROOT / floor).rglob("*.py"))}


def _statements(block: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in a block, at any depth; expressions, of which there are ten times as many, hold none."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for one in getattr(block, part, []):
            yield one
            yield from _statements(one)


def _imported(name: str) -> Iterator[tuple[str, int]]:
    """Yield every module that one imports, inside functions and for type checkers too, with the line."""
    path = FILES[name]
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for node in _statements(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in FILES else base, node.lineno


@pytest.fixture(scope="module")
def imports() -> nx.DiGraph:
    graph = nx.DiGraph()
    for name in FILES:
        for other, line in _imported(name):
            if other in FILES and other != name:
                graph.add_edge(name, other, line=line)
    return graph


def _room(name: str) -> str:
    return name.split(".")[1] if name.startswith("cvxpriv.") else ""


def test_the_top_of_the_toolkit_fits_on_a_page() -> None:
    entries = sorted(path.name for path in (ROOT / "cvxpriv").iterdir() if path.name not in ("__pycache__", "py.typed"))
    assert len(entries) <= MOST_ENTRIES, entries
    assert {entry.removesuffix(".py") for entry in entries} - {"__init__"} == set(ROOMS)


def test_arrows_between_rooms_point_downwards(imports: nx.DiGraph) -> None:
    height = {room: place for place, room in enumerate(ROOMS)}
    upwards = [
        f"{name}:{line} imports {other}"
        for name, other, line in imports.edges(data="line")
        if _room(name) and _room(other) and height[_room(other)] > height[_room(name)]
    ]
    assert upwards == []


def test_no_modules_import_each_other_in_a_circle(imports: nx.DiGraph) -> None:
    circles = [sorted(circle) for circle in nx.strongly_connected_components(imports) if len(circle) > 1]
    assert circles == []


def test_the_toolkit_imports_no_model_and_no_model_a_command_or_a_page(imports: nx.DiGraph) -> None:
    wrong = [
        f"{name}:{line} imports {other}"
        for name, other, line in imports.edges(data="line")
        if (name.split(".")[0] == "cvxpriv" and other.startswith("cvxpriv_models"))
        or (name.startswith("cvxpriv_models") and other.startswith(PAGES))
    ]
    assert wrong == []


def test_file_names_say_what_stands_in_them() -> None:
    assert [name for name in FILES if name.split(".")[-1] in OPAQUE] == []


def test_every_room_says_in_one_sentence_what_it_is() -> None:
    rooms = [FILES[f"cvxpriv.{room}"] for room in ROOMS if (ROOT / "cvxpriv" / room).is_dir()]
    silent = [path.parent.name for path in rooms if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


def test_models_have_no_study_page_command_or_findings_files() -> None:
    old = {"study", "page", "command", "findings", "fit_data"}
    assert [name for name in FILES if name.startswith("cvxpriv_models.") and name.split(".")[-1] in old] == []


#: Called by click, pytest or Jupyter, registered by a decorator, or by a message of their name.
CALLED_BY_OTHERS = {
    *("format_options", "pytest_addoption", "pytest_configure", "_repr_html_", "serve_command"),
    *("_positions", "_last", "_recycle", "_odd"),
}


def test_every_function_and_class_has_a_use_beside_its_tests() -> None:
    texts = [path for floor in ("docs", "examples", "benchmarks") for path in (ROOT / floor).rglob("*.[mp][dy]")]
    texts += (ROOT / "cvxpriv").rglob("*.html")
    words: Counter[str] = Counter()
    for path in [*FILES.values(), *texts, ROOT / "README.md", ROOT / "pyproject.toml"]:
        words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    defined = [
        one.name
        for path in FILES.values()
        for one in _statements(tree_of(path))
        if isinstance(one, ast.FunctionDef | ast.ClassDef) and not one.name.startswith("__")
    ]
    assert {name for name in defined if words[name] < 2} == CALLED_BY_OTHERS


def _body(function: ast.FunctionDef, lines: list[str]) -> str:
    """Return the text of a function with its own names by their order; "" for fewer than three lines of statements."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    if not body or (body[-1].end_lineno or 0) - body[0].lineno < 2:
        return ""
    text = " ".join(one.strip() for one in lines[body[0].lineno - 1 : body[-1].end_lineno])
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    own = {one.arg for one in given} | set(re.findall(r"\b(\w+)(?=(?:, \w+)* (?:=|in) )", text))
    order: dict[str, str] = {}
    named = lambda word: order.setdefault(word[0], f"<{len(order)}>") if word[0] in own else word[0]  # noqa: E731
    return re.sub(r"(?<![.\w])[A-Za-z_]\w*", named, text)


def test_no_two_functions_have_the_same_body() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, path in FILES.items():
        if not path.name.startswith("check_"):  # these stand alone, each beside its certificates
            lines = path.read_text(encoding="utf-8").splitlines()
            for one in _statements(tree_of(path)):
                if isinstance(one, ast.FunctionDef) and (body := _body(one, lines)):
                    places[body].append(f"{name}:{one.lineno} {one.name}")
    assert [several for several in places.values() if len(several) > 1] == []

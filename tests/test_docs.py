"""README and documentation: every example runs as it is pasted, and prints what the page says.

The examples of a page are run one after the other, as a reader would, in one session and one empty folder.
"""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import cvxpriv as cpv
from cvxpriv.cli.consensus_nodes import NODES
from cvxpriv.cli.main import main
from cvxpriv.cli.members import MembersFile, Side
from cvxpriv.cli.sharing_parties import PARTIES
from cvxpriv.cli.sweep_plan import read_plan

ROOT = Path(__file__).parents[1]
_EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n(?:\nprints\n\n```\n(?P<output>.*?)```)?", re.DOTALL)
#: The examples that fetch rows from a package registry.
FETCHES = "load_a9a"
#: The characters that a line of code has room for on the site.
WIDEST = 106


def examples(page: Path) -> list[tuple[str, str | None]]:
    """Return the examples of a page, with what they print where the page says so."""
    return [(found["code"], found["output"]) for found in _EXAMPLE.finditer(page.read_text(encoding="utf-8"))]


PAGES = [
    page for page in (ROOT / "README.md", ROOT / "paper.md", *sorted((ROOT / "docs").rglob("*.md"))) if examples(page)
]


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, fetching: bool) -> None:
    """Run a page's examples; raise at the first that fails or prints something else."""
    monkeypatch.chdir(folder)
    session: dict[str, object] = {"__name__": "page"}
    for place, (code, output) in enumerate(examples(page)):
        if (FETCHES in code) is not fetching:
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, f"{page.name}, example {place + 1}", "exec"), session)
        assert output is None or said.getvalue() == output, f"{page.name}, example {place + 1}"


# The paper prints nothing; docs/models/funnel.md solves the same, and many tests certify runs of the funnel.
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=[pytest.mark.slow] if page.name == "paper.md" else [])
        for page in PAGES
    ],
)
def test_examples_run_as_pasted_and_print_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_page(page, tmp_path, monkeypatch, fetching=False)


@pytest.mark.slow
def test_the_examples_that_fetch_rows_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetching = [page for page in PAGES if any(FETCHES in code for code, _ in examples(page))]
    assert fetching
    for page in fetching:
        run_page(page, tmp_path, monkeypatch, fetching=True)


def test_examples_fit_the_column_of_the_site() -> None:
    wide = [
        f"{page.name}: {line}"
        for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for block in re.findall(r"^```\w*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
        if len(line) > WIDEST
    ]
    assert wide == []


def members(side: Side) -> Callable[[str], object]:
    return lambda path: MembersFile.load(path, side, "cvxpriv")


def groups_that_a_package_has(path: str) -> None:
    theirs, shown = (
        tomllib.loads(Path(name).read_text(encoding="utf-8"))["project"]["entry-points"]
        for name in (ROOT / "tests/outside_package/pyproject.toml", path)
    )
    assert set(shown) <= set(theirs)


#: What reads a TOML file that a page shows, by a text that is in files of its kind alone.
READERS: dict[str, Callable[[str], object]] = {
    'model = "PrivacyFunnel"': read_plan,
    "classes = [": cpv.PublicSchema.load,
    "parties = [": members(PARTIES),
    "nodes = [": members(NODES),
    "entry-points.": groups_that_a_package_has,
}


def test_files_that_pages_show_are_read(tmp_path: Path) -> None:
    shown = [
        text
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for text in re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert len(shown) >= 6
    for place, text in enumerate(shown):
        (tmp_path / f"{place}.toml").write_text(text, encoding="utf-8")
        (reader,) = (read for mark, read in READERS.items() if mark in text)
        reader(str(tmp_path / f"{place}.toml"))


def test_an_error_is_the_document_that_the_page_shows() -> None:
    (shown,) = re.findall(r"```json\n(.*?)\n```", (ROOT / "docs/results.md").read_text(encoding="utf-8"))
    printed = CliRunner().invoke(main, ["funnel", "heart-failure", "--rate", "2.0", "--json"]).stdout
    begin, end = shown.split("...")
    assert printed.startswith(begin)
    assert printed.endswith(f"{end}\n")


def test_pages_show_output() -> None:
    assert sum(output is not None for page in PAGES for _, output in examples(page)) >= 20


def test_every_category_of_warning_and_error_has_its_remedy() -> None:
    told = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "cvxpriv").rglob("*.py"))
    classes = re.findall(r"^class (\w+)\((\w+)", sources, re.MULTILINE)
    categories = ["CvxprivError", *(name for name, base in classes if base == "UserWarning")]
    while more := [name for name, base in classes if base in categories and name not in categories]:
        categories += more
    categories.remove("CvxprivError")
    assert len(categories) >= 20
    assert [name for name in categories if f"| `{name}` |" not in told] == []

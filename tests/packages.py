"""`make packages`: build wheel and source package, and try both: `python -m tests.packages [PYTHON ...]`.

The wheel must hold the product and nothing else; the source package also documentation, examples and tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IN_SOURCE = (
    *("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "Makefile"),
    *(
        "mkdocs.yml",
        "paper.md",
        "paper.bib",
        "docs/index.md",
        "docs/papers.json",
        "examples/formulations.py",
        "conftest.py",
        "tests/test_house.py",
        "benchmarks/__main__.py",
    ),
    "cvxpriv/tables/datasets/data/SOURCES.md",
)
IN_WHEEL = (
    "cvxpriv/py.typed",
    "cvxpriv_models/py.typed",
    "cvxpriv/models/__init__.pyi",
    "cvxpriv/tables/datasets/data/adult_counts.csv",
)
TRIAL = """
from cvxpriv import datasets
from cvxpriv.models import PrivacyFunnel
run = PrivacyFunnel(datasets.heart_failure(), rate=0.8).solve(seed=0)
assert run.converged and abs(run.leakage - 0.0207928) < 1e-6, run
"""


def build(into: Path) -> tuple[Path, Path]:
    """Build both packages; return the source package and the wheel."""
    shutil.rmtree(into, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(into), str(ROOT)], check=True, stdout=subprocess.DEVNULL
    )
    (source,), (wheel,) = into.glob("*.tar.gz"), into.glob("*.whl")
    return source, wheel


def require(held: set[str], wanted: tuple[str, ...], package: Path) -> None:
    """Stop where a package lacks a file."""
    missing = sorted(set(wanted) - held)
    if missing:
        raise SystemExit(f"{package.name} lacks {', '.join(missing)}")


def trial(wheel: Path, source: Path, python: str) -> None:
    """Install the wheel in a fresh environment, solve, and examine; then the source package in the wheel's place."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        inside = environment / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [str(inside / "python"), "-m", "pip"]
        for package, options in ((wheel, []), (source, ["--no-deps", "--force-reinstall"])):
            command = [*pip, "install", "--quiet", "--no-compile", *options, str(package)]
            subprocess.run(command, check=True, cwd=folder)
            subprocess.run([inside / "python", "-c", TRIAL], check=True, cwd=folder)
            subprocess.run([inside / "cvxpriv", "doctor"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
            print(f"{package.name}: installed and tried with {python}", flush=True)


def main() -> None:
    """Build, look into, and try both packages with each Python that is named on the command line."""
    source, wheel = build(ROOT / "dist")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    require(inside, IN_SOURCE, source)
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    require(held, IN_WHEEL, wheel)
    strange = sorted({name.split("/")[0] for name in held if ".dist-info/" not in name} - {"cvxpriv", "cvxpriv_models"})
    if strange:
        raise SystemExit(f"{wheel.name} holds {', '.join(strange)}, which is no part of the product")
    for python in sys.argv[1:] or [sys.executable]:
        trial(wheel, source, python)


if __name__ == "__main__":
    main()

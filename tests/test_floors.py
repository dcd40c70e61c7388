"""The two floors: the toolkit knows no model."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import cvxpriv

TOOLKIT = Path(cvxpriv.__file__).parent


def test_the_toolkit_never_imports_a_model() -> None:
    offenders = [
        f"{path.name}:{node.lineno}"
        for path in TOOLKIT.rglob("*.py")
        if "cvxpriv_models" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Import) and any(name.name.startswith("cvxpriv_models") for name in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cvxpriv_models"))
    ]
    assert offenders == []


def test_importing_the_toolkit_loads_no_model_no_plotting_and_no_solver() -> None:
    program = "import cvxpriv, sys; print([m for m in ('cvxpriv_models', 'matplotlib', 'cvxpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_models_are_found_through_their_entry_points() -> None:
    from cvxpriv_models.privacy_funnel import PrivacyFunnel

    from cvxpriv import models

    assert models.PrivacyFunnel is PrivacyFunnel
    assert dir(models) == sorted(["available", *models.available()])


def test_every_public_name_of_the_toolkit_is_there() -> None:
    assert all(getattr(cvxpriv, name) is not None for name in cvxpriv.__all__)
    assert dir(cvxpriv) == cvxpriv.__all__


def test_type_checkers_see_the_public_names() -> None:
    found = [name for names in cvxpriv._HOMES.values() for name in names]
    assert len(found) == len(set(found))
    typed = [
        alias.asname
        for node in ast.parse(Path(cvxpriv.__file__).read_text()).body
        if isinstance(node, ast.If)
        for one in node.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    ]
    assert sorted(str(name) for name in typed) == sorted([*found, *cvxpriv._ROOMS])


def test_what_the_readme_the_docs_and_the_examples_use_is_public() -> None:
    root = Path(__file__).parents[1]
    pages = [root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/*.md"), *root.glob("examples/*.py")]
    used = {name for page in pages for name in re.findall(r"\bcpv\.([A-Za-z_]+)", page.read_text(encoding="utf-8"))}
    assert used <= set(dir(cvxpriv))

"""The two floors: the toolkit knows no model."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import cvxpriv

TOOLKIT = Path(cvxpriv.__file__).parent


def test_the_toolkit_never_imports_a_model() -> None:
    offenders = [
        f"{path.name}:{node.lineno}"
        for path in TOOLKIT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
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
    assert "PrivacyFunnel" in dir(models)


def test_every_public_name_of_the_toolkit_is_there() -> None:
    assert all(getattr(cvxpriv, name) is not None for name in cvxpriv.__all__)
    assert set(cvxpriv.__all__) <= set(dir(cvxpriv))


def test_the_toolkit_s_lists_of_public_names_say_the_same() -> None:
    """Three lists: what `__getattr__` finds, what `__all__` promises, and what type checkers see."""
    from cvxpriv import certify

    found = [name for names in cvxpriv._HOMES.values() for name in names]
    assert len(found) == len(set(found))
    assert set(cvxpriv.__all__) == {*found, *cvxpriv._MODULES, "__version__"}
    typed = [
        alias.name
        for node in ast.walk(ast.parse(Path(cvxpriv.__file__).read_text()))
        if isinstance(node, ast.If)
        for one in node.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    ]
    assert sorted(typed) == sorted([*found, *cvxpriv._MODULES])
    assert set(certify.__all__) == set(cvxpriv._HOMES["certify"])

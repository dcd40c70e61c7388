"""`cvxpriv doctor`: what is there is said, what is broken is named with its remedy."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint, PackageNotFoundError, version

import pytest

from cvxpriv import __version__
from cvxpriv.cli import doctor as examination
from cvxpriv.cli.main import DONE, UNEXPECTED
from cvxpriv.numerics import packages as registered

from .conftest import Run


def findings(output: str) -> dict[str, dict[str, str]]:
    return {finding["name"]: finding for finding in json.loads(output)["findings"]}


def test_a_whole_installation_is_healthy(run: Run) -> None:
    done = run("doctor", "--json")
    assert done.exit_code == DONE
    found = findings(done.output)
    assert json.loads(done.output)["healthy"]
    assert found["cvxpriv"]["found"] == __version__
    assert found["CLARABEL"]["found"] == "agrees"
    assert found["PrivacyFunnel"]["part"] == "model"


def test_a_package_that_is_absent_or_too_old_is_named_with_its_remedy(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pretended(name: str) -> str:
        if name in ("mpmath", "scikit-learn", "ecos"):
            raise PackageNotFoundError(name)
        return "0.1" if name == "scipy" else version(name)

    monkeypatch.setattr(examination, "version", pretended)
    monkeypatch.setattr(examination, "_solvers", lambda: iter(()))
    done = run("doctor", "--json")
    assert done.exit_code == UNEXPECTED
    found = findings(done.output)
    assert found["mpmath"]["state"] == "broken"
    assert "pip install 'mpmath" in found["mpmath"]["remedy"]
    assert found["scipy"]["state"] == "broken"
    assert "asked for >=1" in found["scipy"]["found"]
    assert found["scikit-learn"]["state"] == "absent"  # of an extra: nothing is wrong
    assert found["ecos"]["state"] == "absent"  # other solvers take its place


def test_an_extension_that_cannot_be_imported_and_a_folder_that_cannot_be_written_are_broken(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = EntryPoint("Broken", "no_such_module:Model", "cvxpriv.models")
    real = registered.extensions
    monkeypatch.setattr(registered, "extensions", lambda group: {bad.name: bad} if group == bad.group else real(group))
    monkeypatch.setattr(examination, "_solvers", lambda: iter(()))
    monkeypatch.setattr(examination.os, "access", lambda place, mode: False)
    done = run("doctor")
    assert done.exit_code == UNEXPECTED
    assert "Broken: 'Broken' of no_such_module:Model cannot be loaded" in done.output
    assert "datasets: let CVXPRIV_CACHE name a folder that you may write to" in done.output
    assert done.output.rstrip().endswith("2 broken")

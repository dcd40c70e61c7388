"""A package of somebody else's brings one thing of each kind: it is installed afresh, and used as ours are."""

from __future__ import annotations

import configparser
import importlib
import json
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import numpy as np
import pytest

from cvxpriv import constraints
from cvxpriv.errors import ModelError

PACKAGE = Path(__file__).parent / "outside_package"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with this package in it; all else is what runs the tests has installed.

    The package is laid out as its pyproject says, which needs no build tool and no network.
    """
    folder = tmp_path_factory.mktemp("outside") / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/*/site-packages")
    own = [path for path in sys.path if path.endswith("site-packages")]  # with what is installed to be edited there
    (site / "all_else.pth").write_text(f"import site; list(map(site.addsitedir, {own}))\n", encoding="utf-8")
    declared = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))
    for module in declared["tool"]["setuptools"]["py-modules"]:
        shutil.copy(PACKAGE / f"{module}.py", site)
    project = declared["project"]
    meta = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    meta.mkdir()
    named = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (meta / "METADATA").write_text(named, encoding="utf-8")
    points = configparser.ConfigParser()
    points.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their capitals
    points.read_dict(project["entry-points"])
    with open(meta / "entry_points.txt", "w", encoding="utf-8") as file:
        points.write(file)
    return folder / "bin" / "python"


def ran(*arguments: str) -> str:
    """Run a program that has to succeed, and return what it says."""
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def command(fresh: Path, *arguments: str) -> str:
    """Run ``cvxpriv`` with arguments, and return what it says."""
    return ran(str(fresh), "-m", "cvxpriv", *arguments)


def table(folder: Path) -> Path:
    """Two equally likely symbols of x, and s that follows them."""
    path = folder / "table.csv"
    path.write_text("s,x,count\na,0,40\na,1,10\nb,0,10\nb,1,40\n", encoding="utf-8")
    return path


def test_a_model_of_two_blocks_takes_at_most_75_lines() -> None:
    for name in ("rate_distortion", "factorisation"):
        assert len((PACKAGE / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 75


def test_a_run_with_a_constraint_says_its_facts_and_what_the_constraint_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PACKAGE)
    model = importlib.import_module("rate_distortion").RateDistortion([[0.4, 0.1], [0.1, 0.4]])
    run = model.constrain("close", constraints.parse("floor=0.2")).solve(starts=1)
    assert "RateDistortion" in repr(run)
    assert run.shadow_prices["price"].item() < 0.0  # a higher floor costs
    again = model.solve(init={"r": run.state["r"]})
    assert list(again.starts["origin"]) == ["init"]
    with pytest.raises(ModelError, match="the state has r"):
        model.solve(init=[{"q": [1.0]}])


@pytest.mark.slow
def test_the_commands_verify_and_use_the_parts_of_another_package(fresh: Path, tmp_path: Path) -> None:
    assert "jeffreys: f(t) = (t-1)*log(t)" in command(fresh, "verify", "jeffreys", "--solvers", "CLARABEL")
    assert "No output is more likely than" in command(fresh, "constraints", "capped")
    out = tmp_path / "inference"
    data = ["--infer", "s", "--data", "x", "--count", "count", "--starts", "2", "--no-report", "--bootstrap", "0"]
    rule = ["--constraint", "capped=0.9", "--divergence", "jeffreys", "--no-crosscheck", "--beta", "0.1"]
    command(fresh, "inference", str(table(tmp_path)), *data, *rule, "--out", str(out))
    mechanism = np.array(json.loads((out / "mechanism.json").read_text(encoding="utf-8"))["matrix"])
    assert mechanism.max() <= 0.9 + 1e-7


@pytest.mark.slow
def test_the_model_of_another_package_has_command_page_and_cross_check(fresh: Path, tmp_path: Path) -> None:
    out = tmp_path / "rd"
    data = ["--private", "s", "--public", "x", "--count", "count", "--price", "2"]
    said = command(fresh, "rate-distortion", str(table(tmp_path)), *data, "--curve", "3", "--out", str(out))
    assert "cost" in said
    assert "I(S;Y)" in (out / "report.html").read_text(encoding="utf-8")
    document = json.loads(next(out.glob("*.json")).read_text(encoding="utf-8"))
    assert document
    assert (out / "curve.csv").is_file()
    checked = command(fresh, "crosscheck", "rate-distortion", "--table", str(table(tmp_path)), *data)
    assert "WRONG" not in checked
    assert "agrees" in checked


@pytest.mark.slow
def test_a_model_without_private_data_has_command_page_starts_and_a_run_that_loads(fresh: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "matrix.csv", tmp_path / "factors"
    data = np.array([[7.0, 2.0, 7.0, 4.0], [4.0, 4.0, 9.0, 3.0], [5.0, 6.0, 13.0, 4.0]])
    np.savetxt(path, data, delimiter=",")
    assert "factorise" in command(fresh, "--help")
    said = command(fresh, "factorise", str(path), "--rank", "1", "--starts", "2", "--out", str(out))
    assert "2  of 2" in said
    assert "WRONG" not in said
    assert "agrees" in command(fresh, "crosscheck", "factorise", str(path), "--rank", "1")
    assert "Write a matrix as a product" in (out / "report.html").read_text(encoding="utf-8")
    assert len((out / "starts.csv").read_text(encoding="utf-8").splitlines()) == 3
    # The nearest matrix of rank one of a positive one is positive (Perron and Frobenius; Eckart and Young).
    least = float((np.linalg.svd(data, compute_uv=False)[1:] ** 2).sum())
    ran(str(fresh), "-c", WITHOUT_PRIVATE_DATA, str(out / "run.json"), str(least))


WITHOUT_PRIVATE_DATA = """
import sys
import cvxpriv as cpv
from cvxpriv.models import Factorisation

run = cpv.load(sys.argv[1])
assert run.model == "Factorisation" and run.posed_by.options == {"rank": 1}
assert run.converged and abs(run.objective - float(sys.argv[2])) < 1e-6 and len(run.starts) == 2
for wrong in ([1.0, 2.0], [[1.0, float("nan")]]):
    try:
        Factorisation(wrong)
    except cpv.errors.DataError as error:
        assert str(error).startswith("data"), error
    else:
        raise AssertionError(wrong)
again = type(run).load(sys.argv[1])
assert again.values["W"].tolist() == run.values["W"].tolist()
assert not set(run.certify().table["verdict"]) & {"WRONG", "failed"}
assert [case.name for case in Factorisation.example_cases()] == ["W", "H"]
"""


IN_PYTHON = """
import sys, warnings
import cvxpy as cp
import numpy as np
import cvxpriv as cpv
from cvxpriv.models import RateDistortion
from cvxpriv.penalties import penalty_named

path = sys.argv[1]
run = RateDistortion([[0.4, 0.1], [0.1, 0.4]], price=2.0).solve(starts=3)
assert run.converged, run
# Two equally likely symbols: D = 1/(1 + exp(price)), and R(D) = log 2 - h(D) (Cover and Thomas, Theorem 10.3.1).
wrong = 1.0 / (1.0 + np.exp(2.0))
rate = np.log(2.0) + wrong * np.log(wrong) + (1.0 - wrong) * np.log(1.0 - wrong)
assert abs(run.figures["errors"] - wrong) < 1e-7 and abs(run.figures["information"] - rate) < 1e-7, run.figures
check = run.certify()
assert not set(check.table["verdict"]) & {"WRONG", "failed"}, check
run.save(path)
again = cpv.load(path)
assert type(again.problem) is RateDistortion and again.problem.options == {"price": 2.0}
assert np.array_equal(again.mechanism, run.mechanism) and again.residual == run.residual
assert again.kkt.largest == run.residual <= 1e-7
assert "RateDistortion" in repr(again)
ruled = RateDistortion([[0.4, 0.1], [0.1, 0.4]]).constrain("cap", cpv.constraints.parse("capped=0.7")).solve(starts=1)
assert ruled.mechanism.max() <= 0.7 + 1e-7
ruled.save(path)
(name, cap), = cpv.load(path).constraints
assert (name, cap.kind, cap.parameters) == ("cap", "capped", {"most": 0.7})
assert cpv.verify(penalty_named("huber:0.3:0.2")).passed
x = cp.Variable(2)
linear = cp.Problem(cp.Minimize(x[0] + 2 * x[1]), [x >= 1, x[0] + x[1] >= 3])
found = cpv.crosscheck(linear, ["SCIPY", "CLARABEL"]).table
assert list(found["verdict"]) == ["agrees", "agrees"], found.to_string()
assert [case.name for case in RateDistortion.example_cases()] == ["mechanism", "marginal"]
"""


@pytest.mark.slow
def test_in_python_the_parts_of_another_package_solve_save_load_and_certify(fresh: Path, tmp_path: Path) -> None:
    ran(str(fresh), "-c", IN_PYTHON, str(tmp_path / "run.json"))

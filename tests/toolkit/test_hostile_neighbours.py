"""Arguments whose size, shape or kind nobody expects: refused at once; beside each, one that is answered."""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import cvxpriv as cpv
from cvxpriv.bounds.certificate import Certificate
from cvxpriv.certify.builders import load_module
from cvxpriv.certify.pytest_plugin import assert_solvers_agree
from cvxpriv.certify.verdicts import Tolerances
from cvxpriv.cli.sweep_plan import read_plan
from cvxpriv.distributed.checkpoint import read_checkpoint
from cvxpriv.errors import CvxprivError
from cvxpriv.learning.encoding import Encoding
from cvxpriv.learning.scores import scores_of
from cvxpriv.models import ISTDP, InferenceAsService, PrivacyFunnel, RecycledADMM
from cvxpriv.privacy import Budget
from cvxpriv.tables.matrix_files import read_matrix
from tests.toolkit.hostile_values import within

TABLE = [[0.4, 0.1], [0.1, 0.4]]
FRAME = pd.DataFrame({"s": list("aabb"), "x": list("uvwu")})
FUNNEL, SERVICE = PrivacyFunnel(cpv.JointTable.from_counts([[30, 10], [5, 15]]), 0.5), InferenceAsService(TABLE, 0.1)
SPARSE = ISTDP(np.random.default_rng(0).uniform(-0.5, 0.5, size=(20, 2)), np.tile([-1.0, 1.0], 10))
GRAPH = RecycledADMM(1 - np.eye(2), [(np.eye(2) / 2, np.array([-1.0, 1.0]))] * 2)
KL = cpv.divergence("kl")
TWO = [0.5, 0.5]
MANY = np.linspace(0.1, 0.9, 2000)
AT_ONCE = 5


def noisy(data: float) -> float:
    return data


def seen(occurs: Any) -> Any:
    return cpv.Alphabet.from_frame(FRAME, ["s"], occurs=occurs)


#: More than can finish, or without an end.
BEYOND: dict[str, Callable[[], Any]] = {
    "a grid of values": lambda: cpv.sweep(PrivacyFunnel, TABLE, rate=range(1, 10**9)),
    "a grid of products": lambda: cpv.sweep(PrivacyFunnel, TABLE, rate=list(MANY), tol=list(MANY)),
    "a grid of seeds": lambda: cpv.sweep(PrivacyFunnel, TABLE, seed=range(10**12)),
    "points": lambda: FUNNEL.along(10**6),
    "points in a list": lambda: SERVICE.along(np.ones(10**5)),
    "points without end": lambda: SERVICE.along(count()),
    "points in a row": lambda: FUNNEL.along([[0.5] * 20_000]),
    "points of a curve": lambda: FUNNEL.curve(count(1)),
    "weights": lambda: SPARSE.path(10**9),
    "weights of many digits": lambda: SPARSE.path(10**5000),
    "weights without end": lambda: SPARSE.path(count(1)),
    "runs of an audit": lambda: cpv.audit(noisy, 0.0, 1.0, delta=0.0, runs=10**11),
    "runs of many digits": lambda: cpv.audit(noisy, 0.0, 1.0, delta=0.0, runs=10**5000),
    "large releases": lambda: cpv.audit(lambda _: np.zeros(10**6), 0.0, 1.0, delta=0.0, runs=3000),
    "replicates": lambda: FUNNEL.population(10**9),
    "replicates of many digits": lambda: FUNNEL.population(10**5000),
}
#: Of another shape or kind.
WRONG: dict[str, Callable[[], Any]] = {
    "a seed below 0": lambda: FUNNEL.population(20, seed=-1),
    "shapes": lambda: KL.between(np.array(TWO), np.array([0.2, 0.3, 0.5])),
    "shapes of matrices": lambda: KL.between(np.ones((2, 2)), np.ones(3)),
    "an axis": lambda: KL.between(np.array(TWO), np.array(TWO), axis=5),
    "complex masses": lambda: KL.between(np.array([1j, 1.0]), np.array(TWO)),
    "masses below 0": lambda: KL.between(np.array([-0.5, 1.5]), np.array(TWO)),
    "masses without a number": lambda: KL.between(np.array([np.nan, 1.0]), np.array(TWO)),
    "masked masses": lambda: KL.between(np.ma.array(TWO, mask=[True, False]), np.array(TWO)),
    "shapes of terms": lambda: KL.terms(np.array(TWO), np.ones(3)),
    "shapes of gradients": lambda: KL.gradients(np.array(TWO), np.ones(3)),
    "few truth values": lambda: seen(np.ones(2, dtype=bool)),
    "no truth values": lambda: seen([0, 1, 1, 0]),
    "a column of truth values": lambda: seen(np.ones((4, 1), dtype=bool)),
    "missing truth values": lambda: seen(pd.array([True, None, True, True], dtype="boolean")),
    "a text for truth values": lambda: seen("yes"),
    "a ratio below 0": lambda: KL.derivative(-1),  # type: ignore[arg-type]
    "an alphabet of many digits": lambda: cpv.Alphabet.numbered("x", 10**5000),
    "a symbol beyond the last": lambda: cpv.Alphabet.numbered("x", 3).take([3]),
    "a symbol before the first": lambda: cpv.Alphabet.numbered("x", 3).take([-1]),
    "symbols without numbers": lambda: cpv.Alphabet.numbered("x", 3).take([0.5]),  # type: ignore[list-item]
    "a count too near to 0": lambda: cpv.JointTable.from_counts([[Decimal("1e-400"), 1], [1, 1]]),  # type: ignore[list-item]
    "cells without a text": lambda: cpv.Alphabet.from_frame(FRAME.assign(s=[object() for _ in range(4)]), ["s"]),
    "half a surrogate pair": lambda: cpv.Alphabet(("s",), (("\ud800",), ("a",))),
    "nothing seen": lambda: seen(np.zeros(4, dtype=bool)),
    "one text for columns": lambda: cpv.Alphabet.from_frame(FRAME, "s"),
    "an unknown column": lambda: cpv.Alphabet.from_frame(FRAME, ["q"]),
    "a masked cell for problems": lambda: cpv.crosscheck(np.ma.masked),
    "a tolerance below 0": lambda: assert_solvers_agree(cp.Problem(cp.Minimize(cp.Variable() ** 2)), tol=-1),
    "limits below 0": lambda: Tolerances(agree=-1.0),
    "labels of many digits": lambda: scores_of(10**5000, [0.5]),  # type: ignore[arg-type]
    "a text for predictions": lambda: scores_of([1.0], "\ud800"),
    "no variables": lambda: cpv.alternate(cp.Problem(cp.Minimize(cp.Constant(1.0)))),
    "no variables to convexify": lambda: cpv.convex_concave(cp.Problem(cp.Minimize(cp.Constant(1.0)))),
}


@pytest.mark.parametrize("case", [*BEYOND, *WRONG])
def test_what_is_beyond_or_wrong_is_refused_at_once(case: str) -> None:
    with within(AT_ONCE), pytest.raises(CvxprivError):
        {**BEYOND, **WRONG}[case]()


#: Everything that reads a file which the user names.
READERS: dict[str, Callable[[Path], Any]] = {
    "run": cpv.load,
    "mechanism": cpv.Mechanism.load,
    "bundle": cpv.decode,
    "table": lambda path: cpv.JointTable.from_csv(str(path), ["s"], ["x"], separator=","),
    "schema": cpv.PublicSchema.load,
    "encoding": Encoding.load,
    "certificate": Certificate.load,
    "budget": Budget.open,
    "budget to make": lambda path: Budget(1.0, 1e-6, path),
    "sweep": lambda path: cpv.sweep(PrivacyFunnel, TABLE, rate=[0.5], checkpoint=path),
    "matrix": lambda path: read_matrix(str(path)),
    "plan": lambda path: read_plan(str(path)),
    "problem": lambda path: load_module(str(path)),
    "party": read_checkpoint,
}


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices as POSIX names them")
@pytest.mark.parametrize("kind", ["pipe", "folder", "endless", "empty"])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_plain_file_is_not_waited_for(reader: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "it.py"
    {
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "endless": lambda path: path.symlink_to("/dev/zero"),
        "empty": lambda path: path.symlink_to("/dev/null"),
    }[kind](path)
    with within(AT_ONCE), pytest.raises(CvxprivError, match="plain file|cannot be|no budget|a folder"):
        READERS[reader](path)


def test_their_neighbours_are_answered() -> None:
    assert len(FUNNEL.along(iter([0.5, 1.0]))) == len(SERVICE.along(2)) == len(SPARSE.path(np.int64(2))) == 2
    assert KL.between(np.array(TWO), np.array([0.25, 0.75])) == pytest.approx(0.5 * np.log(4.0 / 3.0), abs=1e-15)
    assert KL.between(np.array(TWO), np.array(TWO), axis=0) == 0.0
    alphabet, codes = seen([True, True, False, False])
    assert alphabet.labels == ("a",)
    assert codes.tolist() == [0, 0, -1, -1]


@pytest.mark.parametrize("engine", ["dcp", "closed_form"])
def test_alternation_solves_a_problem_that_is_convex_in_all_variables(engine: str) -> None:
    x, y = cp.Variable(2, name="x"), cp.Variable(name="y")
    problem = cp.Problem(cp.Minimize(cp.square(x[0] - y) + cp.sum_squares(x)), [x >= 1.0])
    found = cpv.alternate(problem, engine=engine, starts=2)
    assert found.converged
    assert found.starts["converged"].all()
    assert found.objective == pytest.approx(2.0, abs=1e-8)  # x = (1, 1), y = 1 by hand
    assert np.allclose([*found.values["x"], found.values["y"]], 1.0, atol=1e-4)

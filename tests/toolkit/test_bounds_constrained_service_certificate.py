"""A certificate of inference under constraints proves what it says; a mutated one never proves more than the truth."""

from __future__ import annotations

import copy
import math
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.inference_service.bound import ServiceBound, bound, bound_of
from cvxpriv_models.inference_service.constrained_certificates import unstated
from cvxpriv_models.inference_service.priced_constraints import PricedConstraints
from cvxpriv_models.inference_service.problem import Problem
from scipy.optimize import linprog

from cvxpriv import constraints
from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds import (
    check_constrained_service_certificate as checker,
    check_costs,
    check_service_certificate as plain,
)
from cvxpriv.bounds.service_certificate import ConstrainedServiceCertificate, service_certificate_of
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.divergences import divergence
from cvxpriv.errors import DataError

from .column_costs import grid, summed
from .copied_checkers import require_short, said_by_copies
from .mutated_certificates import mutated

CHECKERS = tuple(Path(one.__file__) for one in (checker, check_costs, plain))
TABLE = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
P, P_S, BETA, GRID = TABLE.sum(axis=0), TABLE.sum(axis=1), 0.1, 24
FAR = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
CASES: dict[str, tuple[ReadyConstraint, ...]] = {
    "local": (constraints.local_differential_privacy(1.0),),
    "delta": (constraints.local_differential_privacy(0.5, 0.05),),
    "metric": (constraints.metric_differential_privacy(0.5, FAR),),
    "renyi": (constraints.renyi_differential_privacy(2.0, 0.5),),
    "kullback": (constraints.renyi_differential_privacy(1.0, 0.3),),
    "below one": (constraints.renyi_differential_privacy(0.5, 0.3),),
    "box": (constraints.local_information_privacy(0.5, "input"),),
    "pointwise": (constraints.pointwise_leakage(0.2),),
    "told": (constraints.f_information("le-cam", 0.02),),
    "guess": (constraints.bayes_vulnerability(0.6),),
    "fair": (constraints.group_fairness(0.1),),
    "peak": (constraints.maximal_leakage(0.3),),
    "moved": (constraints.total_variation_to_prior(0.15),),
    "average": (constraints.total_variation_to_prior(0.1, average=True),),
    "distortion": (constraints.expected_distortion(FAR, 0.15),),
    "forbidden": (constraints.forbidden([(0, 1), (1, 2), (2, 0)]),),
    "several": (
        constraints.maximal_leakage(0.3),
        constraints.local_differential_privacy(1.0),
        constraints.group_fairness(0.05),
    ),
}
FAST = ("local", "box", "peak", "moved", "average", "distortion", "forbidden")


@cache
def bound_under(case: str) -> ServiceBound:
    asked = tuple((f"c{k}", one) for k, one in enumerate(CASES[case]))
    return bound(Problem.of(TABLE, BETA, size_u=3), constraints=asked, gap=1e-3, time_limit=300.0)


@pytest.fixture(
    scope="module", params=[pytest.param(case, marks=[] if case in FAST else pytest.mark.slow) for case in CASES]
)
def certificate(request: pytest.FixtureRequest) -> ConstrainedServiceCertificate:
    found = bound_under(request.param).certificate
    assert isinstance(found, ConstrainedServiceCertificate)
    return found


def test_the_checker_is_short_and_imports_the_standard_library_and_the_other_checker_alone() -> None:
    require_short(CHECKERS)


def test_a_saved_certificate_is_proved_by_the_copied_checkers(
    certificate: ConstrainedServiceCertificate, tmp_path: Path
) -> None:
    certificate.save(tmp_path / "c.json")
    said = said_by_copies(CHECKERS, tmp_path)
    assert f"that satisfies the constraints is worth more than {certificate.bound:.12g}" in said
    loaded = service_certificate_of(certificate.document())
    assert loaded.document() == certificate.document()
    with pytest.raises(ValueError, match="is known"):
        plain.check(certificate.document())


@pytest.mark.parametrize("case", [pytest.param(c, marks=[] if c in FAST else pytest.mark.slow) for c in CASES])
def test_the_claim_is_the_bound_and_no_looser(case: str) -> None:
    found = bound_under(case)
    assert found.certificate is not None
    assert found.lower <= found.certificate.bound <= found.upper + 1e-3 * max(found.lower, 1e-3) + 1e-9
    assert found.certificate.verify().value == pytest.approx(found.lower, abs=1e-9)
    problem = Problem.of(TABLE, BETA, size_u=3)
    asked = tuple((f"c{k}", one) for k, one in enumerate(CASES[case]))
    again = bound_of(found.certificate.without_table(), problem, asked)
    assert (again.upper, again.left_out) == (found.certificate.bound, {})
    with pytest.raises(DataError, match="other constraints"):
        bound_of(found.certificate, problem, (("c0", constraints.group_fairness(0.31)),))


# --- the truth, by a linear program over columns on a grid ------------------------------------------------------------


def most(document: dict[str, Any]) -> float:
    """A value that some mechanism under the constraints reaches: by columns on a grid; 0 where none does."""
    joint = (P[:, None] * np.array(document["mechanism"])).T
    joint = joint[joint.any(axis=1)]
    x = np.vstack([grid(3, GRID), P, joint / joint.sum(axis=1, keepdims=True)])
    s = x @ (TABLE / P).T
    told = np.where(s > 0.0, s * np.log(np.maximum(s, 1e-300) / P_S), 0.0).sum(axis=1)
    worth = told - document["beta"] * divergence("jensen-shannon").terms(x, P).sum(axis=1)
    kept, sums, ends = summed(document["constraints"], x, TABLE, 3)
    x, worth = x[kept], worth[kept]
    limit = {"A_ub": sums, "b_ub": ends} if ends else {}
    found = linprog(-worth, A_eq=x.T, b_eq=P, method="highs", **limit)
    return -float(found.fun) if found.status == 0 else -math.inf


def mutation(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A certificate with some numbers changed: the claim's, a constraint's, a cell's."""
    copied = copy.deepcopy(mutated(document, rng, ("alpha", "bound", "bound", "beta")))
    change = rng.choice([1.0 + 10.0 ** rng.uniform(-9, 0), 1.0 - 10.0 ** rng.uniform(-9, 0), 0.0, -1.0, 1e3])
    place = rng.randrange(5)
    if place == 0 and any(copied["mu"]):
        prices = rng.choice([one for one in copied["mu"] if one])
        prices[rng.randrange(len(prices))] *= abs(change)
    elif place == 1:
        stated = rng.choice(copied["constraints"])
        names = [name for name in ("epsilon", "bound", "delta") if isinstance(stated.get(name), float)]
        for name in names[:1]:
            stated[name] *= abs(change)
    elif place == 2:
        tree = rng.choice(copied["cells"])
        leaf = rng.choice([node for node in tree if isinstance(node, list)])
        numbers = rng.choice([leaf, *(part for part in leaf[1:] if part)])
        at = 0 if numbers is leaf else rng.randrange(len(numbers))
        numbers[at] *= change
    elif place == 3:
        del rng.choice(copied["cells"])[-1]
    return copied


def check_mutations(certificate: ConstrainedServiceCertificate, count: int, seed: int) -> tuple[int, int]:
    rng, document, proved = random.Random(seed), certificate.document(), 0
    for _ in range(count):
        copied = mutation(document, rng)
        try:
            found = checker.check(copied)
        except ValueError:
            continue
        proved += 1
        assert found["bound"] >= most(copied) - 1e-9, copied
        assert found["bound"] <= copied["bound"]
    return proved, count - proved


def test_mutated_certificates_never_prove_more_than_the_truth(certificate: ConstrainedServiceCertificate) -> None:
    proved, refused = check_mutations(certificate, 25, 0)
    assert proved > 0
    assert refused > 3


@pytest.mark.slow
def test_many_mutated_certificates(certificate: ConstrainedServiceCertificate) -> None:
    check_mutations(certificate, 700, 1)


def test_a_claim_below_the_truth_is_refused(certificate: ConstrainedServiceCertificate) -> None:
    document = certificate.document()
    for excess in (1e-9, 1e-3, 1.0):
        with pytest.raises(ValueError, match="price"):
            checker.check(document | {"bound": most(document) - excess})


@pytest.mark.parametrize(
    "stated",
    [
        [],
        [{}],
        [{"kind": "unknown"}],
        [{"kind": "local_differential_privacy"}],
        [{"kind": "local_differential_privacy", "epsilon": 1e9}],
        [{"kind": "renyi_differential_privacy", "order": -1.0, "epsilon": 1.0}],
        [{"kind": "f_information", "f": [], "bound": 1.0}],
        [{"kind": "forbidden", "cells": [[0, 0]], "outputs": 10**9}],
        [{"kind": "expected_distortion", "distortion": [[0.0, 1.0]], "bound": 1.0}],
        [{"kind": "group_fairness", "bound": 0.1, "groups": [0, 1]}],
        "local",
    ],
)
def test_constraints_that_cannot_be_read_are_refused(stated: object) -> None:
    document = {
        **bound_under("local").certificate.document(),  # type: ignore[union-attr]
        "constraints": stated,
    }
    with pytest.raises(ValueError, match=r"."):
        checker.check(document)


def test_a_constraint_that_the_checker_does_not_know_leaves_a_reason() -> None:
    problem = Problem.of(TABLE, BETA, size_u=3)
    for name, one, why in [
        ("told", constraints.f_information("total-variation", 0.1), "the checker knows no f but those"),
        ("loose", constraints.metric_differential_privacy(50.0, FAR), "the checker takes no ratio above"),
    ]:
        assert unstated(problem, PricedConstraints.of(problem, ((name, one),))).startswith(f"{name}: {why}")
    asked = PricedConstraints.of(problem, (("box", CASES["box"][0]), ("no", constraints.forbidden([(0, 1)]))))
    assert unstated(problem, asked).startswith("no: an output can have no mass with it")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_two_constraints_on_a_random_table_are_obeyed_bounded_and_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(6)).reshape(2, 3)
    level = float(rng.uniform(0.1, 1.0))
    ready = [
        constraints.local_differential_privacy(level),
        constraints.local_information_privacy(level, "input"),
        constraints.maximal_leakage(level / 2.0),
        constraints.total_variation_to_prior(min(level / 3.0, 1.0)),
        constraints.total_variation_to_prior(min(level / 4.0, 1.0), average=True),
    ]
    chosen = rng.choice(len(ready), 2, replace=False)
    problem = Problem.of(table, float(rng.choice([0.02, 0.1])), size_u=3)
    found = bound(problem, constraints=tuple((f"c{k}", ready[k]) for k in chosen), gap=1e-3, time_limit=300.0)
    assert found.ignored == ()
    assert found.certified
    known = Known.of_table(problem.table)
    assert max(ready[k].excess(found.mechanism, known) for k in chosen) <= 1e-12
    assert found.certificate is not None
    assert found.certificate.verify().bound >= problem.objective(found.mechanism) - 1e-13
    assert found.certificate.bound <= found.upper + 1e-3 * max(found.lower, 1e-3) + 1e-9

"""A certificate under convex costs of a column proves its bound; a mutated one never proves more than the truth."""

from __future__ import annotations

import copy
import json
import math
import random
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.privacy_funnel import costed_certificates
from cvxpriv_models.privacy_funnel.bound import FunnelBound
from cvxpriv_models.privacy_funnel.run import stored_bound
from scipy.optimize import linprog
from scipy.special import entr

from cvxpriv import constraints
from cvxpriv.bounds import (
    check_certificate,
    check_costed_certificate as checker,
    check_costs,
    check_service_certificate,
)
from cvxpriv.bounds.certificate import CostedCertificate, certificate_of
from cvxpriv.constraints import ReadyConstraint
from cvxpriv.errors import DataError
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.arrays import Array

from .column_costs import column_costs, grid, summed
from .copied_checkers import require_short, said_by_copies
from .mutated_certificates import mutated

CHECKERS = tuple(
    Path(str(one.__file__)) for one in (checker, check_certificate, check_costs, check_service_certificate)
)
TABLES = {
    "2x3": np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]]),
    "3x4": np.array([[0.17, 0.05, 0.03, 0.08], [0.02, 0.14, 0.06, 0.07], [0.05, 0.04, 0.16, 0.13]]),
}
STEPS = {"2x3": 24, "3x4": 10}


def far(size: int) -> Array:
    return np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)


def asked(case: str, size: int) -> tuple[float, tuple[ReadyConstraint, ...]]:
    """A rate as a share of H(X), and constraints."""
    guess = constraints.bayes_vulnerability(2.3 if size == 3 else 2.8, far(size)[:2] + 1.0, of="input")
    mean, both = constraints.total_variation_to_prior(0.3, average=True), constraints.group_fairness(0.2)
    placed = constraints.expected_distortion(far(size + 1)[:-1], 0.7)
    every: dict[str, tuple[float, tuple[ReadyConstraint, ...]]] = {
        "delta": (0.08, (constraints.local_differential_privacy(0.5, 0.1),)),
        "metric": (0.12, (constraints.metric_differential_privacy(1.0, far(size)),)),
        "renyi": (0.12, (constraints.renyi_differential_privacy(2.0, 1.0),)),
        "kullback": (0.1, (constraints.renyi_differential_privacy(1.0, 0.6),)),
        "below one": (0.2, (constraints.renyi_differential_privacy(0.5, 0.5),)),
        "le-cam": (0.5, (constraints.f_information("le-cam", 0.02),)),
        "hellinger": (0.35 if size == 3 else 0.3, (constraints.f_information("hellinger", 0.25, "input"),)),
        "mutual": (0.6, (constraints.f_information("mutual-information", 0.1),)),
        "guess": (0.45, (constraints.bayes_vulnerability(0.62 if size == 3 else 0.5),)),
        "gain": (0.3, (guess,)),
        "fair": (0.45, (constraints.group_fairness(0.15),)),
        "groups": (0.3, (constraints.group_fairness(0.3 if size == 3 else 0.1, [0, 0, 1, 1][:size]),)),
        "average": (
            0.4 if size == 3 else 0.3,
            (mean, both),
        ),
        "moved": (0.4, (constraints.total_variation_to_prior(0.45), constraints.bayes_vulnerability(0.7))),
        "box": (
            0.2 if size == 3 else 0.1,
            (constraints.local_information_privacy(0.8, "input"), both),
        ),
        "told": (0.4, (constraints.pointwise_leakage(0.3), constraints.f_information("hellinger", 0.5, "input"))),
        "peak": (0.2, (constraints.maximal_leakage(0.6), constraints.f_information("hellinger", 0.4, "input"))),
        "local": (
            0.08,
            (constraints.local_differential_privacy(1.2), constraints.renyi_differential_privacy(2.0, 1.0)),
        ),
        "distortion": (
            0.3,
            (placed, constraints.group_fairness(0.3)),
        ),
        "forbidden": (
            0.15,
            (constraints.forbidden([(0, 1), (1, 2), (2, 0)]), constraints.f_information("le-cam", 0.1, "input")),
        ),
    }
    return every[case]


CASES = (
    *("delta", "metric", "renyi", "kullback", "below one", "le-cam", "hellinger", "mutual", "guess", "gain", "fair"),
    *("groups", "average", "moved", "box", "told", "peak", "local", "distortion", "forbidden"),
)
FAST = ("metric 2x3",)
EVERY = [f"{case} {table}" for table in TABLES for case in CASES]
MARKED = [one if one in FAST else pytest.param(one, marks=pytest.mark.slow) for one in EVERY]


def model(case: str) -> PrivacyFunnel:
    name, table = case.rsplit(" ", 1)
    rate, ready = asked(name, TABLES[table].shape[1])
    found = PrivacyFunnel(TABLES[table], rate=rate)
    for k, one in enumerate(ready):
        found = found.constrain(f"c{k}", one)
    return found


#: A certificate has up to a million numbers where several costs curve: a wider gap leaves fewer, and a bound above 0.
WIDER = {"renyi 3x4": 3e-3, "kullback 3x4": 2e-3, "below one 3x4": 5e-3, "hellinger 3x4": 2e-3}
WIDER |= dict.fromkeys(("renyi 2x3", "kullback 2x3", "below one 2x3", *FAST), 1e-3)


def gap_of(case: str) -> float:
    return WIDER.get(case, 1e-3 if case.endswith("3x4") else 1e-4)


@cache
def bound_under(case: str) -> FunnelBound:
    return model(case).bound(gap=gap_of(case), time_limit=120.0)


def test_the_checkers_are_short_and_import_the_standard_library_and_each_other_alone() -> None:
    require_short(CHECKERS)


def test_a_saved_certificate_is_proved_by_the_copied_checkers(tmp_path: Path) -> None:
    certificate = bound_under(FAST[0]).certificate
    certificate.save(tmp_path / "c.json")
    said = said_by_copies(CHECKERS, tmp_path)
    assert f"that satisfies the constraints leaks at least {certificate.bound:.12g} nats" in said
    loaded = certificate_of(certificate.document())
    assert isinstance(loaded, CostedCertificate)
    assert loaded.document() == certificate.document()
    with pytest.raises(ValueError, match="is known"):
        check_certificate.check(certificate.document())


@pytest.mark.parametrize("case", MARKED)
def test_the_claim_is_the_bound_and_no_looser(case: str) -> None:
    found, funnel = bound_under(case), model(case)
    assert isinstance(found.certificate, CostedCertificate)
    assert (found.ignored, found.uncertified) == ((), {})
    assert found.reason == "" or found.reason.startswith("no mechanism was found") or "local search" in found.reason
    assert found.reason or found.gap <= gap_of(case) + 1e-8
    assert found.certificate.bound == found.lower >= 0.0
    shown = found.certificate.verify()
    assert shown.bound == found.lower
    assert shown.leakage == pytest.approx(funnel.problem.leakage(found.mechanism), abs=1e-12)
    again = stored_bound(found.certificate.without_table(), funnel.problem, funnel.constraints)
    assert (again.lower, again.counted, again.ignored) == (found.lower, found.counted, ())
    with pytest.raises(DataError, match="it states others"):
        stored_bound(found.certificate, funnel.problem, [("c0", constraints.group_fairness(0.31))])


# --- the truth, by a linear program over columns on a grid ------------------------------------------------------------


def least(document: dict[str, Any]) -> float:
    """A leakage that some mechanism under the constraints reaches; infinite where none does."""
    table = np.array(document["table"])
    p, size = table.sum(axis=0), table.shape[1]
    joint = (p[:, None] * np.array(document["mechanism"])).T
    joint = joint[joint.any(axis=1)]
    steps = STEPS["2x3" if size == 3 else "3x4"]
    x = np.vstack([grid(size, steps), p, joint / joint.sum(axis=1, keepdims=True)])
    kept, rows, ends = summed(document["constraints"], x, table, size + 1)
    x = x[kept]
    rows, ends = np.vstack([entr(x).sum(axis=1), rows]), [float(entr(p).sum()) - document["rate"], *ends]
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(-entr(x @ (table / p).T).sum(axis=1), rows, ends, x.T, p, method="highs", options=exact)
    return float(entr(table.sum(axis=1)).sum() + found.fun) if found.status == 0 else math.inf


def mutation(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A certificate with some numbers changed: the claim's, a constraint's, a cell's, a cut's."""
    copied = copy.deepcopy(mutated(document, rng, ("nu", "lam", "bound", "bound", "rate")))
    change = rng.choice([1.0 + 10.0 ** rng.uniform(-9, 0), 1.0 - 10.0 ** rng.uniform(-9, 0), 0.0, -1.0, 1e3])
    place = rng.randrange(6)
    tree = rng.choice([one for one in copied["cells"] if one])
    if place == 0 and any(copied["mu"]):
        prices = rng.choice([one for one in copied["mu"] if one])
        prices[rng.randrange(len(prices))] *= abs(change)
    elif place == 1:
        stated = rng.choice(copied["constraints"])
        names = [name for name in ("epsilon", "bound", "delta") if stated.get(name)]
        for name in names[:1]:
            stated[name] *= abs(change)
    elif place == 2:
        leaf = rng.choice([node for node in tree if isinstance(node[0], list)])
        numbers = rng.choice([part for part in leaf if part])
        numbers[rng.randrange(len(numbers))] *= change
    elif place == 3:
        del tree[rng.randrange(len(tree))]
    elif place == 4:
        for cut in [node for node in tree if not isinstance(node[0], list)][: rng.randint(1, 9)]:
            cut[rng.randrange(3)] = rng.choice([0, 1, 2, 0.25, 0.999])
    return copied


def check_mutations(document: dict[str, Any], count: int, seed: int) -> tuple[int, int]:
    rng, proved = random.Random(seed), 0
    for _ in range(count):
        copied = mutation(document, rng)
        try:
            found = checker.check(copied)
        except ValueError:
            continue
        proved += 1
        assert found["bound"] <= least(copied) + 1e-9, copied
        assert found["bound"] <= copied["bound"]
    return proved, count - proved


@pytest.mark.parametrize("case", MARKED)
def test_mutated_certificates_never_prove_more_than_the_truth(case: str) -> None:
    """By ten thousand mutations, most of small certificates: a check of a large one takes a second."""
    document = bound_under(case).certificate.document()
    count = 25 if case in FAST else min(max(3_000_000 // len(json.dumps(document)), 10), 500)
    proved, refused = check_mutations(document, count, 0)
    assert proved > 0
    assert refused > 0  # few where the bound is next to 0: what proves 0 is hard to spoil


@pytest.mark.parametrize("case", MARKED)
def test_a_claim_above_the_truth_is_refused(case: str) -> None:
    found = bound_under(case)
    document = found.certificate.document()
    truth = least(document)
    assert found.lower <= truth + 1e-9
    for excess in (1e-9, 1e-3, 1.0):
        with pytest.raises(ValueError, match="the claim exceeds"):
            checker.check(document | {"bound": truth + excess})


#: Of three symbols and two outputs: what a column of an output costs beside what all columns cost.
PLACED = np.array([[0.0, 1.0], [0.5, 0.25], [2.0, 0.125]])


@pytest.mark.parametrize(
    ("constraint", "prices", "paid", "placed"),
    [
        (constraints.total_variation_to_prior(0.3, average=True), [0.5], 0.15, 0.0),
        (constraints.total_variation_to_prior(0.3), [0.5, 0.25, 0.25], 0.3, 0.0),
        (constraints.group_fairness(0.2), [0.5], 0.1, 0.0),
        (constraints.f_information("le-cam", 0.02), [0.5], 0.01, 0.0),
        (constraints.maximal_leakage(0.5), [0.5], 0.5 * math.exp(0.5), 0.0),
        (constraints.maximal_leakage(2.0), [0.5], 1.5, 0.0),  # no more than one for each symbol
        (constraints.local_differential_privacy(0.5, 0.1), [0.5] * 6, 0.3, 0.0),
        (constraints.expected_distortion(PLACED, 0.4), [0.5], 0.2, 0.5),
    ],
)
def test_a_budget_is_paid_out_of_what_is_proved(
    constraint: ReadyConstraint, prices: list[float], paid: float, placed: float
) -> None:
    """One cell, the whole simplex, whose costs are given up: H(x) is 0 at its corners, -H(A x) is above (A x).log t."""
    joint, nu, lam, rate = TABLES["2x3"], np.array([0.1, -0.2, 0.3]), 0.25, 0.4
    exact = [[Fraction(float(v)) for v in row] for row in joint]
    total = sum(map(sum, exact), Fraction(0))
    exact = [[v / total for v in row] for row in exact]
    p = [sum(column, Fraction(0)) for column in zip(*exact, strict=True)]
    said, t = {"kind": constraint.kind, **constraint.parameters}, np.array([0.25, 0.75])
    cost = check_costs.Cost(said, exact, p, check_costs.short(prices))
    cells = [[[t.tolist(), [0.0] * cost.size]]] * max(cost.outputs, 1)
    numbers = [Fraction(float(v)) for v in nu], Fraction(lam), Fraction(rate)
    found = float(checker.proved({"constraints": [said], "mu": [prices], "cells": cells}, exact, p, *numbers))
    whole, lines = joint.sum(axis=0), np.log(t) @ (joint / joint.sum(axis=0)) - nu
    least_of_all = (lines[:, None] + placed * PLACED).min()
    expected = entr(joint.sum(axis=1)).sum() + nu @ whole - lam * (entr(whole).sum() - rate) - paid + least_of_all
    assert found <= expected + 1e-15
    assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_any_cells_and_numbers_prove_no_more_than_phi(seed: int) -> None:
    """Random trees, with cuts anywhere and any numbers in their leaves, against phi at many columns."""
    rng = np.random.default_rng(seed)
    case = EVERY[int(rng.integers(len(EVERY)))]
    name, table = case.rsplit(" ", 1)
    joint, size = TABLES[table], TABLES[table].shape[1]
    _, ready = asked(name, size)
    stated = [one for one in ready if one.kind not in ("expected_distortion", "forbidden")]
    said = [{"kind": one.kind, **one.parameters} for one in stated]
    exact = [[Fraction(float(v)) for v in row] for row in joint]
    total = sum(map(sum, exact), Fraction(0))
    exact = [[v / total for v in row] for row in exact]
    p = [sum(column, Fraction(0)) for column in zip(*exact, strict=True)]
    x = np.vstack([rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])), 3000), np.eye(size)])
    x = (1.0 - 1e-9) * x + 1e-9 * joint.sum(axis=0)
    held = [column_costs(one, x, joint) for one in said]
    mu = [rng.exponential(0.3, len(ends)).tolist() for _, ends, _ in held]
    costs = [
        check_costs.Cost(one, exact, p, check_costs.short(own) if own else [])
        for one, own in zip(said, mu, strict=True)
    ]
    cells: list[Any] = []

    def grow(depth: int) -> None:
        if depth and rng.random() < 0.8:
            i, j = rng.choice(size, 2, replace=False).tolist()
            cells.append([i, j, float(rng.choice([0.5, rng.random(), 1e-12]))])
            grow(depth - 1)
            grow(depth - 1)
        else:
            t = rng.dirichlet(np.ones(len(joint)))
            numbers = [rng.normal(0.0, rng.choice([0.1, 1.0, 10.0]), cost.size) for cost in costs]
            if said[0]["kind"] == "bayes_vulnerability":
                numbers[0] = np.abs(numbers[0])
            cells.append([(0.999 * t + 1e-9).tolist(), *(one.tolist() for one in numbers)])

    grow(7)
    lam, nu = float(rng.uniform(0.0, 1.5)), rng.normal(0.0, 1.0, size)
    units = [math.ceil(Fraction(float(v)) * checker.ONE) for v in nu]
    seen = [[v / q for v, q in zip(row, p, strict=True)] for row in exact]
    try:
        low = checker.least(iter(cells), list(range(size)), seen, units, int(Fraction(lam) * checker.ONE), costs)
    except ValueError:  # a mixture of guesses without weight
        return
    phi = lam * entr(x).sum(axis=1) - entr(x @ (joint / joint.sum(axis=0)).T).sum(axis=1) - x @ nu
    some = np.all([ok for *_, ok in held], axis=0)
    phi = phi + sum(cost @ np.array(own) for (cost, *_), own in zip(held, mu, strict=True))
    assert low / checker.ONE <= phi[some].min() + 1e-12


@pytest.mark.parametrize(
    "stated",
    [
        [],
        [{}],
        [{"kind": "unknown"}],
        [{"kind": "metric_differential_privacy", "epsilon": 1.0}],
        [{"kind": "metric_differential_privacy", "epsilon": 1e9, "distance": far(3).tolist()}],
        [{"kind": "forbidden", "cells": [[0, 0]], "outputs": 10**9}],
        "metric",
    ],
)
def test_constraints_that_cannot_be_read_are_refused(stated: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        checker.check(bound_under(FAST[0]).certificate.document() | {"constraints": stated})


def test_cells_that_are_none_are_refused() -> None:
    document = bound_under(FAST[0]).certificate.document()
    leaf = next(node for node in document["cells"][0] if isinstance(node[0], list))
    for cells in (
        [],
        [[]],
        [[7]],
        [[[0, 1]]],
        [[[0, 3, 0.5], leaf, leaf]],
        [[[0, 0, 0.5], leaf, leaf]],
        [[[0, 1, 1.5], leaf, leaf]],
        [[[0, 1, -0.5], leaf, leaf]],
        [[[0, True, 0.5], leaf, leaf]],
        [[[0, 1, 0.5], leaf]],
        [[[[0.0, 1.0], *leaf[1:]]]],
        [[[[0.6, 0.6], *leaf[1:]]]],
        [[[leaf[0]]]],
    ):
        with pytest.raises(ValueError, match="cell|cut|share|distribution|number|row|negative"):
            checker.check(document | {"cells": cells})


def test_what_a_certificate_cannot_state_leaves_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    funnel = PrivacyFunnel(TABLES["2x3"], rate=0.45)
    kinked = funnel.constrain("told", constraints.f_information("total-variation", 0.1))
    found = kinked.constrain("fair", constraints.group_fairness(0.15)).bound(gap=1e-3)
    assert found.counted == ("told", "fair")
    assert found.uncertified["told"].startswith("the checker knows no f but those")
    assert found.uncertified["fair"].startswith("it is counted together with told")
    assert found.certificate.bound < found.lower
    monkeypatch.setattr(costed_certificates, "MOST_NUMBERS", 20)
    short = model("metric 2x3").bound(gap=1e-3)
    assert "its cells take more than" in short.uncertified["c0"]
    assert short.certificate.verify().bound <= short.lower

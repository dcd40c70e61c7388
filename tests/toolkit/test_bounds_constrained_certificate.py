"""A certificate under constraints proves what it says; a mutated one never proves more than the truth."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import entr

from cvxpriv import constraints
from cvxpriv.blocks.declaration import Known
from cvxpriv.bounds import check_certificate, check_constrained_certificate as checker
from cvxpriv.bounds.certificate import ConstrainedCertificate, certificate_of
from cvxpriv.constraints.documents import from_document
from cvxpriv.errors import DataError
from cvxpriv.models import PrivacyFunnel
from cvxpriv.tables.joint import JointTable

from .copied_checkers import require_short, said_by_copies
from .mutated_certificates import mutated

CHECKER = Path(checker.__file__)
PLAIN = Path(check_certificate.__file__)
TWO = np.array([[0.3, 0.12, 0.02], [0.03, 0.18, 0.35]])
THREE = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]]) / 3  # PF, section V-A
APART = np.array([[0.0, 1.0, 2.0, 0.5], [1.0, 0.0, 1.0, 0.5], [2.0, 1.0, 0.0, 0.5]])
CASES = {
    "local": (0.12, constraints.local_differential_privacy(1.2)),
    "pointwise": (0.4, constraints.pointwise_leakage(0.6, of="input")),
    "maximal": (0.5, constraints.maximal_leakage(0.6)),
    "each": (0.5, constraints.total_variation_to_prior(0.5)),
    "mean": (0.4, constraints.total_variation_to_prior(0.3, average=True)),
    "distortion": (0.6, constraints.expected_distortion(APART, 0.25)),
    "forbidden": (0.6, constraints.forbidden([(0, 0), (1, 0), (1, 1), (2, 2)])),
}
CELLS = 3000  # enough for the true certificates of these tables
GRID = 20
ROUNDED = 1.0 + 1e-12  # a mechanism's own columns touch their constraints
FIELDS = ("nu", "lam", "bound", "bound", "rate", "mu")
NUMBERS = ("epsilon", "bound")


def certificate_under(case: str, table: np.ndarray = TWO) -> ConstrainedCertificate:
    fraction, constraint = CASES[case]
    found = PrivacyFunnel(table, rate=fraction).constrain("mine", constraint).bound(gap=1e-5)
    assert found.counted == ("mine",)
    assert isinstance(found.certificate, ConstrainedCertificate)
    assert found.lower - found.certificate.bound <= 6e-6
    return found.certificate


@pytest.fixture(scope="module", params=list(CASES))
def certificate(request: pytest.FixtureRequest) -> ConstrainedCertificate:
    return certificate_under(request.param)


def test_the_checker_is_short_and_imports_the_standard_library_and_the_other_checker_alone() -> None:
    require_short([CHECKER])


def test_a_saved_certificate_is_proved_by_the_copied_checkers(
    certificate: ConstrainedCertificate, tmp_path: Path
) -> None:
    assert certificate.save(tmp_path / "c.json").stat().st_mode & 0o777 == 0o600
    said = said_by_copies([CHECKER, PLAIN], tmp_path)
    assert f"that satisfies the constraints leaks at least {certificate.bound:.12g} nats" in said
    loaded = certificate_of(certificate.document())
    assert isinstance(loaded, ConstrainedCertificate)
    assert loaded.document() == certificate.document()
    assert loaded.verify().bound == certificate.bound > 1e-5


def test_three_private_symbols_are_proved_too() -> None:
    for case in ("local", "maximal"):
        certificate = certificate_under(case, THREE)
        assert certificate.verify().bound == certificate.bound > 1e-5


def test_the_plain_checker_refuses_a_certificate_under_constraints(certificate: ConstrainedCertificate) -> None:
    with pytest.raises(ValueError, match="is known"):
        check_certificate.check(certificate.document())


def least(certificate: ConstrainedCertificate, stated: dict[str, Any], rate: float) -> float:
    """A leakage that some mechanism under a constraint reaches: by columns on a grid; infinite where none does."""
    p = TWO.sum(axis=0)
    points = [v for v in itertools.product(range(GRID + 1), repeat=3) if sum(v) == GRID]
    joint = p[:, None] * certificate.mechanism[:, certificate.mechanism.any(axis=0)]
    pi = np.concatenate([np.array(points).T / GRID, p[:, None], joint / joint.sum(axis=0)], axis=1)
    kind, ratio, ends = stated["kind"], pi / p[:, None], [float(entr(p).sum()) - rate]
    sums, some = [entr(pi).sum(axis=0)], np.ones(pi.shape[1], dtype=bool)
    if kind == "local_differential_privacy":
        some = ratio.max(axis=0) <= math.exp(min(stated["epsilon"], 700.0)) * ratio.min(axis=0) * ROUNDED
    elif kind == "pointwise_leakage":
        some = ratio.max(axis=0) <= math.exp(min(stated["epsilon"], 700.0)) * ROUNDED
    elif kind == "maximal_leakage":
        sums.append(ratio.max(axis=0))
        ends.append(math.exp(min(stated["bound"], 700.0)))
    elif kind == "total_variation_to_prior":
        mean = stated["average"]
        sums += [0.5 * np.abs(pi - p[:, None]).sum(axis=0)] if mean else list(0.5 * np.abs(ratio - 1.0))
        ends += [stated["bound"]] * (1 if mean else 3)
    elif kind == "expected_distortion":
        d = np.array(stated["distortion"])
        sums, pi = [np.tile(sums[0], d.shape[1]), (d.T @ pi).ravel()], np.tile(pi, d.shape[1])
        ends.append(stated["bound"])
        some = np.ones(pi.shape[1], dtype=bool)
    else:
        banned = np.zeros((3, stated["outputs"]))
        banned[tuple(np.array(stated["cells"]).T)] = 1.0
        some = ((banned.T @ pi) == 0.0).ravel()
        sums, pi = [np.tile(sums[0], len(banned.T))], np.tile(pi, len(banned.T))
    pi, rows = pi[:, some], np.array(sums)[:, some]
    found = linprog(-entr(TWO / p @ pi).sum(axis=0), rows, ends, pi, p, method="highs")
    return float(entr(TWO.sum(axis=1)).sum() + found.fun) if found.status == 0 else math.inf


def mutation(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A certificate with some numbers changed, those of its constraint among them."""
    copied = mutated(document, rng, [field for field in FIELDS if document[field] != []])
    stated = copied["constraints"][0]
    for name in NUMBERS:
        if name in stated and rng.random() < 0.5:
            stated[name] *= rng.choice([1.0 + 10.0 ** rng.uniform(-9, 0), 1.0 - 10.0 ** rng.uniform(-9, 0)])
    if "cells" in stated and rng.random() < 0.5:
        stated["cells"] = rng.sample(stated["cells"], rng.randint(1, len(stated["cells"])))
    return copied


def check_mutations(certificate: ConstrainedCertificate, count: int, seed: int) -> tuple[int, int]:
    rng, document, proved = random.Random(seed), certificate.document(), 0
    for _ in range(count):
        copied = mutation(document, rng)
        try:
            found = checker.check(copied, most_cells=CELLS)
        except ValueError:
            continue
        proved += 1
        assert found["bound"] <= least(certificate, copied["constraints"][0], copied["rate"]) + 1e-9, copied
        assert found["bound"] <= copied["bound"]
    return proved, count - proved


def test_mutated_certificates_never_prove_more_than_the_truth(certificate: ConstrainedCertificate) -> None:
    proved, refused = check_mutations(certificate, 15, 0)
    assert proved > 0
    assert refused > 3


@pytest.mark.slow
def test_many_mutated_certificates(certificate: ConstrainedCertificate) -> None:
    check_mutations(certificate, 1500, 1)


def test_a_claim_above_the_truth_is_refused(certificate: ConstrainedCertificate) -> None:
    truth = least(certificate, certificate.constraints[0], certificate.rate)
    for excess in (1e-9, 1e-3, 1.0):
        document = certificate.document()
        document["bound"] = truth + excess
        with pytest.raises(ValueError, match="claim|phi"):
            checker.check(document, most_cells=20_000)


@pytest.mark.parametrize(
    "stated",
    [
        [],
        [{}],
        [{"kind": "unknown"}],
        [{"kind": "local_differential_privacy"}],
        [{"kind": "local_differential_privacy", "epsilon": -1.0}],
        [{"kind": "local_differential_privacy", "epsilon": 1e9}],
        [{"kind": "forbidden", "cells": [[0.5, 0]], "outputs": 2}],
        [{"kind": "forbidden", "cells": [[7, 0]], "outputs": 2}],
        [{"kind": "expected_distortion", "distortion": [[0.0, 1.0]], "bound": 1.0}],
        [{"kind": "maximal_leakage", "bound": 0.5}, {"kind": "total_variation_to_prior", "bound": 0.5}],
        "local",
    ],
)
def test_constraints_that_cannot_be_read_are_refused(stated: object) -> None:
    document = certificate_under("local").document() | {"constraints": stated}
    with pytest.raises(ValueError, match=r"."):
        checker.check(document)


def test_fewer_constraints_prove_no_more() -> None:
    # The bound under local differential privacy exceeds the best that a loose constraint leaves.
    document = certificate_under("local").document()
    document["constraints"] = [{"kind": "pointwise_leakage", "epsilon": 5.0}]
    with pytest.raises(ValueError, match="claim|phi"):
        checker.check(document, most_cells=20_000)


@pytest.mark.parametrize("shape", ["ratio", "peak", "sets", "moved"])
def test_every_allowed_column_is_a_mixture_of_the_generators(shape: str) -> None:
    """With the sums that the rows say: checked on random posteriors by linear programs."""
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    prior, most = np.array(p, dtype=float), 1.8
    spread = np.array(checker.generators(shape, p, Fraction(9, 5)), dtype=float).T
    sums: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "ratio": lambda v: (v / prior[:, None]).max(axis=0),
        "peak": lambda v: np.ones(v.shape[1]),
        "sets": lambda v: (v / prior[:, None]).max(axis=0),
        "moved": lambda v: np.abs(v - prior[:, None]).sum(axis=0),
    }
    rng, tried = np.random.default_rng(0), 0
    while tried < 40:
        pi = rng.dirichlet(np.ones(3))[:, None]
        ratio = pi / prior[:, None]
        if (shape == "ratio" and ratio.max() > most * ratio.min()) or (shape == "peak" and ratio.max() > most):
            continue
        tried += 1
        rows = np.vstack([spread, sums[shape](spread)[None]])
        ends = np.append(pi[:, 0], sums[shape](pi))
        found = linprog(np.zeros(spread.shape[1]), None, None, rows, ends, method="highs")
        assert found.status == 0, pi


def test_powers_are_above_the_exact_ones() -> None:
    mpmath.mp.dps = 40
    for x in (0.0, 1e-12, 0.6, 1.2, 5.0, 20.0, 39.9):
        above = checker.power(Fraction(x))
        assert mpmath.mpf(above.numerator) / above.denominator >= mpmath.exp(mpmath.mpf(x))
        assert float(above) <= math.exp(x) * (1.0 + 1e-9 + math.exp(x) * 2.0**-62)


def test_what_is_stated_is_what_the_constraint_means() -> None:
    """A mechanism satisfies a ready constraint exactly where the columns satisfy what the certificate states."""
    known = Known.of_table(JointTable.from_array(TWO))
    p = TWO.sum(axis=0)
    mechanism = np.random.default_rng(1).dirichlet(np.ones(4), 3)
    r = p @ mechanism
    ratio = mechanism / r
    for constraint, value in [
        (constraints.local_differential_privacy(1.0), float(np.log((ratio.max(axis=0) / ratio.min(axis=0)).max()))),
        (constraints.pointwise_leakage(1.0, of="input"), float(np.log(ratio.max()))),
        (constraints.maximal_leakage(1.0), float(np.log((r * ratio.max(axis=0)).sum()))),
        (constraints.total_variation_to_prior(1.0), float((0.5 * np.abs(ratio - 1.0) @ r).max())),
        (constraints.total_variation_to_prior(1.0, average=True), float(0.5 * p @ np.abs(ratio - 1.0) @ r)),
        (constraints.expected_distortion(APART, 1.0), float((p[:, None] * mechanism * APART).sum())),
    ]:
        name = next(key for key in NUMBERS if key in constraint.parameters)
        parameters = {**constraint.parameters, name: value}
        shifted = from_document({"constraint": constraint.kind, "parameters": parameters})
        assert shifted is not None
        assert shifted.excess(mechanism, known) == pytest.approx(0.0, abs=1e-12)


def test_a_document_without_constraints_is_refused() -> None:
    document = certificate_under("local").document()
    for field in ("constraints", "mu"):
        broken = {key: value for key, value in document.items() if key != field}
        with pytest.raises(DataError):
            certificate_of(broken)

"""A certificate proves what it says; a mutated one proves less or nothing, never more than the truth."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.bound import Prover, bound

from cvxpriv.bounds import check_certificate
from cvxpriv.bounds.certificate import Certificate
from cvxpriv.errors import DataError

from .mutated_certificates import mutated

TABLE = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
THREE = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]]) / 3  # PF, section V-A
CHECKER = Path(check_certificate.__file__)
FIELDS = ("nu", "lam", "bound", "bound", "rate", "mechanism")
CELLS = 3000  # enough for the true certificates of these tables


def entropy(p: np.ndarray) -> float:
    return float(-(p @ np.log(p)))


@pytest.fixture(scope="module", params=["two", "three"])
def certificate(request: pytest.FixtureRequest) -> Certificate:
    table = TABLE if request.param == "two" else THREE
    return bound(table, 0.6 * entropy(table.sum(axis=0)), gap=1e-6).certificate


def test_the_checker_is_short_and_imports_the_standard_library_alone() -> None:
    text = CHECKER.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 200
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names


def test_a_saved_certificate_is_proved_by_the_copied_checker(certificate: Certificate, tmp_path: Path) -> None:
    certificate.save(tmp_path / "c.json")
    (tmp_path / "check.py").write_bytes(CHECKER.read_bytes())
    command = [sys.executable, "-I", "check.py", "c.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert f"leaks at least {certificate.bound:.12g} nats" in done.stdout
    found = Certificate.load(tmp_path / "c.json").verify()
    assert found.bound == certificate.bound
    assert 0.0 <= found.leakage - found.bound <= 1e-6
    assert found.utility == pytest.approx(certificate.rate, abs=1e-12)


def test_a_certificate_without_its_table_needs_the_right_one(certificate: Certificate, tmp_path: Path) -> None:
    certificate.without_table().save(tmp_path / "c.json")
    loaded = Certificate.load(tmp_path / "c.json")
    assert loaded.table is None
    assert loaded.verify(certificate.table).bound == certificate.bound
    other = np.array(certificate.table)
    other[0, 0] = np.nextafter(other[0, 0], 1.0)
    with pytest.raises(DataError, match="SHA-256"):
        loaded.verify(other)
    with pytest.raises(DataError, match="no matrix"):
        loaded.verify()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "cvxpriv certificate", "version": 2, "kind": "x"}', "NaN"]
)
def test_what_is_no_certificate_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(DataError):
        Certificate.load(path)
    assert check_certificate.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("not proved")


@pytest.mark.parametrize("field", ["nu", "lam", "rate", "bound", "mechanism", "table"])
@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1", None, [], {}])
def test_a_field_that_is_no_number_is_refused(certificate: Certificate, field: str, value: object) -> None:
    document = certificate.document()
    document[field] = value
    with pytest.raises(ValueError, match=r"."):
        check_certificate.check(document, most_cells=CELLS)


def test_the_logarithm_is_within_its_error_of_mpmath_s() -> None:
    rng = random.Random(0)
    mpmath.mp.dps = 40
    numbers = [1, 2, 3, (1 << 64) - 1, 1 << 64, 1 << 63] + [
        rng.getrandbits(rng.randint(2, 64)) | 1 for _ in range(3000)
    ]
    for x in numbers:
        exact = mpmath.log(mpmath.mpf(x) / (1 << 64)) * (1 << 64)
        assert abs(check_certificate.log(x) - exact) <= check_certificate.LOG_ERROR, x


def test_entropies_enclose_the_exact_ones() -> None:
    mpmath.mp.dps = 40
    for seed in range(50):
        values = [Fraction(float(v)) for v in np.random.default_rng(seed).dirichlet(np.full(6, 0.2))]
        p = [v / sum(values) for v in values]
        low, high = check_certificate.entropy(check_certificate.units(p))
        exact = -sum(
            mpmath.mpf(v.numerator) / v.denominator * mpmath.log(mpmath.mpf(v.numerator) / v.denominator)
            for v in p
            if v
        )
        assert low <= exact * (1 << 64) <= high


class Truth:
    """An upper bound of the least leakage at any rate: the certified curve, linear between its points."""

    def __init__(self, table: np.ndarray) -> None:
        prover, self.entropy = Prover(table), entropy(table.sum(axis=0))
        self.rates = self.entropy * np.linspace(0.0, 1.0, 21)
        self.upper = np.array([prover.at(rate, 1e-6).upper for rate in self.rates])
        self.prover = prover

    def least(self, rate: float) -> float:
        """A leakage that some mechanism reaches: no true claim exceeds it."""
        if rate > self.entropy:
            return math.inf
        between = float(np.interp(max(rate, 0.0), self.rates, self.upper))  # time-sharing: the curve is convex
        return between


@pytest.fixture(scope="module")
def truths() -> dict[int, Truth]:
    return {2: Truth(TABLE), 3: Truth(THREE)}


def check_mutations(certificate: Certificate, truth: Truth, count: int, seed: int) -> tuple[int, int]:
    rng, document, proved = random.Random(seed), certificate.document(), 0
    for _ in range(count):
        copied = mutated(document, rng, FIELDS)
        try:
            found = check_certificate.check(copied, most_cells=CELLS)
        except ValueError:
            continue
        proved += 1
        assert found["bound"] <= truth.least(copied["rate"]) + 1e-12, copied  # mechanisms' leakage, to rounding
        assert found["bound"] <= copied["bound"]
    return proved, count - proved


def test_mutated_certificates_never_prove_more_than_the_truth(
    certificate: Certificate, truths: dict[int, Truth]
) -> None:
    proved, refused = check_mutations(certificate, truths[len(certificate.table)], 300, 0)
    assert proved > 10
    assert refused > 10


@pytest.mark.slow
def test_ten_thousand_mutated_certificates(certificate: Certificate, truths: dict[int, Truth]) -> None:
    check_mutations(certificate, truths[len(certificate.table)], 5000, 1)


def test_a_claim_above_the_truth_is_refused_however_little(certificate: Certificate, truths: dict[int, Truth]) -> None:
    upper = truths[len(certificate.table)].prover.at(certificate.rate, 1e-9).upper
    for excess in (1e-12, 1e-9, 1e-6, 1e-3, 1.0):
        document = certificate.document()
        document["bound"] = upper + excess
        with pytest.raises(ValueError, match="claim|phi"):
            check_certificate.check(document, most_cells=100_000)


def test_merged_private_symbols_prove_a_weaker_bound() -> None:
    groups = (0, 1, 0)
    merged = np.array([THREE[0] + THREE[2], THREE[1]])
    rate = 0.6 * entropy(THREE.sum(axis=0))
    weaker = bound(merged, rate).certificate
    document = weaker.document() | {
        "table": THREE.tolist(),
        "table_sha256": check_certificate.table_hash(THREE.tolist()),
        "groups": list(groups),
    }
    assert check_certificate.check(document)["bound"] == weaker.bound
    document["groups"] = [0, 1]
    with pytest.raises(ValueError, match="groups"):
        check_certificate.check(document)


def test_documents_survive_json_bit_by_bit(certificate: Certificate) -> None:
    assert json.loads(json.dumps(certificate.document())) == certificate.document()

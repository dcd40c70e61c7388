"""A certificate proves what it says; a mutated one proves less or nothing, never more than the truth."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from cvxpriv_models.privacy_funnel.bound import Prover, bound

from cvxpriv.bounds import check_certificate
from cvxpriv.bounds.certificate import Certificate
from cvxpriv.errors import DataError

from .copied_checkers import require_short, said_by_copies
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
    require_short([CHECKER])


def test_a_saved_certificate_is_proved_by_the_copied_checker(certificate: Certificate, tmp_path: Path) -> None:
    certificate.save(tmp_path / "c.json")
    assert f"leaks at least {certificate.bound:.12g} nats" in said_by_copies([CHECKER], tmp_path)
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


def test_a_certificate_is_proved_in_few_simplices(certificate: Certificate) -> None:
    # 35 and 68 are cut: tangents are tried where the search leads, and concave simplices are left alone.
    most = {2: 39, 3: 73}[len(certificate.table)]
    assert check_certificate.check(certificate.document(), most_cells=most)["bound"] == certificate.bound


def test_the_checker_ends_with_0_if_the_claim_is_proved_and_with_1_else(
    certificate: Certificate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate.save(tmp_path / "c.json")
    assert check_certificate.main([str(tmp_path / "c.json")]) == 0
    assert check_certificate.main([]) == 1
    assert "check_certificate.py certificate.json" in capsys.readouterr().out


@pytest.mark.parametrize("value", [1e300, -1e300])
def test_a_multiplier_that_nobody_needs_is_refused(certificate: Certificate, value: float) -> None:
    document = certificate.document()
    document["nu"][0] = value
    with pytest.raises(ValueError, match="an entry is no number"):
        check_certificate.check(document)


def test_a_rate_of_0_is_a_rate(certificate: Certificate) -> None:
    document = {**certificate.document(), "rate": 0.0, "bound": 0.0}
    assert Certificate.of_document(document).rate == 0.0


def test_entropies_hold_for_arguments_that_are_off_by_three_units() -> None:
    mpmath.mp.dps = 40
    for count, size in ((64, 1 << 10), (500, 1 << 20), (3, 1 << 62)):
        exact = -count * mpmath.mpf(size) * mpmath.log(mpmath.mpf(size) / (1 << 64))
        for off in (-3, 3):
            low, high = check_certificate.entropy([size + off] * count)
            assert low <= exact <= high


def test_integers_decide_where_floats_cannot_tell_whether_a_tangent_is_high_enough() -> None:
    # Corners t = (x, y) and (y, x): by symmetry the best tangent of sum t log t stands at their middle, and has the
    # value (x + y) log((x + y)/2) at both.
    one, rng = 1 << 64, random.Random(0)
    mpmath.mp.dps = 40
    for _ in range(60):
        x, y = (rng.randrange(1, one // 2) for _ in range(2))
        corners = [([one, 0], [s, t], 0, [1.0, 0.0], [s / one, t / one], 0.0) for s, t in ((x, y), (y, x))]
        value = int((x + y) * mpmath.log(mpmath.mpf(x + y) / (2 * one)))
        # The tangent is lowered by 1e-14, to be a density for sure, and rounded to a double: 2^-53 of it.
        least = value - (x + y) // 10**14
        assert check_certificate.above(corners, least - 4000, one)
        for higher in (4000, (x + y) // 10**14, one // 1000):
            assert not check_certificate.above(corners, least + higher, one)
        lower = [corners[0], (*corners[1][:2], -20_000, *corners[1][3:])]  # by less than floats can tell of the goal
        assert not check_certificate.above(lower, least - 10_000, one)
        assert check_certificate.above(lower, least - 30_000, one)


def test_a_simplex_is_concave_from_the_very_weight_on_that_its_corners_give() -> None:
    one = 1 << 64
    a, lows = (
        [[Fraction(9, 10), Fraction(2, 10)], [Fraction(1, 10), Fraction(8, 10)]],
        [Fraction(3, 8), Fraction(11, 40)],
    )
    points = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
    units = check_certificate.units
    corners = [
        (units(list(v)), units([sum(x * y for x, y in zip(row, v, strict=True)) for row in a]), 0, [], [], 0.0)
        for v in points
    ]
    assert [min(column) for column in zip(*[c[1] for c in corners], strict=True)] == units(lows)
    bend = [int(one * Fraction(49, 100)) + 1] * 2
    # sum_s (a_s0 - a_s1)^2 / t_s < lam (1/pi_0 + 1/pi_1), for the least t and the largest pi: 3/4 each.
    weight = sum(Fraction(49, 100) / low for low in lows) / (2 / Fraction(3, 4))
    for off in (1e-15, 1e-3):
        above, below = (int(weight * one * (1 + sign * Fraction(off))) for sign in (1, -1))
        assert check_certificate.bends_down(corners, [(0, 1, bend)], above)
        assert not check_certificate.bends_down(corners, [(0, 1, bend)], below)
    empty = [(v, [0, t[1]], *more) for v, t, *more in corners]  # a symbol of S has no mass at a corner
    assert not check_certificate.bends_down(empty, [(0, 1, bend)], one)
    assert check_certificate.bends_down(empty, [(0, 1, [0, bend[1]])], one)


def test_a_symbol_without_mass_is_refused(certificate: Certificate) -> None:
    table = np.column_stack([certificate.table, np.zeros(len(certificate.table))])
    document = {**certificate.document(), "table": table.tolist()}
    document["table_sha256"] = check_certificate.table_hash(document["table"])
    with pytest.raises(ValueError, match="has no mass"):
        check_certificate.check(document)

"""A certificate of inference as a service proves what it says; a mutated one never proves more than the truth."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from cvxpriv_models.inference_service.bound import bound, bound_of
from cvxpriv_models.inference_service.certificates import conjugate_points
from cvxpriv_models.inference_service.problem import Problem

from cvxpriv.bounds import check_service_certificate as checker
from cvxpriv.bounds.any_conjugate import conjugate_of
from cvxpriv.bounds.conjugates import closed_form, within
from cvxpriv.bounds.service_certificate import KNOWN, ServiceCertificate
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.errors import DataError

from .copied_checkers import require_short, said_by_copies
from .mutated_certificates import mutated

TWO = np.array([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
THREE = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]]) / 3
CHECKER = Path(checker.__file__)
FIELDS = ("alpha", "beta", "bound", "bound", "mechanism", "groups")
CELLS = 3000  # enough for the true certificates of these tables


def problem_of(name: str | FDivergence, table: np.ndarray = TWO, beta: float = 0.2) -> Problem:
    return Problem.of(table, beta, name)


@pytest.fixture(scope="module", params=["two", "three"])
def certificate(request: pytest.FixtureRequest) -> ServiceCertificate:
    found = bound(problem_of("jensen-shannon", TWO if request.param == "two" else THREE), gap=1e-5).certificate
    assert found is not None
    return found


def test_the_checker_is_short_and_imports_the_standard_library_alone() -> None:
    require_short([CHECKER])


def test_a_saved_certificate_is_proved_by_the_copied_checker(certificate: ServiceCertificate, tmp_path: Path) -> None:
    certificate.save(tmp_path / "c.json")
    assert f"worth more than {certificate.bound:.12g}" in said_by_copies([CHECKER], tmp_path)


def test_a_certificate_with_its_table_is_for_its_owner_alone_and_one_that_is_not_finite_is_none(
    certificate: ServiceCertificate, tmp_path: Path
) -> None:
    assert certificate.save(tmp_path / "c.json").stat().st_mode & 0o777 == 0o600
    for field in ("beta", "bound", "alpha"):
        document = certificate.document()
        document[field] = [math.nan] * len(document["alpha"]) if field == "alpha" else math.inf
        with pytest.raises(DataError, match="finite"):
            ServiceCertificate.of_document(document)


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_f_is_proved_and_its_mechanism_s_worth_is_enclosed(name: str) -> None:
    problem = problem_of(name)
    found = bound(problem, gap=1e-5)
    assert found.certificate is not None
    shown = found.certificate.verify()
    assert shown.bound == found.certificate.bound >= found.upper
    assert shown.bound - found.lower <= 1.1e-5 * max(found.lower, 1e-3)
    # The checker may lose 100 units of 1000 for each cell of the mechanism, and entropies 330 units each.
    assert 0.0 <= found.lower - shown.value + 1e-15 <= 1e-13


@pytest.mark.parametrize("name", ["total-variation", "hockey-stick:1.5", "alpha:3", "own"])
def test_another_f_brings_points_of_its_conjugate(name: str) -> None:
    own = FDivergence("own", f=lambda t: t * np.log(2.0 * t / (t + 1.0)) + np.log(2.0 / (t + 1.0)))
    problem = problem_of(own if name == "own" else name)
    found = bound(problem, gap=1e-4)
    assert found.certificate is not None
    assert found.certificate.conjugate is not None
    shown = found.certificate.verify()
    assert shown.bound - found.lower <= 1.2e-4 * found.lower
    assert math.isnan(shown.value)


def test_chords_between_points_lie_above_the_conjugate_and_near_it() -> None:
    largest, error = 20.0, 1e-6
    points, lost = conjugate_points(divergence("alpha:3"), largest, error)
    t, h = points.T
    assert error <= lost <= 2.0 * error
    r = np.linspace(0.0, largest, 200_001)
    price = (r**3 - 1.0 - 3.0 * (r - 1.0)) / 6.0
    at = np.linspace(t[0], t[-2], 57)
    exact = (at[:, None] * r - price).max(axis=1)
    above = np.interp(at, t, h) - exact
    assert above.min() >= -1e-12
    weights = (1.0 + np.sqrt(1.0 + 2.0 * at)) / 2.0 + exact**2
    assert (above <= lost * weights + 1e-7).all()  # r is a grid


@pytest.mark.parametrize("name", ["total-variation", "hockey-stick:1.5"])
def test_a_limit_from_above_keeps_the_conjugate_above_what_it_bounds(name: str) -> None:
    conjugate = conjugate_of(divergence(name), 10.0)
    r, t = np.linspace(0.0, 2.0, 2001), np.linspace(-1.0, 2.0, 13)
    exact = (t[:, None] * r - conjugate.price(np.maximum(r, 1e-300))).max(axis=1)
    assert np.allclose(within(conjugate, 1e-100, 2.0).value(t), exact, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("name", ["alpha:0.5", "alpha:-1"])
def test_inputs_of_hardly_any_mass_leave_a_certificate_that_is_accepted(name: str) -> None:
    table = np.array([[0.1, 0.2, 1e-7], [0.3, 0.1, 0.0], [0.1, 0.2, 2e-7]])
    found = bound(Problem.of(table / table.sum(), 0.1, name))
    assert found.certificate is not None
    assert found.certificate.verify().bound - found.lower <= 1e-7


def test_a_certificate_without_its_table_needs_the_right_one(certificate: ServiceCertificate, tmp_path: Path) -> None:
    certificate.without_table().save(tmp_path / "c.json")
    loaded = ServiceCertificate.of_document(json.loads((tmp_path / "c.json").read_text()))
    assert loaded.table is None
    assert loaded.verify(certificate.table).bound == certificate.bound
    assert certificate.table is not None
    other = np.array(certificate.table)
    other[0, 0] = np.nextafter(other[0, 0], 1.0)
    with pytest.raises(DataError, match="SHA-256"):
        loaded.verify(other)
    with pytest.raises(DataError, match="no matrix"):
        loaded.verify()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "cvxpriv certificate", "version": 1, "kind": "x"}', "NaN"]
)
def test_what_is_no_certificate_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    assert checker.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("not proved")
    if text.startswith(("[", "{")):
        with pytest.raises(DataError):
            ServiceCertificate.of_document(json.loads(text))


@pytest.mark.parametrize("field", ["alpha", "beta", "bound", "mechanism", "table", "groups", "conjugate"])
@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1", [1e200], {"a": 1}])
def test_a_field_that_is_no_number_is_refused(certificate: ServiceCertificate, field: str, value: object) -> None:
    document = certificate.document()
    document[field] = value
    with pytest.raises(ValueError, match=r"."):
        checker.check(document, most_cells=CELLS)


def test_an_f_that_is_not_known_needs_points(certificate: ServiceCertificate) -> None:
    document = certificate.document() | {"divergence": "mine"}
    with pytest.raises(ValueError, match="points"):
        checker.check(document)


def test_the_logarithm_is_within_its_error_of_mpmath_s() -> None:
    rng = random.Random(0)
    mpmath.mp.dps = 45
    numbers = [1, 2, 3, (1 << 64) - 1, 1 << 64, 1 << 63, 3 << 100]
    for x in numbers + [rng.getrandbits(rng.randint(2, 110)) | 1 for _ in range(2000)]:
        exact = mpmath.log(mpmath.mpf(x) / (1 << 64)) * (1 << 64)
        assert abs(checker.log(x) - exact) <= checker.LOG_ERROR, x


@pytest.mark.parametrize("name", KNOWN)
def test_slopes_and_values_are_within_their_error(name: str) -> None:
    mpmath.mp.dps = 45
    h = {
        "mutual-information": lambda r: r * mpmath.log(r) - r + 1,
        "reverse-kl": lambda r: r - 1 - mpmath.log(r),
        "jensen-shannon": lambda r: r * mpmath.log(2 * r / (1 + r)) - mpmath.log((1 + r) / 2),
        "hellinger": lambda r: (1 - mpmath.sqrt(r)) ** 2,
        "le-cam": lambda r: (1 - r) ** 2 / (2 + 2 * r),
        "chi-square": lambda r: (r - 1) ** 2,
        "neyman": lambda r: (r - 1) ** 2 / r,
    }[name]
    _, slope, value, _ = checker.FORMS[name]
    for power in range(20, 75):
        z = int(2.0**power * 1.2345)
        root = mpmath.mpf(z) / checker.ONE
        r = root**2 if name == "hellinger" else root
        exact = mpmath.diff(h, r, h=r * mpmath.mpf(10) ** -15)
        allowed = checker.ERROR + abs(exact) * checker.ONE * mpmath.mpf(10) ** -25
        assert abs(slope(z) - exact * checker.ONE) <= allowed, (power, name)
        assert abs(value(z) - (r * exact - h(r)) * checker.ONE) <= allowed * (1 + r), (power, name)


def test_informations_enclose_the_exact_ones() -> None:
    mpmath.mp.dps = 40
    for seed in range(30):
        table = np.random.default_rng(seed).dirichlet(np.full(12, 0.2)).reshape(3, 4)
        exact = [[Fraction(float(v)) for v in row] for row in table]
        total = sum(map(sum, exact))
        exact = [[v / total for v in row] for row in exact]
        low, high = checker.information(exact)
        rows, columns = [sum(row) for row in exact], [sum(column) for column in zip(*exact, strict=True)]
        truth = sum(
            mpmath.mpf(v.numerator)
            / v.denominator
            * mpmath.log(mpmath.mpf((v / (p * q)).numerator) / (v / (p * q)).denominator)
            for row, p in zip(exact, rows, strict=True)
            for v, q in zip(row, columns, strict=True)
            if v
        )
        assert low <= truth * (1 << 64) <= high


class Truth:
    """What some mechanism reaches at any beta: no true bound is below it."""

    def __init__(self, table: np.ndarray) -> None:
        problem = problem_of("jensen-shannon", table)
        best = [bound(problem_of("jensen-shannon", table, beta), gap=1e-5).mechanism for beta in (0.02, 0.1, 0.2, 0.5)]
        best.append(np.eye(len(problem.p_y)))
        self.problem = problem
        self.pairs = [(problem.accuracy(one), problem.leakage(one)) for one in best]

    def best(self, beta: float) -> float:
        return max(0.0, *(accuracy - beta * leakage for accuracy, leakage in self.pairs))


def check_mutations(certificate: ServiceCertificate, count: int, seed: int) -> tuple[int, int]:
    assert certificate.table is not None
    truth = Truth(certificate.table)
    rng, document, proved = random.Random(seed), certificate.document(), 0
    for _ in range(count):
        copied = mutated(document, rng, FIELDS)
        try:
            found = checker.check(copied, most_cells=150)
        except ValueError:
            continue
        proved += 1
        assert found["bound"] >= truth.best(copied["beta"]) - 1e-12, copied
        rows = np.array(copied["mechanism"])
        mechanism = rows / rows.sum(axis=1, keepdims=True)
        real = truth.problem.accuracy(mechanism) - copied["beta"] * truth.problem.leakage(mechanism)
        assert found["value"] <= real + 1e-13 * (1.0 + copied["beta"]), copied
    return proved, count - proved


def test_mutated_certificates_never_prove_more_than_the_truth(certificate: ServiceCertificate) -> None:
    proved, refused = check_mutations(certificate, 70, 0)
    assert proved > 3
    assert refused > 10


@pytest.mark.slow
def test_ten_thousand_mutated_certificates(certificate: ServiceCertificate) -> None:
    check_mutations(certificate, 5000, 1)


def test_a_claim_below_the_truth_is_refused_however_little(certificate: ServiceCertificate) -> None:
    best = Truth(np.asarray(certificate.table)).best(0.2)
    for excess in (1e-12, 1e-9, 1e-6, 1e-3, 1.0):
        with pytest.raises(ValueError, match="price|small"):
            checker.check(certificate.document() | {"bound": best - excess}, most_cells=400)


def test_merged_symbols_prove_with_what_the_merging_loses() -> None:
    joint = np.random.default_rng(4).dirichlet(np.ones(42)).reshape(6, 7)
    found = bound(joint, 0.2, gap=1e-2, time_limit=4.0)
    assert found.certificate is not None
    groups = [0, 0, 1, 1, 1, 1]
    document = found.certificate.document() | {"groups": groups, "alpha": [0.0] * 7, "bound": 0.6}
    assert checker.check(document, most_cells=20_000)["bound"] == 0.6
    with pytest.raises(ValueError, match="groups"):
        checker.check(document | {"groups": groups[:3]})


def test_a_stored_certificate_is_checked_in_floating_point_too(certificate: ServiceCertificate) -> None:
    problem = problem_of("jensen-shannon", np.asarray(certificate.table))
    again = bound_of(certificate.without_table(), problem)
    assert again.upper == certificate.bound
    document = certificate.document()
    document["bound"] -= 1e-4
    with pytest.raises(DataError, match="does not prove"):
        bound_of(ServiceCertificate.of_document(document), problem)
    with pytest.raises(DataError, match="beta"):
        bound_of(certificate, problem_of("jensen-shannon", np.asarray(certificate.table), 0.01))


@pytest.mark.parametrize("name", KNOWN)
def test_the_checkers_conjugate_is_that_up_to_the_largest_ratio_where_it_is_infinite_over_all(name: str) -> None:
    own, most = closed_form(divergence(name)), 1000
    assert own is not None
    ratios = np.append(np.geomspace(1e-9, most, 4001), 1.0)
    star = checker.formula(*checker.FORMS[name])[1]
    for t in (-3.0, 0.3, math.log(2.0), 0.999, 3.0):
        largest = float((t * ratios - own.price(ratios)).max())
        found = star(int(t * checker.ONE), most) / checker.ONE
        assert largest - 1e-9 <= found <= largest + 1e-4 * (1.0 + abs(largest))

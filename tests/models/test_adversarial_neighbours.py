"""Neighbours found by search, not chosen: none moves a release beyond its bound, and some reach it.

A search climbs the ratio of what a neighbour moves to what is accounted, one number at a time, from random starts. A
bound that is too small by a factor is exceeded, and one that is too large is not reached.
"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from cvxpriv_models.admm_sharing import ADMMSharing, sensitivity
from cvxpriv_models.istdp import ISTDP, output_perturbation
from cvxpriv_models.istdp.output_perturbation import minimiser_sensitivity
from cvxpriv_models.recycled_admm.blocks import odd_step
from cvxpriv_models.recycled_admm.options import eta_table
from cvxpriv_models.recycled_admm.spending import output_move
from scipy.stats import beta

from cvxpriv.models import RecycledADMM
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import audit

Ratio = Callable[[Array], float]


def climbed(ratio: Ratio, start: Array, rng: np.random.Generator, steps: int) -> float:
    """The largest ratio that a climb from `start` finds: each step changes one number, and is kept if it helps."""
    at, best = start.copy(), ratio(start)
    for _ in range(steps):
        trial = at.copy()
        place = rng.integers(at.size)
        trial[place] += rng.normal() * 10.0 ** rng.uniform(-2.0, 0.5)
        found = ratio(trial)
        if found > best:
            at, best = trial, found
    return best


class TestSharing:
    """The share of a party, H a, its entries clipped; one row of norm at most 1 is replaced."""

    @staticmethod
    def ratio_of(size: int, width: int, clipped: bool) -> tuple[Ratio, int]:
        """(ratio of free numbers, how many): rows, the other row, the target, and logarithms of kappa and the clip."""
        cells = size * width

        def ratio(free: Array) -> float:
            rows, other, target = (
                free[:cells].reshape(size, width),
                free[cells : cells + width],
                free[cells + width : -2],
            )
            kappa, clip = 10.0 ** np.clip(free[-2:], -3.0, 3.0)
            clip = float(clip) if clipped else np.inf
            first = rows / np.maximum(np.linalg.norm(rows, axis=1), 1.0)[:, None]
            second = first.copy()
            second[0] = other / max(float(np.linalg.norm(other)), 1.0)
            shares = [
                np.clip(part @ np.linalg.solve(part.T @ part + kappa * np.eye(width), part.T @ target), -clip, clip)
                for part in (first, second)
            ]
            return float(np.linalg.norm(shares[0] - shares[1]) / sensitivity.row(target, float(kappa), 1.0, clip))

        return ratio, cells + width + size + 2

    @classmethod
    def start(cls, size: int, width: int, short: float, rng: np.random.Generator) -> Array:
        """Rows that pull one way, a row of norm 1 that is turned round, a target of ones, kappa near the rows'.

        Where the other rows are short, the fit is steep, and the row's own prediction is beyond every target.
        """
        way = rng.normal(size=width)
        way /= np.linalg.norm(way)
        rows = short * (np.tile(way, (size, 1)) + 0.1 * rng.normal(size=(size, width)))
        rows[0] = way
        target = 1.0 + 0.1 * rng.normal(size=size)
        kappa = np.log10(size * short**2) + rng.uniform(-0.2, 0.2)
        return np.concatenate([rows.ravel(), -way, target, [kappa, np.log10(0.5) + 0.1 * rng.normal()]])

    @pytest.mark.grid(every=3)
    @pytest.mark.parametrize(
        ("size", "width", "clipped"), [(1, 1, False), (2, 2, False), (37, 1, False), (37, 1, True), (37, 2, True)]
    )
    def test_no_searched_row_moves_a_share_beyond_its_bound_and_some_reach_it(
        self, size: int, width: int, clipped: bool
    ) -> None:
        rng = np.random.default_rng(size + width)
        ratio, free = self.ratio_of(size, width, clipped)
        starts = [self.start(size, width, short, rng) for short in (1.0, 0.5, 0.25, 0.25)]
        starts += [rng.normal(size=free) for _ in range(2)]
        worst = max(climbed(ratio, start, rng, 400) for start in starts)
        assert 0.8 < worst <= 1.0 + 1e-9


class TestConsensus:
    """The minimiser of a node: (C/B) sum l + (bend/2)||f||^2; one record of norm at most 1 is replaced."""

    ROWS, WEIGHT, BEND = 5, 4.0, 6.0

    @classmethod
    def ratio(cls, free: Array) -> float:
        count = cls.ROWS + 1
        x = free[: 2 * count].reshape(count, 2)
        x = x / np.maximum(np.linalg.norm(x, axis=1), 1.0)[:, None]
        y = np.where(free[2 * count :] > 0.0, 1.0, -1.0)
        y[1], y[2] = 1.0, -1.0  # both classes on either side
        found = []
        for kept in ([0, *range(2, count)], [1, *range(2, count)]):
            rows, labels = x[kept], y[kept]
            labels[1], labels[2] = 1.0, -1.0
            shards = [(rows, labels), (rows, labels)]
            model = RecycledADMM(nx.path_graph(2), shards, loss="smoothed-hinge", reg=2.0 * cls.BEND, C=cls.WEIGHT)
            zero = np.zeros((2, 2))
            found.append(odd_step(model.problem, zero, zero, zero, np.zeros((2, 2))).f[0])
        limit = output_move(np.array([float(cls.ROWS)]), cls.WEIGHT, np.array([cls.BEND]))[0]
        return float(np.linalg.norm(found[0] - found[1]) / limit)

    def test_no_searched_record_moves_a_minimiser_beyond_its_bound_and_some_reach_it(self) -> None:
        rng = np.random.default_rng(0)
        starts = [rng.normal(size=3 * (self.ROWS + 1)) for _ in range(4)]
        worst = max(climbed(self.ratio, start, rng, 60) for start in starts)
        assert 0.8 < worst <= 1.0 + 1e-9

    def test_the_first_round_already_has_a_grown_penalty(self) -> None:
        # RADMM Algorithm 2: eta_i(2k-1) = eta_i q_i^k for k = 1, 2, ...
        table = eta_table(0.5, [2.0, 1.0], None, 4, 2)
        assert table.tolist() == [[1.0, 0.5], [2.0, 0.5], [4.0, 0.5], [5.0, 0.5]]  # the cap is ten times eta
        assert eta_table(table, 1.0, None, 4, 2).tolist() == table.tolist()


class TestMinimiser:
    """Output perturbation of ISTDP: what the solver leaves of the residual counts in the sensitivity."""

    @pytest.mark.parametrize("features", [1, 3])
    def test_two_minimisers_that_are_as_inexact_as_is_allowed_are_within_the_sensitivity_and_reach_it(
        self, features: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tolerance, lam = 1e-3, 10.0
        monkeypatch.setattr(output_perturbation, "TOLERANCE", tolerance)
        # lam keeps theta near 0, where the slope of the smoothed hinge is 1 whatever theta: F is a parabola.
        row = np.full(features, 1.0 / np.sqrt(features))
        problems = [
            ISTDP(
                np.array([row, sign * row]), [1.0, 1.0], loss="smoothed-hinge", penalty=f"l2:{lam}", allow_constant=True
            ).problem
            for sign in (1.0, -1.0)
        ]
        points = [output_perturbation._minimiser(problem, 1.0, 2) for problem in problems]
        for problem, point, sign in zip(problems, points, (1.0, -1.0), strict=True):
            point += sign * tolerance / lam * np.ones(features)
            residual = problem.gradient(problem.predictions(point)) + lam * point
            assert np.abs(residual).max() == pytest.approx(tolerance, rel=1e-6)
        moved = float(np.linalg.norm(points[0] - points[1]))
        bound = minimiser_sensitivity(problems[0], 1.0, "replace-one", 2)
        assert bound * (1.0 - 1e-6) < moved <= bound


def test_two_identical_parties_with_an_l1_penalty_converge_to_the_pooled_optimum() -> None:
    # The proximal term must be at least rho M ||D||^2; with M - 1 these two parties swing for ever.
    rng = np.random.default_rng(0)
    column = rng.normal(size=(30, 2))
    y = column @ [1.0, -0.5] + 0.1 * rng.normal(size=30)
    model = ADMMSharing([column, column], y, loss="squared", penalty="l1", lam=0.5)
    run = model.solve(rho=1.0, method="proximal_jacobi", accelerate="none", max_iter=200, tol=1e-8)
    assert run.converged
    pooled = ADMMSharing([column], y, loss="squared", penalty="l1", lam=0.5).solve(method="gauss_seidel", tol=1e-8)
    assert pooled.converged
    together = run.coefficients[0] + run.coefficients[1]
    np.testing.assert_allclose(together, pooled.coefficients[0], atol=1e-5)


def test_an_audit_charges_a_quarter_of_its_risk_to_each_of_four_limits() -> None:
    runs, confidence = 50, 0.9
    answers = iter([True] * runs + [False] * runs)
    found = audit(lambda data: next(answers), 0, 1, delta=0.0, runs=runs, confidence=confidence, event=bool)
    # Clopper and Pearson: all of n hits, or none, at a risk of r: r^(1/n), and 1 - r^(1/n).
    low = float(beta.ppf((1.0 - confidence) / 4.0, runs, 1))
    assert low == pytest.approx(((1.0 - confidence) / 4.0) ** (1.0 / runs), rel=1e-12)
    assert found.epsilon == pytest.approx(np.log(low / (1.0 - low)), rel=1e-12)

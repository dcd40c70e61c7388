"""`cpv.verify` of a penalty: the built-in ones pass, and each of the usual mistakes fails where it is made."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import cvxpriv as cpv
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.penalties import L1, L2, MCP, SCAD, Box, CappedL1, ElasticNet, GroupLasso, Penalty, Within
from cvxpriv.penalties.contract import Form
from tests.toolkit.test_proximal_block import Ridge

EVERY = [
    *(MCP(1.0, 3.0), MCP(0.05, 1.5), SCAD(1.0, 3.7), SCAD(0.4, 2.2), CappedL1(1.0, 0.8), L1(0.7), L2(0.4)),
    *(ElasticNet(0.6, 0.3), Box(), Box(-0.5, 1.0), Box(1.0, 2.0), Within(L1(0.2), Box()), L2(0.0)),
    GroupLasso([[0, 2], [1, 5, 17]], 0.6),
    Ridge(0.5),
]


@pytest.mark.grid(every=7)
@pytest.mark.parametrize("penalty", EVERY, ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_right_penalties_pass(penalty: Penalty, seed: int) -> None:
    cpv.verify(penalty, seed=seed).raise_if_failed()


class ShortStepsOnly(MCP):
    """The formula of most libraries, also beyond alpha (ERRATA ISTDP 2)."""

    def prox(self, s: Array, step: float) -> Array:
        size = np.abs(s)
        firm = np.sign(s) * np.maximum(size - step * self.lam, 0.0) / (1.0 - step / self.alpha)
        return np.where(size <= self.alpha * self.lam, firm, s)


class TooConvex(MCP):
    @property
    def weak_convexity(self) -> float:
        return 0.5 / self.alpha


class NotConvexEnough(MCP):
    @property
    def weak_convexity(self) -> float:
        return 2.0 / self.alpha


class ResidualOfL1(MCP):
    def residual(self, theta: Array, gradient: Array) -> Array:
        return L1(self.lam).residual(theta, gradient)


class Shifted(MCP):
    def value(self, theta: Array) -> float:
        return super().value(theta) + 1.0


class OneSided(MCP):
    def value(self, theta: Array) -> float:
        return super().value(np.maximum(theta, 0.0))


class Coupled(MCP):
    def value(self, theta: Array) -> float:
        return float(np.linalg.norm(theta))


class Falling(MCP):
    def value(self, theta: Array) -> float:
        return -super().value(theta)


class FirstOnly(MCP):
    def prox(self, s: Array, step: float) -> Array:
        return np.full_like(s, super().prox(s, step)[0])


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (ShortStepsOnly, "prox is the least"),
        (TooConvex, "weak convexity is enough"),
        (NotConvexEnough, "weak convexity is the least"),
        (ResidualOfL1, "residual is the distance"),
        (Shifted, "P(0) = 0"),
        (OneSided, "p is symmetric"),
        (Coupled, "P is a sum over coordinates"),
        (Falling, "p is not negative and does not fall"),
        (FirstOnly, "prox of an array"),
    ],
)
def test_a_mistake_fails_the_check_that_is_about_it(kind: type[MCP], check: str) -> None:
    found = cpv.verify(kind(1.0, 3.0))
    assert check in [finding.check for finding in found.failed]
    with pytest.raises(ModelError, match="fails"):
        found.raise_if_failed()


def test_a_dcp_form_of_another_penalty_fails() -> None:
    class Halved(Ridge):
        def expression(self, x: cp.Expression) -> Form:
            return L2(0.5 * self.lam).expression(x)

    assert [finding.check for finding in cpv.verify(Halved(1.0)).failed] == ["DCP form"]


class Doubled(GroupLasso):
    def prox(self, s: Array, step: float) -> Array:
        return super().prox(s, 2.0 * step)


class Outward(Box):
    def residual(self, x: Array, gradient: Array) -> Array:
        return super().residual(x, -gradient)


@pytest.mark.parametrize(
    ("penalty", "check"), [(Doubled([[0, 1]]), "prox is the least"), (Outward(-0.5, 1.0), "residual is 0 at prox")]
)
def test_a_mistake_of_a_convex_penalty_is_found_by_the_points_around_its_step(penalty: Penalty, check: str) -> None:
    assert check in [finding.check for finding in cpv.verify(penalty).failed]


def test_what_lacks_a_part_is_told_which() -> None:
    class Lacking:
        value = prox = residual = abs

    with pytest.raises(ModelError, match="lacks weak_convexity"):
        cpv.verify(Lacking())


def test_what_is_no_penalty_at_all_is_told_what_can_be_verified() -> None:
    with pytest.raises(ModelError, match="a package registers"):
        cpv.verify(3)

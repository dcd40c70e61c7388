"""From a budget to noise, and from noise to what a paper says of it: each number made once more from its definition."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from cvxpriv_models.admm_sharing import labels, spending
from cvxpriv_models.istdp.objective_perturbation import spend


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("lam", [1e-6, 0.02, 0.9, 40.0])
def test_the_noise_and_the_hessian_of_objective_perturbation_spend_epsilon_together(epsilon: float, lam: float) -> None:
    bend, moved = 0.25, 1.7
    found = spend(epsilon, lam, bend, moved)
    determinant = mpmath.log(1 + mpmath.mpf(bend) / (lam + found.more))
    assert found.determinant == pytest.approx(float(determinant), rel=1e-9)
    assert found.rate * moved + float(determinant) == pytest.approx(epsilon, rel=1e-9)
    assert found.determinant <= 0.5 * epsilon * (1.0 + 1e-12)
    if found.more > 0.0:  # no more is added than half of epsilon asks for
        assert found.determinant == pytest.approx(0.5 * epsilon, rel=1e-12)
    else:
        assert found.more == 0.0


def test_a_flip_is_randomised_response_and_a_person_stands_in_every_party() -> None:
    for epsilon in (0.3, 2.0):
        kept, flipped = 1.0 - labels.flip_probability(epsilon), labels.flip_probability(epsilon)
        assert float(mpmath.log(kept / flipped)) == pytest.approx(epsilon, rel=1e-12)
    assert [spending.parties_touched(name, 4) for name in ("replace-one", "party-row", "column")] == [4, 1, 1]


def test_corollary_1_is_its_formula_by_hand_and_says_where_its_theorem_ends() -> None:
    mu, epochs, delta = 0.15, 6, 1e-4
    each = mpmath.sqrt(2 * mpmath.log(mpmath.mpf("1.25") / (mpmath.mpf(delta) / (2 * epochs)))) * mu
    total = mpmath.sqrt(2 * epochs * mpmath.log(2 / mpmath.mpf(delta))) * each + epochs * each * mpmath.expm1(each)
    found = spending.corollary_1(mu, epochs, delta)
    assert found.epsilon == pytest.approx(float(total), rel=1e-12)
    assert (found.holds, found.note, found.delta) == (True, "", delta)
    beyond = spending.corollary_1(2.0 * mu, epochs, delta)
    assert not beyond.holds
    assert "needs epsilon <= 1" in beyond.note
    # A number of passes at which the epsilon of a release is 1 in doubles.
    scales = {passes: float(np.sqrt(2.0 * np.log(2.5 * passes / delta))) for passes in range(1, 60)}
    passes = next(passes for passes, scale in scales.items() if scale * (1.0 / scale) == 1.0)
    at_the_end = spending.corollary_1(1.0 / scales[passes], passes, delta)
    assert (at_the_end.holds, at_the_end.note) == (True, "")

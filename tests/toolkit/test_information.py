"""Information measures: exact at zeros, equal to their definitions, batched or not."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cvxpriv.tables.information import entropy, kl_divergence, mutual_information

ROUNDING = 1e-12  # sums of at most 64 terms of size about 1: rounding stays below 64 * 4 * 2.2e-16


@st.composite
def joints(draw):
    """Joint tables up to 8 x 8, with zeros, not all zero."""
    weights = draw(arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(0, 9)))
    weights[0, 0] += 1
    return weights / weights.sum()


def plain_entropy(p):
    return -sum(v * math.log(v) for v in np.ravel(p).tolist() if v > 0)


@given(joints())
def test_entropy_equals_its_sum_over_the_support(p):
    assert entropy(p) == pytest.approx(plain_entropy(p), abs=ROUNDING)


@given(joints())
def test_mutual_information_equals_the_three_entropies(p):
    by_entropies = plain_entropy(p.sum(axis=0)) + plain_entropy(p.sum(axis=1)) - plain_entropy(p)
    assert mutual_information(p) == pytest.approx(by_entropies, abs=ROUNDING)
    assert mutual_information(p) >= 0.0


@given(joints())
def test_mutual_information_is_the_divergence_from_the_product_of_marginals(p):
    product = np.outer(p.sum(axis=1), p.sum(axis=0))
    assert mutual_information(p) == pytest.approx(kl_divergence(p, product), abs=ROUNDING)


@given(joints())
def test_mutual_information_is_symmetric(p):
    assert mutual_information(p) == pytest.approx(mutual_information(p.T), abs=ROUNDING)


@given(joints(), st.integers(0, 2**32 - 1))
def test_processing_the_public_variable_loses_information(p, seed):
    channel = np.random.default_rng(seed).dirichlet(np.ones(3), size=p.shape[1])
    assert mutual_information(p @ channel) <= mutual_information(p) + ROUNDING


@given(st.integers(1, 50))
def test_entropy_of_the_uniform_distribution_is_the_log_of_its_size(size):
    assert entropy(np.full(size, 1 / size)) == pytest.approx(math.log(size), abs=ROUNDING)


def test_binary_symmetric_channel_has_its_textbook_information():
    # Cover and Thomas, Elements of Information Theory, section 7.1.4: 1 - H(0.11) bit at the uniform input
    crossover = 0.11
    joint = 0.5 * np.array([[1 - crossover, crossover], [crossover, 1 - crossover]])
    binary = -crossover * math.log(crossover) - (1 - crossover) * math.log(1 - crossover)
    assert mutual_information(joint) == pytest.approx(math.log(2) - binary, abs=ROUNDING)


def test_a_certain_outcome_has_no_entropy():
    assert entropy(np.array([0.0, 1.0, 0.0])) == 0.0


def test_divergence_is_infinite_off_the_support_and_zero_at_equality():
    p = np.array([0.0, 0.25, 0.75])
    assert kl_divergence(p, p) == 0.0
    assert kl_divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == math.inf


def test_information_stays_finite_where_the_product_of_marginals_underflows():
    tiny = 1e-200  # tiny**2 is 0 in floating point
    joint = np.array([[1.0, 0.0], [0.0, tiny]])
    assert np.outer(joint.sum(axis=1), joint.sum(axis=0))[1, 1] == 0.0
    assert mutual_information(joint) == pytest.approx(-tiny * math.log(tiny), rel=1e-12)  # one term, relative rounding


def test_a_batch_gives_each_tables_value():
    batch = np.random.default_rng(0).dirichlet(np.ones(12), size=5).reshape(5, 3, 4)
    expected = [mutual_information(table) for table in batch]
    np.testing.assert_allclose(mutual_information(batch, axis=(-2, -1)), expected, rtol=0, atol=ROUNDING)
    expected = [entropy(table) for table in batch]
    np.testing.assert_allclose(entropy(batch, axis=(1, 2)), expected, rtol=0, atol=ROUNDING)
    expected = [kl_divergence(table, batch[0]) for table in batch]
    np.testing.assert_allclose(kl_divergence(batch, batch[:1], axis=(1, 2)), expected, rtol=0, atol=ROUNDING)


def test_without_an_axis_the_results_are_plain_floats():
    joint = np.full((2, 2), 0.25)
    values = [entropy(joint), kl_divergence(joint, joint), mutual_information(joint)]
    assert all(type(value) is float for value in values)

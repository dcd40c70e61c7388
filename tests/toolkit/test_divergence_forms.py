"""The DCP forms of the literature's divergences: derived for nearly all, and the same as values of f by two solvers."""

from __future__ import annotations

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.formulations import pair_block
from cvxpriv.divergences.jets import value_at
from cvxpriv.divergences.parsing import line_of
from cvxpriv.numerics.arrays import Array

from .divergence_corpus import CORPUS, TANGENTS
from .divergence_traps import hidden_parts

#: t^20 at t = 4 is 1e12: solvers lose their digits.
STEEP = {"Renyi-related, order 20"}
#: The last is steep: the grids below are then parts of one another, and no more lines are parsed than one of them has.
FORMED = sorted((name for name in CORPUS if name not in TANGENTS), key=lambda name: name in STEEP)
#: Lines that take seconds to parse.
DEAR = dict.fromkeys(("largest of several powers", "sum of nine roots"), pytest.mark.slow)
SOLVERS = {"CLARABEL": {}, "SCS": {"eps": 1e-9, "max_iters": 100_000}}


@cache
def parsed(name: str) -> FDivergence:
    return FDivergence.parse(CORPUS[name], name)


def pair(name: str, steep: float = 1.5) -> tuple[Array, Array]:
    """Weights p and q with ratios in [exp(-steep), exp(steep)], other ones for each name."""
    random = np.random.default_rng(sum(map(ord, name)))
    q = random.dirichlet(np.ones(4))
    return q / np.exp(random.uniform(-steep, steep, 4)), q


def test_the_corpus_is_large_and_nearly_every_divergence_of_it_has_a_form() -> None:
    assert len(CORPUS) >= 150
    assert len(TANGENTS) / len(CORPUS) < 0.035


@pytest.mark.parametrize("name", TANGENTS)
def test_an_f_that_no_rule_composes_goes_to_tangents_and_says_so(name: str) -> None:
    f = parsed(name)
    assert f.expression is None
    assert "adaptive tangents" in f.notes[1]


@pytest.mark.grid(every=9)
@pytest.mark.parametrize("name", FORMED)
def test_a_form_is_proved_dcp_dpp_and_its_own_variables_are_known(name: str) -> None:
    f, (p, q) = parsed(name), pair(name)
    assert f.convexity == "proved"
    assert f.expression is not None
    assert "derived from f" in f.notes[1]
    one, other, given = cp.Variable(4), cp.Variable(4), cp.Parameter(4, nonneg=True)
    for first, second in ((one, other), (given, other), (one, given)):
        expression, constraints = f.form(first, second)
        assert cp.Problem(cp.Minimize(expression), constraints).is_dcp(dpp=True)
    expression, constraints = f.form(cp.Constant(p), cp.Constant(q))
    own = {variable.id: variable for part in (expression, *constraints) for variable in part.variables()}
    assert f.auxiliary is not None
    for key, value in zip(sorted(own), f.auxiliary(p, q), strict=True):
        own[key].value = value
    size = 1.0 + float(np.abs(f.terms(p, q)).sum())
    assert float(expression.value) == pytest.approx(f.between(p, q), abs=1e-12 * size)  # rounding
    if name not in STEEP:  # cvxpy projects on a power cone by a solver: its violations are good to 1e-8
        assert all(np.max(one.violation()) < 1e-6 * size for one in constraints)


@pytest.mark.grid(every=9)
@pytest.mark.parametrize("name", [pytest.param(name, marks=DEAR.get(name, ())) for name in FORMED if name not in STEEP])
def test_a_form_at_random_points_is_the_divergence_by_two_solvers(name: str) -> None:
    f, (p, q) = parsed(name), pair(name)
    one, other = cp.Variable(4), cp.Variable(4)
    expression, constraints = f.form(one, other)
    problem = cp.Problem(cp.Minimize(expression), [*constraints, one == p, other == q])
    true = sum(float(p[k] * value_at(line_of(CORPUS[name]).f, q[k] / p[k])) for k in range(4))
    true -= taken(f) * float((q - p).sum())
    for solver, options in SOLVERS.items():
        problem.solve(solver=solver, **options)
        assert problem.value == pytest.approx(true, abs=1e-5 * (1.0 + abs(true)))  # pins are met to about 1e-8


def taken(f: FDivergence) -> float:
    """The c of the c (t - 1) that was taken from f."""
    said = [note for note in f.notes if "was taken from f" in note]
    return float(said[0].split("*")[0]) if said else 0.0


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("name", FORMED[::9])
def test_a_whole_problem_has_the_optimum_that_tangents_reach_without_the_form(name: str) -> None:
    f = parsed(name)
    bare = FDivergence("bare", f.f, f.fprime, f.fsecond, in_p=f.in_p, in_q=f.in_q, kinks=f.kinks)
    uniform = np.full(6, 1.0 / 6.0)
    found = []
    for block in (pair_block(f, 6), pair_block(bare, 6)):
        _, solution = block.solve({"p": uniform, "q": uniform})
        found.append(solution.objective)
    assert found[0] == pytest.approx(found[1], rel=2e-7, abs=2e-7)  # tangents close their gap to 5e-8


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 8), *(pytest.param(one, 25, marks=pytest.mark.slow) for one in (1, 2))]
)
def test_a_part_that_is_nothing_around_1_is_in_the_form_and_in_the_numbers(seed: int, count: int) -> None:
    for trap in hidden_parts(seed, count):
        f, tree = FDivergence.parse(trap.text), line_of(trap.text).f
        assert f.convexity == "proved", trap
        assert f.auxiliary is not None, trap
        for t in (trap.t, 1.0, 1.5 * trap.t):
            true = float(value_at(tree, t))
            assert f.f(np.array([t]))[0] == pytest.approx(true, rel=1e-12, abs=1e-12), trap
            p, q = np.array([0.7]), np.array([0.7 * t])
            expression, constraints = f.form(cp.Constant(p), cp.Constant(q))
            own = {variable.id: variable for part in (expression, *constraints) for variable in part.variables()}
            for key, value in zip(sorted(own), f.auxiliary(p, q), strict=True):
                own[key].value = value
            assert float(expression.value) == pytest.approx(0.7 * true, rel=1e-12, abs=1e-12), trap


def test_names_that_mean_one_function_have_one_tree() -> None:
    squares = ("(t-1)**2", "abs(t-1)**2", "max(t-1, 1-t)**2", "(1-t)**2", "sqrt((t-1)**4)")
    assert len({line_of(text).f for text in squares}) == 1

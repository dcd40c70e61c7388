"""The mechanisms that a solve begins with, and where each comes from."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.declaration import Known
from cvxpriv.blocks.engines import ClosedForm, Engine
from cvxpriv.bounds.output_names import in_place
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.arrays import given_mechanisms

from .algorithm import AUTO
from .measured import Constraints, Options, objective
from .problem import Problem
from .solving import GRID, solve_starts
from .starts import grid_start, merged, named_starts, random_starts

#: With constraints: how many starts are first solved without them, for how many joint steps, and how different in F two
#: of their ends are.
FREE_STARTS, FREE_STEPS, APART = 8, 20, 1e-6


def initial(
    problem: Problem, constraints: Constraints, method: str, count: int, seed: int, engine: Engine
) -> tuple[Array, Sequence[str]]:
    """Return `count` mechanisms, (count, |Y|, |U|), and where each comes from.

    With constraints every other one is where a start ends without them: the first joint step brings it inside.
    """
    if method not in (AUTO, "joint"):
        return random_starts(problem, count, seed), ["random"] * count
    chosen = [(GRID, grid_start(problem, engine, seed)), *named_starts(problem)]
    drawn = (("random", one) for one in random_starts(problem, count, seed))
    usual: Iterator[tuple[str, Array]] = chain(chosen, drawn)
    if constraints:
        known = Known.of_table(problem.table)
        pairs = zip_longest(_free_ends(problem, seed, chosen), usual)
        usual = ((one[0], in_place(one[1], constraints, known)) for pair in pairs for one in pair if one is not None)
    taken = list(islice(usual, count))
    return np.stack([mechanism for _, mechanism in taken]), [origin for origin, _ in taken]


def _free_ends(problem: Problem, seed: int, chosen: Sequence[tuple[str, Array]]) -> Iterator[tuple[str, Array]]:
    """Yield where starts end without constraints, the best first, each value once."""
    drawn = random_starts(problem, FREE_STARTS, seed)
    mechanisms = np.concatenate([np.stack([one for _, one in chosen]), drawn])
    origins = [origin for origin, _ in chosen] + ["random"] * len(drawn)
    state, _ = solve_starts(problem, (), AUTO, Options(max_iter=FREE_STEPS), ClosedForm(), None, (mechanisms, origins))
    worth = objective(problem, state["mechanism"])
    last = np.inf
    for start in np.argsort(-worth, kind="stable"):
        if worth[start] < last - APART:
            last = worth[start]
            yield f"free {origins[start]}", state["mechanism"][start]


def fitted(problem: Problem, mechanism: Array) -> Array:
    """Return a mechanism with |U| outputs and the floor, as the one start (1, |Y|, |U|).

    Where outputs are too many, those join that lose least. Where they are too few, the likeliest is split into equal
    ones: that changes neither accuracy nor leakage, and leaves none empty. A floor takes from all outputs alike.
    """
    if mechanism.shape[1] > problem.size_u:
        mechanism = merged(problem, mechanism, problem.size_u)
    parts = problem.size_u - mechanism.shape[1] + 1
    likeliest = int(np.argmax(problem.p_y @ mechanism))
    copies = np.ones(mechanism.shape[1], dtype=np.intp)
    copies[likeliest] = parts
    split = np.repeat(mechanism / copies, copies, axis=1)
    if split.min() < problem.floor:
        split = problem.floor + (1.0 - problem.size_u * problem.floor) * split
    return split[None]


def given(problem: Problem, init: ArrayLike) -> tuple[Array, Sequence[str]]:
    """Return a user's starts as (starts, |Y|, |U|), and "init" for each."""
    mechanisms = given_mechanisms(init, (problem.p_y.size, problem.size_u))
    for position, mechanism in enumerate(mechanisms):
        if mechanism.min() < problem.floor:
            raise ModelError(
                f"init[{position}] has a cell of {mechanism.min():.6g}, below floor={problem.floor:g}: "
                "raise it, or lower the floor"
            )
    return mechanisms, ["init"] * len(mechanisms)

"""The starts of a solve: a grid of posteriors, clusters of inputs, the two trivial mechanisms, random ones.

The grid start fixes P(S|u) at the points of a grid, solves (10) once with a symbol for each point, and merges symbols
until |U| are left. One convex problem sees the whole simplex of posteriors, so its answer seldom lies in a poor valley.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.blocks.engines import ClosedForm, Engine
from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.simplex import simplex_grid
from cvxpriv.tables.arrays import given_mechanisms
from cvxpriv.tables.information import kl_divergence

from . import closed_form
from .joint import joint
from .problem import Problem, floored_rows

#: Most and fewest points of the grid. Between them, |Y| times their number is kept below `CELLS`: the joint block with
#: one symbol a point then takes a solver seconds at most.
MOST_POINTS, FEWEST_POINTS, CELLS = 231, 28, 10_000
#: The same with the posteriors of mechanisms before the grid's, beside the first |U|.
POOLED_CELLS = CELLS
#: A grid with fewer parts an edge than this, times |S|, has hardly a point inside the simplex, where all posteriors
#: of a table without zeros lie: mixtures of the P(S|y) take its place.
FEWEST_PARTS = 3
#: Concentrations of the random starts' Dirichlet rows, from nearly deterministic to nearly uniform.
CONCENTRATIONS = (0.1, 3.0)
#: Share of the uniform mechanism that a sharp start gets: a zero would stay one in many updates.
SOFT = 0.01
#: More than twice as many symbols, or four times as many as are to be left, are first joined by P(S|u) alone, in cells
#: of this width to begin with.
FEW, ALIKE = 120, 1e-3
#: A symbol sent less often than this is dropped before symbols are merged.
RARE = 1e-9
#: A symbol sent less often than this may be dying, if F without it is lower by no more than rounding.
DYING, UNMISSED = 1e-4, 1e-15
#: Grid points are drawn this much to P(S): where P(s|u) is 0 some prices are infinite, and solvers lose digits.
INWARD = 1e-3


def named_starts(problem: Problem) -> Iterator[tuple[str, Array]]:
    """Yield the starts that need neither a solver nor a seed: the trivial mechanism, clusters, the identity."""
    uniform = np.full((problem.p_y.size, problem.size_u), 1.0 / problem.size_u)
    yield "trivial", uniform
    yield "clustering", _softened(problem, clustered(problem))
    if problem.size_u >= problem.p_y.size:
        yield "identity", identity(problem)


def identity(problem: Problem) -> Array:
    """Return the start that sends each input as an output of its own, nearly, (|Y|, |U|); needs |U| >= |Y|."""
    return _softened(problem, np.eye(problem.p_y.size, problem.size_u))


def random_starts(problem: Problem, count: int, seed: int) -> Array:
    """Return mechanisms with Dirichlet rows, (count, |Y|, |U|); start k is the same whatever `count` is."""
    starts = np.empty((count, problem.p_y.size, problem.size_u))
    for index, child in enumerate(np.random.SeedSequence(seed).spawn(count)):
        rng = np.random.default_rng(child)
        concentration = np.exp(rng.uniform(*np.log(CONCENTRATIONS)))
        rows = rng.dirichlet(np.full(problem.size_u, concentration), size=problem.p_y.size)
        starts[index] = _softened(problem, rows)
    return starts


def grid_start(problem: Problem, engine: Engine, seed: int = 0, mechanisms: Array | None = None) -> Array:
    """Return the mechanism, (|Y|, |U|), that one joint problem over a whole grid of posteriors leads to.

    `engine`: It solves the problem only where f has no exact update: as a cone program one so wide takes 40 times as
    long and a hundred times the memory, and where a start comes from decides nothing of the answer.

    `seed`: Seed of the mixtures that stand for a grid where |S| is large.
    `mechanisms`, (n, |Y|, |U|): Their posteriors come before the grid's, as many as a solver takes. At floor 0 the
    answer is then worth no less than the first of them, up to what merging symbols costs.
    Raises SolverFailure: No solver of the engine's chain solved the joint problem.
    """
    trial = trial_posteriors(problem, seed)
    if mechanisms is not None:
        sent = [_sent_posteriors(problem, mechanism) for mechanism in mechanisms]
        trial = np.hstack([*sent, trial])[:, : problem.size_u + POOLED_CELLS // problem.p_y.size]
    wide = replace(problem, size_u=trial.shape[1], floor=0.0)
    even = np.full((1, problem.p_y.size, wide.size_u), 1.0 / wide.size_u)
    block = joint(wide)
    by = engine if block.direct is None else ClosedForm()
    found = by.solve(block, {"mechanism": even, "posterior": trial[None]}).values["mechanism"][0]
    return _fitted(problem, merged(wide, found, problem.size_u))


def _sent_posteriors(problem: Problem, mechanism: Array) -> Array:
    """P(S|u) of the symbols that a mechanism sends, (|S|, at most |U|)."""
    sent = problem.p_y @ mechanism > RARE
    return closed_form.posterior(mechanism[:, sent], problem.p_y, problem.p_s_given_y)


def trial_posteriors(problem: Problem, seed: int = 0) -> Array:
    """Return the posteriors that the grid start tries, (|S|, n), P(S) among them.

    For |S| up to 3, a grid of the whole simplex; above, the P(S|y) and random mixtures of some of them: no mechanism
    can make a posterior that is no mixture of the P(S|y).
    """
    size_s, size_y = problem.p_s_given_y.shape
    most = int(np.clip(CELLS // size_y, FEWEST_POINTS, MOST_POINTS))
    parts = max(parts for parts in range(1, most + 1) if comb(parts + size_s - 1, size_s - 1) <= most or parts == 1)
    if parts >= FEWEST_PARTS * size_s:
        points = (1.0 - INWARD) * simplex_grid(size_s, parts) + INWARD * problem.p_s[:, None]
    else:
        rng = np.random.default_rng(seed)
        sharp = problem.p_s_given_y[:, rng.permutation(size_y)[: most // 2]]
        mixtures = rng.dirichlet(np.full(size_y, 2.0 / size_y), size=most - sharp.shape[1])
        points = np.hstack([sharp, problem.p_s_given_y @ mixtures.T])
    return np.hstack([problem.p_s[:, None], points])


def clustered(problem: Problem) -> Array:
    """Return the deterministic mechanism, (|Y|, |U|), that joins inputs of similar P(S|y), the most similar first."""
    return merged(problem, np.eye(problem.p_y.size), problem.size_u, weight=0.0)


def merged(problem: Problem, mechanism: Array, size: int, weight: float | None = None) -> Array:
    """Join two symbols, those whose union costs least, until `size` are left; return (|Y|, at most `size`).

    F is a sum over symbols (`symbol_values`), and a symbol may be split without loss, so the cheapest union costs
    nothing where two symbols are proportional.

    `mechanism`: P(U|Y), (|Y|, n). `weight`: In place of beta: 0 joins by what is lost of I(S;U) alone.
    """
    joint = problem.p_y[:, None] * mechanism
    columns = _alike_joined(problem, joint[:, joint.sum(axis=0) > RARE].T, max(FEW, 2 * size))
    worth = symbol_values(problem, columns, weight)
    loss = _union_losses(problem, columns, worth, weight)
    while len(columns) > size:
        kept, gone = divmod(int(loss.argmin()), len(columns))
        columns[kept] += columns[gone]
        columns, worth = np.delete(columns, gone, axis=0), np.delete(worth, gone)
        loss = np.delete(np.delete(loss, gone, axis=0), gone, axis=1)
        kept -= gone < kept
        worth[kept] = symbol_values(problem, columns[kept : kept + 1], weight)[0]
        unions = symbol_values(problem, columns + columns[kept], weight)
        loss[kept] = loss[:, kept] = worth + worth[kept] - unions
        loss[kept, kept] = np.inf
    return floored_rows(columns.T, 0.0)  # an input whose every symbol was rare may send any


def _alike_joined(problem: Problem, columns: Array, most: int) -> Array:
    """Return P(y, u), (n, |Y|), with symbols of like P(S|u) joined until `most` are left, if they are twice as many."""
    if len(columns) <= 2 * most:
        return columns
    share, near = columns @ problem.p_s_given_y.T / columns.sum(axis=1, keepdims=True), ALIKE
    while len((cells := np.unique(np.rint(share / near), axis=0, return_inverse=True))[0]) > most:
        near *= 1.5
    joined = np.zeros((len(cells[0]), columns.shape[1]))
    np.add.at(joined, cells[1], columns)
    return joined


def symbol_values(problem: Problem, columns: Array, weight: float | None = None) -> Array:
    """Return each symbol's part of IAS (1), p(u) [KL(P_S|u || P_S) - beta D_f(P_Y|u, P_Y)], (n,).

    `columns`: P(y, u) of n symbols, (n, |Y|); they need not add up to P(Y). `weight`: In place of beta.
    """
    beta = problem.beta if weight is None else weight
    mass = columns.sum(axis=1, keepdims=True)
    gain = kl_divergence(columns @ problem.p_s_given_y.T, mass * problem.p_s, axis=1)
    if beta == 0.0:
        return np.asarray(gain)
    price = np.asarray(problem.divergence.between(columns, mass * problem.p_y, axis=1))
    return np.asarray(gain - beta * price)


def without_rare(problem: Problem, mechanisms: Array) -> Array:
    """Return mechanisms, (n, |Y|, |U|), without the symbols below `DYING` whose loss does not lower F; floor 0.

    A symbol that dies slowly costs little and keeps a mechanism from being stationary for thousands of steps.
    """
    kept = mechanisms.copy()
    for mechanism in kept:
        q = problem.p_y @ mechanism
        for symbol in np.flatnonzero((q > 0.0) & (q < DYING)):
            rest = mechanism.copy()
            rest[:, symbol] = 0.0
            rest = floored_rows(rest, 0.0)
            if problem.objective(rest) >= problem.objective(mechanism) - UNMISSED:
                mechanism[...] = rest
    return kept


def _union_losses(problem: Problem, columns: Array, worth: Array, weight: float | None) -> Array:
    """Return the loss of F when two symbols become one, (n, n); inf on the diagonal."""
    unions = np.array([symbol_values(problem, columns + column, weight) for column in columns])
    loss = worth[:, None] + worth[None, :] - unions
    np.fill_diagonal(loss, np.inf)
    return np.asarray(loss)


def _fitted(problem: Problem, mechanism: Array) -> Array:
    """Return a mechanism with at most |U| symbols as one with |U| and the floor."""
    padded = np.pad(mechanism, ((0, 0), (0, problem.size_u - mechanism.shape[1])))
    return np.asarray(problem.floor + (1.0 - problem.size_u * problem.floor) * floored_rows(padded, 0.0))


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
    least = mechanisms.min(axis=(1, 2))
    if (low := np.flatnonzero(least < problem.floor)).size:
        raise ModelError(
            f"init[{low[0]}] has a cell of {least[low[0]]:.6g}, below floor={problem.floor:g}: raise it, or lower the "
            "floor"
        )
    return mechanisms, ["init"] * len(mechanisms)


def _softened(problem: Problem, mechanism: Array) -> Array:
    fitted = _fitted(problem, mechanism)
    return np.asarray((1.0 - SOFT) * fitted + SOFT / problem.size_u)


def initial_state(problem: Problem, mechanisms: Array) -> dict[str, Array]:
    """Return the state at mechanisms, (starts, |Y|, |U|): consistent q and P(S|U), the multiplier at 0."""
    return {
        "mechanism": mechanisms,
        "kept": mechanisms,
        "q": problem.p_y @ mechanisms,
        "lam": np.zeros((len(mechanisms), problem.size_u)),
        "posterior": closed_form.posterior(mechanisms, problem.p_y, problem.p_s_given_y),
    }

"""Private learners on a9a, Adult, COMPAS and German credit: the default of ISTDP beside peers, as a Markdown table.

python -m benchmarks private_learning
python -m benchmarks.private_learning compas adult a9a "ISTDP, default"

Without names German credit alone; Adult and a9a take hours.

One row replaced, delta = 1e-6, rows of norm at most 1. a9a has its own test rows; of the others each seed draws 30 % of
the rows, and the noise. ISTDP is as it comes, without an option, and minima perturbation on rows that are centred has
one rule for all tables. Every other peer has an intercept's column within the norm, and
is tuned for each table and epsilon on the *test* rows of one seed, which flatters it:

* gradient descent over clip, step and number of passes (27 settings),
* objective perturbation (pure epsilon) over the weight of the square (4),
* approximate minima perturbation over weight and clip (8),
* Newton's method over its number of steps and its ridge (6),
* diffprivlib (pure epsilon) over C (4), with `--diffprivlib-python PATH` of an environment that has it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from cvxpriv_models.istdp import ISTDP
from cvxpriv_models.istdp.centring import release_centre, resolves
from scipy import sparse

from benchmarks.diffprivlib_peer import fits
from benchmarks.learning_peers import minima_perturbation, newton, tilt_deviation
from cvxpriv.cli.rows import RowOptions
from cvxpriv.errors import PrivacyError
from cvxpriv.learning.scores import area_under_curve, log_loss
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import gaussian_mu, noise_source
from cvxpriv.tables.datasets import load_a9a

EPSILONS, DELTA, SEEDS = (0.5, 1.0, 2.0), 1e-6, 10
SETS = ("german", "compas", "adult", "a9a")
#: A row of a9a has at most 14 ones.
LARGEST = 14.0
PYTHON = "--diffprivlib-python"

Fit = Callable[["Split", float, int], Array]


@dataclass(frozen=True)
class Split:
    """Rows to learn from and test rows, (n, d) of norm at most 1, and with an intercept's column within that norm."""

    x: Array
    y: Array
    test_x: Array
    test_y: Array
    k: float

    def with_column(self, rows: Array) -> sparse.csr_array:
        """Return rows times sqrt(k/(k + 1)), and a column of 1/sqrt(k + 1)."""
        column = np.full((rows.shape[0], 1), (self.k + 1.0) ** -0.5)
        return sparse.csr_array(np.hstack([rows * (self.k / (self.k + 1.0)) ** 0.5, column]))

    def in_column(self, theta: Array) -> Array:
        """Return the coefficients that belong to `with_column`, from those of rows and an intercept."""
        root = (self.k + 1.0) ** 0.5
        return np.append(theta[:-1] * root / self.k**0.5, theta[-1] * root)

    def scores(self, theta: Array) -> tuple[float, float]:
        """Return log loss and AUC on the test rows; theta belongs to `with_column`."""
        z = self.with_column(self.test_x) @ theta
        return log_loss(self.test_y, z), area_under_curve(self.test_y, z)


def split_of(name: str, seed: int) -> Split:
    """Return a split of a set of rows."""
    if name == "a9a":
        data, root = load_a9a(), LARGEST**0.5
        return Split(data.x_train.toarray() / root, data.y_train, data.x_test.toarray() / root, data.y_test, LARGEST)
    rows = RowOptions(seed=seed).load(name, None, scaled=True, private=False)
    return Split(rows.x, rows.y, rows.test_x, rows.test_y, float(len(rows.encoding.columns)))


def default(split: Split, epsilon: float, seed: int) -> Array:
    """ISTDP without an option."""
    model = ISTDP(split.x, split.y, intercept=True, allow_constant=True)
    run = model.solve_private(epsilon=epsilon, delta=DELTA, noise_seed=seed)
    return split.in_column(np.append(run.coefficients, run.intercept))


def of_model(split: Split, epsilon: float, seed: int, *, penalty: str, **options: Any) -> Array:
    """Another method of ISTDP's, on rows with an intercept's column."""
    model = ISTDP(split.with_column(split.x), split.y, penalty=penalty, allow_constant=True)
    return model.solve_private(epsilon=epsilon, delta=DELTA, noise_seed=seed, **options).theta


def of_objective(split: Split, epsilon: float, seed: int, *, lam: float) -> Array:
    """Objective perturbation; where noise leaves J no minimum that is found, the weight is raised tenfold."""
    try:
        return of_model(split, epsilon, seed, penalty=f"l2:{lam:g}", method="objective-perturbation")
    except PrivacyError:
        return of_objective(split, epsilon, seed, lam=10.0 * lam)


def of_minima(split: Split, epsilon: float, seed: int, *, weight: float, clip: float) -> Array:
    """Approximate minima perturbation; a weight that costs too much of epsilon is raised."""
    while not np.isfinite(tilt_deviation(0.9 * epsilon, DELTA, weight, clip)):
        weight *= 2.0
    random = np.random.default_rng(seed)
    return minima_perturbation(split.with_column(split.x), split.y, epsilon, DELTA, weight, clip, random)


def of_centred_minima(split: Split, epsilon: float, seed: int) -> Array:
    """Minima perturbation on rows centred as ISTDP centres them, by one rule for all tables.

    Rows are shortened to 1.2 released radii, gradients clipped at .7 of one; the weight, in units of a radius, is .3
    clip sqrt(d)/mu, and costs at most a fifth of epsilon. Chosen on German credit, COMPAS, digits and synthetic tables.
    """
    problem = ISTDP(split.x, split.y, intercept=True, allow_constant=True).problem
    mu, rows, before, centre = gaussian_mu(epsilon, DELTA), split.y.size, 0.0, None
    if resolves(problem, rows, mu, "replace-one"):
        centre = release_centre(problem, 1.0, rows, mu, "replace-one", noise_source(seed))
        assert centre.release.mu is not None
        before = centre.release.mu
        x = centre.centred(problem).design / (1.2 * centre.radius)
    else:
        x = np.column_stack([split.x, np.full(rows, 0.25)]) / 1.2
    x = np.asarray(x) / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
    clip, random = 0.7 / 1.2, np.random.default_rng(seed)
    weight = max(0.3 * 0.7 * x.shape[1] ** 0.5 / mu / 1.2**2, 0.25 / np.expm1(0.2 * epsilon))
    theta = minima_perturbation(x, split.y, epsilon, DELTA, weight, clip, random, before) / 1.2
    if centre is None:
        theta[-1] *= 0.25
    else:
        theta = centre.original(theta / centre.radius)
    return split.in_column(theta)


def of_newton(split: Split, epsilon: float, seed: int, *, steps: int, part: float) -> Array:
    """Newton's method; its ridge is a part of the largest curvature that there is, 1/4."""
    random = np.random.default_rng(seed)
    return newton(split.with_column(split.x), split.y, epsilon, DELTA, steps, 0.25 * part, 0.5, random)


def of_diffprivlib(split: Split, epsilon: float, seed: int, *, python: Path, weight: float) -> Array:
    """diffprivlib's logistic regression; its noise takes no seed."""
    rows = split.with_column(split.x).toarray()
    return fits(python, rows, split.y, epsilon, [weight], 1)[weight][0]


PEERS: dict[str, list[Fit]] = {
    "gradient descent, tuned": [
        partial(
            of_model, penalty="l2:0", method="gradient-descent", clip=clip, row_bound=bound, max_iter=passes
        )  # the step is 4/bound^2
        for clip, bound, passes in product((0.25, 0.5, 1.0), (0.25, 0.5, 1.0), (50, 200, 800))
    ],
    "minima perturbation, tuned": [
        partial(of_minima, weight=weight, clip=clip) for weight, clip in product((1.0, 5.0, 20.0, 80.0), (0.5, 1.0))
    ],
    "Newton's method, tuned": [
        partial(of_newton, steps=steps, part=part) for steps, part in product((3, 8), (0.01, 0.1, 1.0))
    ],
    "objective perturbation, tuned": [partial(of_objective, lam=lam) for lam in (1e-4, 1e-3, 1e-2, 1e-1)],
}


def row(name: str, epsilon: float, learner: str, scores: Sequence[tuple[float, float]]) -> str:
    """Return a row of the table: means and deviations."""
    (loss, auc), (off, wide) = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1)
    return f"| {name} | {epsilon:g} | {learner} | {loss:.4f} +- {off:.4f} | {auc:.4f} +- {wide:.4f} |"


def tuned(grid: Sequence[Fit], split: Split, epsilon: float) -> Fit:
    """Return the setting with the least log loss on the test rows."""
    losses = [split.scores(fit(split, epsilon, 1000))[0] for fit in grid]
    return grid[int(np.argmin(losses))]


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table, a row as soon as it is measured."""
    print(__doc__)
    print("| rows | epsilon | learner | log loss | AUC |\n| --- | --- | --- | --- | --- |", flush=True)
    warnings.simplefilter("ignore")
    alone: dict[str, list[Fit]] = {"ISTDP, default": [default], "minima perturbation, centred": [of_centred_minima]}
    learners = {**alone, **PEERS}
    if PYTHON in arguments:
        python = Path(arguments[list(arguments).index(PYTHON) + 1])
        learners["diffprivlib, tuned"] = [
            partial(of_diffprivlib, python=python, weight=weight) for weight in (1e-3, 1e-2, 1e-1, 1.0)
        ]
    chosen = [one for one in learners if one in arguments] or list(learners)
    for name in [one for one in SETS if one in arguments] or SETS[:1]:
        splits = [split_of(name, seed) for seed in range(1 if name == "a9a" else SEEDS)]
        for learner, epsilon in product(chosen, EPSILONS):
            grid = learners[learner]
            fit = grid[0] if len(grid) == 1 else tuned(grid, splits[0], epsilon)
            found = [splits[seed % len(splits)] for seed in range(SEEDS)]
            scores = [split.scores(fit(split, epsilon, seed)) for seed, split in enumerate(found)]
            print(row(name, epsilon, learner, scores), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""A private descent: rows centred and columns chosen with released numbers, then the loop of noisy gradients.

    moments -> columns -> noisy gradients

Each is a part of mu^2. What follows a release reads it as any public number. Several vectors of labels, those of one
class against the rest, share the moments; what is left of mu^2 is divided equally among them, and K Gaussian releases
of mu/sqrt(K) are one of mu.

The columns are the K whose noisy gradient at 0 is largest. All d entries of the gradient at 0 are one Gaussian release.
A row's gradient is clipped in Euclidean norm, so that its noise for d entries is no larger than for the largest of
them; choosing K one by one with report-noisy-max would cost sqrt(K) times the noise for the same mu. The choice follows
from released numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cvxpriv.errors import PrivacyError
from cvxpriv.numerics.arguments import is_whole
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import GaussianNoise, Noise, Release, account_ledger
from cvxpriv.reports.progress import with_bar
from cvxpriv.runs.shared_options import Watch

from .centring import Centre, release_centre, resolves
from .clipping import ClippedGradient, neighbours
from .noisy_descent import GRADIENT_DESCENT, smooth_weight, solve_noisy_descent
from .private_options import Divisor, centred_iterations, noise_level_penalty, public_iterations, public_step_limit
from .problem import Problem
from .run import PrivateSettings, PrivateSparseRun

#: Part of mu^2 that the choice gets.
SHARE = 0.25
STEP = "scores of columns"


@dataclass(frozen=True, eq=False)
class Selection:
    """The columns that were chosen.

    `chosen`, (K,): Their positions, ascending.
    `left`: The mu that is left.
    """

    chosen: npt.NDArray[np.intp]
    release: Release
    left: float

    def columns(self, problem: Problem) -> Problem:
        """Return the problem with these columns alone, and its intercept."""
        places = np.append(self.chosen, problem.features) if problem.intercept else self.chosen
        names = tuple(problem.names[place] for place in self.chosen)
        return replace(problem, design=problem.design[:, places], names=names)

    def spread_out(self, theta: Array, size: int) -> Array:
        """Return coefficients of all columns, (size,), from those of the chosen ones and an intercept."""
        whole = np.zeros(size)
        whole[self.chosen] = theta[: self.chosen.size]
        whole[size - (theta.size - self.chosen.size) :] = theta[self.chosen.size :]
        return whole


def require_support(support: int | None, features: int) -> None:
    """Refuse a number of columns that there are not."""
    if support is None:
        return
    whole = is_whole(support)
    if not (whole and 1 <= support <= features):
        raise PrivacyError(f"support={support!r}: pass a whole number of columns to keep, from 1 to {features}")


def select(average: ClippedGradient, count: int, mu: float, adjacency: str, noise: Noise) -> Selection:
    """Return the `count` columns with the largest noisy gradient at 0, for a part of mu."""
    problem = average.problem
    cost = mu * float(np.sqrt(SHARE))
    gaussian = GaussianNoise(average.sensitivity(adjacency), cost, problem.features)
    scores = gaussian.release(average.at(np.zeros(problem.size))[: problem.features], noise)
    largest = np.argsort(-np.abs(scores), kind="stable")[:count]
    return Selection(np.sort(largest), Release(mu=gaussian.mu, step=STEP), mu * float(np.sqrt(1.0 - SHARE)))


@dataclass(frozen=True)
class Descent:
    """A private descent, by its public options.

    `column_bound`: Public bound of the rows' norms without an intercept's column.
    `weights`, (n,): Weights of the rows: no public number, but within the clip.
    """

    method: str
    adjacency: str
    step: str
    output: str
    centre: str
    clip: float
    row_bound: float
    column_bound: float
    max_iter: int | None
    support: int | None
    weights: Array | None
    delta: float
    noise: Noise
    callback: Watch | None
    progress: bool

    def solve(self, problem: Problem, labels: Sequence[Array], divisor: Divisor) -> tuple[PrivateSparseRun, ...]:
        """Return one run for each vector of labels, with the ledger of all.

        The coefficients are those of the rows and columns as they were.
        """
        count, mu, ledger = divisor.number, divisor.left, divisor.ledger
        centre: Centre | None = None
        usual = self.method != GRADIENT_DESCENT and resolves(problem, count, mu, self.adjacency)
        if self.centre == "private" or (self.centre == "auto" and usual):
            public_step_limit(problem, self.column_bound)
            centre = release_centre(problem, self.column_bound, count, mu, self.adjacency, self.noise)
            mu, ledger = centre.left, (*ledger, centre.release)
        runs: list[PrivateSparseRun] = []
        for one in labels:
            share = mu / float(np.sqrt(len(labels)))
            runs.append(self._chosen(replace(problem, y=one), centre, count, share, ledger))
            ledger = runs[-1].ledger
        words = neighbours(self.adjacency, count)
        whole = account_ledger(ledger, self.delta, neighbours=words, secure=self.noise.secure)
        return tuple(replace(run, ledger=ledger, accounting=whole) for run in runs)

    def _chosen(
        self, problem: Problem, centre: Centre | None, count: int, mu: float, ledger: tuple[Release, ...]
    ) -> PrivateSparseRun:
        """Return the run of one vector of labels, on the columns that are chosen first."""
        if self.support is None:
            return self._run(problem, centre, count, mu, ledger)
        scored = self._average(problem, centre, count)
        selection = select(scored, self.support, mu, self.adjacency, self.noise)
        some = None if centre is None else centre.of_columns(selection.chosen)
        run = self._run(selection.columns(problem), some, count, selection.left, (*ledger, selection.release))
        center = None if run.center is None else selection.spread_out(run.center, problem.size)
        return replace(run, theta=selection.spread_out(run.theta, problem.size), center=center, names=problem.names)

    def _run(
        self, problem: Problem, centre: Centre | None, count: int, mu: float, ledger: tuple[Release, ...]
    ) -> PrivateSparseRun:
        average = self._average(problem, centre, count)
        problem, sensitivity = average.problem, average.sensitivity(self.adjacency)
        usual = public_iterations(average.clip, sensitivity, mu, problem.size)
        chosen = self.max_iter or (usual if centre is None else centred_iterations(usual))
        limit = public_step_limit(problem, self.row_bound) if centre is None else centre.step_limit(problem.loss)
        if self.method == GRADIENT_DESCENT:
            limit = 1.0 / (1.0 / limit + smooth_weight(problem.penalty))
        elif problem.automatic:
            penalty = noise_level_penalty(sensitivity, mu, chosen * limit, problem.features)
            average = replace(average, problem=problem.with_penalty(penalty))
        gaussian = GaussianNoise(sensitivity, mu / float(np.sqrt(chosen)), problem.size)
        settings = PrivateSettings(
            method=self.method,
            max_iter=chosen,
            clip=average.clip,
            step=self.step,
            adjacency=self.adjacency,
            output=self.output if self.output != "auto" else "last" if centre is None else "average",
            noise_scale=gaussian.scale,
            step_limit=limit,
            centre="none" if centre is None else "private",
            support=self.support,
        )
        watch = with_bar(self.callback, chosen, self.progress)
        run = solve_noisy_descent(average, self.delta, settings, gaussian, self.noise, ledger, watch)
        return run if centre is None else replace(run, theta=centre.original(run.theta))

    def _average(self, problem: Problem, centre: Centre | None, count: int) -> ClippedGradient:
        if centre is None:
            return ClippedGradient(problem, self.clip, count, self.weights)
        return ClippedGradient(centre.centred(problem), centre.clip(problem.loss), count, self.weights)

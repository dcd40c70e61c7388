"""The options of a private solve, checked at the door, and what every pass of it will cost.

Defaults follow from public numbers alone: the rows of each node, the graph, C, and the options.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.errors import PrivacyError, shown
from cvxpriv.learning.matrices import shortened
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import BallNoise, GaussianNoise, Release, gaussian_mu
from cvxpriv.privacy.gaussian import require_budget

from .problem import Problem
from .rows import Rows
from .spending import gradient_move, node_name, objective_epsilon, output_move, printed_epsilon


@dataclass(frozen=True)
class Usual:
    """Defaults of a private solve, for a problem whose rows have norms of about 1.

    `reg`: reg over C N: the weight of (1/2)||f||^2 beside the mean loss of a row.
    `eta`: A node's penalties together, over C and the largest curvature of the loss.
    """

    reg: float
    eta: float
    passes: int


#: Each pass costs privacy, and a larger eta keeps its noise from carrying a node away.
PURE = Usual(reg=1e-3, eta=0.02, passes=3)
#: With a delta the noise of a pass grows with the square root of their number alone.
GAUSSIAN = Usual(reg=1e-3, eta=0.04, passes=10)

#: Shards of so many rows, dealt at random, are alike enough for the small eta of `Usual`.
ALIKE = 1000.0


@dataclass(frozen=True)
class Privacy:
    """The requested privacy, by the names of `RecycledADMM.solve_private`."""

    epsilon: float | None = None
    delta: float | None = None
    alpha: ArrayLike | None = None
    perturbation: str | None = None

    @property
    def where(self) -> str:
        """The place of the noise: the minimisers where a delta is given, as Gaussian noise is the smaller one."""
        return self.perturbation or ("objective" if self.delta is None else "output")

    @property
    def usual(self) -> Usual:
        """The defaults that suit it."""
        return PURE if self.delta is None or self.where == "objective" else GAUSSIAN


def usual_eta(problem: Problem, usual: Usual) -> float:
    """Return one eta for all nodes, for their mean number of neighbours; small nodes differ more, and get a larger."""
    unlike = max(1.0, float(np.sqrt(ALIKE / problem.rows.counts.min())))
    return usual.eta * unlike * problem.C * problem.loss.smoothness / float(problem.network.degrees.mean())


#: Privacy cost of a minimiser's inexactness, as a part of the cost of the exact one.
COVER = 2.0**-8
#: Relative excess of rows' norms over their bound that rounding may leave.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Releases:
    """The plan of the nodes' releases, pass by pass; the ledger holds the part that was carried out.

    `alpha`, (N,): Rate of the noise, where it is the same in all passes; else NaN.
    `scale`, (passes, N): Factor of a node's noise of rate 1 before it enters the objective; 0 for noise on the
    minimisers.
    `moves`, (passes, N): Largest move, by one record, of the vector that gets noise and is released; 0 where the noise
    is in the objective.
    `convexity`, (passes, N): mu_i, of what node i minimises.
    `epsilon`, (passes, N): Pure loss; 0 for Gaussian noise.
    `last`, (passes, N): The part of it that pays for the noise on what was computed; all of it for noise on the
    minimisers.
    `printed`, (passes, N): Pure loss by RADMM (32); NaN for noise on the minimisers, of which it says nothing.
    `mu`: The mu of one pass's Gaussian noise, the same for every node; 0 for any other.
    """

    alpha: Array
    scale: Array
    moves: Array
    convexity: Array
    epsilon: Array
    last: Array
    printed: Array
    mu: float = 0.0

    def noise(self, turn: int, node: int, left: float, size: int) -> GaussianNoise | BallNoise:
        """Return the noise of a node's release, where its minimiser is known to within `left` in the gradient."""
        sensitivity = float(self.moves[turn, node] + 2.0 * left / self.convexity[turn, node])
        if self.mu:
            return GaussianNoise(sensitivity, self.mu, size)
        return BallNoise.within(sensitivity, float(self.last[turn, node]), size)

    def entries(self, turn: int, labels: Sequence[Hashable]) -> list[Release]:
        """Return what the ledger says of a pass, counted from 0: one release a node, which touches its own records."""
        names = [node_name(label) for label in labels]
        if self.mu:
            return [Release(mu=self.mu, source=name, touches=name) for name in names]
        costs = self.epsilon[turn].tolist()
        return [Release(epsilon=cost, source=name, touches=name) for cost, name in zip(costs, names, strict=True)]


@dataclass(frozen=True)
class PrivateSettings:
    """The public choices behind a private run.

    `node_tol`: Exactness with which a node minimises, in the norm of the gradient.
    `C`, `reg`: Weights of the problem.
    `eta`: The penalties of the first pass, one a node.
    """

    method: str
    perturbation: str
    variant: str
    gamma: float
    max_iter: int
    row_bound: float
    node_tol: float
    C: float
    reg: float
    eta: tuple[float, ...]


def require_suitable(problem: Problem, settings: PrivateSettings) -> None:
    """Refuse what bounds no sensitivity; no row is read for that."""
    bound = settings.row_bound
    if not (np.isfinite(bound) and bound > 0.0):
        raise PrivacyError(f"row_bound={bound!r} is no bound of the rows' norms: pass a finite number > 0")
    loss = problem.loss
    if not np.isfinite([loss.slope, loss.smoothness]).all():
        raise PrivacyError(
            f"loss={loss.name!r} has no bounded slope and curvature, on which the sensitivity rests: pass 'logistic', "
            "'smoothed-hinge' or 'huber'"
        )
    if problem.ridge is None:
        raise PrivacyError(
            f"penalty={problem.penalty.name!r} is no square: the analysis asks for a penalty that is twice "
            "differentiable; pass 'l2'"
        )


def within_bound(problem: Problem, bound: float, clip_rows: bool) -> Problem:
    """Return the problem on rows within their bound.

    Raises PrivacyError: A row is beyond it, and is not to be clipped.
    """
    if clip_rows:  # whatever the others are: one of them must not decide it for all
        return replace(problem, rows=Rows.of(shortened(part, bound) for part in problem.rows.parts))
    if (problem.rows.norms > bound * (1.0 + ROUNDING)).any():
        raise PrivacyError(
            f"row_bound={bound:g} does not hold: some row has a larger norm. Scale the columns by public numbers, pass "
            "a larger row_bound, or clip_rows=True to shorten such rows"
        )
    return problem


def releases_of(problem: Problem, settings: PrivateSettings, reaches: Array, asked: Privacy) -> Releases:
    """Return noise and cost of every pass.

    `reaches`, (passes, N): sum_j eta_ij of each pass.
    """
    rows = problem.rows.counts.astype(float)
    longest = settings.row_bound * (1.0 + ROUNDING)
    slope = problem.loss.slope * longest
    assert problem.ridge is not None
    convexity = problem.ridge + 2.0 * reaches
    if asked.delta is not None and asked.epsilon is None:
        raise PrivacyError("delta without epsilon: pass the total as epsilon and delta, or alpha alone")
    if (asked.alpha is None) == (asked.epsilon is None):
        raise PrivacyError(
            f"alpha={shown(asked.alpha)} and epsilon={shown(asked.epsilon)}: pass one of them, the noise's rate or "
            "the total"
        )
    if asked.epsilon is not None:
        require_budget(asked.epsilon, asked.delta, pure=True)
    if settings.perturbation == "output":
        return _output(asked, output_move(rows, problem.C, convexity, slope), convexity)
    inside = _inside(settings.method, reaches)
    curvature = problem.loss.smoothness * longest * longest

    def spent(alpha: Array) -> Array:
        return objective_epsilon(alpha / inside, rows, problem.C, convexity, curvature, slope)

    if asked.alpha is not None:
        alpha = _rates(asked.alpha, rows.size)
    else:
        alpha = _rates_within(asked, spent(np.zeros(rows.size)), gradient_move(rows, problem.C, slope) / inside)
    scale = np.broadcast_to(inside / alpha, convexity.shape)
    printed = printed_epsilon(alpha / inside * slope, rows, problem.C, convexity, curvature)
    exact, none = spent(alpha), np.zeros_like(convexity)
    return Releases(alpha, scale, none, convexity, (1.0 + COVER) * exact, COVER * exact, printed)


def _inside(method: str, reaches: Array) -> Array:
    """Return noise's factor as a linear term: DVP adds it to lambda, M-ADMM to the neighbours' mean."""
    if method == "m-admm":
        return 2.0 * reaches
    return np.full_like(reaches, 2.0 if method == "dvp" else 1.0)


def _rates_within(asked: Privacy, curvature: Array, moves: Array) -> Array:
    """The rates with which every node spends the total."""
    assert asked.epsilon is not None
    left = asked.epsilon / (1.0 + COVER) - curvature.sum(axis=0)
    if (left <= 0.0).any():
        worst = float(curvature.sum(axis=0).max())
        raise PrivacyError(
            f"epsilon={asked.epsilon!r} is below {worst:.4g}, what {len(curvature)} passes cost by their curvature "
            "alone, whatever the noise: take fewer passes, a larger eta or reg, or a larger epsilon"
        )
    return np.asarray(left / moves.sum(axis=0))


def _output(asked: Privacy, moves: Array, convexity: Array) -> Releases:
    """Noise on the minimisers: Gaussian with a delta, of density exp(-alpha ||b||) without."""
    passes, nodes = moves.shape
    none, unknown, zero = np.full(nodes, np.nan), np.full(moves.shape, np.nan), np.zeros(moves.shape)
    if asked.epsilon is not None and asked.delta is not None:
        mu = gaussian_mu(asked.epsilon, asked.delta) / float(np.sqrt(passes))
        return Releases(none, zero, moves, convexity, zero, zero, unknown, mu)
    if asked.alpha is not None:
        alpha = _rates(asked.alpha, nodes)
        each = (1.0 + COVER) * alpha * moves
    else:
        assert asked.epsilon is not None
        alpha, each = none, np.full(moves.shape, asked.epsilon / passes)
    return Releases(alpha, zero, moves, convexity, each, each, unknown)


def _rates(alpha: ArrayLike, nodes: int) -> Array:
    try:
        given = np.broadcast_to(np.asarray(alpha, dtype=float), (nodes,))
    except (TypeError, ValueError):
        raise PrivacyError(f"alpha={alpha!r} is no rate a node: pass a number > 0, or {nodes} of them") from None
    if not (np.isfinite(given) & (given > 0.0)).all():
        raise PrivacyError(f"alpha={alpha!r} holds no rate of noise: pass finite numbers > 0; smaller is more private")
    return given

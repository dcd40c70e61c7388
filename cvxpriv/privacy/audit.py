"""Empirical lower bounds on epsilon, from runs of a mechanism on two neighbouring data sets.

A mechanism that is (epsilon, delta)-private satisfies P(M(D) in E) <= exp(epsilon) P(M(D') in E) + delta for every
event E. Many runs on both data sets bound both probabilities (Clopper and Pearson 1934), and so epsilon from below. An
audit can refute a claim; it never proves one.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from cvxpriv.errors import PrivacyError, shown
from cvxpriv.numerics.arguments import is_whole
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.sizes import MOST, Size, require_feasible

#: Number of cut points that are tried on the first half of the runs.
CUTS = 200
#: Bytes of a release beside its numbers.
OBJECT = 32


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes
    ----------
    epsilon : float
        With probability `confidence`, the mechanism's epsilon at `delta` is at least this; 0 when the runs show
        nothing.
    delta, confidence : float
    hits, hits_neighbour : int
        Number of times the event happened on either data set, among `runs` each, in the half that judges.
    runs : int
    event : str
        The event in words.
    """

    epsilon: float
    delta: float
    confidence: float
    hits: int
    hits_neighbour: int
    runs: int
    event: str

    def refutes(self, epsilon: float) -> bool:
        """Return whether the audit contradicts a claim of (epsilon, delta)-privacy."""
        return self.epsilon > epsilon

    def __str__(self) -> str:
        return (
            f"epsilon >= {self.epsilon:.3g} at delta = {self.delta:g} with {self.confidence:.0%} confidence: "
            f"{self.event} in {self.hits} of {self.runs} runs against {self.hits_neighbour} of {self.runs}"
        )


@door
def audit(
    mechanism: Callable[[Any], Any],
    data: Any,
    neighbour: Any,
    *,
    delta: float,
    runs: int = 1000,
    confidence: float = 0.95,
    event: Callable[[Any], bool] | None = None,
) -> Audit:
    """Return a lower bound on the epsilon of a mechanism, from its runs on two neighbouring data sets.

    Parameters
    ----------
    mechanism : callable
        Maps a data set to a release: a number or an array of one shape. It must draw fresh noise at each call.
    data, neighbour : object
        Two data sets that differ by one neighbour's change.
    delta : float
        The delta at which epsilon is bounded.
    runs : int
        Number of runs on each data set.
    confidence : float
        Probability that the bound holds, for both probabilities together.
    event : callable, optional
        Whether an adversary's event happens in a release. None chooses a half-space on half of the runs and judges it
        on the other half.

    Raises
    ------
    PrivacyError
        Too few runs, a confidence outside (0, 1), or delta outside [0, 1).
    ModelError
        The runs would take more than a day or 4 GiB, by what three take.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = audit(lambda x: x + rng.normal(), 0.0, 1.0, delta=1e-5, runs=4000)
    >>> 0.5 < found.epsilon < 4.4  # the exact one is 4.38
    True
    """
    if not is_whole(runs, 20):
        raise PrivacyError(f"runs={shown(runs)} are too few for an audit: pass a whole number >= 20, better 1000")
    if not 0.0 < confidence < 1.0:
        raise PrivacyError(f"confidence={confidence!r} is not in (0, 1): pass, for example, 0.95")
    if not 0.0 <= delta < 1.0:
        raise PrivacyError(f"delta={delta!r} is not in [0, 1): pass the delta of the claim")
    ours = _first_runs(mechanism, data, int(runs))
    ours += [mechanism(data) for _ in range(runs - len(ours))]
    theirs = [mechanism(neighbour) for _ in range(runs)]
    if event is not None:
        flags = [np.array([bool(event(one)) for one in side]) for side in (ours, theirs)]
        return _judge(flags[0], flags[1], delta, confidence, "the event given")
    first, second = _numbers(ours), _numbers(theirs)
    half = runs // 2
    direction = _direction(first[:half], second[:half])
    scores = first @ direction, second @ direction
    cut = _best_cut(scores[0][:half], scores[1][:half], delta, confidence)
    judged = [side[half:] > cut for side in scores]
    return _judge(judged[0], judged[1], delta, confidence, "a half-space chosen on the first half of the runs")


def _numbers(releases: Sequence[Any]) -> Array:
    try:
        return np.array([np.ravel(one) for one in releases], dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise PrivacyError(
            f"mechanism returned {shown(releases[0])}: return a number or an array of numbers of one shape, "
            "or pass the adversary's event"
        ) from error


def _first_runs(mechanism: Callable[[Any], Any], data: Any, runs: int) -> list[Any]:
    """Return three runs, by the quickest of which all may be refused: they take too long, or too much memory."""
    releases, seconds, times = [], [], 2 * min(runs, MOST)
    for _ in range(3):
        begun = time.perf_counter()
        releases.append(mechanism(data))
        seconds.append(time.perf_counter() - begun)
    held = 2.0 * times * (OBJECT + getattr(releases[0], "nbytes", 0))
    require_feasible(Size(f"{shown(runs)} runs on each data set", min(seconds) * times, held, "take fewer runs"))
    return releases


def _direction(first: Array, second: Array) -> Array:
    """Return the difference of the means by each coordinate's spread; constant coordinates that differ decide alone."""
    shift = first.mean(axis=0) - second.mean(axis=0)
    spread = np.sqrt((first.var(axis=0) + second.var(axis=0)) / 2.0)
    floor = 1e-12 * max(1.0, float(np.abs(shift).max(initial=0.0)))
    return np.asarray(shift / np.maximum(spread, floor) ** 2)


def _best_cut(first: Array, second: Array, delta: float, confidence: float) -> float:
    """Return the cut that shows the largest epsilon on these runs, by the limits that judge the other half."""
    pooled = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0.0, 1.0, CUTS)))
    cuts = (pooled[:-1] + pooled[1:]) / 2.0
    if not cuts.size:
        return float(pooled[0])
    return float(max(cuts, key=lambda cut: _shown(first > cut, second > cut, delta, confidence)))


def _judge(first: Flags, second: Flags, delta: float, confidence: float, event: str) -> Audit:
    epsilon = max(0.0, _shown(first, second, delta, confidence))
    return Audit(epsilon, delta, confidence, int(first.sum()), int(second.sum()), first.size, event)


def _shown(first: Flags, second: Flags, delta: float, confidence: float) -> float:
    """Return the bound from both sides of one event, each of the four limits at a quarter of the risk."""
    risk = (1.0 - confidence) / 4.0
    low, high = _limits(int(first.sum()), first.size, risk)
    low_neighbour, high_neighbour = _limits(int(second.sum()), second.size, risk)
    return max(
        _log_ratio(low, high_neighbour, delta),
        _log_ratio(low_neighbour, high, delta),
        _log_ratio(1.0 - high, 1.0 - low_neighbour, delta),
        _log_ratio(1.0 - high_neighbour, 1.0 - low, delta),
    )


def _limits(hits: int, runs: int, risk: float) -> tuple[float, float]:
    """Return Clopper-Pearson limits of a probability, each exceeded with probability at most `risk`."""
    low = 0.0 if hits == 0 else float(beta.ppf(risk, hits, runs - hits + 1))
    high = 1.0 if hits == runs else float(beta.ppf(1.0 - risk, hits + 1, runs - hits))
    return low, high


def _log_ratio(p: float, q: float, delta: float) -> float:
    """Return log((p - delta) / q), the epsilon that these two probabilities show; -inf when they show none."""
    return float(np.log((p - delta) / q)) if p > delta and q > 0.0 else -np.inf

"""The function `verify`: it checks that an object satisfies the assumptions of a model, by its type."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from cvxpriv.certify.problem_checks import solver_names
from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.divergences.curves import Curve
from cvxpriv.divergences.parsing import line_of
from cvxpriv.divergences.verification.checks import verify_divergence
from cvxpriv.divergences.verification.findings import Verification
from cvxpriv.errors import ModelError, shown
from cvxpriv.numerics.doors import door
from cvxpriv.penalties.checks import WithPenaltyMethods, verify_penalty
from cvxpriv.penalties.contract import Penalty

FLOOR = 1e-3
"""The default working interval is [FLOOR, 1/FLOOR]: ratios of probabilities that are at least FLOOR."""


@dataclass(frozen=True)
class Options:
    """The options of `verify`, whatever the kind of object.

    `interval`: The interval in which the object will be used. `solvers`: Names of solvers. None is every installed one.
    """

    interval: tuple[float, float]
    solvers: tuple[str, ...] | None
    seed: int


@door
def verify(
    target: object,
    interval: tuple[float, float] = (FLOOR, 1.0 / FLOOR),
    *,
    solvers: Sequence[str] | None = None,
    seed: int = 0,
) -> Verification:
    """Check that an object satisfies the assumptions that a model makes about it.

    For a divergence: assumptions (a) and (b) of IAS, its derivatives and limits, its DCP form against p f(q/p), the
    axioms of a divergence, and the agreement of solvers on a small block. For a penalty: its value, proximal step,
    residual, bend and DCP form belong to one P.

    Parameters
    ----------
    target : FDivergence, str, or penalty
        A text is a name of `cvxpriv.divergences.names`, or one line of text in t such as ``"t*log(t)"``. A package may
        register types of its own with `verification_of`.
    interval : (float, float)
        The ratios t = q/p, or sizes of coefficients, that will occur; it contains 1.
    solvers : sequence of str, optional
        Solvers of the block. None is every installed solver that takes its cones.
    seed : int
        Seed of the random points.

    Returns
    -------
    Verification

    Raises
    ------
    ModelError
        The name is not known, the text cannot be read, the interval does not contain 1, or an object of this type
        cannot be verified.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxpriv as cpv
    >>> wrong = cpv.FDivergence("wrong", f=lambda t: t * np.log(t), fprime=lambda t: np.log(t))
    >>> [finding.check for finding in cpv.verify(wrong).failed]
    ["f' is right", 'solvers find the optimum']
    """
    options = Options(_interval(interval), solver_names(solvers), int(seed))
    return verification_of(_from_text(target) if isinstance(target, str) else target, options)


@singledispatch
def verification_of(target: object, options: Options) -> Verification:
    """Return the verification of an object of one type; another type registers its own function here."""
    raise ModelError(
        f"target={shown(target)} cannot be verified: pass an FDivergence, its name, its formula in t, a penalty, or an "
        "object of a type that a package registers"
    )


@verification_of.register
def _(target: FDivergence, options: Options) -> Verification:
    return verify_divergence(target, options.interval, options.solvers, options.seed)


@verification_of.register(WithPenaltyMethods)
def _(target: Penalty, options: Options) -> Verification:
    return verify_penalty(target, options.interval, options.seed)


def _interval(interval: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError):
        low = high = float("nan")
    if not 0.0 < low < 1.0 < high < float("inf"):
        raise ModelError(f"interval={interval!r}: give two numbers with 0 < low < 1 < high, such as (1e-3, 1e3)")
    return low, high


def _from_text(text: str) -> FDivergence:
    """Return the divergence of a text; if the formula makes none, the function alone, with the reason as its note."""
    try:
        return divergence(text)
    except ModelError as error:
        try:
            f = line_of(text).f
        except ModelError:
            f = None
        if f is None:
            raise
        return FDivergence(text, f=Curve(np.nan, np.nan, f, 1.0).value, formula=text, notes=(str(error),))

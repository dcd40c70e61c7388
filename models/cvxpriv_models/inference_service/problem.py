"""Inference as a service, IAS (1): maximise I(S;U) - beta E[f(p(u)/p(u|y))] over P(U|Y) subject to (2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from cvxpriv.divergences import FDivergence, divergence
from cvxpriv.errors import ModelError, shown
from cvxpriv.numerics.arguments import is_whole, real_number
from cvxpriv.numerics.arrays import Array
from cvxpriv.tables.joint import JointTable

from . import measures

#: Range in which f is examined when the floor is 0 or smaller: q/p from 1e-6 to 1e6.
NARROWEST = 1e-6
POINTS = 241
#: Distance above 1 that floor * |U| may have by rounding and still be 1.
ROUNDING = 1e-12
#: A slope of f that falls by less counts as rounding of f itself.
SLACK = 1e-9
#: Above this weight of privacy rounding is larger than what mechanisms are worth; it is tried first.
LARGEST_BETA = 1e3


@dataclass(frozen=True)
class Problem:
    """The data of IAS (1), validated. The server infers S, the user holds the data Y, and U is sent.

    `table`: P(S, Y), (|S|, |Y|); its private symbols are S, its public ones Y.
    `beta`: The weight of privacy, > 0.
    `divergence`: f of the leakage E[f(p(u)/p(u|y))].
    `size_u`: |U|.
    `floor`: The paper's epsilon, the least p(u|y); 0 is legal.
    """

    table: JointTable
    beta: float
    divergence: FDivergence
    size_u: int
    floor: float

    @property
    def p_y(self) -> Array:
        """P(Y), (|Y|,)."""
        return self.table.p_x

    @cached_property
    def p_s_given_y(self) -> Array:
        """P(S|Y), (|S|, |Y|), columns sum to 1."""
        return self.table.p_s_given_x

    @property
    def p_s(self) -> Array:
        """P(S), (|S|,)."""
        return self.table.p_s

    @classmethod
    def of(
        cls,
        p_sy: JointTable | ArrayLike,
        beta: float,
        divergence: str | FDivergence = "jensen-shannon",
        size_u: int | None = None,
        floor: float = 0.0,
    ) -> Problem:
        """Validate what a user passes; `size_u` None is |Y| + 1."""
        table = p_sy if isinstance(p_sy, JointTable) else JointTable.from_array(p_sy)
        weight = real_number(beta, "beta", "a weight > 0, for example 0.5")
        if weight <= 0.0:
            raise ModelError(f"beta={beta!r} is not positive: the weight of privacy is a number > 0, for example 0.5")
        symbols = table.p_x.size + 1 if size_u is None else size_u
        if not is_whole(symbols, 1):
            raise ModelError(f"size_u={size_u!r} is no alphabet size: pass a whole number >= 1, or None for |Y| + 1")
        least = real_number(floor, "floor", "the least p(u|y), for example 0 or 1e-3")
        if least < 0.0 or least * symbols > 1.0 + ROUNDING:
            raise ModelError(
                f"floor={shown(floor)} does not fit: rows of size_u={symbols} cells sum to 1, so choose "
                f"0 <= floor <= {1.0 / symbols:.6g}"
            )
        return cls(table, weight, _usable(divergence, least), int(symbols), min(least, 1.0 / symbols))

    def accuracy(self, mechanism: Array) -> float:
        """Return I(S;U) in nats of a mechanism P(U|Y), (|Y|, |U|)."""
        return float(measures.accuracy(mechanism, self.p_y, self.p_s_given_y))

    def leakage(self, mechanism: Array) -> float:
        """Return E[f(p(u)/p(u|y))] of a mechanism P(U|Y), (|Y|, |U|)."""
        return float(measures.leakage(mechanism, self.p_y, self.divergence))

    def objective(self, mechanism: Array) -> Array:
        """Return IAS (1), accuracy - beta * leakage, of mechanisms P(U|Y), (..., |Y|, |U|); (...)."""
        accuracy = measures.accuracy(mechanism, self.p_y, self.p_s_given_y)
        return accuracy - self.beta * measures.leakage(mechanism, self.p_y, self.divergence)


def _usable(given: str | FDivergence, floor: float) -> FDivergence:
    """Return the divergence, if f is finite wherever q/p can fall: [floor, 1/floor], at most [1e-6, 1e6]."""
    chosen = divergence(given)
    widest = -np.log10(max(floor, NARROWEST))
    t = np.logspace(-widest, widest, POINTS)
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(chosen.f(t), dtype=float)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"f of divergence {chosen.name!r} does not take an array ({error}): write it with numpy functions, so that "
            "it works element by element"
        ) from error
    if value.shape != t.shape:
        raise ModelError(
            f"f of divergence {chosen.name!r} turns an array of shape {t.shape} into shape {value.shape}: "
            "write it with numpy functions, so that it works element by element"
        )
    wrong = np.flatnonzero(~np.isfinite(value))
    if wrong.size:
        at = wrong[0]
        raise ModelError(
            f"f of divergence {chosen.name!r} is {value[at]} at t = q/p = {t[at]:.6g}: it has to be finite on "
            f"[{t[0]:.6g}, {t[-1]:.6g}]; correct f, or raise floor={floor!r}, which bounds t"
        )
    if (bent := _bent_down(t, value)) is not None:
        raise ModelError(
            f"f of divergence {chosen.name!r} is not convex near t = q/p = {bent:.6g}: the leakage would have no least "
            "value there; correct f (cvxpriv verify shows where it fails)"
        )
    return chosen


def _bent_down(t: Array, value: Array) -> float | None:
    """Return where the slope of f between neighbouring points falls by more than rounding, or None."""
    chords = np.diff(value) / np.diff(t)
    size = np.maximum(np.abs(value[:-1]), np.abs(value[1:]))
    unsure = ROUNDING * (size / np.diff(t) + np.abs(chords)) + SLACK
    falls = np.flatnonzero(np.diff(chords) < -(unsure[:-1] + unsure[1:]))
    return float(t[falls[0] + 1]) if falls.size else None


#: Share of each symbol's mass that `lifted_rows` moves.
LIFTED = 1e-10


def floored_rows(rows: Array, floor: float) -> Array:
    """Return rows, (..., |U|), that are at least `floor` and sum to 1: the part above the floor is rescaled."""
    above = np.maximum(rows - floor, 0.0)
    total = above.sum(axis=-1, keepdims=True)
    room = 1.0 - rows.shape[-1] * floor
    shares = np.where(total > 0.0, above / np.where(total > 0.0, total, 1.0), 1.0 / rows.shape[-1])
    return np.asarray(floor + room * shares)


def lifted_rows(rows: Array, q: Array, floor: float) -> Array:
    """Return rows, (..., |U|), moved towards q, (|U|,), by at most `LIFTED` of its mass: no cell is 0 where q is not.

    Where p f(q/p) is infinite at p = 0, a solver's 0 would be worth -inf. At an optimum only cells of symbols that are
    hardly ever sent come out as 0, and those symbols are given to every row alike, which costs nothing.
    """
    share = np.minimum(1.0, LIFTED / np.maximum(q, LIFTED))
    return floored_rows((1.0 - share) * rows + share * q, floor)

"""Facts about the private table that a mechanism gives away by itself, before it is applied to any row.

A mechanism is designed on the table, and fits it. With r the rank of M = P(Y|X) and L its leakage I(S;Y):

- **Equalities.** ``P(Y|s) = p(.|s) M``. At L = 0 these are the same for every private value s, so that the
  distributions of X given any two private values differ by a vector of M's left null space alone: r - 1 linear
  equalities of the table for each private value but one. At L > 0 they hold up to ``sum_s p(s) |P(Y|s) - P(Y)|_1^2 <=
  2 L`` (Pinsker).
- **Figures.** Leakage and utility in the file have all digits, and are functions of the table: of all tables with the
  same totals few have the same figures.
- **Constraints.** A constraint that speaks of the table holds there: the tables that miss it are excluded. Where it
  binds, which it does at most optima, it is one more equation. A constraint of the matrix alone tells nothing by
  itself; that it binds is a choice of the design. A rate that the utility equals is such an equation too.
- **Zeros and equal rows.** An exact zero of M, and symbols that M treats alike, were chosen by the design, because of
  what the table says of these symbols.

`Reveals.remaining` is the attack: it takes the tables that somebody holds possible, and says which are left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.errors import DataError, ModelError
from cvxpriv.numerics.arrays import Array, Flags
from cvxpriv.reports.formatting import format_number
from cvxpriv.tables.information import entropy, mutual_information
from cvxpriv.tables.joint import JointTable

RANK = 1e-9
"""Singular values below this part of the largest count as zero."""
EXACT = 1e-3
"""Largest deviation of a table from what counts as an equality of it, where next to nothing leaks."""
ALIKE = 1e-9
"""Largest difference of two rows that count as equal."""
ZERO = 1e-9
"""Leakage, in nats, up to which the equalities are said to hold: deviations stay below 5e-5."""
MORE = 1e-4
"""Share by which a matrix is moved away from one that tells nothing, to see which constraints bind."""
FIGURE = 1e-9
"""Difference, in nats, up to which a table has the figures of the file."""


@dataclass(frozen=True, eq=False)
class Reveals:
    """The facts that a mechanism gives away.

    Attributes
    ----------
    matrix : array, ``(|X|, |Y|)``
    figures : mapping of str to float
        The figures of the mechanism's file.
    equalities : array, ``(rank - 1, |X|)``
        Vectors c, orthonormal and orthogonal to 1, with ``sum_x c(x) p(x|s)`` the same for every private value s where
        nothing leaks. The rank counts no direction along which the leakage allows a difference above `EXACT`.
    silent : array, ``(|X| - rank, |X|)``
        Orthonormal directions in which the distribution of X may differ between private values without a trace.
    zeros : int
        Number of exact zeros of the matrix.
    alike : tuple of tuple of int
        Symbols of X that the mechanism treats alike.
    published : bool
        Whether noise protects the table that the facts are about.
    constraints : tuple of ReadyConstraint
        The constraints that the file promises.
    """

    matrix: Array
    figures: Mapping[str, float]
    equalities: Array
    silent: Array
    zeros: int
    alike: tuple[tuple[int, ...], ...]
    published: bool
    constraints: tuple[ReadyConstraint, ...] = ()

    @property
    def binding(self) -> tuple[ReadyConstraint, ...]:
        """The constraints of the matrix alone that bind: see `_binds`."""
        return tuple(one for one in self.constraints if self._excess(one, None) is not None and self._binds(one, None))

    @property
    def of_the_table(self) -> tuple[ReadyConstraint, ...]:
        """The constraints that speak of the private table."""
        return tuple(one for one in self.constraints if self._excess(one, None) is None)

    def _excess(self, constraint: ReadyConstraint, known: Known | None) -> float | None:
        """Return by how much the matrix misses a constraint; None where that is not known."""
        return _missed(constraint, self.matrix, known)

    def _binds(self, constraint: ReadyConstraint, known: Known | None) -> bool:
        """Return whether a matrix that tells a little more, by the share `MORE`, misses a constraint."""
        prior = np.full(len(self.matrix), 1.0 / len(self.matrix)) if known is None else known.prior
        more = np.maximum(self.matrix + MORE * (self.matrix - prior @ self.matrix), 0.0)
        missed = _missed(constraint, more / more.sum(axis=1, keepdims=True), known)
        return missed is not None and missed > FIGURE

    def deviation(self, table: JointTable) -> float:
        """Return by how much a table misses the equalities at most: 0 where the mechanism determines them.

        Raises
        ------
        DataError
            The table has other symbols of X.
        """
        joint = table.probabilities
        self._require_shape(joint)
        given = joint / np.maximum(joint.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        seen = joint.sum(axis=1) > 0
        moments = (given @ self.equalities.T)[seen]
        return float(np.abs(moments - joint.sum(axis=0) @ self.equalities.T).max(initial=0.0))

    def remaining(self, tables: Array, binding: bool = False) -> Flags:
        """Return which of some tables could have led to the mechanism.

        They have its leakage and its utility, and hold its constraints.

        Parameters
        ----------
        tables : array, ``(tables, |S|, |X|)``
            Counts or probabilities, none all zero.
        binding : bool
            Whether the constraints that speak of the table are taken to bind: an adversary's guess, true at most
            optima.

        Raises
        ------
        DataError
            The tables have other symbols of X.

        Examples
        --------
        >>> found = reveals(np.array([[0.8, 0.2], [0.2, 0.8]]), {"leakage": 0.0})
        >>> found.remaining(np.array([[[2, 2], [2, 2]], [[3, 1], [1, 3]]])).tolist()
        [True, False]
        """
        self._require_shape(tables)
        joint = tables / tables.sum(axis=(-2, -1), keepdims=True)
        p_x, noise = joint.sum(axis=-2), np.asarray(entropy(self.matrix, axis=-1))
        measured = {
            "leakage": np.asarray(mutual_information(joint @ self.matrix, axis=(-2, -1))),
            "utility": np.asarray(entropy(p_x @ self.matrix, axis=-1)) - p_x @ noise,
        }
        left = np.ones(len(tables), dtype=bool)
        for name, found in measured.items():
            if name in self.figures:
                left &= np.abs(found - self.figures[name]) <= FIGURE
        for constraint in self.of_the_table:
            for place in np.flatnonzero(left):
                missed = self._excess(constraint, _known_of(joint[place]))
                known = _known_of(joint[place])
                left[place] = (
                    missed is not None and missed <= FIGURE and (not binding or self._binds(constraint, known))
                )
        return left

    def sentences(self, table: JointTable | None = None) -> tuple[str, ...]:
        """Return the facts in words, with a table also how much of its dependence is determined."""
        found = [self._equalities()]
        if table is not None:
            private, public = len(table.private) - 1, len(table.public) - 1
            share = private * len(self.equalities)
            found.append(
                f"Of {private * public} numbers that say how S and X depend on each other, this is {share}; the table "
                f"misses them by at most {format_number(self.deviation(table), 2)}."
            )
        if known := [name for name in ("leakage", "utility") if name in self.figures]:
            found.append(
                f"The file gives {' and '.join(known)} with all digits. Among tables with known totals few have the "
                "same."
            )
        found += self._of_constraints(table)
        if self.zeros:
            found.append(f"The matrix has {self.zeros} exact zeros, which the design chose for this table.")
        if self.alike:
            found.append(
                f"{sum(map(len, self.alike))} symbols fall into {len(self.alike)} groups that the mechanism treats "
                "alike."
            )
        end = "All of this is about counts with noise, and may be known." if self.published else ""
        return tuple(filter(None, [*found, end]))

    def _equalities(self) -> str:
        count, leakage = len(self.equalities), self.figures.get("leakage")
        if not count:
            return "The output does not depend on X, so the matrix determines no equality."
        what = f"{count} linear {'equality' if count == 1 else 'equalities'}"
        if leakage is None:
            return f"Where nothing leaks, the matrix determines {what} for each private value but one."
        if leakage <= ZERO:
            free = len(self.silent)
            rest = (
                f"They may differ in {free} directions alone" if free else "They do not differ: S and X are independent"
            )
            return (
                f"At zero leakage the matrix determines {what} of the private table for each private value but one: "
                f"the distributions of X given two private values agree in as many. {rest}."
            )
        near = format_number(float(np.sqrt(2.0 * leakage)), 2)
        return (
            f"The matrix determines {what} of the private table for each private value but one, approximately: the "
            f"distribution of the output given a private value is within {near} of the overall one, on average."
        )

    def _of_constraints(self, table: JointTable | None) -> Sequence[str]:
        """Return what the constraints tell, in words."""
        found = []
        rate, utility = self.figures.get("rate"), self.figures.get("utility")
        if rate is not None and utility is not None and abs(utility - rate) <= MORE:
            found.append("The rate binds: the utility of the table under this matrix is the rate, one equation more.")
        if self.binding:
            names = ", ".join(one.name for one in self.binding)
            found.append(f"Constraints that bind: {names}. They speak of the matrix alone, whatever the table is.")
        known = None if table is None else Known.of_table(table)
        for one in self.of_the_table:
            tight = known is not None and self._binds(one, known)
            found.append(
                f"{one.name} speaks of the table: every table that misses it is excluded"
                + ("; it binds, which is one equation more." if tight else ".")
            )
        return found

    def _require_shape(self, tables: Array) -> None:
        if tables.shape[-1] != len(self.matrix):
            raise DataError(f"a table has {tables.shape[-1]} symbols of X, the mechanism has {len(self.matrix)}")


def _missed(constraint: ReadyConstraint, matrix: Array, known: Known | None) -> float | None:
    try:
        return float(constraint.excess(matrix, known))
    except ModelError:
        return None


def _known_of(joint: Array) -> Known:
    """Return what a constraint may ask of a joint distribution, ``(|S|, |X|)``."""
    p_x = joint.sum(axis=0)
    return Known(p_x, joint.sum(axis=1), joint / np.where(p_x > 0.0, p_x, 1.0))


def reveals(
    matrix: Array,
    figures: Mapping[str, float],
    published: bool = False,
    constraints: Sequence[ReadyConstraint] = (),
) -> Reveals:
    """Return the facts about its private table that a mechanism gives away.

    Parameters
    ----------
    matrix : array, ``(|X|, |Y|)``
    figures : mapping of str to float
        Its figures as the file has them; leakage and utility count, in nats.
    published : bool
        Whether noise was put into the table before the design.
    constraints : sequence of ReadyConstraint
        The constraints that its file promises.

    Examples
    --------
    >>> found = reveals(np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]]), {"leakage": 0.0})
    >>> found.equalities.shape, found.silent.shape
    ((1, 3), (1, 3))
    """
    outer, sizes, _ = np.linalg.svd(matrix)
    leakage = figures.get("leakage")
    # Along a direction of singular value d, private values differ by up to sqrt(2 L) / d; L is known to eps.
    least = 0.0 if leakage is None else np.sqrt(2.0 * np.clip(leakage, np.finfo(float).eps, ZERO)) / EXACT
    rank = int((sizes > max(RANK * sizes[0], least)).sum())
    spanned, silent = outer[:, :rank], outer[:, rank:].T
    # The vector of ones is M times ones: it lies in the span, and its equality says nothing.
    ones = np.ones(len(matrix)) / np.sqrt(len(matrix))
    rest, _, _ = np.linalg.svd(spanned - np.outer(ones, ones @ spanned))
    equalities = rest[:, : rank - 1].T
    groups: dict[tuple[float, ...], list[int]] = {}
    for place, row in enumerate(np.rint(matrix / ALIKE)):
        groups.setdefault(tuple(row), []).append(place)
    alike = tuple(tuple(group) for group in groups.values() if len(group) > 1)
    return Reveals(
        matrix, dict(figures), equalities, silent, int((matrix == 0).sum()), alike, published, tuple(constraints)
    )

"""The cone ``K`` of a program: its blocks by kind of cone, and exact projections onto all of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.cones.exponential import (
    Triangle,
    project_exponential,
    project_second_order,
    project_semidefinite,
    triangles_from_matrices,
)
from cvxpriv.kkt.conic.cones.power import project_power
from cvxpriv.numerics.arrays import Array

Project = Callable[[Array], Array]

KINDS = ("zero", "nonneg", "soc", "psd", "exp", "power")
"""The fields of a layout, in the order of its rows."""
ROUNDED = 1e-6
"""Largest distance of a power cone's exponents from a sum of one: cvxpy takes them to about this."""


def onto_dual(project: Project) -> Project:
    """Return the projection onto the dual cone, by Moreau's decomposition: ``P*(v) = v + P(-v)``.

    It is exactly zero where ``-v`` lies in the primal cone, and exactly ``v`` where ``v`` lies in the dual.
    """
    return lambda v: v + project(-v)


@dataclass(frozen=True)
class Family:
    """Equal cones that are projected together: ``rows`` (m, n) are the positions of each one's entries."""

    kind: str
    numbers: tuple[int, ...]
    rows: np.ndarray
    project: Project = field(repr=False)
    project_dual: Project = field(repr=False)


@dataclass(frozen=True)
class ConeLayout:
    """A product of cones, in the order of cvxpy and SCS.

    `zero`, `nonneg`: Number of entries fixed to zero, and of nonnegative entries.
    `soc`: Sizes of the second-order cones ``(t, x)``, ``||x|| <= t``.
    `psd`: Orders of the semidefinite cones, each stored as a scaled triangle of ``n(n+1)/2`` entries.
    `exp`: Number of exponential cones ``(x, y, z)``, ``y exp(x/y) <= z``.
    `power`: Exponents of each power cone ``(x_1 .. x_n, z)``, ``prod x_i^a_i >= |z|``; ``(a, 1 - a)`` for the 3-d cone.
    `triangle`, {"lower", "upper"}: The triangle of a symmetric matrix that is stored, column by column.

    A distance is the Euclidean distance inside each block, and the largest over blocks: one bad cone among thousands
    shows undiluted. A block is one cone; each zero or nonnegative entry is a block of its own.

    >>> layout = ConeLayout(nonneg=1, exp=1)
    >>> layout.distance(np.array([-0.5, 0.0, 1.0, 1.0]))
    0.5
    """

    zero: int = 0
    nonneg: int = 0
    soc: tuple[int, ...] = ()
    psd: tuple[int, ...] = ()
    exp: int = 0
    power: tuple[tuple[float, ...], ...] = ()
    triangle: Triangle = "lower"

    def __post_init__(self) -> None:
        """Refuse exponents that make no power cone, and rescale those whose sum is one but for rounding."""
        for number, alpha in enumerate(self.power):
            if len(alpha) < 2 or min(alpha) <= 0 or abs(sum(alpha) - 1.0) > ROUNDED:
                raise ModelError(f"power[{number}]={alpha} must be at least two positive exponents that sum to one")
        shares = [[one / sum(alpha) for one in alpha] for alpha in self.power]
        # CLARABEL panics at a sum that is two roundings from one.
        object.__setattr__(self, "power", tuple((*first, 1.0 - sum(first)) for *first, _ in shares))

    @cached_property
    def size(self) -> int:
        """Number of entries of ``s``."""
        return sum(size for _, _, size in self._sizes())

    def _sizes(self) -> Iterator[tuple[str, int, int]]:
        yield from (("zero", number, 1) for number in range(self.zero))
        yield from (("nonneg", number, 1) for number in range(self.nonneg))
        yield from (("soc", number, size) for number, size in enumerate(self.soc))
        yield from (("psd", number, order * (order + 1) // 2) for number, order in enumerate(self.psd))
        yield from (("exp", number, 3) for number in range(self.exp))
        yield from (("power", number, len(alpha) + 1) for number, alpha in enumerate(self.power))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each block, such as ``exp[3]``."""
        return tuple(f"{kind}[{number}]" for kind, number, _ in self._sizes())

    @property
    def slices(self) -> dict[str, slice]:
        """Place of each block in ``s``."""
        ends = [*self.starts[1:], self.size]
        return {name: slice(int(a), int(b)) for name, a, b in zip(self.names, self.starts, ends, strict=False)}

    @cached_property
    def starts(self) -> np.ndarray:
        """First entry of each block."""
        sizes = np.array([size for _, _, size in self._sizes()], dtype=int)
        return np.asarray(np.cumsum(sizes) - sizes)

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """Equal cones gathered, so that each kind and size costs one vectorised call."""
        start = 0
        groups: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        for kind, number, size in self._sizes():
            numbers, offsets = groups.setdefault((kind, size), ([], []))
            numbers.append(number)
            offsets.append(start)
            start += size
        return tuple(
            self._family(kind, tuple(numbers), np.array(offsets)[:, None] + np.arange(size))
            for (kind, size), (numbers, offsets) in groups.items()
        )

    def _family(self, kind: str, numbers: tuple[int, ...], rows: np.ndarray) -> Family:
        if kind == "power":
            alpha = np.array([self.power[number] for number in numbers], dtype=float)
            project = partial(project_power, alpha=alpha)
            return Family(kind, numbers, rows, project, onto_dual(project))
        order = self.psd[numbers[0]] if kind == "psd" else 0
        semidefinite = partial(project_semidefinite, order=order, triangle=self.triangle)
        pairs: dict[str, tuple[Project, Project]] = {
            "zero": (np.zeros_like, np.copy),
            "nonneg": (partial(np.maximum, 0.0), partial(np.maximum, 0.0)),
            "soc": (project_second_order, project_second_order),
            "psd": (semidefinite, semidefinite),
            "exp": (project_exponential, onto_dual(project_exponential)),
        }
        return Family(kind, numbers, rows, *pairs[kind])

    def project(self, v: Array, dual: bool = False) -> Array:
        """Return the nearest point of the product cone, or of its dual, to ``v`` (size,)."""
        v = np.asarray(v, dtype=float).ravel()
        if v.size != self.size:
            raise ModelError(f"the point has {v.size} entries, the cones {self.size}: pass one entry for each row")
        projected = np.empty(v.size)
        for family in self.families:
            projected[family.rows] = (family.project_dual if dual else family.project)(v[family.rows])
        return projected

    def interior(self) -> Array:
        """Return a point inside the cone and its dual, of ordinary size; zero on the rows of equalities."""
        inside = np.zeros(self.size)
        centres = {"zero": [0.0], "nonneg": [1.0], "exp": [-1.0, 0.5, 1.0]}
        for family in self.families:
            size = family.rows.shape[1]
            if family.kind in centres:
                centre = np.array(centres[family.kind])
            elif family.kind == "soc":
                centre = np.eye(size)[0]
            elif family.kind == "power":
                centre = np.append(np.ones(size - 1), 0.0)
            else:
                centre = triangles_from_matrices(np.eye(self.psd[family.numbers[0]])[None], self.triangle)[0]
            inside[family.rows] = centre
        return inside

    def block_norms(self, v: Array) -> Array:
        """Return the Euclidean norm of each block of ``v``, in the order of `names`."""
        return np.sqrt(np.add.reduceat(np.square(v), self.starts)) if self.size else np.zeros(0)

    def spread(self, blocks: Array) -> Array:
        """Return one number for each row from one for each block."""
        return np.repeat(blocks, np.diff(np.append(self.starts, self.size)))

    def block_distances(self, v: Array, dual: bool = False) -> Array:
        """Return the distance of each block to its cone (or dual cone), in the order of `names`.

        All are infinite where an entry is not finite.
        """
        v = np.asarray(v, dtype=float).ravel()
        if not np.isfinite(v).all():
            return np.full(len(self.names), np.inf)
        return self.block_norms(v - self.project(v, dual))

    def distance(self, v: Array) -> float:
        """Return the largest distance of a block of ``v`` to its cone."""
        return float(self.block_distances(v).max(initial=0.0))

    def distance_dual(self, v: Array) -> float:
        """Return the largest distance of a block of ``v`` to its dual cone."""
        return float(self.block_distances(v, dual=True).max(initial=0.0))

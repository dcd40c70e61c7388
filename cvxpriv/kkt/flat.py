"""Expressions taken apart once: one affine map, and the nonlinear atoms between its columns and its rows.

With ``x`` the variables' free numbers and ``t`` the values of all nonlinear atoms, every argument of an atom and every
expression that was asked for is a row of ``M [x; t] + m``, and ``t = atom(rows)``, one level of nesting after the
other. What is evaluated or differentiated at many points is compiled once, and many small constraints cost one product.
``M`` and ``m`` are read off cvxpy's own matrix builder.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.atoms.affine.affine_atom import AffAtom
from cvxpy.cvxcore.python import canonInterface
from cvxpy.lin_ops import lin_op as lo

from cvxpriv.kkt.closures import value_of
from cvxpriv.kkt.coordinates import Coordinates, dense
from cvxpriv.kkt.derivative_rules import elementwise_key
from cvxpriv.kkt.jacobian_sets import broadcast_rows
from cvxpriv.numerics.arrays import Array


@dataclass(frozen=True, eq=False)
class Atom:
    """One nonlinear atom: the places of its arguments among the rows, and of its value in ``t``.

    The matrix of a quadratic form has no rows, which would be the square of the variables' number.
    """

    node: Any
    rows: tuple[slice, ...]
    place: slice
    level: int

    def arguments(self, u: Array) -> list[Array]:
        """Return its arguments' values in their shapes."""
        return [
            arg.value if arg.size > piece.stop - piece.start else u[piece].reshape(arg.shape, order="F")
            for piece, arg in zip(self.rows, self.node.args, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Group:
    """Elementwise atoms of one kind and level, side by side.

    `node`: Any of them: it stands for the function.
    `rows`: For each argument the rows that the group's entries read, broadcast.
    `places`: Places of the entries in ``t``.
    """

    node: Any
    rows: tuple[np.ndarray, ...]
    places: np.ndarray
    atoms: tuple[Atom, ...]


@dataclass(frozen=True, eq=False)
class State:
    """The values at one point: ``v = [x; t]`` and the rows ``u``; NaN is a missing value, for the reason `error`."""

    v: Array
    u: Array
    error: str = ""


class Flat:
    """Expressions over some variables, taken apart.

    `atoms`: The atoms; those that others need come first.
    `places`: The rows of the requested expressions, in order.
    `rows`: The affine map, at the values that Parameters have now: `M`, (rows, n + t), and `m`, (rows,).
    """

    def __init__(
        self, coordinates: Coordinates, atoms: Sequence[Atom], places: Sequence[slice], rows: "AffineRows"
    ) -> None:
        self.coordinates, self.atoms, self.places, self.rows = coordinates, tuple(atoms), tuple(places), rows
        M, self.m = rows.now()
        entries = coordinates.expansion.shape[0]
        self.M = sp.csr_array(sp.hstack([M[:, :entries] @ coordinates.expansion, M[:, entries:]]))
        self.M.eliminate_zeros()

    def again(self) -> "Flat":
        """Return the same expressions at the values that Parameters have now."""
        return Flat(self.coordinates, self.atoms, self.places, self.rows)

    @property
    def size(self) -> int:
        """The number of free numbers of the variables."""
        return self.coordinates.size

    @cached_property
    def grouped(self) -> tuple[tuple[tuple[Group, ...], tuple[Atom, ...]], ...]:
        """The elementwise atoms of each depth of nesting by kind, and its other atoms one by one."""
        depth = 1 + max((atom.level for atom in self.atoms), default=-1)
        return tuple(_grouped([atom for atom in self.atoms if atom.level == k]) for k in range(depth))

    def state(self, x: Array) -> State:
        """Evaluate everything at a point."""
        v = np.concatenate([x, np.zeros(self.M.shape[1] - x.size)])
        u = self.M @ v + self.m
        error = ""
        with np.errstate(all="ignore"):
            for groups, others in self.grouped:
                for group in groups:
                    v[x.size + group.places] = group.node.numeric([u[rows] for rows in group.rows])
                for atom in others:
                    value, why = value_of(atom.node, atom.arguments(u))
                    v[x.size + atom.place.start : x.size + atom.place.stop] = value
                    error = error or why
                u = self.M @ v + self.m
        return State(v, u, error)


def _grouped(atoms: Sequence[Atom]) -> tuple[tuple[Group, ...], tuple[Atom, ...]]:
    groups: dict[Any, list[Atom]] = {}
    others = []
    for atom in atoms:
        key = elementwise_key(atom.node)
        if key is None:
            others.append(atom)
        else:
            groups.setdefault(key, []).append(atom)
    found = []
    for node, several in ((several[0].node, several) for several in groups.values()):
        rows = tuple(
            np.concatenate(
                [one.rows[k].start + broadcast_rows(one.node.args[k].shape, one.node.shape) for one in several]
            )
            for k in range(len(node.args))
        )
        places = np.concatenate([np.arange(one.place.start, one.place.stop) for one in several])
        found.append(Group(node, rows, places, tuple(several)))
    return tuple(found), tuple(others)


def flatten(expressions: Sequence[Any], coordinates: Coordinates, symbolic: bool = False) -> Flat:
    """Take expressions apart.

    `expressions`: Real expressions, DPP if `symbolic`.
    `coordinates`: Coordinates of all variables in the expressions.
    `symbolic`: Keep Parameters, for `Flat.again`. Without, they enter by their values.
    """
    walk = _Walk(symbolic)
    affine = [walk.affine(expression)[0] for expression in expressions]
    columns = [*coordinates.variables, *walk.placeholders]
    ends = np.cumsum([walk.rows, *(expression.size for expression in affine)])
    places = [slice(int(a), int(b)) for a, b in pairwise(ends)]
    return Flat(coordinates, walk.atoms, places, AffineRows([*walk.arguments, *affine], columns))


class _Walk:
    """One walk over expressions; nodes that occur twice are taken apart once."""

    def __init__(self, symbolic: bool) -> None:
        self.symbolic = symbolic
        self.atoms: list[Atom] = []
        self.placeholders: list[cp.Variable] = []
        self.arguments: list[Any] = []
        self.rows = self.count = 0
        self.seen: dict[int, tuple[Any, int]] = {}
        self.kept: list[Any] = []  # what `seen` is keyed by must not be freed meanwhile

    def affine(self, node: Any) -> tuple[Any, int]:
        """Return an affine expression with a node's value, and the levels of atoms that it needs."""
        if id(node) not in self.seen:
            self.seen[id(node)] = self._taken_apart(node)
            self.kept.append(node)
        return self.seen[id(node)]

    def _taken_apart(self, node: Any) -> tuple[Any, int]:
        if isinstance(node, cp.Variable) or (self.symbolic and isinstance(node, cp.Parameter)):
            return node, 0
        if node.is_constant() and not (self.symbolic and node.parameters()):
            return (node if isinstance(node, cp.Constant) else cp.Constant(node.value)), 0
        parts = [self.affine(arg) for arg in node.args]
        args, level = [part for part, _ in parts], max(depth for _, depth in parts)
        if isinstance(node, cp.cumsum):
            return _running_sum(node, args[0]), level
        if isinstance(node, AffAtom):
            same = all(new is old for new, old in zip(args, node.args, strict=True))
            return (node if same else node.copy(args)), level
        pieces = []
        for arg in args:
            given = isinstance(node, cp.QuadForm) and arg is args[1] and arg.is_constant()
            pieces.append(slice(self.rows, self.rows + (0 if given else arg.size)))
            self.rows = pieces[-1].stop
            self.arguments += [] if given else [arg]
        self.atoms.append(Atom(node, tuple(pieces), slice(self.count, self.count + node.size), level))
        self.count += node.size
        self.placeholders.append(cp.Variable(node.shape))
        return self.placeholders[-1], level + 1


class AffineRows:
    """Affine expressions, stacked, each column-major, as cvxpy's tensor from Parameters to coefficients.

    `expressions`: Affine expressions.
    `variables`: The variables; their entries, column-major, are the columns, one variable after the other.
    """

    def __init__(self, expressions: Sequence[Any], variables: Sequence[cp.Variable]) -> None:
        known = {one.id: one for expression in expressions for one in expression.parameters()}
        self.parameters = tuple(known.values())
        first, *after = np.cumsum([0, *(one.size for one in (*self.parameters, *variables))]).tolist()
        starts = dict(zip([*known, *(one.id for one in variables)], [first, *after], strict=False))
        count = sum(one.size for one in self.parameters)
        self.shape = sum(expression.size for expression in expressions), after[-1] - count + 1 if after else 1
        self.tensor, self.filled = sp.csr_array((0, count + 1)), np.zeros(0, dtype=int)
        if not self.shape[0]:
            return
        plain = all(  # cvxpy's builder in C++ knows an expression's own operation
            len(node.shape) <= 2 and (not node.args or node._supports_cpp())
            for expression in expressions
            for node in _nodes(expression)
        )
        tensor = canonInterface.get_problem_matrix(
            [expression.canonical_form[0] for expression in expressions],
            self.shape[1] - 1,
            {one.id: starts[one.id] - count for one in variables},
            {**{one.id: one.size for one in self.parameters}, lo.CONSTANT_ID: 1},
            {**{key: starts[key] for key in known}, lo.CONSTANT_ID: count},
            self.shape[0],
            "CPP" if plain else "SCIPY",
        )
        whole = sp.coo_array(tensor)  # nearly all of its rows are empty
        self.filled, row = np.unique(whole.coords[0], return_inverse=True)
        self.tensor = sp.csr_array((whole.data, (row, whole.coords[1])), shape=(self.filled.size, count + 1))

    def now(self) -> tuple[sp.csr_array, Array]:
        """Return matrix (rows, columns) and constant (rows,) at the values that Parameters have now."""
        values = [dense(one.value).ravel(order="F") for one in self.parameters]
        place = self.filled % max(self.shape[0], 1), self.filled // max(self.shape[0], 1)
        whole = sp.coo_array((self.tensor @ np.concatenate([*values, [1.0]]), place), shape=self.shape).tocsc()
        return sp.csr_array(whole[:, :-1]), np.ravel(whole[:, [-1]].toarray())


def _running_sum(node: Any, arg: Any) -> Any:
    """Return a cumulative sum as a product: cvxpy's builder does not know the atom."""
    units = np.eye(arg.size)[np.arange(arg.size).reshape(arg.shape, order="F")]
    columns = [np.cumsum(units[..., k], axis=node.axis).ravel(order="F") for k in range(arg.size)]
    return cp.reshape(np.stack(columns, axis=1) @ cp.vec(arg, order="F"), node.shape, order="F")


def _nodes(expression: Any) -> Iterator[Any]:
    yield expression
    for arg in expression.args:
        yield from _nodes(arg)

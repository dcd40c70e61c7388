"""Public bounds for a neighbour relation, checked against the data."""

import numpy as np
from scipy import sparse

from cvxpriv.errors import PrivacyError, shown, suggest
from cvxpriv.learning.matrices import row_norms, shortened
from cvxpriv.numerics.arguments import finite_double
from cvxpriv.numerics.arrays import Array

from .options import Bound
from .problem import Part, Problem

#: Each relation with its bound, and the change that one neighbour makes.
ADJACENCIES = {
    "replace-one": (
        "row_bound",
        "one person's row replaced in all {parties} parties, each part of norm at most {bound}",
    ),
    "party-row": ("row_bound", "one person's row replaced in one party, of norm at most {bound}"),
    "column": ("column_bound", "one column of one party replaced, of norm at most {bound}"),
    "cell": ("cell_bound", "one entry of one party replaced, of absolute value at most {bound}"),
}

#: Relative excess of a norm over its bound that rounding may leave: within the margin of `gaussian_mu`, so that the
#: budget covers it.
ROUNDING = 1e-12


def public_bounds(adjacency: str, parties: int, given: dict[str, Bound]) -> tuple[float, ...]:
    """Return the bound of each party; inf where none is given.

    `given`: Bounds `row_bound`, `column_bound`, `cell_bound`: a number for all parties, one per party, or None.
    """
    if adjacency not in ADJACENCIES:
        raise PrivacyError(f"adjacency={adjacency!r} is no neighbouring relation: {suggest(adjacency, ADJACENCIES)}")
    name = ADJACENCIES[adjacency][0]
    for other, value in given.items():
        if other != name and value is not None:
            raise PrivacyError(f"{other}={shown(value)} says nothing for adjacency={adjacency!r}: pass {name}")
    bound = given[name]
    if bound is None:
        return (float("inf"),) * parties
    listed = isinstance(bound, (list, tuple)) or (isinstance(bound, np.ndarray) and bound.ndim > 0)
    several = tuple(bound) if listed else (bound,) * parties  # type: ignore[arg-type]
    wrong = [one for one in several if not finite_double(one) > 0.0]
    if len(several) != parties or wrong:
        raise PrivacyError(f"{name}={shown(bound)} is no public bound: pass a finite number > 0, or one for each party")
    return tuple(float(one) for one in several)  # type: ignore[arg-type]


def within(problem: Problem, adjacency: str, bounds: tuple[float, ...], clip_data: bool) -> tuple[Part, ...]:
    """Return the parties' columns within their bounds: unchanged, or clipped where that was asked for.

    Rows and columns are scaled down to their bound, and cells are clipped at it, each on its own: neighbours stay
    neighbours.
    """
    name = ADJACENCIES[adjacency][0]
    parts = []
    for m, (part, bound) in enumerate(zip(problem.parts, bounds, strict=True)):
        if clip_data and np.isfinite(bound):  # whatever the others are: one of them must not decide it for all
            parts.append(_clipped(part, adjacency, bound))
        elif float(_sizes(part, adjacency).max(initial=0.0)) <= bound * (1.0 + ROUNDING):
            parts.append(part)
        else:
            raise PrivacyError(
                f"{name}={bound:g} does not hold: parts[{m}] has a larger {name.removesuffix('_bound')}. Pass a public "
                "bound of what the data may be, not one read off them, scale the columns, or pass clip_data=True"
            )
    return tuple(parts)


def neighbours(adjacency: str, bounds: tuple[float, ...], held: bool) -> str:
    """Return the relation in words: the change that one neighbour may make."""
    each = sorted(set(bounds))
    bound = f"{each[0]:g}" if len(each) == 1 else ", ".join(f"{one:g}" for one in bounds)
    words = ADJACENCIES[adjacency][1].format(parties=len(bounds), bound=bound)
    return f"{words}, and one label flipped" if held else f"{words}; labels are public"


def _sizes(part: Part, adjacency: str) -> Array:
    """Return the norms of rows or columns, or the largest absolute entry."""
    if adjacency == "cell":
        entries = part.data if sparse.issparse(part) else part
        return np.array([np.abs(entries).max(initial=0.0)])
    return row_norms(_turned(part) if adjacency == "column" else part)


def _clipped(part: Part, adjacency: str, bound: float) -> Part:
    if adjacency == "cell":
        if not sparse.issparse(part):
            return np.clip(part, -bound, bound)
        cut = part.copy()
        cut.data = np.clip(cut.data, -bound, bound)
        return cut
    return _turned(shortened(_turned(part), bound)) if adjacency == "column" else shortened(part, bound)


def _turned(part: Part) -> Part:
    return part.T if isinstance(part, np.ndarray) else sparse.csr_array(part.T)

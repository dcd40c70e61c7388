"""Penalties as text and in files: every model reads them here, so that a text means one thing.

A text is the whole penalty, its weight first: `l1:0.2` is .2 ||x||_1, and R(1) of `elastic-net:0.1` is .1 (.5 + .25) =
.075. A weight that is left out is 1. A model with a weight of its own multiplies the whole by it.

Another package adds a penalty by a class in the entry-point group `cvxpriv.penalties`; the numbers of its text are the
arguments of the class.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cvxpriv.errors import ModelError, suggest
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import extension, extensions
from cvxpriv.penalties.concave import MCP, SCAD, CappedL1
from cvxpriv.penalties.contract import CONVEX_STEPS, Penalty, require_penalty
from cvxpriv.penalties.convex import L1, L2, Box, ElasticNet, GroupLasso, Within

#: Makers by name, with the names of their numbers and how many of these have no default.
FAMILIES: dict[str, tuple[Callable[..., Penalty], tuple[str, ...], int]] = {
    "none": (lambda: L2(0.0), (), 0),
    "l2": (L2, ("lam",), 0),
    "l1": (L1, ("lam",), 0),
    "elastic-net": (ElasticNet, ("lam", "ratio"), 0),
    "mcp": (MCP, ("lam", "alpha"), 1),
    "scad": (SCAD, ("lam", "a"), 1),
    "capped-l1": (CappedL1, ("lam", "cap"), 1),
    "nonneg": (Box, (), 0),
    "box": (Box, ("low", "high"), 2),
}
GROUP = "cvxpriv.penalties"
_CLASSES: dict[str, type[Penalty]] = {
    kind.__name__: kind for kind in (MCP, SCAD, CappedL1, ElasticNet, GroupLasso, Box, Within)
}


@door
def penalty_named(text: str) -> Penalty:
    """Return the penalty that a text like `mcp:0.05:3` names; numbers left out take their default.

    Raises
    ------
    ModelError
        There is no such penalty, or its numbers are not valid.

    Examples
    --------
    >>> penalty_named("scad:0.1")
    SCAD(lam=0.1, a=3.7)
    """
    family, *numbers = text.split(":")
    if family in FAMILIES:
        make, names, least = FAMILIES[family]
    elif family in extensions(GROUP):
        make, names, least = _described(extension(GROUP, family))
    else:
        raise ModelError(f"penalty={text!r} is not known: {suggest(family, {*FAMILIES, *extensions(GROUP)})}")
    shown = ":".join((family, *(f"<{name}>" for name in names)))
    if not least <= len(numbers) <= len(names):
        raise ModelError(f"penalty={text!r} has {len(numbers)} numbers: write {shown}")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ModelError(f"penalty={text!r} holds something that is no number: write {shown}") from None
    return make(*values)


def _described(kind: Callable[..., Penalty]) -> tuple[Callable[..., Penalty], tuple[str, ...], int]:
    """Return a maker with the names of its numbers, and the number of those without a default."""
    parameters = inspect.signature(kind).parameters.values()
    required = sum(one.default is inspect.Parameter.empty for one in parameters)
    return kind, tuple(one.name for one in parameters), required


@door
def convex_penalty(penalty: str | Penalty) -> Penalty:
    """Return the penalty of a text, or the object, for a method that needs it convex and in DCP form.

    Raises
    ------
    ModelError
        There is no such penalty, it lacks a part of the contract, or it is not convex.
    """
    chosen = penalty_named(penalty) if isinstance(penalty, str) else penalty
    require_penalty(chosen, CONVEX_STEPS)
    if chosen.weak_convexity > 0.0:
        raise ModelError(f"penalty={chosen!r} is not convex, as this method needs it: choose another, or ISTDP")
    return chosen


def penalty_record(penalty: Penalty) -> dict[str, Any]:
    """Return a penalty as its class's name and its numbers, with every digit, for a file."""
    kind = type(penalty)
    own = kind.__name__ if _CLASSES.get(kind.__name__) is kind else None
    name = own or next((name for name in extensions(GROUP) if extension(GROUP, name) is kind), None)
    if name is None:
        raise ModelError(
            f"penalty={penalty!r} is code and cannot be saved: save run.coefficients, or register its class "
            f"in the entry-point group {GROUP}"
        )
    return {"kind": name, **{part: _plain(value) for part, value in vars(penalty).items()}}


def penalty_of(record: Mapping[str, Any]) -> Penalty:
    """Return the penalty that `penalty_record` wrote.

    >>> penalty_of(penalty_record(MCP(0.1 + 0.2, 3.0))).lam
    0.30000000000000004
    """
    parts = {name: _part(part) for name, part in record.items() if name != "kind"}
    kind = record["kind"]
    return (_CLASSES[kind] if kind in _CLASSES else extension(GROUP, kind))(**parts)


def _plain(part: Any) -> Any:
    """Return a part of a penalty as JSON holds it, which has no infinity."""
    if isinstance(part, Penalty):
        return penalty_record(part)
    return str(part) if isinstance(part, float) and not np.isfinite(part) else part


def _part(part: Any) -> Any:
    if isinstance(part, Mapping):
        return penalty_of(part)
    return float(part) if isinstance(part, str) else part

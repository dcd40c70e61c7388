"""Penalties by the text that the command line takes."""

from __future__ import annotations

from collections.abc import Callable

from cvxpriv.errors import ModelError, suggest

from .capped_l1 import CappedL1
from .contract import Penalty
from .elastic_net import L1, L2, ElasticNet
from .mcp import MCP
from .scad import SCAD

__all__ = ["penalty_named"]

#: Name to maker and the names of its numbers, as the command line writes them: `mcp:0.05:3`.
FAMILIES: dict[str, tuple[Callable[..., Penalty], tuple[str, ...]]] = {
    "mcp": (MCP, ("lam", "alpha")),
    "scad": (SCAD, ("lam", "a")),
    "capped-l1": (CappedL1, ("lam", "cap")),
    "elastic-net": (ElasticNet, ("lam", "ratio")),
    "l1": (L1, ("lam",)),
    "l2": (L2, ("lam",)),
}


def penalty_named(text: str) -> Penalty:
    """Return the penalty that a text like `mcp:0.05:3` names; numbers left out take their default.

    Raises
    ------
    ModelError
        There is no such penalty, or its numbers are none.

    Examples
    --------
    >>> penalty_named("scad:0.1")
    SCAD(lam=0.1, a=3.7)
    """
    family, *numbers = text.split(":")
    if family not in FAMILIES:
        raise ModelError(f"penalty={text!r} is not known: {suggest(family, FAMILIES)}")
    make, names = FAMILIES[family]
    shown = ":".join((family, *(f"<{name}>" for name in names)))
    if not 1 <= len(numbers) <= len(names):
        raise ModelError(f"penalty={text!r} has {len(numbers)} numbers: write {shown}")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ModelError(f"penalty={text!r} holds something that is no number: write {shown}") from None
    return make(*values)

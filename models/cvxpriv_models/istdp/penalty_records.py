"""Penalties in a file: the class's name and its numbers, with every digit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvxpriv.errors import ModelError

from .penalties import MCP, SCAD, CappedL1, ElasticNet, Penalty

__all__ = ["penalty_of", "penalty_record"]

_CLASSES: dict[str, type[Penalty]] = {"MCP": MCP, "SCAD": SCAD, "CappedL1": CappedL1, "ElasticNet": ElasticNet}


def penalty_record(penalty: Penalty) -> dict[str, Any]:
    """Return a penalty as its class's name and its numbers, for a file.

    Raises
    ------
    ModelError
        It is a user's own: that is code.
    """
    kind = type(penalty)
    if _CLASSES.get(kind.__name__) is not kind:
        raise ModelError(f"penalty={penalty!r} is code and cannot be saved: save run.coefficients instead")
    return {"penalty": kind.__name__, **vars(penalty)}


def penalty_of(record: Mapping[str, Any]) -> Penalty:
    """Return the penalty that `penalty_record` wrote.

    Examples
    --------
    >>> penalty_of(penalty_record(MCP(0.1 + 0.2, 3.0))).lam
    0.30000000000000004
    """
    numbers = dict(record)
    return _CLASSES[numbers.pop("penalty")](**numbers)

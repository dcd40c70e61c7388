"""Expressions and constraints rebuilt with other parts in the place of some."""

from collections.abc import Callable
from typing import Any

Rebuild = Callable[[Any], Any]


def rebuilder(change: Callable[[Any, Rebuild], Any]) -> Rebuild:
    """Return a function that rebuilds expressions and constraints; those without a changed part stay themselves.

    `change`: Returns what takes the place of a node, given this function for the node's own parts, or None where only
    its arguments may change. It is asked once for each node.
    """
    seen: dict[int, tuple[Any, Any]] = {}  # with the nodes themselves, so that none is freed and its number reused

    def rebuilt(node: Any) -> Any:
        if id(node) not in seen:
            changed = change(node, rebuilt)
            seen[id(node)] = node, _with_parts(node, rebuilt) if changed is None else changed
        return seen[id(node)][1]

    return rebuilt


def _with_parts(node: Any, rebuilt: Rebuild) -> Any:
    args = [rebuilt(arg) for arg in node.args]
    same = all(new is old for new, old in zip(args, node.args, strict=True))
    return node if same else node.copy(args)

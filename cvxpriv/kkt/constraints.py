"""Violations of a problem's constraints, which need no derivative."""

from __future__ import annotations

from collections.abc import Mapping

import cvxpy as cp

from cvxpriv.kkt.written import Written


def violations(problem: cp.Problem, names: Mapping[str, cp.Constraint]) -> dict[str, float]:
    """Return the worst violation of each of a problem's constraints at its variables' values.

    It is infinite where a constraint's function has no value at the point.
    """
    written = Written.of(problem, names)
    found = written.by_name(written.violation(written.values(written.state())))
    return {name: found[name] for name in written.names[: written.own]}

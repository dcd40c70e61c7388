"""What a block tells cvxpy: a DCP problem whose every part has a name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np

from cvxpriv.errors import ModelError
from cvxpriv.state import Array

__all__ = ["Declaration", "NotDPPWarning", "Rule", "require_dcp", "with_rule"]

#: A user's constraint: takes the whole mechanism as a cvxpy expression, returns one constraint or several.
Rule = Callable[[cp.Expression], "cp.Constraint | Iterable[cp.Constraint]"]


class NotDPPWarning(UserWarning):
    """A block is DCP but not DPP: cvxpy compiles it again at every solve."""


@dataclass(frozen=True)
class Declaration:
    """What a block tells cvxpy.

    Attributes
    ----------
    objective : cvxpy.Minimize or cvxpy.Maximize
    constraints : mapping of str to cvxpy.Constraint
        Named, and explicit: a bound given as a variable's attribute has no multiplier.
    variables, parameters : mapping of str to cvxpy.Variable, cvxpy.Parameter
    mechanism : cvxpy.Expression, optional
        The whole mechanism, row-stochastic, which the rules of `Block.constrain` receive.
    """

    objective: cp.Minimize | cp.Maximize
    constraints: Mapping[str, cp.Constraint]
    variables: Mapping[str, cp.Variable]
    parameters: Mapping[str, cp.Parameter] = field(default_factory=dict)
    mechanism: cp.Expression | None = None

    @cached_property
    def problem(self) -> cp.Problem:
        """The cvxpy problem; one object, since another would be compiled again."""
        return cp.Problem(self.objective, list(self.constraints.values()))

    def values(self) -> dict[str, Array]:
        """Return the variables' current values by name."""
        return {name: _dense(variable.value) for name, variable in self.variables.items()}

    def duals(self) -> dict[str, Any]:
        """Return the constraints' multipliers by name (a list for a cone constraint with several)."""
        return {name: constraint.dual_value for name, constraint in self.constraints.items()}


def _dense(value: Any) -> Array:
    """Return a variable's value as an array; that of a diagonal variable is sparse."""
    dense = value.toarray() if hasattr(value, "toarray") else value
    return np.array(dense, dtype=np.float64)


def with_rule(declaration: Declaration, block: str, name: str, rule: Rule) -> Declaration:
    """Return the declaration of a block with a user's constraint added.

    Raises
    ------
    ModelError
        The block has no mechanism, or the rule returns something that is not a constraint.
    """
    if declaration.mechanism is None:
        raise ModelError(f"block {block!r} has no mechanism to constrain: constrain the block that designs it")
    returned = rule(declaration.mechanism)
    several = [returned] if isinstance(returned, cp.Constraint) else returned
    if not isinstance(several, Iterable) or not all(isinstance(one, cp.Constraint) for one in several):
        raise ModelError(
            f"constraint {name!r} returned {type(returned).__name__}, not a cvxpy constraint or a list of them: "
            "a rule takes the mechanism and returns, for example, mechanism >= 0.01"
        )
    several = list(several)
    labels = [name] if len(several) == 1 else [f"{name}[{index}]" for index in range(len(several))]
    return replace(declaration, constraints={**declaration.constraints, **dict(zip(labels, several, strict=True))})


def require_dcp(block: str, declaration: Declaration) -> None:
    """Refuse a declaration that is not DCP, naming the part; warn when it is not DPP.

    Raises
    ------
    ModelError
        A part is not DCP.
    """
    parts: dict[str, Any] = {"objective": declaration.objective, **declaration.constraints}
    wrong = [name for name, part in parts.items() if not part.is_dcp()]
    if wrong:
        shown = "; ".join(f"{name}: {parts[name]}" for name in wrong)
        raise ModelError(
            f"block {block!r} is not DCP in {shown}: rewrite it with cvxpy's atoms (https://dcp.stanford.edu)"
        )
    if not all(part.is_dcp(dpp=True) for part in parts.values()):
        warnings.warn(
            f"block {block!r} is not DPP and is compiled again at every solve: move nonlinear functions of Parameters "
            "into the Parameters' values",
            NotDPPWarning,
            stacklevel=4,
        )

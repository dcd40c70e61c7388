"""The declaration of a block: a DCP problem whose every part has a name, and the constraints that a user adds to it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np

from cvxpriv.errors import CvxprivError, ModelError, shown, warn
from cvxpriv.kkt.conditions import Duals, Residuals, of_written, residuals
from cvxpriv.kkt.coordinates import dense
from cvxpriv.kkt.plain import real_and_continuous
from cvxpriv.kkt.written import Written
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.sizes import LARGEST_TENSOR
from cvxpriv.solvers.chain import FARTHEST, Unusable

if TYPE_CHECKING:
    from cvxpriv.tables.joint import JointTable

#: A user's constraint: it takes the whole mechanism as a cvxpy expression and, if it has a second argument, a `Known`;
#: it returns one constraint or several.
Constraint = Callable[..., "cp.Constraint | Iterable[cp.Constraint]"]

#: Constraints whose violation is arithmetic; that of the other cones is a projection by a solver.
_JUDGED = (cp.constraints.Zero, cp.constraints.NonNeg, cp.constraints.Inequality, cp.constraints.Equality)
SHOWN = 300  # characters of an expression in a message


class NotDPPWarning(UserWarning):
    """A block is DCP but not DPP: cvxpy compiles it again at every solve."""


@door
@dataclass(frozen=True, eq=False)
class Known:
    """The known quantities in the design of a mechanism, for the second argument of a constraint.

    Attributes
    ----------
    prior : ndarray, (|inputs|,)
        Distribution of the mechanism's inputs.
    p_s : ndarray, (|S|,)
        Distribution of the private symbol.
    p_s_given_input : ndarray, (|S|, |inputs|)
        Distributions of the private symbol given the input; columns sum to 1.
    labels : tuple of str
        Labels of the inputs, in the order of the mechanism's rows.
    """

    prior: Array
    p_s: Array
    p_s_given_input: Array
    labels: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, table: JointTable) -> Known:
        """Return the known quantities of a joint table, for a mechanism whose inputs are its public symbols.

        Examples
        --------
        >>> from cvxpriv import JointTable
        >>> Known.of_table(JointTable.from_array([[0.4, 0.1], [0.1, 0.4]])).prior
        array([0.5, 0.5])
        """
        return cls(table.p_x, table.p_s, table.p_s_given_x, table.public.labels)


@door
@dataclass(frozen=True)
class Declaration:
    """The cvxpy problem of a block, with names for its parts.

    Attributes
    ----------
    objective : cvxpy.Minimize or cvxpy.Maximize
    constraints : mapping of str to cvxpy.Constraint
        Constraints by name. They are explicit: a bound given as a variable's attribute has no multiplier.
    variables, parameters : mapping of str to cvxpy.Variable, cvxpy.Parameter
    mechanism : cvxpy.Expression, optional
        The whole mechanism, row-stochastic, for the constraints of `Block.constrain`.
    known : Known, optional
        The known quantities, for constraints with a second argument.
    added : mapping of str to tuple of str
        The user's constraints, with the names of the cvxpy constraints that each returned.
    brought : mapping of str to tuple of str
        The user's constraints that add variables of their own, with these variables' names in `variables`.
    generated : bool
        Whether it was made of a whole problem: its Parameters are not the user's (`warn_not_dpp`).
    """

    objective: cp.Minimize | cp.Maximize
    constraints: Mapping[str, cp.Constraint]
    variables: Mapping[str, cp.Variable]
    parameters: Mapping[str, cp.Parameter] = field(default_factory=dict)
    mechanism: cp.Expression | None = None
    known: Known | None = None
    added: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    brought: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    generated: bool = False

    @cached_property
    def problem(self) -> cp.Problem:
        """The cvxpy problem; one object, since another would be compiled again."""
        return cp.Problem(self.objective, list(self.constraints.values()))

    @property
    def symbolic(self) -> bool:
        """Whether it is compiled once, with its Parameters as symbols; past `LARGEST_TENSOR` each solve compiles it."""
        kinds = self.parameters.values(), self.variables.values()
        return math.prod(sum(int(one.size) for one in several) for several in kinds) <= LARGEST_TENSOR

    @cached_property
    def _written(self) -> Written | None:
        """The problem taken apart once for all values of its Parameters; None where each value needs its own."""
        if not self.symbolic or not self.problem.is_dcp(dpp=True):
            return None
        plain = real_and_continuous(self.problem, self.constraints)
        return None if plain.changed else Written.of(plain.problem, plain.names, symbolic=True)

    def residuals(self, duals: Duals = None, beside: float = 0.0) -> Residuals:
        """Return the exact residuals at the values that variables and Parameters have: see `cvxpriv.kkt.residuals`."""
        if self._written is not None:
            return of_written(self._written.again(), duals, beside=beside)
        return residuals(self.problem, duals=duals, names=self.constraints, beside=beside)

    def give(self, parameters: Values, variables: Values) -> None:
        """Set the values of Parameters and variables by name."""
        for several, values in ((self.parameters, parameters), (self.variables, variables)):
            for name, value in values.items():
                several[name].value = value

    def values(self) -> dict[str, Array]:
        """Return the variables' current values by name."""
        return {name: dense(variable.value).copy() for name, variable in self.variables.items()}

    def duals(self) -> dict[str, Any]:
        """Return the constraints' multipliers by name (a list for a cone constraint with several)."""
        return {name: constraint.dual_value for name, constraint in self.constraints.items()}


def with_constraint(declaration: Declaration, block: str, name: str, constraint: Constraint) -> Declaration:
    """Return the declaration of a block with a user's constraint added.

    Raises ModelError: The block has no mechanism, or as for `constraints_of`.
    """
    if declaration.mechanism is None:
        raise ModelError(f"block {block!r} has no mechanism to constrain: constrain the block that designs it")
    several = constraints_of(name, constraint, declaration.mechanism, declaration.known)
    labels = (name,) if len(several) == 1 else tuple(f"{name}[{index}]" for index in range(len(several)))
    known = {variable.id for variable in declaration.variables.values()}
    own = {one.id: one for part in several for one in part.variables() if one.id not in known}
    names = tuple(f"{name}/own[{index}]" for index in range(len(own)))
    return replace(
        declaration,
        constraints={**declaration.constraints, **dict(zip(labels, several, strict=True))},
        variables={**declaration.variables, **dict(zip(names, (own[key] for key in sorted(own)), strict=True))},
        added={**declaration.added, name: labels},
        brought={**declaration.brought, name: names} if own else declaration.brought,
    )


def constraints_of(
    name: str, constraint: Constraint, mechanism: cp.Expression, known: Known | None
) -> list[cp.Constraint]:
    """Return the cvxpy constraints that a user's constraint returns for a mechanism.

    Raises
    ------
    ModelError
        The constraint takes neither one argument nor two, asks for known quantities where there are none, raises an
        error, returns something that is not a constraint or nothing at all, or adds Parameters without values.
    """
    arguments = (mechanism, known) if _takes_known(name, constraint, known) else (mechanism,)
    try:
        returned = constraint(*arguments)
        several = [returned] if isinstance(returned, cp.Constraint) else returned
        several = list(several) if isinstance(several, Iterable) and not isinstance(several, str) else [several]
    except CvxprivError as error:
        raise type(error)(f"constraint {name!r}: {error}") from error
    except Exception as error:  # a user's function may raise anything
        raise ModelError(
            f"constraint {name!r} raised {type(error).__name__}: {error}; a constraint takes the mechanism, a cvxpy "
            f"expression of shape {mechanism.shape}, and returns, for example, mechanism >= 0.01"
        ) from error
    if not several or not all(isinstance(one, cp.Constraint) for one in several):
        raise ModelError(
            f"constraint {name!r} returned {type(returned).__name__}, not a cvxpy constraint or a list of them: "
            "a constraint takes the mechanism and returns, for example, mechanism >= 0.01"
        )
    _require_parameters(name, several)
    return several


def _takes_known(name: str, constraint: Constraint, known: Known | None) -> bool:
    """Return whether a constraint takes known quantities: it needs two arguments, or the second is `known`."""
    if not callable(constraint):
        raise ModelError(
            f"constraint {shown(name)} is {shown(constraint)}, no function: pass, for example, lambda mechanism: ..."
        )
    try:
        signature = inspect.signature(constraint)
    except (TypeError, ValueError):  # a function in C need not have one
        return False
    places = [one for one in signature.parameters.values() if one.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    needed = [one for one in places if one.default is inspect.Parameter.empty]
    both = len(needed) == 2 or (len(places) > 1 and places[1].name == "known")
    try:
        signature.bind(*((None, None) if both else (None,)))
    except TypeError:
        raise ModelError(
            f"constraint {name!r} takes {signature}: a constraint takes the mechanism, or the mechanism and what "
            "is known; bind other arguments with functools.partial, or give them defaults"
        ) from None
    if known is None and len(needed) == 2:
        raise ModelError(f"constraint {name!r} takes {signature}, but the block knows nothing beside the mechanism")
    return both


def _require_parameters(name: str, constraints: Iterable[cp.Constraint]) -> None:
    for constraint in constraints:
        if empty := [one.name() for one in constraint.parameters() if one.value is None]:
            raise ModelError(f"constraint {name!r} has Parameters without values: set the value of {', '.join(empty)}")


def why_not_dcp(problem: cp.Problem) -> str:
    """Return cvxpy's own reason why a problem is not DCP, in one line; an empty text if it is.

    >>> x = cp.Variable(name="x")
    >>> why_not_dcp(cp.Problem(cp.Minimize(cp.sqrt(x))))
    'The objective is not DCP, even though ... You are trying to minimize a function that is concave.'
    """
    try:
        problem.get_problem_data("CLARABEL")
    except cp.error.DCPError as error:
        reason = " ".join(str(error).removeprefix("Problem does not follow DCP rules. Specifically:").split())
        return reason.partition(" However, the problem does follow")[0]  # nothing here solves DQCP or DGP problems
    return ""


def require_dcp(block: str, declaration: Declaration) -> None:
    """Refuse a declaration that is not DCP, naming the part; warn when it is not DPP.

    Raises ModelError: A part is not DCP; the message gives cvxpy's reason.
    """
    parts: dict[str, Any] = {"objective": declaration.objective, **declaration.constraints}
    wrong = [name for name, part in parts.items() if not part.is_dcp()]
    if wrong:
        shown = "; ".join(f"{name}: {str(parts[name])[:SHOWN]}" for name in wrong)
        raise ModelError(
            f"block {block!r} is not DCP in {shown}: rewrite it with cvxpy's atoms (https://dcp.stanford.edu). "
            f"cvxpy says: {why_not_dcp(declaration.problem)}"
        )
    if not declaration.generated and not all(part.is_dcp(dpp=True) for part in parts.values()):
        warn(
            f"block {block!r} is not DPP and is compiled again at every solve: move nonlinear functions of Parameters "
            "into the Parameters' values",
            NotDPPWarning,
        )


def warn_not_dpp(generated: Mapping[str, Declaration]) -> None:
    """Warn once of all generated blocks that are not DPP."""
    slow = [name for name, one in generated.items() if not one.problem.is_dcp(dpp=True)]
    if slow:
        warn(
            f"cvxpy compiles {', '.join(map(repr, slow))} again at every solve (not DPP): values that are held stand "
            "in a product of several factors, or in a nonlinear function",
            NotDPPWarning,
        )


def require_usable(declaration: Declaration, values: Values, tolerance: float = 0.0) -> None:
    """Refuse a solver's values that are no point, or far from the constraints. Parameters hold their values.

    Raises Unusable: A value is missing or not a number, or a constraint is violated by more than `FARTHEST`, or ten
    times the requested tolerance, relative to its terms.
    """
    farthest = max(FARTHEST, 10.0 * tolerance)
    for name, value in values.items():
        if value is None or not np.isfinite(dense(value)).all():
            raise Unusable(f"{name} holds no numbers")
        if name in declaration.variables:
            declaration.variables[name].save_value(value)
    for name, constraint in declaration.constraints.items():
        if isinstance(constraint, _JUDGED):
            sides = [float(np.max(np.abs(dense(side.value)), initial=0.0)) for side in constraint.args]
            violated = float(np.max(constraint.violation(), initial=0.0))
            if not violated <= farthest * (1.0 + sum(sides)):
                raise Unusable(f"its point violates {name} by {violated:.1e}")

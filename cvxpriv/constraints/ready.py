"""The contract of a ready constraint: its cvxpy form, the same property of an array, and a name for messages.

A constraint that couples rows of a mechanism asks for a block that changes all rows at once (`couples_rows`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from cvxpriv.blocks.declaration import Constraint, Known, constraints_of, why_not_dcp
from cvxpriv.errors import CvxprivError, DataError, ModelError, shown
from cvxpriv.kkt.conic.program import ConeProgram
from cvxpriv.numerics.arguments import finite_double, real_numbers
from cvxpriv.numerics.arrays import Array
from cvxpriv.numerics.doors import door


@door
def couples_rows(
    constraint: Constraint, shape: tuple[int, int], known: Known | None = None, name: str = "constraint"
) -> bool:
    """Return whether a constraint's cone form connects entries of two rows of a mechanism.

    The constraint is compiled on a free variable. Cones connect the variables in them, also through auxiliary
    variables; a constraint couples rows if a connected part holds entries of two. The form decides, not the meaning:
    `cp.max(mechanism) <= 0.5` has one auxiliary variable for all rows and couples them, `mechanism <= 0.5` does not.

    Parameters
    ----------
    constraint : callable
    shape : (int, int)
        Shape of the mechanism, (|inputs|, |outputs|).
    known : Known, optional
    name : str
        Name of the constraint in messages.

    Raises
    ------
    ModelError
        As `Block.constrain`, or the constraint is not DCP.

    Examples
    --------
    >>> couples_rows(lambda mechanism: mechanism >= 0.01, (3, 4))
    False
    >>> couples_rows(lambda mechanism: cp.sum(mechanism, axis=0) <= 1.5, (3, 4))
    True
    """
    mechanism = cp.Variable(shape, name="mechanism")
    problem = cp.Problem(cp.Minimize(0), constraints_of(name, constraint, mechanism, known))
    if not problem.is_dcp():
        raise ModelError(f"constraint {name!r} is not DCP. cvxpy says: {why_not_dcp(problem)}")
    if not problem.variables():
        return False
    program = ConeProgram.from_problem(problem, "CLARABEL")
    sizes = np.diff([*program.layout.starts, program.layout.size])
    cone_of_row = np.repeat(np.arange(sizes.size), sizes)
    entries = program.A.tocoo()
    used = entries.data != 0.0
    cones, width = sizes.size, program.c.size
    links = sp.coo_array(
        (np.ones(int(used.sum())), (cone_of_row[entries.row[used]], cones + entries.col[used])),
        shape=(cones + width, cones + width),
    )
    _, part = connected_components(links, directed=False)
    first = cones + _first_column(program, mechanism)
    rows = np.indices(shape)[0].ravel(order="F")
    held = np.unique(np.column_stack([part[first : first + mechanism.size], rows]), axis=0)[:, 0]
    return np.unique(held).size < held.size  # a part that holds entries of two rows stands there twice


def _first_column(program: ConeProgram, variable: cp.Variable) -> int:
    """Return where a variable begins among a program's columns."""
    names = [name for name, _ in program.columns]
    return sum(size for _, size in program.columns[: names.index(variable.name())])


#: Largest loss in nats, for doubles also hold the square of its ratio, and its inverse.
LARGEST_LOSS = 300.0
Form = Callable[[cp.Expression, "Known | None"], "list[cp.Constraint]"]
Excess = Callable[[Array, "Known | None"], float]


@dataclass(frozen=True)
class _Excess:
    """An excess whose errors are typed: a function of another package may raise anything, also where nothing is known.

    `name`: Name of the constraint.
    """

    name: str
    of: Excess

    def __call__(self, mechanism: Array, known: Known | None) -> float:
        try:
            return self.of(mechanism, known)
        except CvxprivError:
            raise
        except Exception as error:
            without = "" if known is not None else ", where nothing is known beside the mechanism"
            raise ModelError(f"the excess of {self.name} raised {type(error).__name__}{without}: {error}") from error


@door
@dataclass(frozen=True, eq=False)
class ReadyConstraint:
    """A constraint on a mechanism P(U|Y), (|inputs|, |outputs|).

    Attributes
    ----------
    name : str
        The call that made it.
    form : callable
        Maps (mechanism as a cvxpy expression, `Known` or None) to a list of cvxpy constraints.
    excess : callable
        Maps (mechanism as an array, `Known` or None) to the amount by which the constraint is missed; not above 0 where
        it holds.
    kind, parameters : str, mapping
        The function that made it, by name, and its arguments: a file keeps these (`cvxpriv.constraints.documents`).
    """

    name: str
    form: Form = field(repr=False)
    excess: Excess = field(repr=False)
    kind: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.excess, _Excess):
            object.__setattr__(self, "excess", _Excess(self.name, self.excess))

    def __call__(self, mechanism: cp.Expression, known: Known | None = None) -> list[cp.Constraint]:
        """Return the cvxpy constraints."""
        return self.form(mechanism, known)

    def violation(self, mechanism: ArrayLike, known: Known | None = None) -> float:
        """Return the amount by which a mechanism, (|inputs|, |outputs|), misses the constraint; 0 where it holds.

        The function that makes the constraint states the unit.

        Raises
        ------
        ModelError
            As for a call.
        """
        array = np.asarray(mechanism, dtype=float)
        self.form(cp.Constant(array), known)  # the same questions of shape
        return max(0.0, float(self.excess(array, known)))

    def __repr__(self) -> str:
        return self.name


def ready(
    name: str, form: Callable[..., list[cp.Constraint]], excess: Callable[..., float], *arguments: Any
) -> ReadyConstraint:
    """Return a constraint whose form and excess both take the arguments before the mechanism and what is known."""
    return ReadyConstraint(name, partial(form, *arguments), partial(excess, *arguments))


def number(argument: str, value: object, low: float, high: float, remedy: str) -> float:
    """Return an argument as a finite number in [low, high].

    Raises ModelError: It is not.
    """
    given = finite_double(value) if isinstance(value, Real) else np.nan
    if not low <= given <= high:
        wanted = f" from {low:g} to {high:g}" if np.isfinite(high) else f" >= {low:g}" if np.isfinite(low) else ""
        raise ModelError(f"{argument}={shown(value)}: expected a finite number{wanted}; {remedy}")
    return given


def finite_matrix(argument: str, values: ArrayLike, what: str) -> Array:
    """Return an argument as a matrix of finite numbers."""
    matrix = real_numbers(values, argument)
    if matrix.ndim != 2 or matrix.size == 0:
        raise DataError(f"{argument} has shape {matrix.shape}: expected {what}, (|inputs|, |outputs|)")
    if not np.isfinite(matrix).all():
        row, column = map(int, np.argwhere(~np.isfinite(matrix))[0])
        raise DataError(f"{argument}[{row}, {column}]={matrix[row, column]}: expected a finite number; correct it")
    return matrix


def require_shape(argument: str, shape: tuple[int, ...], mechanism: cp.Expression) -> None:
    """Refuse a matrix of another shape than the mechanism's."""
    if shape != mechanism.shape:
        raise ModelError(
            f"{argument} has shape {shape}, the mechanism {mechanism.shape}: give one row per input and one column "
            "per output"
        )


def prior_of(known: Known | None, constraint: str, inputs: int) -> Array:
    """Return the distribution of the mechanism's inputs, (|inputs|,)."""
    if known is None:
        raise ModelError(f"{constraint} needs the prior of the inputs, and none is known: pass Known(prior=...)")
    if known.prior.shape != (inputs,):
        raise ModelError(f"the prior has shape {known.prior.shape}, the mechanism {inputs} rows: give one number a row")
    return known.prior


def known_of(known: Known | None, constraint: str) -> Known:
    """Return the known quantities, for a constraint that needs them."""
    if known is None:
        raise ModelError(f"{constraint} needs what is known of the table, and nothing is: pass known=Known(...)")
    return known


def channel_of(of: str, known: Known | None, constraint: str, inputs: int) -> tuple[Array | None, Array]:
    """Return P(y|w), (|W|, |inputs|), with P(u|w) = sum_y P(y|w) p(u|y), and P(w); None where W is the input."""
    prior = prior_of(known, constraint, inputs)
    if of == "input":
        return None, prior
    table = known_of(known, constraint)
    if (table.p_s <= 0.0).any():
        raise ModelError(
            f"{constraint}: private symbol {int(np.argmin(table.p_s))} has no mass; leave it out of the table"
        )
    return table.p_s_given_input * prior / table.p_s[:, None], table.p_s


def option(argument: str, value: object, choices: tuple[str, ...]) -> str:
    """Return an argument that is one of a few words.

    Raises ModelError: It is none of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise ModelError(f"{argument}={shown(value)}: expected one of {', '.join(map(repr, choices))}")
    return value


def ratio(epsilon: Any) -> Any:
    """Return exp(epsilon), the ratio of probabilities that a loss allows, where a loss beyond 300 counts as 300."""
    return np.exp(np.minimum(epsilon, LARGEST_LOSS))


def pairs(inputs: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the numbers of all ordered pairs of different inputs."""
    if inputs < 2:
        raise ModelError("the mechanism has one input: a constraint on pairs of inputs says nothing; leave it out")
    one, other = np.nonzero(~np.eye(inputs, dtype=bool))
    return one, other

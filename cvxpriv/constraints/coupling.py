"""A test, on the cone form, of whether a constraint ties rows of a mechanism together.

Blocks that change one row at a time stall short of the optimum under a constraint that couples rows: each row alone is
at its bound. Such a constraint asks for a block that changes all rows at once.
"""

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxpriv.blocks.declaration import Constraint, Known, constraints_of, why_not_dcp
from cvxpriv.errors import ModelError
from cvxpriv.kkt.conic.program import ConeProgram
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

"""Ready constraints on a mechanism P(U|Y), (|inputs|, |outputs|): each function returns a constraint for `constrain`.

    model.constrain("ldp", cpv.constraints.local_differential_privacy(1.0))

A constraint can also be asked of a mechanism given as an array: `constraint.violation(mechanism, known)` says by how
much it is missed. `parse` makes constraints from text, for the command line.
"""

from cvxpriv.constraints.cells import fixed, floor, forbidden
from cvxpriv.constraints.coupling import couples_rows
from cvxpriv.constraints.order import monotone, symmetric
from cvxpriv.constraints.privacy import local_differential_privacy, maximal_leakage, total_variation_to_prior
from cvxpriv.constraints.ready import ReadyConstraint
from cvxpriv.constraints.text import FORMS, parse
from cvxpriv.constraints.utility import expected_distortion

__all__ = [
    "FORMS",
    "ReadyConstraint",
    "couples_rows",
    "expected_distortion",
    "fixed",
    "floor",
    "forbidden",
    "local_differential_privacy",
    "maximal_leakage",
    "monotone",
    "parse",
    "symmetric",
    "total_variation_to_prior",
]

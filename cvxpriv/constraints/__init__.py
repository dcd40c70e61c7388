"""Ready constraints on a mechanism P(U|Y), (|inputs|, |outputs|): each function returns a constraint for `constrain`.

    model.constrain("ldp", cpv.constraints.local_differential_privacy(1.0))

A constraint can also be asked of a mechanism given as an array: `constraint.violation(mechanism, known)` says by how
much it is missed. `parse` makes constraints from text, for the command line; `to_document` and `from_document` keep
them in files.
"""

from cvxpriv.constraints.cells import fixed, floor, forbidden
from cvxpriv.constraints.documents import from_document, to_document
from cvxpriv.constraints.inference import (
    bayes_vulnerability,
    f_information,
    group_fairness,
    local_information_privacy,
    pointwise_leakage,
)
from cvxpriv.constraints.order import metric_differential_privacy, monotone, renyi_differential_privacy, symmetric
from cvxpriv.constraints.privacy import local_differential_privacy, maximal_leakage, total_variation_to_prior
from cvxpriv.constraints.ready import ReadyConstraint, couples_rows
from cvxpriv.constraints.text import FORMS, parse
from cvxpriv.constraints.utility import expected_distortion, output_marginal

__all__ = [
    "FORMS",
    "ReadyConstraint",
    "bayes_vulnerability",
    "couples_rows",
    "expected_distortion",
    "f_information",
    "fixed",
    "floor",
    "forbidden",
    "from_document",
    "group_fairness",
    "local_differential_privacy",
    "local_information_privacy",
    "maximal_leakage",
    "metric_differential_privacy",
    "monotone",
    "output_marginal",
    "parse",
    "pointwise_leakage",
    "renyi_differential_privacy",
    "symmetric",
    "to_document",
    "total_variation_to_prior",
]

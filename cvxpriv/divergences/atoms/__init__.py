"""Homogeneous functions of (p, q) with known curvature: the parts of p f(q/p).

Each atom has its value and derivatives as numbers, without cancellation in the second derivative, and its cone form in
cvxpy. `cvxpriv.divergences.derivation` makes them from the tree of f.
"""

from cvxpriv.divergences.atoms.base import Affine, At, Atom, P, Q, Total, Writer
from cvxpriv.divergences.atoms.branches import Largest, Pieces
from cvxpriv.divergences.atoms.exponentials import Entropy, Exponential, LogSumExp
from cvxpriv.divergences.atoms.powers import Gap, Mean, Norm

__all__ = [
    "Affine",
    "At",
    "Atom",
    "Entropy",
    "Exponential",
    "Gap",
    "Largest",
    "LogSumExp",
    "Mean",
    "Norm",
    "P",
    "Pieces",
    "Q",
    "Total",
    "Writer",
]

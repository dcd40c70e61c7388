"""f-divergences: their values, derivatives, limits and DCP forms, by name, by one line of text, or a user's own."""

from cvxpriv.divergences.definition import FDivergence
from cvxpriv.divergences.registry import divergence, names

__all__ = ["FDivergence", "divergence", "names"]

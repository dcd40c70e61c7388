"""Verification of a divergence against the models' assumptions: a table of verdicts with their worst points."""

from cvxpriv.divergences.verification.findings import Finding, Verification

__all__ = ["Finding", "Verification"]

"""Verification: is a divergence what a model takes it for? A table of verdicts, each with its worst point."""

from cvxpriv.divergences.verification.findings import Finding, Verification

__all__ = ["Finding", "Verification"]

"""Mutants that mean the same as the code, or that change only speed: each with the reason that no test can tell.

Key: the module; then the function and the line as the mutant has it.
"""

from __future__ import annotations

__all__ = ["EQUIVALENT"]

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {}

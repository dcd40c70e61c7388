"""The readers of a page: people of the house, or others."""

__all__ = ["INTERNAL", "PAGES", "SHAREABLE"]

INTERNAL, SHAREABLE = "internal", "shareable"
PAGES = (INTERNAL, SHAREABLE)
"""The pages that a report can be."""

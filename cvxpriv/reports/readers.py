"""The readers of a page: people of the house, or others."""

INTERNAL, SHAREABLE = "internal", "shareable"
PAGES = (INTERNAL, SHAREABLE)
"""The pages that a report can be."""

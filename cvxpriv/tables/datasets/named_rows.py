"""Rows that commands know by name, with public knowledge of their columns.

Ranges and values come from the files' own descriptions (adult.names, german.doc, ProPublica's notebook) or are wide
round numbers; none was read off the rows. A private fit may rest on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cvxpriv.numerics.packages import pd
from cvxpriv.tables.datasets.raw_rows import CATEGORIES, COLUMNS, GERMAN_COLUMNS, load_adult, load_compas, load_german


@dataclass(frozen=True)
class NamedRows:
    """A set of rows.

    `label`, `positive`, `negative`: The column to predict, and its values for class 1 and for class -1.
    `columns`: The columns to predict from, where none are named.
    `ranges`: (float, float).
    """

    title: str
    load: Callable[[], pd.DataFrame]
    label: str
    positive: str
    negative: str
    columns: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float]]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _all_but(columns: tuple[str, ...], *left_out: str) -> tuple[str, ...]:
    return tuple(name for name in columns if name not in left_out)


def _codes(prefix: str, last: int, first: int = 1) -> tuple[str, ...]:
    """Return codes such as A11 to A14, as german.doc numbers the values of an attribute."""
    return tuple(f"{prefix}{number}" for number in range(first, last + 1))


ADULT = NamedRows(
    title="Adult (UCI; Becker and Kohavi 1996)",
    load=load_adult,
    label="income",
    positive=">50K",
    negative="<=50K",
    columns=_all_but(COLUMNS, "fnlwgt", "education", "income"),
    # The survey codes ages from 17 to 90, hours from 1 to 99, sixteen degrees, and gains up to 99,999.
    ranges={
        "age": (17, 90),
        "fnlwgt": (0, 2e6),
        "education-num": (1, 16),
        "capital-gain": (0, 1e5),
        "capital-loss": (0, 5000),
        "hours-per-week": (1, 99),
    },
    categories=CATEGORIES,
)
_COUNTED = ("juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
COMPAS = NamedRows(
    title="COMPAS (ProPublica; Larson et al. 2016)",
    load=load_compas,
    label="two_year_recid",
    positive="1",
    negative="0",
    columns=("age", "sex", *_COUNTED, "c_charge_degree"),
    ranges={"age": (18, 100), **dict.fromkeys(_COUNTED, (0, 20)), "priors_count": (0, 50)},
    categories={
        "sex": ("Female", "Male"),
        "race": ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"),
        "c_charge_degree": ("F", "M"),
    },
)
GERMAN = NamedRows(
    title="German credit (UCI; Hofmann 1994)",
    load=load_german,
    label="credit",
    positive="bad",
    negative="good",
    columns=_all_but(
        GERMAN_COLUMNS, "personal_status_sex", "residence_since", "people_liable", "foreign_worker", "credit"
    ),
    ranges={
        "duration": (0, 72),
        "amount": (0, 20000),
        "installment_rate": (1, 4),
        "residence_since": (1, 4),
        "age": (18, 100),
        "existing_credits": (1, 4),
        "people_liable": (1, 2),
    },
    categories={
        "status": _codes("A1", 4),
        "credit_history": _codes("A3", 4, 0),
        "purpose": _codes("A4", 10, 0),
        "savings": _codes("A6", 5),
        "employment_since": _codes("A7", 5),
        "personal_status_sex": _codes("A9", 5),
        "other_debtors": _codes("A10", 3),
        "property": _codes("A12", 4),
        "other_plans": _codes("A14", 3),
        "housing": _codes("A15", 3),
        "job": _codes("A17", 4),
        "telephone": _codes("A19", 2),
        "foreign_worker": _codes("A20", 2),
    },
)

NAMED: Mapping[str, NamedRows] = {"adult": ADULT, "compas": COMPAS, "german": GERMAN}
"""The sets of rows by name."""

"""The page for others: what of facts may be shown to people who may not see the data.

Where noise protects the data (`Facts.published`), everything on the page is computed from noisy counts, and the page
shows all. Elsewhere a fact or a section is shown only as far as its author said: the page withholds the rest.

- Numbers are cut to two significant digits: with all digits they are functions of the table that few tables share.
- Of a section only its `shared` part is shown. Matrices, exact counts, histories and options are not.
"""

from __future__ import annotations

import math
from dataclasses import replace

from cvxpriv.errors import DataError, suggest
from cvxpriv.reports.facts import Fact, Facts
from cvxpriv.reports.formatting import is_number
from cvxpriv.reports.readers import INTERNAL, PAGES, SHAREABLE

DIGITS = 2
"""Number of significant digits on a page for others."""
WORDS = frozenset({"private", "public", "publish", "divergence"})
"""Facts about the data that are words and no secret: the columns, and what may be done with the result."""
WARNING = "Private: do not publish. This page is computed from private data without noise."
CAUTION = (
    "This page is made to be handed on, and is not differentially private: it is computed from private data without "
    "noise. It withholds the mechanism, exact counts, and all digits but two; counts of 1 to 5 are neither shown nor "
    "given away by subtraction."
)
OPEN = "Noise was put into the counts first: everything on this page may be published."


def for_page(facts: Facts, page: str) -> Facts:
    """Return the facts as a page for some readers shows them.

    `page`: {"internal", "shareable"}.
    Raises DataError: Unknown page.

    >>> facts = Facts("Funnel", facts=[Fact("leakage", 0.0123456, "nats", main=True)], published=False)
    >>> for_page(facts, "shareable").facts[0].shown, for_page(facts, "internal").messages[0][:23]
    ('0.012', 'Private: do not publish')
    """
    if page not in PAGES:
        raise DataError(f"page={page!r}: {suggest(str(page), PAGES)}")
    if facts.published is None:
        return facts
    if facts.published:
        return replace(facts, messages=[OPEN, *facts.messages]) if page == SHAREABLE else facts
    if page == INTERNAL:
        return replace(facts, messages=[WARNING, *facts.messages])
    return replace(
        facts,
        summary=facts.outline,
        facts=[_rounded(fact) for fact in facts.facts if fact.main and is_number(fact.value)],
        sections=[section.shared for section in facts.sections if section.shared is not None],
        about=[fact for fact in facts.about if fact.name in WORDS],
        settings=[],
        messages=[CAUTION, *facts.messages],
    )


def rounded(value: float) -> float:
    """Return a number with two significant digits.

    >>> rounded(0.0123456), rounded(299), rounded(0.0)
    (0.012, 300.0, 0.0)
    """
    return float(f"{value:.{DIGITS - 1}e}") if math.isfinite(value) else value


def _rounded(fact: Fact) -> Fact:
    ends = None if fact.interval is None else (rounded(fact.interval[0]), rounded(fact.interval[1]))
    value = rounded(float(fact.value))  # type: ignore[arg-type]
    if fact.percent:  # a share has one digit behind the point, so two digits are those before it
        value, ends = round(value, 2), None if ends is None else (round(ends[0], 2), round(ends[1], 2))
    return replace(fact, value=value, detail="", interval=ends, digits=DIGITS, sentence="")

"""Adversarial problems with known answers, drawn at random: the same seed gives the same problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cvxpriv.certify.corpus import conic, polyhedral
from cvxpriv.certify.corpus.known import Known

__all__ = ["FAMILIES", "adversarial"]

FAMILIES = (*polyhedral.FAMILIES, *conic.FAMILIES)


def adversarial(count: int, seed: int = 0) -> Iterator[Known]:
    """Draw problems, one family after the other.

    Parameters
    ----------
    count : int
        The number of problems.
    seed : int
        Seed. The k-th problem depends on the seed and on k alone.

    Examples
    --------
    >>> [known.name for known in adversarial(2)]
    ['linear[0]', 'badly scaled linear[1]']
    """
    for k in range(count):
        known = FAMILIES[k % len(FAMILIES)](np.random.default_rng([seed, k]))
        yield replace(known, name=f"{known.name}[{k}]")

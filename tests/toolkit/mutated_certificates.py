"""Certificates with some of their numbers changed: what a checker must not believe."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any


def mutated(document: dict[str, Any], rng: random.Random, fields: Sequence[str]) -> dict[str, Any]:
    """A copy with one to three of its fields changed: a number a little, a lot, in sign; groups drawn anew."""
    copied = copy.deepcopy(document)
    for _ in range(rng.randint(1, 3)):
        field = rng.choice(fields)
        change = rng.choice(
            [
                lambda v: v * (1.0 + 10.0 ** rng.uniform(-9, 0)),
                lambda v: v * (1.0 - 10.0 ** rng.uniform(-9, 0)),
                lambda v: v + 10.0 ** rng.uniform(-9, 1),
                lambda v: -v,
                lambda v: 0.0,
                lambda v: v * 2.0 ** rng.randint(-40, 40),
            ]
        )
        held = copied.get(field)
        if field == "groups":
            copied[field] = [rng.randrange(3) for _ in copied["table"]]
        elif not isinstance(held, list):
            copied[field] = change(held)
        else:
            row = rng.choice(held) if isinstance(held[0], list) else held
            place = rng.randrange(len(row))
            row[place] = change(row[place])
    return copied

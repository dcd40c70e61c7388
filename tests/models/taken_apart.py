"""Objects taken apart, so that what two fits leave can be compared part by part, to the last bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

#: What is compared of parts that may differ, by their names.
Rule = Mapping[str, Callable[[Any], Any]]


def parts_of(value: Any, rule: Rule, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield everything that an object holds, by its place; of a part that the rule names, what the rule takes of it."""
    if (taken := rule.get(path.rpartition(".")[2])) is not None:
        yield path, taken(value)
        return
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    if isinstance(value, pd.DataFrame):
        yield path, repr(value.index.tolist())
        value = {name: value[name].to_numpy() for name in value}
    if isinstance(value, Mapping):
        yield path, [str(one) for one in value]
        for name, inner in value.items():
            yield from parts_of(inner, rule, f"{path}.{name}")
    elif isinstance(value, (list, tuple)):
        yield path, (type(value).__name__, len(value))
        for place, inner in enumerate(value):
            yield from parts_of(inner, rule, f"{path}.{place}")
    elif isinstance(value, np.ndarray):
        yield path, (str(value.dtype), value.shape, repr(value.tolist()))
    else:
        yield path, repr(list(value.edges) if isinstance(value, nx.Graph) else value)

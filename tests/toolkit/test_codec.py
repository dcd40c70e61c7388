"""Fields of a run as plain data and back: what a file holds is what was saved, by the types of the fields."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from cvxpriv.errors import ModelError
from cvxpriv.numerics.arrays import Array, Values
from cvxpriv.penalties import LOSSES, MCP, Loss, Penalty
from cvxpriv.runs.saved import UNSAVED, decoded, fields_of


@dataclass(frozen=True)
class Inner:
    bounds: tuple[float, ...]
    step: float | None


@dataclass(frozen=True)
class Example:
    matrix: Array
    parts: list[Array]
    state: Values
    inner: Inner
    several: tuple[Inner, ...]
    mixed: tuple[str, int]
    gap: float
    known: float | None
    labels: tuple[Hashable, ...]
    loss: Loss
    penalty: Penalty
    frame: pd.DataFrame
    options: Mapping[str, Any]
    hidden: Array | None = field(default=None, metadata=UNSAVED)


def example(**changed: Any) -> Example:
    inner = Inner((1.0, float("inf")), None)
    return Example(
        **{
            "matrix": np.array([[0.1, 0.2], [1e-300, -3.0]]),
            "parts": [np.array([1.0]), np.array([2.0, 3.0])],
            "state": {"x": np.array([-np.inf, 0.5])},
            "inner": inner,
            "several": (inner, Inner((), 0.25)),
            "mixed": ("edge", 3),
            "gap": float("inf"),
            "known": None,
            "labels": ("a", 2),
            "loss": LOSSES["logistic"],
            "penalty": MCP(0.1 + 0.2, 3.0),
            "frame": pd.DataFrame({"kkt": [0.1, np.nan], "n": [1, 2]}, index=pd.Index(["u", "v"], name="node")),
            "options": {"rate": 0.5},
            "hidden": np.ones(2),
            **changed,
        }
    )


def test_what_is_read_is_what_was_saved_to_the_last_bit() -> None:
    one = example()
    two = decoded(Example, json.loads(json.dumps(fields_of(one))))
    for name in ("inner", "several", "mixed", "gap", "known", "labels", "loss", "penalty", "options"):
        assert getattr(two, name) == getattr(one, name), name
    np.testing.assert_array_equal(two.matrix, one.matrix)
    np.testing.assert_array_equal(two.state["x"], one.state["x"])
    assert all(np.array_equal(a, b) for a, b in zip(two.parts, one.parts, strict=True))
    pd.testing.assert_frame_equal(two.frame, one.frame)


def test_a_field_that_is_not_saved_is_not_in_the_file_and_has_its_default() -> None:
    document = fields_of(example())
    assert "hidden" not in document
    assert decoded(Example, document).hidden is None


OWN = replace(LOSSES["logistic"], name="own")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": (1.5,)}, "relabel the graph"),
        ({"loss": OWN}, "is code and cannot be saved"),
    ],
)
def test_code_and_labels_that_json_has_not_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        fields_of(example(**changed))


def test_a_named_alias_of_an_array_is_read_as_an_array() -> None:
    # From numpy 2.5 on, with Python 3.12 or newer, NDArray is an alias of a `type` statement.
    class Named:
        __value__ = npt.NDArray[np.float64]

    for kind in (Named(), npt.NDArray[np.float64], npt.NDArray[np.float64] | None):
        assert isinstance(decoded(kind, [1.0, 2.0]), np.ndarray)

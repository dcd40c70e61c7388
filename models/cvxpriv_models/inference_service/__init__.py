"""Inference as a service (IAS): let a server infer S from U while U tells little about the data Y.

Jin, Lai: "Optimal Accuracy-Privacy Trade-off of Inference as Service".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .problem import Problem

if TYPE_CHECKING:
    from .model import InferenceAsService
    from .run import InferenceRun

__all__ = ["InferenceAsService", "InferenceRun", "Problem"]


def __getattr__(name: str) -> Any:
    # The formulas can be used without the model's face, which brings in pandas and the plots.
    if name == "InferenceAsService":
        from .model import InferenceAsService

        return InferenceAsService
    if name == "InferenceRun":
        from .run import InferenceRun

        return InferenceRun
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

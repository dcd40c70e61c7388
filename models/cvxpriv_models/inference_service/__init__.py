"""Inference as a service (IAS): let a server infer S from U while U tells little about the data Y.

Jin, Lai: "Optimal Accuracy-Privacy Trade-off of Inference as Service".
"""

from .model import InferenceAsService
from .problem import Problem
from .run import InferenceRun

__all__ = ["InferenceAsService", "InferenceRun", "Problem"]

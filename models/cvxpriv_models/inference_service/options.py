"""The options of inference as a service: each with its help, range and usual value, once."""

from __future__ import annotations

from typing import Annotated

from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.places import divergence_or_text
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.options import Option

from .algorithm import AUTO, COLUMNS, METHODS

__all__ = [
    "Accelerate",
    "Beta",
    "Divergence",
    "Floor",
    "Gap",
    "Inner",
    "InnerTol",
    "MaxIter",
    "Method",
    "Modulus",
    "Rho",
    "SizeU",
    "SolveLimit",
    "SolveOptions",
    "Starts",
    "Step",
    "TimeLimit",
    "Tol",
]

Beta = Annotated[
    float | None,
    Option("Weight of privacy.", above=0.0, usual="a quarter of the largest at which telling pays, or 0.5"),
]
Divergence = Annotated[
    str | FDivergence,
    Option(
        "f of the leakage E[f(p(u)/p(u|y))]; `cvxpriv verify` checks one of yours.",
        metavar="NAME | FORMULA | FILE.py:NAME",
        read=divergence_or_text,
    ),
]
SizeU = Annotated[
    int | None, Option("Number of symbols of U.", low=1, high=1e9, usual="|Y| + 1; at floor 0, |Y| suffice")
]
Floor = Annotated[
    float,
    Option("The paper's epsilon, the least p(u|y). It is not needed, and costs accuracy.", low=0.0),
]
Method = Annotated[
    shared.Method,
    Option(choices=(COLUMNS, AUTO, *METHODS), usual="columns where the optimum can be proved, else auto"),
]
Gap = Annotated[
    float,
    Option("Certified distance from the best possible objective, relative to it, at which columns stops.", above=0.0),
]
TimeLimit = Annotated[
    float, Option("Time limit of the search for the bound. A bound proved by then holds.", unit="seconds", above=0.0)
]
SolveLimit = Annotated[shared.TimeLimit, Option(usual="30 for the bound; no other limit")]
Starts = Annotated[
    shared.Starts,
    Option(usual="the optimum of columns; 20 for auto, 6 with constraints, 1 where a solver does the work"),
]
Tol = Annotated[
    float,
    Option("KKT residual at which a start has converged; with constraints, it or the local gap.", "nats", above=0.0),
]
MaxIter = Annotated[
    shared.MaxIter,
    Option(usual="100 for auto and joint, 1000 for the other methods, 50 where a solver does the work"),
]
Accelerate = Annotated[
    str,
    Option(
        "Whether joint steps of auto and joint look ahead. Without it they are the plain convex-concave procedure, "
        "which may need thousands.",
        choices=("auto", "none"),
    ),
]
Rho = Annotated[float, Option("Penalty of (16).", above=0.0)]
Inner = Annotated[
    int,
    Option("Largest number of passes of admm, bregman and printed for each update of P(S|U).", low=1),
]
InnerTol = Annotated[float, Option("The paper's eta_p: these passes end when no p(u) moves by more.", above=0.0)]
Modulus = Annotated[float, Option("Modulus of the kernels of bregman.", above=0.0)]
Step = Annotated[float | None, Option("Fixed step of gradient.", above=0.0, usual="a line search")]


class SolveOptions(shared.SolveOptions, total=False):
    """The options of `InferenceAsService.solve`, as `InferenceAsService.curve` passes them on."""

    accelerate: Accelerate
    rho: Rho
    inner: Inner
    inner_tol: InnerTol
    c: Modulus
    step: Step
    gap: Gap

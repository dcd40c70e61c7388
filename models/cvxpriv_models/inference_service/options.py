"""The options of inference as a service: each with its help, range and usual value, once."""

from typing import Annotated

from cvxpriv.blocks.declaration import Known
from cvxpriv.blocks.engines import Engine
from cvxpriv.constraints import couples_rows
from cvxpriv.divergences import FDivergence
from cvxpriv.divergences.registry import divergence_or_text
from cvxpriv.errors import ModelError, NoGuaranteeWarning, warn
from cvxpriv.runs import shared_options as shared
from cvxpriv.runs.options import Option

from .algorithm import AUTO, COLUMNS, METHODS, ROW_CONSTRAINTS, moduli
from .bound import CERTIFIED
from .measured import Constraints, Options
from .problem import Problem

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
    float, Option("The paper's epsilon, the least p(u|y). It is not needed, and costs accuracy.", low=0.0)
]
Method = Annotated[
    shared.Method, Option(choices=(COLUMNS, AUTO, *METHODS), usual="columns where the optimum can be proved, else auto")
]
Gap = Annotated[
    float,
    Option("Certified distance from the best possible objective, relative to it, at which columns stops.", above=0.0),
]
TimeLimit = Annotated[
    float, Option("Time limit of the search for the bound. A bound proved by then holds.", unit="seconds", above=0.0)
]
SolveLimit = Annotated[shared.TimeLimit, Option(usual="30 processor seconds for the bound; no other limit")]
Starts = Annotated[
    shared.Starts,
    Option(usual="the optimum of columns; 20 for auto, 6 with constraints, or 12, 1 where a solver does the work"),
]
Tol = Annotated[
    float,
    Option("KKT residual at which a start has converged; with constraints, it or the local gap.", "nats", above=0.0),
]
MaxIter = Annotated[
    int | None,
    Option(
        "Largest number of passes per start. A pass is one sweep of all blocks; of auto, a joint step: up to 200 "
        "single passes, and 20 for each step allowed, come beside them.",
        low=1,
        usual="100 for auto and joint, 1000 for the other methods, 50 where a solver does the work",
    ),
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
    int, Option("Largest number of passes of admm, bregman and printed for each update of P(S|U).", low=1)
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


def require_solvable(problem: Problem, constraints: Constraints, method: str, engine: Engine) -> None:
    """Refuse a method that does not go with the engine, the table or the constraints."""
    if method == COLUMNS and not (engine.name == "closed_form" and len(problem.p_s_given_y) <= CERTIFIED):
        raise ModelError(
            f"method={method!r} needs engine='closed_form' and |S| <= {CERTIFIED}: choose 'auto'; bound() still "
            "bounds the objective"
        )
    if not constraints or method in (AUTO, "joint"):
        return
    if method not in ROW_CONSTRAINTS:
        names = ", ".join(name for name, _ in constraints)
        raise ModelError(f"method={method!r} does not see constraints ({names}): pass method='joint', or 'auto'")
    shape, known = (problem.p_y.size, problem.size_u), Known.of_table(problem.table)
    coupling = [name for name, constraint in constraints if couples_rows(constraint, shape, known, name)]
    if coupling:
        raise ModelError(
            f"method={method!r} changes one row at a time and stalls short of the optimum under constraints that "
            f"couple rows ({', '.join(coupling)}): pass method='joint', or 'auto'"
        )


def warn_without_guarantee(problem: Problem, method: str, options: Options) -> None:
    """Warn of "printed", and of "bregman" with c <= l_g."""
    if method == "printed":
        warn(
            "method='printed' takes the multiplier's sign of (19) as printed: it diverges; method='admm' has the "
            "right one",
            NoGuaranteeWarning,
        )
    if method == "bregman" and not (constants := moduli(problem, options.c, options.rho)).printed_assumption:
        warn(
            f"method='bregman' with c={options.c:g}: its convergence proof needs c > l_g={constants.l_g:.3g} "
            "(2 beta l_f / floor^2), with which steps are tiny; method='joint' solves the same problem exactly",
            NoGuaranteeWarning,
        )

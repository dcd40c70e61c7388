"""The algorithms without privacy, as schedules: the private ones stand in `private`."""

from __future__ import annotations

from cvxpriv.blocks.block import Block
from cvxpriv.errors import ModelError
from cvxpriv.penalties.proximal import proximal_block
from cvxpriv.schedules.steps import Accelerator, Loop

from .gist import gist
from .line_search import Search
from .problem import Problem
from .support_newton import suits, support_newton

METHODS = ("gist",)


def schedule(problem: Problem, step: str, accelerate: str, search: Search, tol: float, limit: int) -> Loop:
    """Return the whole algorithm: passes until the KKT residual of ISTDP (2) is at most `tol`.

    Raises ModelError: There is no such rule for the step, or the penalty does not suit the acceleration.
    """
    return gist(problem, step, search, tol, limit, _acceleration(problem, accelerate, tol))


def blocks(problem: Problem) -> dict[str, Block]:
    """Return the model's blocks by name: the proximal problem (4) is the only one."""
    return {"prox": proximal_block(problem.penalty, problem.features)}


def _acceleration(problem: Problem, accelerate: str, tol: float) -> Accelerator | None:
    if accelerate == "newton" and not suits(problem):
        raise ModelError(
            f"accelerate='newton' needs slope(theta) and bend(theta) of penalty={problem.penalty!r}, p' and p'' of "
            "|theta|: add them, or pass accelerate='none'"
        )
    return support_newton(problem, tol) if accelerate != "none" and suits(problem) else None

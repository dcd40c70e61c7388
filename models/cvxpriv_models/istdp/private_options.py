"""The options of a private solve, checked before anything reads the data, and the public bound of its step."""

from __future__ import annotations

import numpy as np

from cvxpriv.errors import ModelError, PrivacyError, suggest

from .problem import Problem

__all__ = ["public_step_limit", "require_choices", "require_clip", "require_divisor", "require_whole"]


def public_step_limit(problem: Problem, clip: float, row_bound: float | None = None) -> float:
    """Return the greatest step: the least of 1/L and, up to where the proximal step is convex, 1 / weak_convexity.

    L = smoothness row_bound^2 bounds the Lipschitz constant of the average gradient; ||X||^2 would be smaller, but it
    is a fact about the data.

    Raises
    ------
    PrivacyError
        `row_bound` is no bound, or missing for a loss of unbounded slope.
    """
    loss = problem.loss
    if row_bound is None:
        if not np.isfinite(loss.slope):
            raise PrivacyError(
                f"row_bound is missing: the step is 1/L, and the slope of loss={loss.name!r} has no bound that L "
                "follows from; pass row_bound, a public bound of the rows' norms, for example that of scaled columns"
            )
        row_bound = clip / loss.slope
    _require_positive("row_bound", row_bound, "a public bound of the rows' norms")
    longest = 1.0 / (loss.smoothness * row_bound**2)
    bend = problem.penalty.weak_convexity
    return min(longest, 1.0 / bend) if 0.0 < bend < np.inf else longest


def require_clip(clip: float | None) -> float:
    """Return the clip.

    Raises
    ------
    PrivacyError
        It is missing, not finite, or not positive.
    """
    if clip is None:
        raise PrivacyError(
            "clip is missing, and no noise hides an unbounded row: pass the most that its gradient counts"
        )
    _require_positive("clip", clip, "the most that one row's gradient counts")
    return float(clip)


def require_divisor(problem: Problem, adjacency: str, public_rows: int | None) -> int:
    """Return what the sum of the gradients is divided by: `public_rows`, or else n.

    Raises
    ------
    PrivacyError
        `public_rows` is below 2, or given where n is public.
    """
    if public_rows is None:
        return problem.rows
    if adjacency != "add-remove":
        raise PrivacyError(f"public_rows={public_rows!r} is for adjacency='add-remove': replacing a row keeps n public")
    require_whole("public_rows", public_rows, 2)
    return int(public_rows)


def require_whole(name: str, value: object, least: int) -> None:
    """Refuse what is no whole number from `least` on.

    Raises
    ------
    PrivacyError
        It is none.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise PrivacyError(f"{name}={value!r} is no count: pass a whole number >= {least}")


def require_choices(**choices: tuple[str, tuple[str, ...]]) -> None:
    """Refuse a choice, the first of each pair, that is not among those known, the second.

    Raises
    ------
    ModelError
        It is not; the nearest one is named.
    """
    for name, (chosen, known) in choices.items():
        if chosen not in known:
            raise ModelError(f"{name}={chosen!r} is not one of solve_private: {suggest(str(chosen), known)}")


def _require_positive(name: str, value: object, meaning: str) -> None:
    number = value if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) else 0.0
    if not 0.0 < number < np.inf:
        raise PrivacyError(f"{name}={value!r} is no bound: pass {meaning}, a finite number > 0")

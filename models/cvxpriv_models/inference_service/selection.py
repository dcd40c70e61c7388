"""Both ends of a solve: the mechanisms that it begins with, and the choice among the final states of all starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest

import numpy as np

from cvxpriv.blocks.declaration import Known
from cvxpriv.blocks.engines import ClosedForm, Engine
from cvxpriv.bounds.output_names import in_place
from cvxpriv.divergences import FDivergence
from cvxpriv.numerics.arrays import Array, Values, put, single, take
from cvxpriv.numerics.packages import pd
from cvxpriv.numerics.sizes import in_time, late
from cvxpriv.schedules.history import Context, History

from . import algorithm
from .algorithm import AUTO
from .bound import ServiceBound
from .facts import NOTHING
from .measured import OUTER, Constraints, Options, measure
from .problem import Problem
from .run import InferenceRun, Settings
from .solving import GRID, polished, pooled, solve_starts
from .starts import grid_start, identity, named_starts, random_starts
from .thresholds import critical_beta

#: Two starts whose objectives differ by less are one answer, as are those within the rounding of beta times a leakage:
#: the one of least residual is kept.
SAME_OBJECTIVE, ROUNDING = 1e-9, 1e-15
#: Number of starts that the default method takes to convergence.
FINALISTS = 5


#: With constraints: how many starts are first solved without them, for how many joint steps, and how different in F two
#: of their ends are.
FREE_STARTS, FREE_STEPS, APART = 8, 20, 1e-6


def initial(
    problem: Problem, constraints: Constraints, method: str, count: int, seed: int, engine: Engine
) -> tuple[Array, Sequence[str]]:
    """Return `count` mechanisms, (count, |Y|, |U|), and where each comes from.

    With constraints every other one is where a start ends without them: the first joint step brings it inside. Where
    it gets `late` they are fewer.
    """
    if method not in (AUTO, "joint"):
        return random_starts(problem, count, seed), ["random"] * count

    def begun() -> Iterator[tuple[str, Array]]:
        yield GRID, grid_start(problem, engine, seed)
        yield from named_starts(problem)

    def drawn() -> Iterator[tuple[str, Array]]:
        yield from (("random", one) for one in random_starts(problem, count, seed))

    usual: Iterator[tuple[str, Array]] = chain(begun(), drawn())
    if constraints:
        known, chosen = Known.of_table(problem.table), list(in_time(begun()))
        usual = chain(chosen, drawn())
        pairs = zip_longest(_free_ends(problem, seed, chosen), usual)
        usual = ((one[0], in_place(one[1], constraints, known)) for pair in pairs for one in pair if one is not None)
    taken = list(in_time(islice(usual, count)))
    if late() and len(taken) < count and problem.size_u >= problem.p_y.size:
        taken.insert(0, ("identity", identity(problem)))  # it costs nothing, and the first may have ended early
    return np.stack([mechanism for _, mechanism in taken]), [origin for origin, _ in taken]


def _free_ends(problem: Problem, seed: int, chosen: Sequence[tuple[str, Array]]) -> Iterator[tuple[str, Array]]:
    """Yield where starts end without constraints, the best first, each value once."""
    drawn = random_starts(problem, FREE_STARTS, seed)
    mechanisms = np.concatenate([np.stack([one for _, one in chosen]), drawn])
    origins = [origin for origin, _ in chosen] + ["random"] * len(drawn)
    state, _ = solve_starts(problem, (), AUTO, Options(max_iter=FREE_STEPS), ClosedForm(), None, (mechanisms, origins))
    worth = problem.objective(state["mechanism"])
    last = np.inf
    for start in np.argsort(-worth, kind="stable"):
        if worth[start] < last - APART:
            last = worth[start]
            yield f"free {origins[start]}", state["mechanism"][start]


def best_run(
    problem: Problem,
    constraints: Constraints,
    pieces: Sequence[tuple[Values, Context]],
    origins: Sequence[str],
    settings: Settings,
    proved: ServiceBound | None = None,
    no_gap: str = "",
) -> InferenceRun:
    """Return the run of the best start among those of all pieces, the first of `origins`; `seconds` is left at 0.

    The best has the largest F; of several that are one answer, the first that converged, else the least residual. The
    default method first goes on from the best `FINALISTS`, and from what they make together, here and not in the
    pieces: they do not depend on how starts were divided.

    `no_gap`: Why there is no bound.
    """
    state: Values = {name: np.concatenate([piece[name] for piece, _ in pieces]) for name in pieces[0][0]}
    origins = origins[: len(state["q"])]
    log = History.joined((context.history, len(piece["q"])) for piece, context in pieces)
    interrupted = any(context.interrupted for _, context in pieces)
    starts = _table(problem, constraints, state, origins, log, settings.options.tol)
    overdue = any(context.overdue for _, context in pieces)
    if settings.method == AUTO and not constraints and not (interrupted or overdue):
        finalists = np.argsort(-starts["objective"].to_numpy(), kind="stable")[:FINALISTS]
        context = Context(pieces[0][1].engine, log, pieces[0][1].callback)
        state = put(state, finalists, polished(problem, settings.options, take(state, finalists), finalists, context))
        if settings.engine == "closed_form" and not context.ended:
            state = pooled(problem, settings.options, state, finalists, settings.seed, context)
        interrupted, overdue = context.interrupted, context.overdue
        starts = _table(problem, constraints, state, origins, log, settings.options.tol)
    start = _best(starts, SAME_OBJECTIVE + ROUNDING * problem.beta)
    return InferenceRun(
        problem,
        single(state, start),
        dict(starts),
        start,
        settings,
        0.0,
        log,
        constraints,
        interrupted,
        _note(problem, constraints, starts["objective"].max(), proved),
        proved,
        overdue=overdue,
        no_gap=no_gap,
    )


def _table(
    problem: Problem, constraints: Constraints, state: Values, origins: Sequence[str], log: History, tol: float
) -> pd.DataFrame:
    measured = measure(problem, constraints)(state)
    columns = {name: measured[name] for name in ("objective", "accuracy", "leakage", "kkt")}
    rows = [start for r in log.records if r.block in (OUTER, algorithm.JOINT) for start in r.starts]
    iterations = np.bincount(np.array(rows, dtype=int), minlength=len(origins))
    table = pd.DataFrame({"origin": origins, **columns, "iterations": iterations, "converged": measured["kkt"] <= tol})
    return table.rename_axis("start")


def _best(starts: pd.DataFrame, same: float) -> int:
    near = starts[starts["objective"] >= starts["objective"].max() - same]
    return int(near["kkt"].idxmin() if not near["converged"].any() else near.index[near["converged"]][0])


def _note(problem: Problem, constraints: Constraints, value: float, proved: ServiceBound | None) -> str:
    """Return cautions for a reader: what the bound leaves out, that nothing is best, or that f forgoes guarantees."""
    notes = [_divergence_note(problem.divergence)]
    if proved is not None:
        notes += _bound_notes(constraints, proved)
    if value <= NOTHING:
        if proved is not None and proved.certified:
            notes.append(
                f"The bound proves that at beta={problem.beta:g} no mechanism is worth more than {proved.upper:.2g} "
                "nats: the trivial mechanism, which says nothing, is optimal to that."
            )
        else:
            notes.append(_trivial_note(problem, bool(constraints)))
    return " ".join(filter(None, notes))


def _bound_notes(constraints: Constraints, proved: ServiceBound) -> list[str]:
    notes = []
    if proved.left_out:
        reasons = "; ".join(f"{name}, since {why}" for name, why in proved.left_out.items())
        notes.append(
            f"The bound is that without {reasons}. It holds, since constraints only lower the optimum, but the gap may "
            "be far above the distance from the best mechanism."
        )
    if proved.reason:
        notes.append(f"The gap is {proved.reason}. Converged or not, a better mechanism may exist, by at most the gap.")
    if proved.no_certificate:
        notes.append(
            f"No certificate of the bound is kept ({proved.no_certificate}): the run has no gap once it is loaded from "
            "a file."
        )
    return notes


def _trivial_note(problem: Problem, constrained: bool) -> str:
    threshold = critical_beta(problem).searched
    if problem.beta >= threshold:
        return (
            f"beta={problem.beta:g} is at or above {threshold:.4g}, the largest found at which any mechanism is worth "
            "more than 0: the trivial mechanism, which says nothing, is optimal."
        )
    reasons = "the constraints, the floor or size_u" if constrained else "the floor or size_u"
    return (
        f"No mechanism worth more than 0 was found, though beta={problem.beta:g} is below {threshold:.4g}: "
        f"{reasons} may forbid one, or more starts may find one."
    )


def _divergence_note(divergence: FDivergence) -> str:
    if divergence.strictly_convex and divergence.smooth:
        return ""
    lacks = " and ".join(
        text
        for text, missing in (
            ("is not strictly convex", not divergence.strictly_convex),
            ("has kinks", not divergence.smooth),
        )
        if missing
    )
    return (
        f"f of {divergence.name!r} {lacks}: the paper's assumptions (a), (b) do not hold, minimisers need not be "
        "unique and the convergence of ADMM is not covered; the joint problem (10) stays convex."
    )

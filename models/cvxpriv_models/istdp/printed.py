"""Algorithm 1 as ISTDP prints it, to compare with. It is not private.

Noise is added to the gradient in 1.1, but the Barzilai-Borwein length in 1.2 and the test in 1.3.2 read the clean
gradient and the clean objective (ERRATA ISTDP 6). Neither can be built as a `Public` step.

Step 1.2 is read as the paper's section 2 has it, dtheta'dtheta / dtheta'dg; the expectations in 1.3.2 cannot be
computed, and F itself stands for them. Theorem 3.3's noise is taken as it is.
"""

from collections.abc import Mapping

import numpy as np

from cvxpriv.blocks.engines import ClosedForm
from cvxpriv.numerics.arrays import Array, Values, single, stack
from cvxpriv.penalties.proximal import proximal
from cvxpriv.privacy import Claim, Noise, Release
from cvxpriv.runs.learning_run import history_of_loop
from cvxpriv.schedules.history import Context, Never
from cvxpriv.schedules.running import run
from cvxpriv.schedules.steps import Draw, Loop, Measure, Sweep, Update

from .clipping import ClippedGradient
from .closed_form import barzilai_borwein
from .problem import Problem
from .run import LOOP, PrivateSettings, PrivateSparseRun

LEAK = (
    "method='printed' is not private: its step length reads the clean gradient and its line search the clean "
    "objective, and both show in the coefficients; use method='istdp'"
)
FLAW = "step and line search read clean data"
#: Bounds of the length (alpha_min, alpha_max), the line search's beta and eta, and its largest number of trials.
SHORTEST, LONGEST, BETA, SHRINK, TRIALS = 1e-6, 1e6, 1e-4, 0.5, 60


def printed_noise(epsilon: float, delta: float, iterations: int, bound: float) -> float:
    """Return the standard deviation of Theorem 3.3; `bound` is U, the bound of the gradient's norm."""
    each = min(epsilon / (2.0 * np.sqrt(2.0 * iterations * np.log(2.0 / delta))), 0.5 * np.sqrt(epsilon / iterations))
    return float(2.0 * bound / each * np.sqrt(2.0 * np.log(1.25 * 2.0 * iterations / delta)))


def clean_step() -> Update:
    """Return the length of step 1.2 from clean gradients, between alpha_min and alpha_max."""

    def fn(state: Values) -> Values:
        moved, turned = state["theta"] - state["last_theta"], state["clean"] - state["last_clean"]
        found, _ = barzilai_borwein(moved[0], turned[0])
        return {"step": np.array([np.clip(found, SHORTEST, LONGEST) if np.isfinite(found) else LONGEST])}

    return Update("step 1.2", fn, frozenset({"theta", "last_theta", "clean", "last_clean"}), frozenset({"step"}))


def solve_printed(
    average: ClippedGradient, epsilon: float, delta: float, iterations: int, adjacency: str, noise: Noise
) -> PrivateSparseRun:
    """Run Algorithm 1 from theta^0 = 0 and theta^1 = e_1; no rule of the accounting holds."""
    problem = average.problem
    scale = printed_noise(epsilon, delta, iterations, average.clip)
    zero, first = np.zeros(problem.size), np.eye(1, problem.size)[0]
    begin = {"theta": first, "last_theta": zero, "clean": zero, "last_clean": average.at(zero), "noisy": zero}
    mu = average.sensitivity(adjacency) / scale
    loop = Loop(
        Sweep([_gradient(average, scale, mu), clean_step(), _search(problem)]),
        stop=Never(),
        limit=iterations,
        measure=_figures(problem.features),
        name=LOOP,
    )
    context = Context(ClosedForm(), starts=np.arange(1), noise=noise)
    final = single(run(loop, stack([{**begin, "step": LONGEST, "taken": np.nan}]), context), 0)
    claim = Claim("Theorem 3.3, as printed", epsilon, delta, holds=False, note=FLAW)
    settings = PrivateSettings(
        "printed", iterations, average.clip, "clean-bb", adjacency, "last", noise_scale=scale, step_limit=LONGEST
    )
    return PrivateSparseRun.of(
        problem,
        final["theta"],
        settings,
        context.ledger,
        average.divisor,
        delta=delta,
        secure=noise.secure,
        printed=[claim],
        history=history_of_loop(context.history, LOOP),
        interrupted=context.interrupted,
    )


def _gradient(average: ClippedGradient, scale: float, mu: float) -> Draw:

    def fn(state: Values, noise: Noise) -> Values:
        clean = average.at(state["theta"][0])
        return {"clean": clean[None], "noisy": (clean + noise.normal(scale, clean.shape))[None]}

    return Draw("step 1.1", fn, frozenset({"theta"}), frozenset({"clean", "noisy"}), [Release(mu=mu, flaw=FLAW)])


def _search(problem: Problem) -> Update:
    """Do step 1.3, proximal steps, shortened until the clean F has fallen by beta step / 2 ||move||^2; then 1.4."""

    def fn(state: Values) -> Values:
        theta, length = state["theta"][0], float(state["step"][0])
        height = problem.objective(theta)
        for attempt in range(TRIALS):
            length *= SHRINK if attempt else 1.0
            trial = proximal(problem.penalty, theta - length * state["noisy"][0], length, problem.features)
            moved = trial - theta
            if height - problem.objective(trial) >= 0.5 * BETA * length * (moved @ moved):
                break
        return {
            "theta": trial[None],
            "taken": np.array([length]),
            "last_theta": state["theta"],
            "last_clean": state["clean"],
        }

    reads = frozenset({"theta", "noisy", "step", "clean"})
    return Update("step 1.3", fn, reads, frozenset({"theta", "taken", "last_theta", "last_clean"}))


def _figures(features: int) -> Measure:
    def figures(state: Values) -> Mapping[str, Array]:
        support = np.count_nonzero(state["theta"][:, :features], axis=1).astype(float)
        return {"step": state["step"], "taken": state["taken"], "support": support}

    return figures

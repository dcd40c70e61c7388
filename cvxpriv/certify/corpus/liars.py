"""Known liars: false answers that solvers once gave, stored with version and machine, beside the truth.

The same solver may be right on another processor, or in its next version. The stored answer stays false, and a judge
has to say so.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxpriv.certify.answers import Stored
from cvxpriv.certify.corpus.known import Known, at
from cvxpriv.numerics.arrays import Array

XEON = "x86_64, Intel Xeon"


@dataclass(frozen=True, eq=False)
class Liar:
    """A false answer.

    `build`: Returns the problem and the truth.
    `stored`: The solver's answer.
    `verdicts`: Verdicts that it may have.
    `why`: The error of the answer, in a sentence.
    """

    name: str
    build: Callable[[], Known]
    stored: Stored
    verdicts: tuple[str, ...]
    why: str


def softmin(cost: Array, redundant: bool = False) -> Known:
    """Minimise cost'x - H(x) on the simplex; the answer is the softmin of the cost."""
    x = cp.Variable(cost.size, name="x")
    constraints = [cp.sum(x) == 1, *([x >= 0] if redundant else [])]
    weights = np.exp(-(cost - cost.min()))
    truth = weights / weights.sum()
    value = float(cost.min() - np.log(weights.sum()))
    problem = cp.Problem(cp.Minimize(cost @ x - cp.sum(cp.entr(x))), constraints)
    return Known(problem, value=value, answers=at(x, truth=truth))


def _hinge() -> Known:
    """Minimise a hinge loss to which cvxpy 1.9.3 gives both bounds 1 for HiGHS, as it takes 0 times infinity for 0."""
    x, labels, features = cp.Variable(2, name="x"), np.array([1.0, -1.0]), np.array([[1.0, 2.0], [-1.0, 1.0]])
    hinge = cp.sum(cp.pos(1 - cp.multiply(labels, features @ x)))
    problem = cp.Problem(cp.Minimize(hinge + cp.sum_squares(x - np.array([-3.0, 1.0]))))
    return Known(problem, value=5.75, answers=at(x, truth=np.array([-2.0, 1.5])))


def _thin() -> Known:
    """Minimise a quadratic form with eigenvalues eleven decades apart, of which cvxpy keeps one."""
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Maximize(x[0]), [cp.quad_form(x, np.diag([1e-3, 1e8])) <= 1])
    return Known(problem, value=1e3**0.5, answers=at(x, truth=np.array([1e3**0.5, 0.0])))


def _empty() -> Known:
    """Pose exp(x0) <= x1 <= -1, which is empty, while x0 -> -inf is a ray of the cone program."""
    x = cp.Variable(2, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [cp.exp(x[0]) <= x[1], x[1] <= -1])
    return Known(problem, status="infeasible")


def _logarithm() -> Known:
    """Pose a problem that is unbounded, but grows so slowly that no direction proves it."""
    return Known(cp.Problem(cp.Maximize(cp.log(cp.Variable(name="x")))), status="unbounded")


LIARS = (
    Liar(
        "a false optimum with residuals below 1e-12",
        lambda: softmin(np.array([0.0, 10.5]), redundant=True),
        Stored(
            {"x": [1.000000000000001, -8.708938709089547e-19]},
            asked=1e-12,
            cone=(
                [1.000000000000001, -8.708938709089547e-19, -6.590856918810319e-16, 3.140739101974181e-20],
                [
                    *[-1.0000000000000067, 0.0, 0.026333984375845776],
                    *[-1.00000000000006, -1.0000000000000226, 1.000000000000123],
                    *[-0.9999999999999999, 9.473666015624108, 1.5825074561232844e-13],
                ],
            ),
            solver="SCS",
            version="3.3.1",
            machine=XEON,
        ),
        ("WRONG",),
        "x[1] is 2.8e-5; only stationarity and the distance of the dual to its cone tell",
    ),
    Liar(
        "a minimiser that is looser than its value",
        lambda: softmin(6 * np.random.default_rng(21).random(3)),
        Stored(
            {"x": [0.18530580780260125, 0.5304569519620929, 0.28423723340613904]},
            asked=1e-8,
            solver="CLARABEL",
            version="0.11.1",
            machine=XEON,
        ),
        ("loose",),
        "its value is right to 1e-8 and its point to 4e-5",
    ),
    Liar(
        "optimal where the objective is infinite",
        lambda: softmin(100 * np.random.default_rng(2).random(3)),
        Stored(
            {"x": [0.975589329233874, 0.024412071022269367, -1.3947360010157504e-06]},
            asked=1e-5,
            solver="SCS",
            version="3.3.1",
            machine=XEON,
        ),
        ("WRONG",),
        "an entropy of -1.4e-6 is infinite, and that is too far outside to be rounding",
    ),
    Liar(
        "an answer to a problem with false bounds",
        _hinge,
        Stored({"x": [0.0, 0.0]}, asked=1e-7, solver="HIGHS", version="1.16.0", machine=XEON),
        ("WRONG",),
        "cvxpy gave the solver bounds that the problem does not imply",
    ),
    Liar(
        "unbounded where the value is 31.6",
        _thin,
        Stored(None, status="unbounded", asked=1e-10, solver="CLARABEL", version="0.11.1", machine=XEON),
        ("failed", "WRONG"),
        "cvxpy drops an eigenvalue of 1e-3 beside one of 1e8, and the compiled problem is unbounded",
    ),
    Liar(
        "unbounded where nothing is feasible",
        _empty,
        Stored(
            None,
            status="unbounded",
            asked=1e-10,
            cone=([-1.7628745508904393, -1.6616770231644872e-12, -2.231136387790883e-12], None),
            solver="CLARABEL",
            version="0.11.1",
            machine=XEON,
        ),
        ("loose", "failed", "WRONG"),
        "the ray is one of the cone program, and the problem has no point to begin from",
    ),
    Liar(
        "optimal at 1.8e14 where there is no limit",
        _logarithm,
        Stored(
            {"x": 180239937551304.7},
            asked=1e-10,
            cone=(
                [32.35389283255661, 180239937551304.7],
                [-1.01611925872351, 32.35389283167708, 5.551798258619611e-15],
            ),
            solver="CLARABEL",
            version="0.11.1",
            machine=XEON,
        ),
        ("WRONG",),
        "the logarithm grows beyond every value",
    ),
)
"""False answers that solvers gave, each with its solver and machine."""

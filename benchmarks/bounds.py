"""The funnel's certified bounds: gap, CPU seconds, and those of the stand-alone checker. `python -m benchmarks bounds`

Peer: none that certifies a mechanism is known; each answer is proved, so nothing can be below it. Beside the default
solve on 3 x 3 stands scipy's SLSQP with analytic gradients, from random starts, which proves nothing.
"""

from __future__ import annotations

import time

import numpy as np
from cvxpriv_models.privacy_funnel.bound import bound
from cvxpriv_models.privacy_funnel.curve import band
from numpy.typing import NDArray
from scipy.optimize import minimize

from cvxpriv import datasets
from cvxpriv.models import PrivacyFunnel
from cvxpriv.numerics.sizes import processor_time
from cvxpriv.tables.information import entropy
from cvxpriv.tables.joint import JointTable

Array = NDArray[np.float64]

PAPER = np.array([[0.9, 0.08, 0.4], [0.025, 0.82, 0.05], [0.075, 0.1, 0.55]]) / 3  # PF, section V-A
NEAR = (0.61, 0.62, 0.65, 0.7, 0.8, 0.9, 1.0)  # the largest rate without leakage is .598 H(X)


def by(name: str, private: str) -> JointTable:
    """An embedded table with one of its private columns."""
    source = datasets.tables.SOURCES[name]
    frame = datasets.load_table(name)
    return JointTable.from_frame(frame, private=[private], public=source.public, count="count", smoothing=1e-3)


def random_table(private: int, public: int, zeros: float, seed: int = 1) -> Array:
    """A random P(S, X); a share of its P(s|x) is exactly zero."""
    rng = np.random.default_rng(seed)
    a = rng.dirichlet(np.ones(private), public).T * (rng.random((private, public)) >= zeros)
    a[0] += 0.01
    return np.asarray(a / a.sum(axis=0) * rng.dirichlet(np.ones(public)))


def one(name: str, joint: JointTable | Array, fraction: float, gap: float, check: bool) -> None:
    """Print a line for one rate."""
    table = joint if isinstance(joint, JointTable) else JointTable.from_array(joint)
    began = time.process_time()
    with processor_time(True):
        found = bound(table, fraction * table.entropy_x, gap=gap)
    took = time.process_time() - began
    began = time.process_time()
    if check:
        found.certificate.verify()
    checked = f", checked in {time.process_time() - began:.2f} s" if check else ""
    print(f"{name:24s} {fraction:5.3f} {found.upper:.12f} gap {found.gap:.1e} in {took:6.3f} s{checked}")


def whole(name: str, joint: JointTable | Array, points: int, gap: float) -> None:
    """Print a line for a band."""
    top = joint.entropy_x if isinstance(joint, JointTable) else entropy(joint.sum(axis=0))
    began = time.process_time()
    with processor_time(True):  # by the clock, a rate that waits for a busy machine ends before it is proved
        found = band(joint, top * np.arange(1, points + 1) / points, gap=gap)
    widest = max(one.gap for one in found.values())
    print(f"{name:24s} {points} rates, gap {widest:.1e} in {time.process_time() - began:.3f} s")


def by_slsqp(joint: Array, rate: float, seed: int) -> float:
    """I(S;Y) where SLSQP ends from one random start with |X| + 1 outputs, to 1e-4."""
    p, a = joint.sum(axis=0), joint / joint.sum(axis=0)
    shape = (len(p), len(p) + 1)

    def logs(masses: Array) -> Array:
        return np.asarray(np.log(np.maximum(masses, 1e-300)))

    def leakage(v: Array) -> tuple[float, Array]:
        u = v.reshape(shape)
        t, r = a @ u, u.sum(axis=0)
        value = float((t * (logs(t) - logs(r))).sum()) + entropy(joint.sum(axis=1))
        return value, (a.T @ (logs(t) - logs(r))).ravel()

    def spare(v: Array) -> float:
        u = v.reshape(shape)
        return float((u * (logs(u) - logs(u.sum(axis=0)))).sum()) + entropy(p) - rate

    rows = np.kron(np.eye(len(p)), np.ones(shape[1]))
    limits = [
        {"type": "eq", "fun": lambda v: rows @ v - p, "jac": lambda v: rows},
        {
            "type": "ineq",
            "fun": spare,
            "jac": lambda v: (logs(v.reshape(shape)) - logs(v.reshape(shape).sum(axis=0))).ravel(),
        },
    ]
    start = 0.7 * np.eye(*shape) + 0.3 * np.random.default_rng(seed).dirichlet(np.ones(shape[1]), len(p))
    found = minimize(
        leakage,
        (p[:, None] * start).ravel(),
        jac=True,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * rows.shape[1],
        constraints=limits,
        options={"ftol": 1e-6, "maxiter": 300},
    )
    return float(found.fun)


def against_slsqp(starts: int = 10) -> None:
    """The default solve on 3 x 3 against SLSQP to 1e-4: the time of its starts for each that ends so near."""
    ratios: list[float] = []
    for fraction in np.arange(1, 21) / 20:
        funnel = PrivacyFunnel(PAPER, rate=fraction)
        ours, theirs, near = [], [], 0
        for seed in range(starts):
            began = time.process_time()
            run = funnel.solve()
            middle = time.process_time()
            ended = by_slsqp(PAPER, funnel.problem.rate, seed)
            ours.append(middle - began)
            theirs.append(time.process_time() - middle)
            near += ended <= run.leakage + 1e-4
        ms, its = 1e3 * sum(ours) / starts, 1e3 * sum(theirs) / max(near, 1)
        ratios.append(ms / its)
        print(
            f"3 x 3 at {fraction:.2f}: default {run.leakage:.9f}, gap {run.gap:.0e}, in {ms:.1f} ms; "
            f"SLSQP {1e3 * min(theirs):.1f} ms a start at least, {near} of {starts} within 1e-4: {its:.1f} ms for one"
        )
    print(f"default / SLSQP to 1e-4: {min(ratios):.1f} to {max(ratios):.1f}, median {np.median(ratios):.1f}")


def random_tables(count: int = 200) -> None:
    """The default solve on random tables: how many are within 1e-6 of their bound, and none below it."""
    rng, gaps, began = np.random.default_rng(0), [], time.process_time()
    for seed in range(count):
        size = int(rng.integers(2, 5)), int(rng.integers(2, 13))
        run = PrivacyFunnel(
            random_table(*size, zeros=0.25 * (seed % 2), seed=seed), rate=rng.uniform(0.1, 0.95)
        ).solve()
        assert run.bound is not None
        gaps.append(run.leakage - run.bound.lower)
    within, took = np.mean(np.array(gaps) <= 1e-6), time.process_time() - began
    print(f"{count} random tables: {within:.1%} within 1e-6, {min(gaps):.1e} to {max(gaps):.1e}, in {took:.1f} s")


def main() -> None:
    """Every case, one after the other; CPU seconds."""
    against_slsqp()
    random_tables()
    heart, death = datasets.heart_failure(), by("heart-failure", "death")
    whole("paper 3 x 3", PAPER, 20, 1e-9)
    for fraction in (0.85, 0.9):
        one("heart failure 2 x 16", death, fraction, 1e-9, True)
    whole("heart failure 2 x 16", death, 50, 1e-6)
    one("Adult income", by("adult", "income"), 0.9, 1e-9, True)
    for fraction in NEAR:
        one("heart failure 4 x 16", heart, fraction, 1e-6, True)
    whole("heart failure 4 x 16", heart, 20, 1e-6)
    for private, public in ((5, 16), (3, 40), (4, 32)):
        for zeros in (0.0, 0.25):
            table = random_table(private, public, zeros)
            one(f"random {private} x {public}, zeros {zeros}", table, 0.8, 1e-6, False)


if __name__ == "__main__":
    main()

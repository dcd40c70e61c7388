"""The funnel's certified bounds: gap, CPU seconds, and those of the stand-alone checker. `python -m benchmarks bounds`

Peer: none that certifies a mechanism is known; each answer is proved, so nothing can be below it.
"""

from __future__ import annotations

import time

import numpy as np
from cvxpriv_models.privacy_funnel.band import band
from cvxpriv_models.privacy_funnel.bound import bound
from numpy.typing import NDArray

from cvxpriv import datasets
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


def random_table(private: int, public: int, zeros: float) -> Array:
    """A random P(S, X); a share of its P(s|x) is exactly zero."""
    rng = np.random.default_rng(1)
    a = rng.dirichlet(np.ones(private), public).T * (rng.random((private, public)) >= zeros)
    a[0] += 0.01
    return np.asarray(a / a.sum(axis=0) * rng.dirichlet(np.ones(public)))


def one(name: str, joint: JointTable | Array, fraction: float, gap: float, check: bool) -> None:
    """Print a line for one rate."""
    table = joint if isinstance(joint, JointTable) else JointTable.from_array(joint)
    began = time.process_time()
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
    found = band(joint, top * np.arange(1, points + 1) / points, gap=gap)
    print(f"{name:24s} {points} rates, gap {found.gap:.1e} in {time.process_time() - began:.3f} s")


def main() -> None:
    """Every case, one after the other; CPU seconds."""
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

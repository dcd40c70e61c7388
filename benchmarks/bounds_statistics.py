"""How often the funnel's default answer is within 1e-6 nats of its bound. `python -m benchmarks bounds_statistics`

Peer: the bound, which no mechanism is below. Random tables of 2 to 4 private and 3 to 12 public symbols, a third of
them with zeros; rates between a tenth of H(X) and H(X).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cvxpriv.models import PrivacyFunnel

TABLES = 200
WANTED, ROUNDING = 1e-6, 1e-12  # nats


def cases(count: int, seed: int = 0) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Tables and rates, as shares of H(X); a longer list begins with a shorter one."""
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        shape = (int(rng.integers(2, 5)), int(rng.integers(3, 13)))
        a = rng.dirichlet(np.full(shape[0], rng.choice([0.3, 1.0, 3.0])), shape[1]).T
        a = np.where(rng.random(shape) < (0.3 if k % 3 == 0 else 0.0), 0.0, a)
        a[0] += 1e-3
        yield a / a.sum(axis=0) * rng.dirichlet(np.ones(shape[1])), float(rng.uniform(0.1, 1.0))


def main() -> None:
    """Print the rest one by one, and the shares; a number on the command line is that of the tables."""
    count = int(sys.argv[-1]) if sys.argv[-1].isdigit() else TABLES
    gaps, seconds = [], []
    for k, (table, fraction) in enumerate(cases(count)):
        began = time.process_time()
        run = PrivacyFunnel(table, rate=fraction).solve()
        seconds.append(time.process_time() - began)
        if run.bound is None:
            raise SystemExit(f"table {k} has no bound")
        gaps.append(run.leakage - run.bound.lower)
        if gaps[-1] > WANTED or gaps[-1] < -ROUNDING or not run.converged:
            shape = " x ".join(map(str, table.shape))
            print(f"table {k}, {shape} at {fraction:.3f}: gap {gaps[-1]:.1e}, residual {run.residual:.1e}", flush=True)
    found, taken = np.array(gaps), np.array(seconds)
    near, below = np.mean(found <= WANTED), np.sum(found < -ROUNDING)
    print(f"{count} tables: within 1e-6 nats of the bound {near:.1%}, below it {below}, largest gap {found.max():.1e}")
    print(f"CPU seconds: median {np.median(taken):.2f}, largest {taken.max():.1f}")


if __name__ == "__main__":
    main()

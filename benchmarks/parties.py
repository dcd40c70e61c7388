"""Sharing across processes beside the same fit in one process: a pass on a9a, and the label holder's memory.

    python -m benchmarks parties

Two parties hold 66 and 57 columns of a9a, each a process that dials in over Arrow Flight with mutual TLS on this
machine. Both fits take the same passes to the same bits; each is timed by its own public call, in turn, in one run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from cvxpriv_models.admm_sharing.apart import SharingApart
from cvxpriv_models.admm_sharing.apart_messages import SPOKEN
from cvxpriv_models.admm_sharing.apart_party import Allowance, SharingParty
from scipy import sparse

from cvxpriv.distributed.flight_holder import FlightHolder
from cvxpriv.distributed.flight_party import serve
from cvxpriv.distributed.keys import add_member, create_team, keys_in
from cvxpriv.models import ADMMSharing
from cvxpriv.tables.datasets import load_a9a

__all__ = ["main"]

PASSES, ROUNDS = 60, 5


@contextmanager
def processes(parts: Sequence[sparse.csr_array]) -> Iterator[FlightHolder]:
    """Yield the way to parties that are processes, one for each part."""
    with tempfile.TemporaryDirectory() as home:
        folder, names = Path(home), [f"party-{m}" for m in range(len(parts))]
        create_team(folder / "team")
        for name in ("label-holder", *names):
            add_member(folder / "team", name)
        keys = keys_in(folder / "team" / "label-holder")
        holder = FlightHolder("127.0.0.1:0", keys, names, SPOKEN, wait=120.0)
        started = []
        for name, part in zip(names, parts, strict=True):
            sparse.save_npz(folder / f"{name}.npz", part)
            command = [sys.executable, "-m", "benchmarks.parties", holder.address, home, name]
            started.append(subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}))
        try:
            yield holder
        finally:
            holder.close()
            for process in started:
                process.wait()


def party(address: str, home: str, name: str) -> None:
    """Hold the columns of a file, in a process of its own."""
    folder = Path(home)
    role = SharingParty(sparse.load_npz(folder / f"{name}.npz"), Allowance(exact=True), folder=folder / f"own-{name}")
    serve(role, address, keys_in(folder / "team" / name), wait=60.0)


def passes() -> None:
    """Time a pass of both."""
    data = load_a9a()
    parts = [sparse.csr_array(data.x_train[:, :66]), sparse.csr_array(data.x_train[:, 66:])]
    together = ADMMSharing(parts, data.y_train)
    near, far = [], []
    with processes(parts) as holder:
        apart = SharingApart(holder, data.y_train)
        apart.solve(max_iter=2)  # the processes' first pass makes their systems
        together.solve(accelerate="none", max_iter=2)
        for _ in range(ROUNDS):
            here = together.solve(accelerate="none", max_iter=PASSES, tol=1e-30)
            there = apart.solve(max_iter=PASSES, tol=1e-30)
            near.append(1e3 * here.seconds / PASSES)
            far.append(1e3 * there.seconds / PASSES)
        same = here.state["z"].tobytes() == there.state["z"].tobytes()
    print(f"a9a, 2 parties: {statistics.median(near):.2f} ms a pass in process, {statistics.median(far):.2f} ms apart")
    ratios = [there / here for here, there in zip(near, far, strict=True)]
    print(f"ratio in each of {ROUNDS} rounds: {', '.join(f'{one:.2f}' for one in ratios)}; the same bits: {same}")


def memory() -> None:
    """Measure what the label holder takes, for parties of few and of many columns."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.normal(size=20_000) > 0.0, 1.0, -1.0)
    for columns in (5, 200):
        parts = [sparse.random_array((20_000, columns), density=0.1, rng=rng, format="csr") for _ in range(2)]
        with processes(parts) as holder:
            fit = SharingApart(holder, labels)
            tracemalloc.start()
            fit.solve(max_iter=10, tol=1e-30)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        print(f"label holder, 20,000 rows, 2 parties of {columns} columns: {peak / 2**20:.1f} MiB at its peak")


def main() -> None:
    """Print both."""
    passes()
    memory()


if __name__ == "__main__":
    party(*sys.argv[1:])

"""Sizes are known before work starts: what cannot finish is refused at once, with its size and what would do."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import cvxpy as cp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import sparse

import cvxpriv as cpv
from cvxpriv.cli.main import main
from cvxpriv.errors import CvxprivError, DataError, ModelError
from cvxpriv.mechanisms.disclosure import disclosure
from cvxpriv.models import ISTDP, ADMMSharing, InferenceAsService, PrivacyFunnel, RecycledADMM
from cvxpriv.numerics import sizes
from cvxpriv.numerics.sizes import of_learning, of_mechanism, of_resampling, require_feasible

RNG = np.random.default_rng(0)
SMALL = cpv.JointTable.from_counts([[12, 3, 5], [1, 8, 6]])
ROWS, LABELS = RNG.normal(size=(12, 2)), np.tile([-1.0, 1.0], 6)


def zip_codes(symbols: int = 8834) -> cpv.JointTable:
    return cpv.JointTable.from_counts(RNG.integers(1, 9, size=(2, symbols)))


@pytest.mark.parametrize("model", [PrivacyFunnel, InferenceAsService])
@pytest.mark.parametrize("symbols", [8834, 45222])
def test_thousands_of_symbols_are_refused_at_once_with_size_and_remedy(model: Any, symbols: int) -> None:
    table, begun = zip_codes(symbols), time.monotonic()
    said = f"a mechanism of {symbols:,} x .* can take .* GB, above the limits .*merge symbols.*oversize=True"
    with pytest.raises(ModelError, match=said):
        model(table).solve()
    with pytest.raises(ModelError, match="merge symbols"):
        model(table).curve(3)
    assert time.monotonic() - begun < 5.0


@pytest.mark.parametrize(
    "options", [{"starts": 10**7}, {"max_iter": 10**12}, {"starts": 10**30}, {"max_iter": 10**6, "starts": 10**5}]
)
def test_starts_and_passes_that_cannot_finish_are_refused(options: dict[str, int]) -> None:
    shards = [(ROWS[:6], LABELS[:6]), (ROWS[6:], LABELS[6:])]
    for model in (
        PrivacyFunnel(SMALL),
        InferenceAsService(SMALL, 0.2),
        ADMMSharing([ROWS], LABELS),
        RecycledADMM(nx.path_graph(2), shards),
        ISTDP(ROWS, LABELS),
    ):
        with pytest.raises(ModelError, match="fewer.* starts or passes"):
            model.solve(**options)


PRIVATE: dict[str, Callable[..., Any]] = {
    "sharing": lambda **options: ADMMSharing([ROWS], LABELS).solve_private(**options, delta=1e-6, row_bound=10.0),
    "consensus": lambda **options: RecycledADMM(
        nx.path_graph(2), [(ROWS[:6], LABELS[:6]), (ROWS[6:], LABELS[6:])]
    ).solve_private(**options, clip_rows=True),
    "sparse": lambda **options: ISTDP(ROWS, LABELS, allow_constant=True).solve_private(**options, delta=1e-6),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", PRIVATE)
def test_private_fits_have_the_same_limits_and_spend_nothing_where_they_are_refused(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = cpv.Budget(1.0, 1e-5, tmp_path / "budget.json")
    said = r"a fit of 12 x 2 rows, .* fewer columns, rows.*oversize=True \(--yes\)"
    with pytest.raises(ModelError, match=said):
        PRIVATE[model](epsilon=1.0, max_iter=10**9, budget=budget)
    monkeypatch.setattr(sizes, "LONGEST", 1e-9)
    with pytest.raises(ModelError, match=said):
        PRIVATE[model](epsilon=1.0, max_iter=2, budget=budget)
    assert budget.ledger == ()
    assert PRIVATE[model](epsilon=1.0, max_iter=2, budget=budget, oversize=True).ledger
    assert budget.ledger


def test_outputs_points_and_replicates_have_limits() -> None:
    with pytest.raises(ModelError, match="lower size_y"):
        PrivacyFunnel(SMALL, size_y=10**9).solve()
    with pytest.raises(ModelError, match="the most there may be"):
        PrivacyFunnel(SMALL).curve(10**9)
    with pytest.raises(ModelError, match="fewer replicates"):
        disclosure(SMALL, np.eye(3), bootstrap=10**12)
    with pytest.raises(ModelError, match="fewer replicates"):
        PrivacyFunnel(SMALL).population(replicates=10**12)


def test_a_time_limit_and_a_wish_let_large_work_begin() -> None:
    run = PrivacyFunnel(SMALL, 0.8).solve(method="aem", max_iter=10**9, tol=1e-300, time_limit=0.05, accelerate="none")
    assert run.overdue
    assert PrivacyFunnel(SMALL, 0.8).solve(max_iter=10**12, oversize=True).converged


def test_what_the_papers_and_the_examples_solve_is_feasible() -> None:
    require_feasible(of_mechanism(10, 160, 161, starts=30, passes=500, effort=3.0))
    require_feasible(of_mechanism(4, 480, 481, starts=1, passes=500, effort=3.0))
    require_feasible(of_mechanism(2, 160, 161, starts=1, passes=500, exact=False))
    require_feasible(of_resampling(10, 160, 161, 10_000))
    require_feasible(of_learning(45_222, 123, starts=1, passes=10_000))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--starts", "1000000000"), "fewer starts"),
        (("--max-iter", "1000000000000"), "fewer starts or passes"),
        (("--curve", "1000000000"), "--curve=1000000000 is above 10,000"),
        (("--bootstrap", "100000000000"), "fewer replicates"),
    ],
)
@pytest.mark.parametrize("command", ["funnel", "inference"])
def test_a_command_refuses_before_it_starts(command: str, options: tuple[str, ...], said: str, tmp_path: Any) -> None:
    result = CliRunner().invoke(main, [command, "heart-failure", *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2, result.output
    message = " ".join(result.stderr.split())
    assert said in message
    assert message.count("--yes") <= 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_estimates_are_upper_ones_and_right_within_a_small_factor() -> None:
    for size, starts, passes in ((30, 10, 40), (100, 3, 20)):
        table = RNG.dirichlet(np.ones(2 * size)).reshape(2, size)
        begun = time.process_time()
        PrivacyFunnel(table, 0.7).solve(method="aem", accelerate="none", starts=starts, max_iter=passes, tol=1e-300)
        taken = time.process_time() - begun
        estimate = of_mechanism(2, size, size + 1, starts=starts, passes=passes).seconds
        assert 0.2 * taken <= estimate <= 30.0 * taken  # processors differ by a few times


def test_sparse_rows_are_sized_by_what_is_stored() -> None:
    """A million sparse rows, or 10^5 sparse columns, are work of seconds; factors of 10^5 x 10^5 are none."""
    require_feasible(of_learning(10**6, 200, passes=1000, blocks=3, stored=14 * 10**6, factors=2 * 100**2))
    require_feasible(of_learning(5000, 10**5, passes=1000, stored=10**6))
    with pytest.raises(ModelError, match="fewer columns, rows"):
        require_feasible(of_learning(10**5, 10**5, passes=1000, stored=10**6, factors=2 * 50_000**2))
    wide = sparse.random_array((300, 60_000), density=1e-3, rng=np.random.default_rng(0), format="csr")
    labels = np.tile([-1.0, 1.0], 150)
    assert ADMMSharing([wide[:, :30_000], wide[:, 30_000:]], labels).solve().converged
    graph = nx.path_graph(2)
    with pytest.raises(ModelError, match="fewer columns, rows"):
        RecycledADMM(graph, [(wide[:150], labels[:150]), (wide[150:], labels[150:])]).solve()


def test_a_billion_sparse_columns_and_a_view_of_terabytes_are_refused_at_once() -> None:
    wide = sparse.csr_array((12, 10**9))
    calls: tuple[Callable[[], Any], ...] = (
        lambda: ISTDP(wide, LABELS),
        lambda: ADMMSharing([wide], LABELS),
        lambda: RecycledADMM(nx.path_graph(2), [(wide, LABELS)] * 2),
    )
    for call in calls:
        with pytest.raises(ModelError, match="12 x 1,000,000,000 rows.* GB, above the limits.*fewer columns"):
            call()
    with pytest.raises(DataError, match="out of memory: Unable to allocate"):
        cpv.JointTable.from_counts(np.broadcast_to(1.0, (10**7, 10**7)))


def test_starts_that_are_given_one_by_one_are_counted_too() -> None:
    x = cp.Variable(2, name="x")
    problem, start = cp.Problem(cp.Minimize(cp.sum_squares(x)), [x >= 1]), {"x": [1.0, 1.0]}
    for solved in (cpv.alternate, cpv.convex_concave):
        with pytest.raises(ModelError, match="init holds more than 1,000,000 values"):
            solved(problem, init=repeat(start))
        with pytest.raises(ModelError, match="90,000 starts, 1,000,000 passes can take"):
            solved(problem, init=[start] * 90_000, max_iter=10**6)
    mechanism, begun = np.eye(3, 4), time.process_time()
    for model in (PrivacyFunnel(SMALL, 0.5), InferenceAsService(SMALL, 0.2)):
        for init in (
            np.broadcast_to(mechanism, (10**6, 3, 4)),
            [mechanism] * 10**6,
            tuple([mechanism.tolist()] * 10**6),
        ):
            with pytest.raises(ModelError, match="1,000,000 starts, .* passes can take .* fewer starts"):
                model.solve(init=init)
        with pytest.raises(DataError, match=r"init\[999\] is no mechanism: row 0 sums to 0\.5"):
            model.solve(init=[*[mechanism] * 999, 0.5 * mechanism], max_iter=1)
    assert time.process_time() - begun < 2.0


def test_endless_values_that_are_given_are_refused() -> None:
    rows, endless = pd.DataFrame({"x": ["a", "b"]}), repeat("a")
    for call in (
        lambda: cpv.Encoding.of(rows, ["x"], categories={"x": endless}),
        lambda: cpv.PublicSchema(categories={"x": endless}),
        lambda: cpv.PublicSchema(classes=endless),
        lambda: cpv.PublicSchema(columns=endless),
        lambda: cpv.private_table(SMALL, 1.0, domain={"S": endless, "X": [0]}),
        lambda: cpv.Alphabet(("x",), endless),
    ):
        with pytest.raises(CvxprivError, match="more than|above"):
            call()


def test_a_group_of_coefficients_that_are_not_there_is_refused() -> None:
    for groups in ([[0, 10**9]], [[-1]]):
        with pytest.raises(ModelError, match="the 2 coefficients are 0 to 1"):
            ISTDP(ROWS, LABELS, penalty=cpv.penalties.GroupLasso(groups)).solve()


USED = """
import re, time
from pathlib import Path
import numpy as np
from cvxpriv.models import InferenceAsService, PrivacyFunnel

options = dict(engine="dcp", starts=1, max_iter=1)
peak = lambda: 1024.0 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
MODEL(np.array([[0.4, 0.1], [0.1, 0.4]]), 0.5).solve(**options)
model = MODEL(np.random.default_rng(0).dirichlet(np.ones(2 * SIZE)).reshape(2, SIZE), 0.5)
before, begun, told = peak(), time.process_time(), model.size(**options)
model.solve(**options)
print(told.held + told.logged, peak() - before, told.seconds, time.process_time() - begun)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the largest memory here")
@pytest.mark.parametrize(("model", "sizes"), [("PrivacyFunnel", (20, 30)), ("InferenceAsService", (10, 14))])
def test_what_is_told_of_a_solver_s_work_is_what_it_uses_within_a_factor_of_four(
    model: str, sizes: tuple[int, ...]
) -> None:
    """Two sizes in a process each, after a small solve that loads what is loaded once. Processors differ in speed."""
    for size in sizes:
        code = USED.replace("MODEL", model).replace("SIZE", str(size))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
        told, used, said, taken = (float(number) for number in done.stdout.split())
        assert used / 4.0 <= told <= 4.0 * used
        assert taken / 10.0 <= said <= 10.0 * taken


def test_a_solver_s_memory_is_told_as_that_of_what_it_compiles() -> None:
    table = RNG.dirichlet(np.ones(60)).reshape(2, 30)
    for model in (PrivacyFunnel(table, 0.5), InferenceAsService(table, 0.3)):
        told = [model.size(engine=engine, starts=1, max_iter=1).held for engine in ("closed_form", "dcp")]
        assert told[0] < 1e6 < 5e7 < told[1] < 1e9
    with pytest.raises(ModelError, match="GB, above the limits"):
        InferenceAsService(zip_codes(300), 0.3).solve(engine="dcp")

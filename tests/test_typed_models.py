"""Type checkers see the real signatures of the models through `cvxpriv.models`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RIGHT = """
from typing import Any

from cvxpriv.models import InferenceAsService, PrivacyFunnel

data: Any = None
t = [[0.4, 0.1], [0.1, 0.4]]
run = PrivacyFunnel(t, rate=0.5).constrain("floor", lambda m: m >= 0.1).solve(starts=3, accelerate="none")
leakage: float = run.leakage
curve = PrivacyFunnel(t).curve(4, starts=2, accelerate="none")
inference = InferenceAsService(t, beta=0.1, divergence="le-cam").solve(method="joint", rho=2.0)
gap: float = inference.local_gap
"""
WRONG = (
    "PrivacyFunnel(t, rat=3)",
    "PrivacyFunnel(t, 0.5, 'nats')",
    "PrivacyFunnel(t).solve(stats=3)",
    "PrivacyFunnel(t).solve('checked')",
    "PrivacyFunnel(t).solve(accelerate=True)",
    "PrivacyFunnel(t).curve(4, stats=3)",
    "PrivacyFunnel(t).constrain(3, None)",
    "InferenceAsService(t, bta=3)",
    "InferenceAsService(t).solve(algorithm='joint')",
    "InferenceAsService(t).solve(starts='3')",
    "InferenceAsService(t).curve([0.1], algorithm='joint')",
    "ISTDP(t, [1, 2]).solve(stats=3)",
    "ISTDP(t, [1, 2]).solve_private(epsilon=1.0, delta=1e-6, dleta=1e-6)",
    "ADMMSharing([t], [1, 2]).solve(stats=3)",
    "ADMMSharing([t], [1, 2]).solve_private(epsilon=1.0, delta=1e-6, dleta=1e-6)",
    "RecycledADMM(data, data).solve(stats=3)",
    "RecycledADMM(data, data).solve_private(epsilon=1.0, delta=1e-6, dleta=1e-6)",
)


@pytest.mark.slow
def test_a_wrong_name_or_type_is_refused_and_a_right_one_is_not(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    path = tmp_path / "snippet.py"
    names = "from cvxpriv.models import ADMMSharing, ISTDP, RecycledADMM\n"
    path.write_text(names + RIGHT + "\n".join(WRONG) + "\n")
    root = Path(__file__).parents[1]
    said, _, _ = api.run(["--strict", "--config-file", str(root / "pyproject.toml"), str(path)])
    refused = {int(number) for number in re.findall(r"snippet\.py:(\d+): error", said)}
    first = (names + RIGHT).count("\n") + 1
    assert refused == set(range(first, first + len(WRONG))), said

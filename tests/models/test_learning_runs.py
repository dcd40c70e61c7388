"""Private runs in files: they come back as what they were, certify from what was released, and hold nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cvxpriv_models.admm_sharing.private import PrivateSharingRun
from cvxpriv_models.admm_sharing.run import SharingRun
from cvxpriv_models.istdp.run import PrivateSparseRun, SparseRun

import cvxpriv as cpv
from cvxpriv.certify.check import CrossCheck
from cvxpriv.errors import DataError, ModelError, PrivacyError
from cvxpriv.learning.schema import PublicSchema
from cvxpriv.models import ISTDP, ADMMSharing
from cvxpriv.privacy import PrivacyWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(300, 4))
Y = np.where(X @ [2.0, -1.0, 1.0, 0.5] > 0.0, "yes", "no")
PARTS = [X[:, :2], X[:, 2:]]
CLASSES = PublicSchema(classes=("no", "yes"))
MODEL = ADMMSharing(PARTS, Y, lam=10.0, schema=CLASSES)


def fitted(**options: Any) -> PrivateSharingRun:
    with pytest.warns(PrivacyWarning):
        return MODEL.solve_private(epsilon=1.0, delta=1e-5, row_bound=1.0, noise_seed=0, **options)


def assert_sound(check: CrossCheck) -> None:
    """The exact updates agree; a solver may claim no accuracy on a z block with far values, but is not wrong."""
    assert check.verdicts["closed form"].verdict == "agrees"
    assert {verdict.verdict for verdict in check.verdicts.values()} <= {"agrees", "loose"}


@pytest.mark.parametrize("labels", ["shared", "held"])
def test_a_private_sharing_run_comes_back_and_its_next_step_is_certified_from_released_values(
    labels: str, tmp_path: Path
) -> None:
    run = fitted(labels=labels)
    loaded = cpv.load(run.save(tmp_path / "run.json"))
    assert isinstance(loaded, PrivateSharingRun)
    assert loaded.accounting == run.accounting
    assert loaded.settings == run.settings
    assert loaded.ledger == run.ledger
    assert loaded.warnings == run.warnings
    assert loaded.history.equals(run.history)
    with pytest.raises(PrivacyError, match="no coefficients"):
        _ = loaded.not_private
    whole = cpv.load(run.save(tmp_path / "whole.json", not_private=True))
    assert np.array_equal(whole.not_private.predict(PARTS), run.not_private.predict(PARTS))
    assert not {"coefficients", "predict", "decision_function", "seconds"} & set(dir(run))
    for one in (run, loaded):
        check = one.certify(("CLARABEL",), rows=100)
        assert_sound(check)
        assert set(check.table["case"]) == {"z"}


def test_a_private_history_has_no_times(tmp_path: Path) -> None:
    run = fitted()
    assert not {"seconds", "engine", "solver", "status"} & set(run.history.columns)
    assert len(run.history) == run.settings.max_iter
    assert "seconds" not in json.loads(run.save(tmp_path / "run.json").read_text())


def test_a_private_sparse_run_comes_back_and_its_last_step_is_certified(tmp_path: Path) -> None:
    run = ISTDP(X, Y, penalty="mcp:0.01:3", schema=CLASSES, intercept=True).solve_private(
        epsilon=2.0, delta=1e-5, max_iter=5
    )
    loaded = cpv.load(run.save(tmp_path / "run.json"))
    assert isinstance(loaded, PrivateSparseRun)
    assert loaded.accounting == run.accounting
    assert loaded.settings == run.settings
    assert loaded.history.equals(run.history)
    assert np.array_equal(loaded.predict(X), run.predict(X))
    assert loaded.intercept == run.intercept
    check = loaded.certify(("CLARABEL",))
    assert {verdict.verdict for verdict in check.verdicts.values()} == {"agrees"}


@pytest.mark.filterwarnings("ignore::cvxpriv.privacy.PrivacyWarning")
def test_an_algorithm_that_releases_no_proximal_problem_has_nothing_to_certify(tmp_path: Path) -> None:
    run = ISTDP(X, Y, penalty="mcp:0.01:3", schema=CLASSES).solve_private(
        epsilon=2.0, delta=1e-5, max_iter=3, method="printed"
    )
    loaded = cpv.load(run.save(tmp_path / "run.json"))
    assert loaded.accounting == run.accounting
    for one in (run, loaded):
        with pytest.raises(ModelError, match="releases no proximal problem"):
            one.certify()


def test_a_file_of_the_other_kind_or_model_is_refused(tmp_path: Path) -> None:
    private, clear = tmp_path / "private.json", tmp_path / "clear.json"
    fitted().save(private)
    MODEL.solve().save(clear)
    with pytest.raises(DataError, match="of ADMMSharing that is private"):
        SharingRun.load(private)
    with pytest.raises(DataError, match="of ADMMSharing that is not private"):
        PrivateSharingRun.load(clear)
    with pytest.raises(DataError, match="is a run of ADMMSharing, not of ISTDP"):
        SparseRun.load(clear)

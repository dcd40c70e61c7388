"""ADMM sharing over NVIDIA FLARE: a job without code, real processes, the bits of one process, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cvxpriv_models.admm_sharing.apart_messages import SPOKEN

from cvxpriv.distributed.carriers import InProcess
from cvxpriv.distributed.checkpoint import read_checkpoint
from cvxpriv.distributed.messages import Envelope, Message
from cvxpriv.errors import DataError

from . import flare_sites

pytest.importorskip("nvflare", reason="the carrier of the extra [nvflare]")

from cvxpriv.distributed import flare

ADMITTED = [
    "nvflare.collab.runtime.controller.CollabController",
    "nvflare.collab.runtime.executor.CollabExecutor",
    "cvxpriv.distributed.flare.HolderSite",
    "cvxpriv.distributed.flare.PartySite",
]
ROOT = Path(__file__).parents[2]


def simulated(job: Path, folder: Path, sites: list[str]) -> str:
    """Run a job with each site in a process of its own, and return what it printed."""
    (folder / "local").mkdir(parents=True)
    policy = {"format_version": 2, "class_allow_list": ADMITTED}
    (folder / "local" / "resources.json").write_text(json.dumps(policy))
    call = ["nvflare.private.fed.app.simulator.simulator", str(job), "-w", str(folder), "-c", ",".join(sites)]
    named = {
        flare.HOLDING: f"{flare_sites.__name__}:run",
        flare.SERVING: f"{flare_sites.__name__}:role",
        flare_sites.FOLDER: str(folder.parent),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-m", *call, "-t", str(len(sites))],
        env={**os.environ, **named},
        capture_output=True,
        text=True,
        timeout=300.0,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_flare_carries_the_same_bits_private_and_not_and_ends_where_a_party_dies(tmp_path: Path) -> None:
    near = tmp_path / "near"
    near.mkdir()
    roles = {name: flare_sites.party(name, near) for name in ("a", "b")}
    flare_sites.fits(InProcess(roles, SPOKEN), near)
    printed = simulated(flare.write_job(tmp_path / "job", 2), tmp_path / "federation", ["a", "b"])
    assert (tmp_path / "said.npz").exists(), printed
    here, there = np.load(near / "said.npz"), np.load(tmp_path / "said.npz")
    assert set(here) == set(there) > {"z", "y", "v/0", "crossed"}
    assert any(name.startswith("released ") for name in here)
    assert [name for name in here if here[name].tobytes() != there[name].tobytes()] == []
    assert "a refused what it was asked: its own budget or bounds" in (tmp_path / "refused.txt").read_text()
    assert "b did not answer within 3 seconds" in printed
    assert "what was asked is refused: PrivacyError" in printed
    assert "this party's budget" not in printed  # FLARE may stream a site's log
    assert np.load(tmp_path / "last.npz")["passes"] == 3.0
    for name, role in roles.items():  # each site drew its own noise, and kept its own ledger
        kept = read_checkpoint(tmp_path / name / "checkpoint.bin")
        assert kept is not None
        assert len(kept.ledger) == len(role.ledger) > 0


def test_a_job_ships_no_code(tmp_path: Path) -> None:
    job = flare.write_job(tmp_path, 2)
    assert sorted(path.suffix for path in job.rglob("*") if path.is_file()) == [".json"] * 3
    assert all(named in ADMITTED for path in job.rglob("*.json") for named in paths(json.loads(path.read_text())))


def paths(entry: object) -> list[str]:
    """Return the classes that a job's file names."""
    if isinstance(entry, dict):
        return [
            *([entry["path"]] if "path" in entry else []),
            *(one for value in entry.values() for one in paths(value)),
        ]
    return [one for value in entry for one in paths(value)] if isinstance(entry, list) else []


def test_a_site_answers_the_label_holder_alone_and_each_message_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site, calling = flare.PartySite(), SimpleNamespace(caller="server", site_name="a")
    monkeypatch.setattr(flare, "collab", calling)
    monkeypatch.setenv(flare.SERVING, f"{flare_sites.__name__}:role")
    monkeypatch.setenv(flare_sites.FOLDER, str(tmp_path))

    def said(message: Message, session: str, sequence: int) -> str:
        found, answer = SPOKEN.decode(site.answer(SPOKEN.encode(message, Envelope(session, sequence))), "party", {})
        return f"{answer.kind} {found.session} {found.sequence}"

    positions = Message("positions", {"positions": np.arange(120, dtype="<u8")})
    assert said(positions, "s", 1) == "refusal  0"  # no session has begun
    assert said(Message("wait"), "s", 0) == "hello s 0"
    calling.caller = "b"
    assert said(positions, "s", 1) == "refusal s 0"
    calling.caller = "server"
    assert said(positions, "other", 1) == "refusal s 0"
    assert said(positions, "s", 2) == "refusal s 0"
    assert said(positions, "s", 1) == "aligned s 1"
    assert said(positions, "s", 1) == "refusal s 1"
    assert said(Message("wait"), "t", 0) == "hello t 0"
    assert SPOKEN.decode(site.answer(b"no message"), "party", {})[1].texts == {"reason": "order"}


def test_a_site_that_names_no_function_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(flare.HOLDING, "nowhere:nothing")
    with pytest.raises(DataError, match="set it to MODULE:FUNCTION"):
        flare.HolderSite().run()

"""What the sites of a FLARE federation name as their own, for `test_sharing_flare`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from cvxpriv_models.admm_sharing.apart import SharingApart
from cvxpriv_models.admm_sharing.apart_messages import SPOKEN
from cvxpriv_models.admm_sharing.apart_party import Allowance, SharingParty

from cvxpriv.distributed.carriers import Carrier
from cvxpriv.distributed.messages import Message
from cvxpriv.errors import PartyError, PrivacyError
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy import Noise

ALLOWED = Allowance(exact=True, epsilon=2.0, bounds={"row_bound": 1.2})
FOLDER = "CVXPRIV_TEST_FOLDER"


def table() -> tuple[dict[str, Array], Array]:
    rng = np.random.default_rng(0)
    columns = rng.uniform(-0.5, 0.5, size=(120, 5))
    return {"a": columns[:, :2], "b": columns[:, 2:]}, np.where(columns @ [2.0, -1.0, 1.0, 0.5, 0.0] > 0.0, 1.0, -1.0)


def party(name: str, folder: Path) -> SharingParty:
    noise = Noise(np.random.default_rng(ord(name)))
    return SharingParty(table()[0][name], ALLOWED, noise=noise, folder=folder / name)


def role(site: str) -> SharingParty:
    """Return a site's party; b dies, as a process dies, in the last of the fits."""
    folder = Path(os.environ[FOLDER])
    made = party(site, folder)
    answer = made.answer

    def dying(message: Message) -> Message:
        if site == "b" and message.kind == "step" and message.number("pass") == 4.0 and (folder / "deadly").exists():
            os._exit(1)
        return answer(message)

    made.answer = dying  # type: ignore[method-assign]
    return made


def fits(carrier: Carrier, folder: Path) -> None:
    """Fit without privacy, then with it, then ask for more than the parties allow; keep all that was said."""
    _, labels = table()
    exact = SharingApart(carrier, labels).solve(max_iter=20)
    private = SharingApart(carrier, labels, lam=10.0).solve_private(epsilon=2.0, delta=1e-6, adjacency="replace-one")
    crossed = sorted(f"{one.sender} {one.receiver} {one.kind} {one.vectors}" for one in carrier.log.entries)
    crossed = [one for one in crossed if " wait " not in one]
    refused = ""
    try:
        SharingApart(carrier, labels, lam=10.0).solve_private(epsilon=2.0, delta=1e-6, adjacency="replace-one")
    except (PartyError, PrivacyError) as error:
        refused = str(error)
    released = {f"released {name}": value for name, value in private.released.items()}
    np.savez(folder / "said.npz", **exact.state, **released, crossed=crossed)
    (folder / "refused.txt").write_text(refused)  # type: ignore[arg-type]


def run() -> None:
    """Run the fits over FLARE, and at last one in which a party dies."""
    from cvxpriv.distributed.flare import FlareHolder

    folder = Path(os.environ[FOLDER])
    fits(FlareHolder(SPOKEN), folder)
    (folder / "deadly").touch()
    SharingApart(FlareHolder(SPOKEN, wait=3.0), table()[1]).solve(max_iter=5, save=folder / "last.npz")

"""A party's checkpoint: its arrays, its ledger, and the terms of its run, in one file for its owner alone."""

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cvxpriv.errors import DataError, PartyError, shown
from cvxpriv.numerics.arrays import Array
from cvxpriv.privacy.ledger import ledger_of
from cvxpriv.reports.files import locked, plain_file, write_bytes

#: Name of the file in a party's folder.
FILE = "checkpoint.bin"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that a party needs to come back to a run.

    Attributes
    ----------
    run : str
        The name of the run.
    passes : int
        The pass that it has done.
    arrays : mapping of str to ndarray
        Its state, flat.
    ledger : list
        Its releases, as plain data.
    terms : mapping
        The terms agreed on when the run began, as plain data.
    """

    run: str
    passes: int
    arrays: Mapping[str, Array]
    ledger: list[Any] = field(default_factory=list)
    terms: Mapping[str, Any] = field(default_factory=dict)


@cache
def hold(folder: Path) -> AbstractContextManager[None]:
    """Hold a party's folder for this process, until it ends, however it ends; called again it does nothing.

    Two processes with one folder would each spend its budget, and write one ledger over the other.

    Raises
    ------
    PartyError
        Another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = locked(folder / FILE, wait=False)
    try:
        lock.__enter__()
    except BlockingIOError as error:
        raise PartyError(
            f"folder={shown(str(folder))} is served by another process, which has its checkpoint and its ledger: give "
            "this one a folder of its own (--out), or end that process"
        ) from error
    return lock


def write_checkpoint(path: Path, checkpoint: Checkpoint, *, durable: bool) -> None:
    """Write the file, in one rename.

    Parameters
    ----------
    path : path
    checkpoint : Checkpoint
    durable : bool
        Whether it is on the disk when this returns, and survives a loss of power; otherwise it survives the end of the
        process.
    """
    flat = {name: np.asarray(value, dtype="<f8").ravel() for name, value in checkpoint.arrays.items()}
    header = {
        "run": checkpoint.run,
        "passes": checkpoint.passes,
        "arrays": [[name, array.size] for name, array in flat.items()],
        "ledger": checkpoint.ledger,
        "terms": dict(checkpoint.terms),
    }
    data = b"".join([json.dumps(header).encode(), b"\n", *(array.tobytes() for array in flat.values())])
    if durable:
        write_bytes(path, data, private=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    os.replace(beside, path)


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Return the content of a file; None where there is none.

    Raises
    ------
    DataError
        The file is damaged.
    """
    if not path.exists():
        return None
    try:
        with plain_file(path) as file:
            head, _, rest = file.read().partition(b"\n")
        header, arrays, start = json.loads(head), {}, 0
        for name, size in header["arrays"]:
            arrays[str(name)] = np.frombuffer(rest, dtype="<f8", count=size, offset=start)
            start += 8 * size
        if start != len(rest):
            raise ValueError("its arrays are cut off")
        found = Checkpoint(header["run"], header["passes"], arrays, header["ledger"], header["terms"])
        whole = (type(found.run), type(found.passes), type(found.terms)) == (str, int, dict) and found.passes >= 0
        if not whole or not all(np.isfinite(one).all() for one in arrays.values()):
            raise ValueError("its entries are not those of a run")
        ledger_of(found.ledger)
        return found
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DataError(
            f"{path} is no checkpoint of a party ({error}): remove it, and the run begins anew, but its "
            "ledger of earlier releases is then lost"
        ) from error

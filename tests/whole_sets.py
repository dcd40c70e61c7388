"""What makes a folder's set of files whole: the manifest's hashes are those of the files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from cvxpriv.reports.sets import FORMAT, MANIFEST


def require_whole(folder: Path | str) -> tuple[str, ...]:
    """Return the names of a set's files, each of which is the one that was written."""
    manifest = json.loads((Path(folder) / MANIFEST).read_text())
    assert manifest["format"] == FORMAT
    found = {name: hashlib.sha256((Path(folder) / name).read_bytes()).hexdigest() for name in manifest["sha256"]}
    assert found == manifest["sha256"]
    return tuple(found)

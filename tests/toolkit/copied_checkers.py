"""Checkers of certificates as a recipient has them: short files of the standard library, beside the certificate."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def require_short(programs: Sequence[Path]) -> None:
    """Each is below 200 lines, and at its top imports the standard library alone."""
    for program in programs:
        lines = program.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 200
        imported = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
        assert imported <= sys.stdlib_module_names


def said_by_copies(programs: Sequence[Path], folder: Path) -> str:
    """What the first of some programs, copied into a folder, says of c.json there, which it has to prove."""
    for program in programs:
        (folder / program.name).write_bytes(program.read_bytes())
    command = [sys.executable, "-I", programs[0].name, "c.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

"""Run every measurement, and keep what it prints in benchmarks/results.md: `python -m benchmarks [name ...]`."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import platform
import re
import sys
import time
from importlib.metadata import version
from pathlib import Path

NAMES = (
    *("speed", "funnel", "inference", "fastpath", "sharing", "sparse", "consensus", "disclosure"),
    *("bounds", "inference_bounds", "alternation", "private_learning", "private_parties", "parties"),
)
RESULTS = Path(__file__).parent / "results.md"
TITLE = """# Results

What `make bench` printed, a section for each measurement; `python -m benchmarks NAME` renews one. Ratios compare calls
of one run; times of different sections, perhaps of different machines, do not compare. Other work ran beside: times by
the clock are long.
"""
PACKAGES = ("numpy", "scipy", "cvxpy", "highspy", "clarabel", "scs", "ecos", "scikit-learn")


class Tee(io.TextIOBase):
    """A stream that prints, and remembers."""

    def __init__(self) -> None:
        self.shown, self.kept = sys.stdout, io.StringIO()

    def write(self, text: str) -> int:
        """Print a text and keep it."""
        self.shown.write(text)
        self.shown.flush()
        return self.kept.write(text)


def machine() -> str:
    """Return the processor, the versions, and the day, in a sentence."""
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    processor = named[1] if named else platform.processor() or platform.machine()
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}, {time.strftime('%F')}"


def keep(name: str, text: str, seconds: float) -> None:
    """Write what a measurement printed in place of its section."""
    known = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    found = dict(re.findall(r"^<!-- (\w+) -->\n(.*?)(?=^<!-- |\Z)", known, re.M | re.S))
    found[name] = f"## {name}\n\n{machine()}; {seconds:.0f} s of processor time.\n\n```text\n{text.strip()}\n```\n\n"
    sections = "".join(f"<!-- {each} -->\n{found[each]}" for each in NAMES if each in found)
    RESULTS.write_text(f"{TITLE}\n{sections.rstrip()}\n", encoding="utf-8")


def main() -> int:
    """Run the measurements named on the command line, or all of them."""
    wanted = sys.argv[1:] or NAMES
    for unknown in set(wanted) - set(NAMES):
        print(f"no measurement is called {unknown!r}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in wanted:
        work, tee, before = importlib.import_module(f"benchmarks.{name}").main, Tee(), os.times()
        with contextlib.redirect_stdout(tee):
            work()
        keep(name, tee.kept.getvalue(), sum(os.times()[:4]) - sum(before[:4]))
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())

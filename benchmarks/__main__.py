"""Run every measurement: `python -m benchmarks [name ...]`."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    *("funnel", "inference", "fastpath", "sharing", "sparse", "consensus", "disclosure"),
    *("bounds", "inference_bounds", "alternation", "private_learning", "private_parties", "parties"),
)


def main() -> int:
    """Run the measurements named on the command line, or all of them."""
    wanted = sys.argv[1:] or NAMES
    for unknown in set(wanted) - set(NAMES):
        print(f"no measurement is called {unknown!r}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in wanted:
        importlib.import_module(f"benchmarks.{name}").main()
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())

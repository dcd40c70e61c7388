"""IAS Table I: the value that Algorithm 1 and gradient ascent end at; Le Cam divergence.

    python examples/papers/ias_table1.py --out out/    # writes ias_table1.md
    python examples/papers/ias_table1.py --fast

The paper does not say which beta its table is for. Here it is 2 and 8, as in its figures, and .3, .6 and 1. Each cell
is the median of runs from the paper's uniform random starts, and the worst and the best of them.
"""

from __future__ import annotations

import pandas as pd
from ias_case import arguments, inference, uniform_starts

from cvxpriv.reports.files import write_text

PAPER_STEPS = (0.05, 0.07, 0.1, 0.15, 0.2)
COLUMNS = (2.0, 8.0, 0.3, 0.6, 1.0)


def methods(fast: bool) -> dict[str, dict[str, object]]:
    """Return the options of each row's solve."""
    limit = 300 if fast else 3000
    rows: dict[str, dict[str, object]] = {
        "default": {"method": "auto", "starts": 2 if fast else 20},
        "Algorithm 1, right sign": {"method": "admm", "inner": 20, "max_iter": 20 if fast else 100},
    }
    for step in PAPER_STEPS:
        rows[f"gradient ascent, step {step:g}"] = {"method": "gradient", "step": step, "max_iter": limit}
    rows["gradient ascent, line search"] = {"method": "gradient", "max_iter": limit}
    return rows


def table(fast: bool) -> pd.DataFrame:
    """Return the table: a row for each method, a column for each beta."""
    init = uniform_starts(3 if fast else 10)
    cells: dict[str, dict[str, str]] = {}
    for name, options in methods(fast).items():
        cells[name] = {}
        for beta in COLUMNS:
            given = {} if options["algorithm"] == "auto" else {"init": init}
            found = inference(beta, "le-cam").solve(**given, **options).starts["objective"]
            spread = f"{_value(found.median())} ({_value(found.min())} .. {_value(found.max())})"
            cells[name][f"beta = {beta:g}"] = _value(found.max()) if options["algorithm"] == "auto" else spread
    return pd.DataFrame.from_dict(cells, orient="index").rename_axis("method").reset_index()


def _value(value: float) -> str:
    return f"{value:.0e}" if abs(value) < 1e-5 else f"{value:.4f}"


def markdown(frame: pd.DataFrame) -> str:
    """Return a frame of texts as a Markdown table."""
    lines = [list(frame.columns), ["---"] * len(frame.columns), *frame.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def main() -> None:
    """Print the table and write it down."""
    options = arguments(__doc__)
    text = markdown(table(options.fast))
    print(text)
    print(write_text(options.out / "ias_table1.md", text))


if __name__ == "__main__":
    main()

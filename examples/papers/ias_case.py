"""The case of the IAS scripts, and their panels.

The paper draws P(Y|S) in its Fig. 1 and gives no numbers, so this one is invented: P(S) uniform on three values,
|Y| = 10, and row s of P(Y|S) proportional to exp(-(y - m_s)^2 / (2 * 1.5^2)), y = 0 ... 9, with m = 2, 4.5, 7: three
smooth rows of one hump each. |U| = 11 is the paper's; its floor epsilon is not given, 1e-3 here.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cvxpriv.models import InferenceAsService
from cvxpriv.reports.pictures import COLOURS, blank

SIZE_U, FLOOR = 11, 1e-3
#: The paper's beta of Figs. 2 to 5, and weights at which saying nothing is not the best.
BETAS = (2.0, 0.3, 0.6, 1.0)

Line = tuple[np.ndarray, np.ndarray]
#: The bound that no mechanism exceeds, whatever its floor and |U|.
CERTIFIED: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.2}
CERTIFIED_LABEL = "no mechanism is better (certified, floor 0)"
GREY_LINE: dict[str, Any] = {"color": "#666666", "linestyle": ":", "linewidth": 1.2}


def p_sy() -> np.ndarray:
    """P(S, Y), (3, 10)."""
    y = np.arange(10.0)
    rows = np.stack([np.exp(-((y - centre) ** 2) / (2.0 * 1.5**2)) for centre in (2.0, 4.5, 7.0)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True) / 3.0)


def inference(beta: float, divergence: str = "jensen-shannon", size_u: int = SIZE_U) -> InferenceAsService:
    """Return the model at a weight of privacy."""
    return InferenceAsService(p_sy(), beta, divergence=divergence, size_u=size_u, floor=FLOOR)


def uniform_starts(count: int, seed: int = 0, size_u: int = SIZE_U) -> np.ndarray:
    """Return the paper's starts, (count, 10, |U|): uniform random numbers, normalised (and lifted to the floor)."""
    rows = np.random.default_rng(seed).uniform(size=(count, p_sy().shape[1], size_u))
    rows /= rows.sum(axis=-1, keepdims=True)
    return np.asarray(FLOOR + (1.0 - size_u * FLOOR) * rows)


def climb(model: InferenceAsService, limit: int, **options: Any) -> Line:
    """Return the iterations up to a limit, and F of a solve from the first start; one that has ended stays at its last.

    The end is drawn on, because rounding decides at which iteration a climb that goes no further ends.
    """
    history = model.solve(init=uniform_starts(1), max_iter=limit, **options).history
    found = history["objective"].dropna().to_numpy()
    return np.arange(1, limit + 1), np.pad(found, (0, limit - len(found)), mode="edge")


def arguments(description: str | None) -> Namespace:
    """Read --fast and --out."""
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="fewer iterations and starts")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the pictures")
    return parser.parse_args()


def panels(titles: list[str], width: float = 9.0, height: float = 6.2) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, two a row; call it under `cvxpriv.reports.pictures.styled`."""
    figure = blank(width, height)
    axes = list(np.ravel(figure.subplots(-(-len(titles) // 2), 2)))
    for panel, title in zip(axes, titles, strict=True):
        panel.set_title(title)
    return figure, axes


def draw(axes: Axes, lines: Mapping[str, Line]) -> None:
    """Draw lines by name, each in its own colour."""
    for colour, (name, (x, y)) in zip(COLOURS, lines.items(), strict=False):
        axes.plot(x, y, color=colour, label=name)


def legend_below(figure: Figure, axes: Axes, columns: int | None = None) -> None:
    """Put the legend of one panel under all of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns or min(len(labels), 4))

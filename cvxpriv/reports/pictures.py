"""Matplotlib figures without its global state: the house style, histories of runs, and figures as bytes and files.

Figures are made as objects, without pyplot, so that no display is needed and nothing stays behind. The same figure
gives the same file, byte for byte: no dates, no random identifiers.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from cvxpriv.errors import DataError, ModelError, shown, suggest
from cvxpriv.numerics.arguments import require_at_most, require_positive
from cvxpriv.numerics.doors import door
from cvxpriv.numerics.packages import pd
from cvxpriv.reports.files import PathLike, write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colours of Okabe and Ito, which colour-blind readers can tell apart."""
MARKERS = ("o", "s", "^", "D", "v", "P")
GREY = "#666666"
PAGE = 5.6
"""Width in inches of a picture on a page: at 390 pixels its letters are still 9 pixels high."""
FLAT = 1e-6
"""Least part of a figure's size that its axis spans: less is rounding, and would be drawn as a rise or a fall."""
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": "#222222",
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.formatter.useoffset": False,  # "1e-5 + .0208" is read as 1e-5
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "#222222",
    "ytick.labelcolor": "#222222",
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "cvxpriv",
}
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"metadata": {"Software": None}},
    "svg": {"metadata": {"Date": None, "Creator": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def styled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a function run with the house style, whatever the reader's own matplotlib settings are.

    Raises ModelError: It is called and matplotlib is missing.
    """

    @wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            from matplotlib import style
        except ImportError as error:
            raise ModelError('pictures need matplotlib, which is missing: pip install "cvxpriv[report]"') from error
        with style.context(["default", STYLE]):
            return function(*args, **kwargs)

    return run


@styled
def image(figure: Figure, kind: str = "svg", dpi: int = 150) -> bytes:
    """Return a figure as the bytes of a file, the same bytes for the same figure.

    `kind`: {"svg", "png", "pdf"}. `dpi`: Dots per inch, for PNG.
    Raises DataError: Unknown kind. ModelError: matplotlib is missing.
    """
    if kind not in FORMATS:
        raise DataError(f"kind={kind!r} of picture is not known: {suggest(kind, FORMATS)}")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=dpi, **FORMATS[kind])
    return buffer.getvalue()


@door
def save_figure(figure: Figure, path: PathLike, dpi: int = 150) -> Path:
    """Write a figure to a PNG, SVG or PDF file, by its name, whole or not at all.

    Raises
    ------
    DataError
        Another suffix, or a file that cannot be written.
    ModelError
        matplotlib is missing, or `dpi` is not above 0 and at most 1,200.
    """
    if not hasattr(figure, "savefig"):
        raise ModelError(f"figure={shown(figure)} is no figure: pass what a function such as `plot_curve` returned")
    require_positive(dpi=dpi)
    require_at_most(1_200, dpi=dpi)
    return write_bytes(path, image(figure, Path(path).suffix.lower().lstrip("."), dpi))


@styled
def figure_axes() -> Axes:
    """Return the axes of a new figure."""
    return blank(6.4, 3.4).add_subplot()


def blank(width: float, height: float) -> Figure:
    """Return an empty white figure of a size in inches; call it under `styled`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def plot_passes(history: pd.DataFrame, column: str, label: str, ax: Axes | None, *, linear: bool = False) -> Axes:
    """Draw one column of a run's history by pass, on a logarithmic axis unless `linear`; see `Run.plot`.

    Raises DataError: The run has no passes, as of a file or of one release. ModelError: matplotlib is missing.
    """
    if column not in history or not history[column].notna().any():
        raise DataError(
            "the run has no passes to draw: a file keeps none, and some methods make none; solve again, or otherwise"
        )
    axes = figure_axes() if ax is None else ax
    passes = history[history[column].notna()]
    (axes.plot if linear else axes.semilogy)(passes["iteration"], passes[column])
    axes.set_xlabel("pass")
    axes.set_ylabel(label)
    return axes


@styled
@door
def plot_history(
    frame: pd.DataFrame, objective: str = "objective", residual: str = "kkt", best: int | None = None, title: str = ""
) -> Figure:
    """Draw a run's objective and KKT residual by iteration, one line per start; the residual's axis is logarithmic.

    Parameters
    ----------
    frame : DataFrame
        The frame of `cvxpriv.schedules.history.History.frame`: ``iteration``, the two figures, and ``start`` if there
        are several. Rows without a figure (those of single blocks) are passed over.
    objective, residual : str
        Names of the columns of the two figures.
    best : int, optional
        The start to highlight. By default the one with the lowest last objective.
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        A column is missing, or no row has the figure.
    ModelError
        matplotlib is missing.
    """
    require_drawn(frame, ["iteration", objective, residual], "frame")
    rows = frame.dropna(subset=[objective])
    if rows.empty:
        raise DataError(f"frame has no row with a value in {objective!r}: give the history of a loop that measures it")
    starts = (
        {int(start): rows[rows["start"] == start] for start in rows["start"].unique()} if "start" in rows else {0: rows}
    )
    if best is None or best not in starts:
        best = min(starts, key=lambda start: float(starts[start][objective].iloc[-1]))
    figure = blank(PAGE, 4.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    for start, part in sorted(starts.items(), key=lambda item: item[0] == best):
        front: dict[str, Any] = {"color": COLOURS[0], "zorder": 3, "label": f"best start ({start})"}
        back: dict[str, Any] = {"color": "#BBBBBB", "linewidth": 0.9, "zorder": 1, "label": None}
        line = (front if start == best else back) | {"marker": "o" if len(part) == 1 else None}  # a line needs two
        upper.plot(part["iteration"], part[objective], **line)
        positive = part[part[residual] > 0]  # an exact zero has no place on a logarithmic axis
        lower.plot(positive["iteration"], positive[residual], **line)
    bottom, top = upper.get_ylim()
    if (short := FLAT * max(abs(bottom), abs(top)) - (top - bottom)) > 0:
        upper.set_ylim(bottom - short / 2, top + short / 2)
    if (rows[residual] > 0).any():
        lower.set_yscale("log")
    upper.set_ylabel(objective)
    lower.set_ylabel(f"{residual} residual" if residual != "kkt" else "KKT residual")
    lower.set_xlabel("pass")
    lower.xaxis.get_major_locator().set_params(integer=True)
    if len(starts) > 1:
        upper.plot([], [], color="#BBBBBB", linewidth=0.9, label=f"{len(starts) - 1} other starts")
        upper.legend(loc="upper right")
    if title:
        upper.set_title(title)
    return figure


def require_drawn(frame: pd.DataFrame, columns: Sequence[str], argument: str) -> None:
    """Refuse a frame that lacks a column of a picture.

    Raises DataError.
    """
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"{argument} has no column {column!r}: {suggest(column, map(str, frame.columns))}")

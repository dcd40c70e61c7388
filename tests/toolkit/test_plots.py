"""Pictures: what they show is checked on the figure's own objects; files are the same byte for byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from cvxpriv.errors import DataError, ModelError
from cvxpriv.mechanisms.plots import Axis, plot_curve, plot_mechanism, with_axes
from cvxpriv.reports.pictures import image, plot_history, save_figure
from cvxpriv.tables.alphabets import Alphabet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE = pd.DataFrame({"utility": [1.0, 0.5, 0.0], "leakage": [0.4, 0.1, 0.0]})
INPUTS = Alphabet(("age", "sex"), (("30", "F"), ("30", "M"), ("40", "F")))
HISTORY = pd.DataFrame(
    {
        "start": [0, 0, 0, 1, 1, 1],
        "iteration": [1, 1, 2, 1, 1, 2],
        "block": ["u", "loop", "loop"] * 2,
        "objective": [np.nan, 3.0, 2.0, np.nan, 3.5, 1.0],
        "kkt": [np.nan, 1e-2, 1e-4, np.nan, 1e-1, 0.0],
    }
)


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def labels(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_importing_pictures_needs_neither_matplotlib_nor_jinja_and_drawing_uses_no_pyplot(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = sys.modules['jinja2'] = None;"
        "import pandas as pd, cvxpriv.reports.page, cvxpriv;"
        "from cvxpriv.mechanisms.plots import plot_curve; from cvxpriv.reports.pictures import image;"
        "del sys.modules['matplotlib'], sys.modules['jinja2'];"
        "image(plot_curve(pd.DataFrame({'utility': [0, 1], 'leakage': [0, 1]})), 'png');"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModelError, match=r'pip install "cvxpriv\[report\]"'):
        plot_curve(CURVE)


def test_a_curve_joins_its_points_in_order_of_utility_on_axes_from_zero() -> None:
    axes = plot_curve(CURVE).axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[0.0, 0.0], [0.5, 0.1], [1.0, 0.4]]  # type: ignore[union-attr]
    assert axes.get_xlim()[0] == 0
    assert axes.get_ylim()[0] == 0
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("utility I(X;Y) in nats", "leakage I(S;Y) in nats")
    assert labels(axes) == []


def test_several_curves_differ_in_colour_and_marker_and_are_named() -> None:
    axes = plot_curve({"funnel": CURVE, "greedy": CURVE}, bound=CURVE, chosen=(0.5, 0.1)).axes[0]
    assert labels(axes) == ["funnel", "greedy", "lower bound", "chosen mechanism"]
    first, second = axes.lines[:2]
    assert first.get_color() != second.get_color()
    assert first.get_marker() != second.get_marker()


def test_the_bound_starts_at_the_origin() -> None:
    axes = plot_curve(CURVE, bound=CURVE.iloc[:2]).axes[0]
    assert axes.lines[1].get_xydata()[0].tolist() == [0.0, 0.0]  # type: ignore[index]


def test_reference_lines_stand_at_the_entropy_and_the_information_with_their_values() -> None:
    figure = plot_curve(CURVE, entropy_x=2.0, information=0.5)
    axes = figure.axes[0]
    assert texts(axes) == ["I(S;X) = 0.5", "H(X) = 2"]
    horizontal, vertical = axes.lines[1:3]
    assert set(np.ravel(horizontal.get_ydata())) == {0.5}
    assert set(np.ravel(vertical.get_xdata())) == {2.0}
    assert axes.get_ylim()[1] > 0.5


def test_the_second_axis_shows_the_fraction_of_the_entropy() -> None:
    figure = plot_curve(CURVE, entropy_x=2.0)
    image(figure, "png")  # draws, which places the second axis
    top = figure.axes[0].child_axes[0]
    assert top.get_xlabel() == "fraction of H(X)"
    assert top.get_xlim()[1] == pytest.approx(figure.axes[0].get_xlim()[1] / 2)


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ({}, "holds no curve"),
        (CURVE.rename(columns={"utility": "utilty"}), "no column 'utility': did you mean 'utilty'"),
        ({"funnel": CURVE.iloc[:0]}, r"curves\['funnel'\] has no point"),
        (CURVE.assign(leakage=np.nan), "curves has no point with both"),
    ],
)
def test_a_curve_without_points_is_refused(curves: pd.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=message):
        plot_curve(curves)


def test_a_heatmap_shows_the_matrix_with_outputs_in_order_of_their_inputs_and_leaves_out_unused_ones() -> None:
    matrix = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.999, 0.001, 0.0]]
    axes = plot_mechanism(matrix, INPUTS, ["a", "b", "c"]).axes[0]
    shown = axes.images[0].get_array()
    assert shown is not None
    assert np.array_equal(shown, [[1.0, 0.0], [1.0, 0.0], [0.0, 0.999]])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["c", "a"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["30, F", "30, M", "40, F"]
    assert axes.get_xlabel() == "output Y (of 3, 1 with P(Y|X) < 0.005 left out)"
    assert axes.get_ylabel() == "age, sex"
    assert texts(axes) == ["1", "1", "1"]


def test_a_large_heatmap_labels_some_rows_only() -> None:
    axes = plot_mechanism(np.eye(160), Alphabet.numbered("X", 160)).axes[0]
    assert len(axes.get_yticks()) == 40
    assert texts(axes) == []


def test_a_heatmap_of_no_mechanism_is_refused() -> None:
    with pytest.raises(DataError, match=r"row 0 sums to 0\.5"):
        plot_mechanism([[0.5], [1.0], [1.0]], INPUTS)
    with pytest.raises(DataError, match=r"matrix has shape \(2, 2\), its alphabets \(3, 2\)"):
        plot_mechanism(np.eye(2), INPUTS)


def test_a_history_brings_out_the_best_start_on_a_logarithmic_residual_axis() -> None:
    upper, lower = plot_history(HISTORY).axes
    assert lower.get_yscale() == "log"
    assert (upper.get_ylabel(), lower.get_ylabel(), lower.get_xlabel()) == ("objective", "KKT residual", "pass")
    assert labels(upper) == ["best start (1)", "1 other starts"]
    best = next(line for line in upper.lines if line.get_label() == "best start (1)")
    assert best.get_xydata().tolist() == [[1.0, 3.5], [2.0, 1.0]]  # type: ignore[union-attr]
    drawn = next(line for line in lower.lines if line.get_label() == "best start (1)")
    assert drawn.get_xydata().tolist() == [[1.0, 0.1]]  # type: ignore[union-attr]  # the exact 0 is left out


def test_values_that_hardly_differ_are_written_out_beside_the_axis() -> None:
    frame = pd.DataFrame({"iteration": range(5), "objective": 0.0208 + 1e-7 * np.arange(5), "kkt": 1.0})
    figure = plot_history(frame, "objective")
    image(figure)  # labels are made when it is drawn
    upper = figure.axes[0].yaxis
    assert upper.get_offset_text().get_text() == ""  # no "1e-7+2.08e-2"
    assert "0.0208002" in [label.get_text() for label in upper.get_ticklabels()]


def test_the_start_to_bring_out_can_be_named() -> None:
    assert labels(plot_history(HISTORY, best=0).axes[0])[0] == "best start (0)"


def test_a_history_of_one_pass_is_a_point() -> None:
    assert plot_history(HISTORY[HISTORY["block"] != "u"].iloc[:1]).axes[0].lines[0].get_marker() == "o"


def test_the_history_of_one_start_needs_no_legend() -> None:
    one = HISTORY[HISTORY["start"] == 0].drop(columns="start")
    assert labels(plot_history(one).axes[0]) == []


def test_rounding_of_an_objective_is_drawn_as_a_level_line() -> None:
    history = pd.DataFrame({"iteration": [1, 2], "objective": [0.25, 0.25 + 1e-15], "kkt": [1e-2, 1e-9]})
    bottom, top = plot_history(history).axes[0].get_ylim()
    assert top - bottom >= 1e-7


def test_a_history_without_its_figures_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'kkt'"):
        plot_history(HISTORY.drop(columns="kkt"))
    with pytest.raises(DataError, match="no row with a value in 'objective'"):
        plot_history(HISTORY[HISTORY["block"] == "u"])


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_same_data_give_the_same_file_without_a_date(tmp_path: Path, kind: str) -> None:
    first = save_figure(plot_curve(CURVE, entropy_x=2.0, title="t"), tmp_path / f"1.{kind}")
    second = save_figure(plot_curve(CURVE, entropy_x=2.0, title="t"), tmp_path / f"2.{kind}")
    assert first.read_bytes() == second.read_bytes()
    assert b"Matplotlib v" not in first.read_bytes()
    assert not any(word in first.read_bytes() for word in (b"dc:date", b"CreationDate", b"tIME"))


def test_the_readers_own_settings_of_matplotlib_change_nothing() -> None:
    import matplotlib

    plain = image(plot_curve(CURVE))
    with matplotlib.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "svg.hashsalt": None}):
        assert image(plot_curve(CURVE)) == plain
        assert matplotlib.rcParams["font.size"] == 30.0  # and are left as they were


@pytest.mark.parametrize("name", ["curve.gif", "curve"])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="is not known"):
        save_figure(plot_curve(CURVE), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_models_curve_brings_its_own_axes() -> None:
    frame = with_axes(
        pd.DataFrame({"accuracy": [0.0, 0.2], "loss": [0.0, 0.1]}),
        Axis("accuracy", "accuracy I(S;U)"),
        Axis("loss", "E[f]"),
    )
    axes = plot_curve(frame[frame["loss"] >= 0.0]).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("accuracy I(S;U)", "E[f]")
    assert axes.lines[0].get_xydata().tolist() == [[0.0, 0.0], [0.2, 0.1]]  # type: ignore[union-attr]
    with pytest.raises(DataError, match="measure different things"):
        plot_curve({"mine": frame, "funnel": CURVE})

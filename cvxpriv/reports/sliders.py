"""A curve whose points a reader walks along by a slider: the picture, the numbers of each point, its heatmap.

The picture is drawn here as SVG, in the page's own colours. Without script the page shows it with its marked point, and
the numbers of all points stand in a table beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from cvxpriv.errors import json_text
from cvxpriv.reports.formatting import Heatmap

WIDTH, HEIGHT = 640.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 92.0, 24.0, 20.0, 46.0
TICKS = 4
"""Number of intervals between ticks of an axis, at most."""


@dataclass(frozen=True, eq=False)
class Stop:
    """A point of the curve.

    `name`: Words for the slider's place, such as "0.6 of H(X)".
    `across`, `up`: Its place in the plane.
    `low`: Lower end of the certified band at this point.
    `shown`: Labels and values that are shown at this point.
    """

    name: str
    across: float
    up: float
    low: float | None = None
    shown: Sequence[tuple[str, str]] = ()
    heatmap: Heatmap | None = None


@dataclass(frozen=True, eq=False)
class Slider:
    """The curve.

    `label`: Name of the quantity that the slider moves, such as "Rate".
    `across`, `up`: Names of the axes with their units.
    `stops`: The points, in the slider's order.
    `alt`: Description for readers who do not see the picture.
    `level`: A horizontal line with its name.
    `chosen`, (float, float): The place of the page's own mechanism: a ring.
    `first`: The stop at which the slider stands at first.

    >>> slider = Slider("Rate", "utility", "leakage", [Stop("0", 0.0, 0.0), Stop("1", 1.0, 0.5, 0.25)], "rises")
    >>> slider.svg.count("<circle"), "certified" in slider.svg
    (3, False)
    """

    label: str
    across: str
    up: str
    stops: Sequence[Stop]
    alt: str
    level: tuple[str, float] | None = None
    chosen: tuple[float, float] | None = None
    first: int = 0

    @property
    def states(self) -> str:
        """The state of the page at each stop, as JSON for the script."""
        return json_text([self._state(stop) for stop in self.stops], separators=(",", ":"))

    @property
    def svg(self) -> str:
        """The picture, with the marker at the first stop."""
        x, y = self._scales()
        ordered = sorted(self.stops, key=lambda stop: (stop.across, stop.up))
        line = " ".join(f"{x(stop.across):.1f},{y(stop.up):.1f}" for stop in ordered)
        parts = [self._ticks(), self._band(), f'<polyline class="line" points="{line}"/>']
        parts += [f'<circle class="point" cx="{x(one.across):.1f}" cy="{y(one.up):.1f}" r="4"/>' for one in ordered]
        if self.level is not None:
            name, height = self.level
            parts.append(_line(LEFT, y(height), WIDTH - RIGHT, y(height), "level"))
            parts.append(_text(LEFT + 8, y(height) - 7, f"{name} = {height:.4g}", "start"))
        if self.chosen is not None:
            parts.append(f'<circle class="ring" cx="{x(self.chosen[0]):.1f}" cy="{y(self.chosen[1]):.1f}" r="11"/>')
        here = self.stops[self.first]
        parts.append(f'<circle class="here" cx="{x(here.across):.1f}" cy="{y(here.up):.1f}" r="7"/>')
        box = f"0 0 {WIDTH:g} {HEIGHT:g}"
        return f'<svg viewBox="{box}" role="img" aria-label="{escape(self.alt)}">{"".join(filter(None, parts))}</svg>'

    def _state(self, stop: Stop) -> dict[str, object]:
        x, y = self._scales()
        state: dict[str, object] = {
            "name": stop.name,
            "x": round(x(stop.across), 1),
            "y": round(y(stop.up), 1),
            "shown": [value for _, value in stop.shown],
        }
        if stop.heatmap is not None:
            state["columns"] = list(stop.heatmap.columns)
            state["cells"] = stop.heatmap.cells
        return state

    def _scales(self) -> tuple[_Scale, _Scale]:
        ups = [stop.up for stop in self.stops] + ([] if self.level is None else [self.level[1] * 1.08])
        places = [stop.across for stop in self.stops]
        if self.chosen is not None:
            ups, places = [*ups, self.chosen[1]], [*places, self.chosen[0]]
        return _Scale(max(places), LEFT, WIDTH - RIGHT), _Scale(max(ups), HEIGHT - BOTTOM, TOP)

    def _ticks(self) -> str:
        x, y = self._scales()
        parts = [
            _line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"),
            _line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, "axis"),
        ]
        for tick in x.ticks:
            parts.append(_line(x(tick), HEIGHT - BOTTOM, x(tick), HEIGHT - BOTTOM + 6, "axis"))
            parts.append(_text(x(tick), HEIGHT - BOTTOM + 30, f"{tick:g}", "middle"))
        for tick in y.ticks:
            parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), "grid"))
            parts.append(_text(LEFT - 10, y(tick) + 6, f"{tick:g}", "end"))
        return "".join(parts)

    def _band(self) -> str:
        held = sorted((stop for stop in self.stops if stop.low is not None), key=lambda stop: stop.across)
        if len(held) < 2:
            return ""
        x, y = self._scales()
        there = [f"{x(stop.across):.1f},{y(stop.up):.1f}" for stop in held]
        back = [f"{x(stop.across):.1f},{y(stop.low or 0.0):.1f}" for stop in reversed(held)]
        return f'<polygon class="band" points="{" ".join(there + back)}"/>' + (
            f'<polyline class="low" points="{" ".join(back)}"/>'
        )


@dataclass(frozen=True)
class _Scale:
    """A linear scale from 0 to a number that is at least `top`."""

    top: float
    begin: float
    end: float

    @property
    def step(self) -> float:
        """The distance of ticks: 1, 2, 2.5 or 5 times a power of ten."""
        least = max(self.top, 1e-12) / TICKS
        power = 10.0 ** int(f"{least:e}".split("e")[1])
        return next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= least * (1 - 1e-9))

    @property
    def ticks(self) -> list[float]:
        """The ticks within the axis."""
        return [float(f"{n * self.step:.6g}") for n in range(TICKS + 1) if n * self.step <= self.top * (1 + 1e-9)]

    def __call__(self, value: float) -> float:
        return self.begin + (self.end - self.begin) * value / max(self.top, 1e-12)


def _line(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'

"""The laser picture: time across, segments stacked by ordinal, hidden ones faint, tombstones hatched.

The chart is written once, in Vega-Lite, when this module is loaded: Altair takes longer to write and check it than a
page takes for everything else. Pictures differ by their data and three parameters.
"""

from datetime import datetime
from typing import Any

import altair as alt
import pandas as pd

import shell
from queries.words import milliseconds

COLOURS = {
    "visible": "#2f7ed8",
    "overshadowed": "#8fb4e0",
    "tombstone": "#d55e00",
    "tombstone of some rows": "#cc79a7",
}
"""Distinguishable for colour-blind readers, and the same in light and dark."""
LASER = "#e5c100"
_LEVEL_PIXELS = 26
_MAX_PIXELS = 560
_COUNTED_PIXELS = 320
_AROUND_PIXELS = 115
"""Height of the legend and axis of a picture."""
_STRIP_PIXELS = 14
PICKED, ZOOM = "picked", "zoom"
"""Names of the selections: a clicked bar, a selected range of columns."""


def bars_chart(
    drawn: pd.DataFrame,
    hatched: pd.DataFrame,
    start: datetime,
    end: datetime,
    laser: datetime | None,
    *,
    has_time: bool = True,
) -> dict[str, Any]:
    """Bars one by one: `queries.timeline.drawn_bars`. A click picks one. Without a time there is no axis of it."""
    levels = max(3, int(drawn["level"].max()) + 1)
    height = _AROUND_PIXELS + min(_MAX_PIXELS, _LEVEL_PIXELS * levels)
    form = _BARS if has_time else _BARS_OF_NO_TIME
    return _drawn(form, {"bars": drawn, "strokes": hatched}, start, end, laser, height=height, levels=levels)


def counted_chart(
    counts: pd.DataFrame,
    covered: pd.DataFrame,
    start: datetime,
    end: datetime,
    laser: datetime | None,
    *,
    has_time: bool = True,
) -> dict[str, Any]:
    """Columns of many: `queries.timeline.counted`. A range selected over them zooms in."""
    data = {"columns": counts, "covered": covered}
    return _drawn(_COUNTED if has_time else _COUNTED_OF_NO_TIME, data, start, end, laser, height=_COUNTED_PIXELS)


def _drawn(
    form: dict[str, Any],
    data: dict[str, pd.DataFrame],
    start: datetime,
    end: datetime,
    laser: datetime | None,
    *,
    height: int,
    **parameters: float,
) -> dict[str, Any]:
    at = [laser] if laser is not None and start <= laser < end else []
    bound = {"from": milliseconds(start), "until": milliseconds(end), **parameters}
    drawn = {
        **form,
        "height": height,
        "params": [*form["params"], *({"name": name, "value": value} for name, value in bound.items())],
        "datasets": {**data, "laser": pd.DataFrame({"start": pd.Series(at, dtype="datetime64[us, UTC]")})},
    }
    return shell.inked(drawn)


def _time() -> alt.X:
    scale = alt.Scale(type="utc", nice=False, domain=[alt.ExprRef("from"), alt.ExprRef("until")])
    return alt.X(
        "start:T", title="time of rows, UTC", scale=scale, axis=alt.Axis(grid=True, tickCount=8, labelFlush=True)
    )


def _colour(kinds: list[str]) -> alt.Color:
    return alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds]),
        legend=alt.Legend(orient="top", columns=2, symbolType="square", symbolStrokeWidth=0, labelLimit=300),
    )


def _written(*layers: alt.Chart) -> dict[str, Any]:
    """Layers and, above them, the laser."""
    laser = (
        alt.Chart(alt.NamedData("laser")).mark_rule(**shell.NAMELESS, color=LASER, strokeWidth=2.5).encode(x="start:T")
    )
    written: dict[str, Any] = alt.layer(*layers, laser).configure_view(strokeWidth=0).to_dict()
    return written


def _bars() -> dict[str, Any]:
    x, colour = _time(), _colour(list(COLOURS))
    axis = alt.Axis(labels=False, ticks=False, domain=False, grid=False)
    y = alt.Y("low:Q", title="older → newer", axis=axis, scale=alt.Scale(domain=[0, alt.ExprRef("levels")]))
    tooltip = [alt.Tooltip(f"{name}:N", title=name) for name in ("what", "kind", "from", "until", "ordinal")]
    tooltip.append(alt.Tooltip("rows:Q", title="rows", format=","))
    base = alt.Chart(alt.NamedData("bars")).encode(x=x, x2="end:T", y=y, y2="high:Q", color=colour, tooltip=tooltip)
    picked = alt.selection_point(name=PICKED, fields=["id"], on="click", empty=False)
    thick = alt.condition(picked, alt.value(2.5), alt.value(0.6))
    solid = base.transform_filter("datum.kind == 'visible'").mark_rect(
        **shell.NAMELESS, cornerRadius=2, stroke="#7f8ea3"
    )
    faint = base.transform_filter("datum.kind == 'overshadowed'").mark_rect(
        **shell.NAMELESS, cornerRadius=2, fillOpacity=0.35, stroke="#7f8ea3", strokeDash=[3, 2]
    )
    over = (
        base.transform_filter("test(/^tombstone/, datum.kind)")
        .mark_rect(**shell.NAMELESS, fillOpacity=0.12)
        .encode(stroke=colour)
    )
    layers = [layer.encode(strokeWidth=thick) for layer in (solid, faint, over)]
    layers[0] = layers[0].add_params(picked)
    strokes = alt.Chart(alt.NamedData("strokes")).mark_rule(**shell.NAMELESS, strokeWidth=1.4, tooltip=None)
    return _written(*layers, strokes.encode(x=x, x2="end:T", y="low:Q", y2="high:Q", color=colour))


def _counted() -> dict[str, Any]:
    x, colour = _time(), _colour(["visible", "overshadowed", "tombstone"])
    tooltip = [alt.Tooltip(f"{name}:N", title=name) for name in ("kind", "from", "until")]
    tooltip.append(alt.Tooltip("count:Q", title="how many", format=","))
    zoom = alt.selection_interval(name=ZOOM, encodings=["x"])
    columns = (
        alt.Chart(alt.NamedData("columns"))
        .mark_rect(**shell.NAMELESS, stroke=None)
        .encode(
            x=x,
            x2="end:T",
            y=alt.Y("count:Q", title="segments", stack="zero"),
            color=colour,
            order=alt.Order("kind:N", sort="ascending"),
            tooltip=tooltip,
        )
        .add_params(zoom)
    )
    strip = alt.Chart(alt.NamedData("covered")).encode(x=x, x2="end:T", color=colour, tooltip=tooltip)
    return _written(
        columns,
        strip.mark_rect(**shell.NAMELESS, fillOpacity=0.25).encode(y=alt.value(-_STRIP_PIXELS), y2=alt.value(0)),
        strip.mark_rule(**shell.NAMELESS, strokeWidth=1.2).encode(y=alt.value(0), y2=alt.value(-_STRIP_PIXELS)),
    )


def _without_time(form: dict[str, Any]) -> dict[str, Any]:
    """The same without an axis of time, which for a table without one would say from the year 1 to 9999."""
    layers = []
    for one in form["layer"]:
        encoding = one["encoding"]
        layers.append({**one, "encoding": {**encoding, "x": {**encoding["x"], "axis": None}}})
    return {**form, "layer": layers}


_BARS, _COUNTED = _bars(), _counted()
_BARS_OF_NO_TIME, _COUNTED_OF_NO_TIME = _without_time(_BARS), _without_time(_COUNTED)

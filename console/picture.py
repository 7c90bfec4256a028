"""The laser picture: time across, segments stacked by ordinal, what is hidden faint, tombstones hatched."""

from datetime import datetime

import altair as alt
import pandas as pd

from queries.words import drawable

COLOURS = {
    "visible": "#2f7ed8",
    "overshadowed": "#8fb4e0",
    "tombstone": "#d55e00",
    "tombstone of some rows": "#cc79a7",
}
"""Told apart by the colour-blind, and the same in light and dark."""
LASER = "#e5c100"
_LEVEL_PIXELS = 26
_MAX_PIXELS = 560
_COUNTED_PIXELS = 320
_AROUND_PIXELS = 80
"""What legend and axis take of a picture's height."""
_STRIP_PIXELS = 14
PICKED, ZOOM = "picked", "zoom"
"""Names of the selections: a bar that was clicked, a stretch that was drawn over columns."""


def _time(domain: list[str], title: str | None = None) -> alt.X:
    scale = alt.Scale(type="utc", nice=False, domain=domain)
    return alt.X("start:T", title=title, scale=scale, axis=alt.Axis(grid=True, tickCount=8, labelFlush=True))


def _colour(kinds: list[str]) -> alt.Color:
    return alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds]),
        legend=alt.Legend(orient="top", symbolType="square", symbolStrokeWidth=0, labelLimit=300),
    )


def _domain(start: datetime, end: datetime) -> list[str]:
    return [drawable(start).isoformat(), drawable(end).isoformat()]


def bars_chart(
    drawn: pd.DataFrame, hatched: pd.DataFrame, start: datetime, end: datetime, laser: datetime | None
) -> alt.LayerChart:
    """Bars one by one: `queries.timeline.drawn_bars`. A click picks one."""
    levels = max(3, int(drawn["level"].max()) + 1)
    height = _AROUND_PIXELS + min(_MAX_PIXELS, _LEVEL_PIXELS * levels)
    x, colour = _time(_domain(start, end)), _colour(list(COLOURS))
    axis = alt.Axis(labels=False, ticks=False, domain=False, grid=False)
    y = alt.Y("low:Q", title=None, axis=axis, scale=alt.Scale(domain=[0, levels]))
    tooltip = [alt.Tooltip(f"{name}:N", title=name) for name in ("what", "kind", "from", "until", "ordinal")]
    tooltip.append(alt.Tooltip("rows:Q", title="rows", format=","))
    base = alt.Chart(drawn).encode(x=x, x2="end:T", y=y, y2="high:Q", color=colour, tooltip=tooltip)
    picked = alt.selection_point(name=PICKED, fields=["id"], on="click", empty=False)
    thick = alt.condition(picked, alt.value(2.5), alt.value(0.6))
    solid = base.transform_filter("datum.kind == 'visible'").mark_rect(cornerRadius=2, stroke="#7f8ea3")
    faint = base.transform_filter("datum.kind == 'overshadowed'").mark_rect(
        cornerRadius=2, fillOpacity=0.35, stroke="#7f8ea3", strokeDash=[3, 2]
    )
    over = base.transform_filter("test(/^tombstone/, datum.kind)").mark_rect(fillOpacity=0.12).encode(stroke=colour)
    layers = [layer.encode(strokeWidth=thick) for layer in (solid, faint, over)]
    layers[0] = layers[0].add_params(picked)
    if len(hatched):
        strokes = alt.Chart(hatched).mark_rule(strokeWidth=1.4, tooltip=None)
        layers.append(strokes.encode(x=x, x2="end:T", y="low:Q", y2="high:Q", color=colour))
    layers += _laser(laser, start, end)
    return alt.layer(*layers).properties(height=height).configure_view(strokeWidth=0)


def counted_chart(
    counts: pd.DataFrame, covered: pd.DataFrame, start: datetime, end: datetime, laser: datetime | None
) -> alt.LayerChart:
    """Columns of many: `queries.timeline.counted`. A stretch that is drawn over them zooms in."""
    x, colour = _time(_domain(start, end)), _colour(["visible", "overshadowed", "tombstone"])
    tooltip = [alt.Tooltip(f"{name}:N", title=name) for name in ("kind", "from", "until")]
    tooltip.append(alt.Tooltip("count:Q", title="how many", format=","))
    zoom = alt.selection_interval(name=ZOOM, encodings=["x"])
    order = alt.Order("kind:N", sort="ascending")
    columns = (
        alt.Chart(counts)
        .mark_rect(stroke=None)
        .encode(
            x=x,
            x2="end:T",
            y=alt.Y("count:Q", title="segments", stack="zero"),
            color=colour,
            order=order,
            tooltip=tooltip,
        )
        .add_params(zoom)
    )
    layers = [columns]
    if len(covered):
        strip = alt.Chart(covered).encode(x=x, x2="end:T", color=colour, tooltip=tooltip)
        layers.append(strip.mark_rect(fillOpacity=0.25).encode(y=alt.value(-_STRIP_PIXELS), y2=alt.value(0)))
        layers.append(strip.mark_rule(strokeWidth=1.2).encode(y=alt.value(0), y2=alt.value(-_STRIP_PIXELS)))
    layers += _laser(laser, start, end)
    return alt.layer(*layers).properties(height=_COUNTED_PIXELS).configure_view(strokeWidth=0)


def _laser(at: datetime | None, start: datetime, end: datetime) -> list[alt.Chart]:
    if at is None or not start <= at < end:
        return []
    instant = pd.DataFrame({"start": [drawable(at)]})
    return [alt.Chart(instant).mark_rule(color=LASER, strokeWidth=2.5).encode(x="start:T")]

"""The picture of a timeline: time across, segments stacked by ordinal, what is hidden faint, tombstones thin."""

import altair as alt
import pandas as pd

COLOURS = {
    "visible": "#2f7ed8",
    "overshadowed": "rgba(95, 145, 205, 0.38)",
    "tombstone": "#e8590c",
    "tombstone of some rows": "#f5b27a",
}
_ROW_PIXELS = 26
_MAX_PIXELS = 560


def chart(picture: pd.DataFrame) -> alt.LayerChart:
    """The bars of `queries.frame_of`. Colours are fixed, so that they mean the same in light and dark."""
    rows = picture["ordinal"].nunique()
    step = max(6, min(_ROW_PIXELS, _MAX_PIXELS // max(1, rows)))
    x = alt.X("start:T", title=None, scale=alt.Scale(type="utc", nice=False), axis=alt.Axis(grid=True, tickCount=8))
    y = alt.Y("ordinal:O", title="ordinal", sort="descending", axis=alt.Axis(labelOverlap=True, grid=False))
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top", symbolType="square", symbolStrokeWidth=0),
    )
    tooltip = [alt.Tooltip(f"{name}:N", title=name) for name in ("what", "kind", "from", "until", "ordinal")]
    tooltip.append(alt.Tooltip("rows:Q", title="rows", format=","))
    base = alt.Chart(picture).encode(x=x, x2="end:T", y=y, color=colour, tooltip=tooltip)
    thin = max(2, step // 5)
    data = base.transform_filter("!test(/^tombstone/, datum.kind)").mark_bar(
        size=max(3, round(step * 0.62)), cornerRadius=2, stroke="#7f8ea3", strokeWidth=0.5, strokeOpacity=0.5
    )
    tombstones = base.transform_filter("test(/^tombstone/, datum.kind)").mark_bar(
        size=thin, yOffset=round(step * 0.31) + thin / 2 + 1, minBandSize=thin
    )
    return alt.layer(data, tombstones).properties(height=alt.Step(step)).configure_view(strokeWidth=0)

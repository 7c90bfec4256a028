"""The film strip: what each version added to a chunk and dropped from it, and the key frames between."""

from typing import Any

import altair as alt
import pandas as pd

import shell

COLOURS = {"key frame: all that is live": "#0072b2", "added by a version": "#008a64", "dropped by a version": "#c65102"}
"""By what a bar means; each stands out from the page in light and dark."""
_KEY_FRAME, _ADDED, _DROPPED = COLOURS
_PIXELS = 260
_STEP_PIXELS = 34
_LEAST_PIXELS = 240
"""So that the legend has room."""
_FADED = 0.3


def chart(strip: pd.DataFrame) -> dict[str, Any]:
    """The steps of `queries.key_frames.ChunkHistory`, oldest at the left; those that build the version are strong.

    As a Vega-Lite chart: strips differ only by their data.
    """
    versions = strip["version"].astype(str)
    steps = versions.where(strip["what"] != "key frame", "after " + versions)
    placed = strip.reset_index(drop=True).assign(place=range(len(strip)), step=steps.to_list())
    width = max(_LEAST_PIXELS, _STEP_PIXELS * len(placed))
    return shell.inked({**_FORM, "width": width, "datasets": {"bars": _bars(placed)}})


def _form() -> dict[str, Any]:
    """The chart of a strip, written once: see `picture`."""
    order = alt.EncodingSortField("place", op="min", order="ascending")
    axis = alt.Axis(labelAngle=270, grid=False, labelOverlap=False, labelLimit=120)
    x = alt.X("step:N", title="version", sort=order, axis=axis)
    # A key frame holds thousands, most versions add a few: by this scale both are seen.
    scale = alt.Scale(type="symlog")
    y = alt.Y("low:Q", title="segments and tombstones", scale=scale, axis=alt.Axis(tickMinStep=1, format=",d"))
    names = ("what", "version", "added", "dropped", "live after it", "size", "part")
    colour = alt.Color(
        "means:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top", columns=1, symbolType="square", labelLimit=300),
    )
    bars = alt.Chart(alt.NamedData("bars"))
    layers = [
        bars.mark_bar(**shell.NAMELESS, cornerRadius=2).encode(
            x=x,
            y=y,
            y2="high:Q",
            color=colour,
            opacity=alt.condition("datum.part == 'builds this version'", alt.value(1.0), alt.value(_FADED)),
            size=alt.Size("wide:Q", scale=None, legend=None),
            tooltip=[f"{name}:N" for name in names],
        ),
        bars.mark_rule(**shell.NAMELESS, color="#808080").encode(y=alt.datum(0)),
    ]
    drawn = alt.layer(*layers).properties(height=_PIXELS)
    drawn = drawn.configure_view(strokeWidth=0)
    written: dict[str, Any] = drawn.to_dict()
    return written


def _bars(placed: pd.DataFrame) -> pd.DataFrame:
    """One row for each bar: a key frame as high as what is live, a delta's additions up from zero, its drops down."""
    frames = placed[placed["what"] == "key frame"].assign(low=0, means=_KEY_FRAME, wide=22)
    frames = frames.assign(high=frames["live after it"])
    added = placed[placed["added"] > 0].assign(low=0, means=_ADDED, wide=12)
    added = added.assign(high=added["added"])
    dropped = placed[placed["dropped"] > 0].assign(low=0, means=_DROPPED, wide=12)
    dropped = dropped.assign(high=-dropped["dropped"])
    return pd.concat([frames, added, dropped])


_FORM = _form()

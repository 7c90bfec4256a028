"""The film strip: key frames as pictures, the deltas between them as what was added and dropped."""

from typing import Any

import altair as alt
import pandas as pd

COLOURS = {"key frame": "#2f7ed8", "added": "#009e73", "dropped": "#d55e00"}
_GREY = "#8a94a3"
_PIXELS = 230
_STEP_PIXELS = 30
_EDGE, _HOLES, _LABELS = 1.1, 1.28, 1.62


def chart(strip: pd.DataFrame) -> dict[str, Any]:
    """The steps of `queries.key_frames.Film`, oldest at the left; those that build the version are strong.

    As a Vega-Lite chart: strips differ only by their data.
    """
    placed = strip.reset_index(drop=True).assign(place=range(len(strip)))
    frames = placed[placed["what"] == "key frame"].assign(low=0.0)
    data = {"bars": _bars(placed), "frames": frames, "steps": placed.assign(low=-_LABELS), "holes": _holes(placed)}
    return {**_FORM, "datasets": data}


def _form() -> dict[str, Any]:
    """The chart of a strip, written once: see `picture`."""
    x = alt.X("place:O", title=None, axis=None)
    y = alt.Y("low:Q", title=None, axis=None, scale=alt.Scale(domain=[-_LABELS - 0.2, _HOLES + 0.1]))
    opacity = alt.condition("datum.part == 'builds this version'", alt.value(1.0), alt.value(0.25))
    names = ("what", "version", "added", "dropped", "live after it", "size", "part")
    colour = alt.Color(
        "means:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=None,  # wider than a short strip; the page says what the colours mean
    )
    words = {"fontSize": 11, "angle": 270}
    bars, frames, steps, holes = (alt.Chart(alt.NamedData(name)) for name in ("bars", "frames", "steps", "holes"))
    layers = [
        bars.mark_bar(cornerRadius=2).encode(
            x=x,
            y=y,
            y2="high:Q",
            color=colour,
            opacity=opacity,
            size=alt.Size("wide:Q", scale=None, legend=None),
            tooltip=[f"{name}:N" for name in names],
        ),
        frames.mark_text(color="white", fontWeight="bold", **words).encode(x=x, y=y, text="live after it:Q"),
        steps.mark_text(color=_GREY, **words).encode(x=x, y=y, text="version:Q"),
        holes.mark_square(color=_GREY, size=30, opacity=0.5).encode(x=x, y=y),
    ]
    drawn = alt.layer(*layers).properties(height=_PIXELS, width=alt.Step(_STEP_PIXELS)).configure_view(strokeWidth=0)
    written: dict[str, Any] = drawn.to_dict()
    return written


def _bars(placed: pd.DataFrame) -> pd.DataFrame:
    """One row for each bar: a key frame over the whole height, a delta's additions above the middle, drops below."""
    most = float(max(1, placed[["added", "dropped"]].max().max()))
    frames = placed[placed["what"] == "key frame"].assign(low=-_EDGE, high=_EDGE, means="key frame", wide=24)
    added = placed[placed["added"] > 0]
    added = added.assign(low=0.0, high=added["added"] / most, means="added", wide=12)
    dropped = placed[placed["dropped"] > 0]
    dropped = dropped.assign(low=-dropped["dropped"] / most, high=0.0, means="dropped", wide=12)
    return pd.concat([frames, added, dropped])


def _holes(placed: pd.DataFrame) -> pd.DataFrame:
    """The holes along both edges of the strip."""
    return pd.concat([placed[["place"]].assign(low=edge) for edge in (_HOLES, -_HOLES)])


_FORM = _form()

"""The Timeline page: the laser picture of a table, and what lies under the laser at one instant."""

from contextlib import suppress
from datetime import datetime
from typing import Any

import streamlit as st

import columns
import copied
import opened
import pick
import picture
import shell
from lakehouse.core import Interval
from lakehouse.core.interval import MIN_TIME, to_utc
from lakehouse.errors import InvalidInput
from queries.laser import Laser, read_keys, read_laser
from queries.timeline import MICROSECOND, Picture, read_picture, stops, zoomed
from queries.words import instant_of, size_text, span_text, text_of

SLIDER_VERSIONS = 500

pick.title(
    "Timeline",
    "Each bar is a segment, a file of rows, over the time of its rows; newer writes lie above older ones. Solid bars "
    "are visible, faint ones overshadowed: newer writes hide all of them. Hatched bars are tombstones: they hide what "
    "lies below them, or some rows of it.",
)
table, version, interval = pick.table(), pick.version(), pick.interval()


def slide() -> None:
    """The slider was moved: show that version."""
    pick.show(version=st.session_state["through"])


def brushed() -> None:
    """A range was selected over the columns: show it."""
    drawn = st.session_state["timeline"].selection.get(picture.ZOOM, {}).get("start")
    if drawn:
        start, end = map(instant_of, drawn)
        if start < end:
            pick.show(interval=Interval(start, end))


def draw_slider() -> None:
    listed = stops(opened.lake().catalog.version_numbers(table.spec.id), version, SLIDER_VERSIONS)
    if len(listed) > 1:
        st.session_state["through"] = version
        st.select_slider("Version, through history", listed, key="through", on_change=slide)


def draw_zoom(window: Interval) -> None:
    buttons: dict[str, tuple[str, Interval | None]] = {
        "Earlier": ("chevron_left", zoomed(window, 1, -0.5)),
        "Zoom in": ("zoom_in", zoomed(window, 0.25)),
        "Zoom out": ("zoom_out", zoomed(window, 4)),
        "Later": ("chevron_right", zoomed(window, 1, 0.5)),
        "All": ("fit_width", None),
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, (icon, target) in buttons.items():
            st.button(
                label,
                icon=f":material/{icon}:",
                key=f"zoom {label}",
                on_click=pick.show if target else pick.show_all_time,
                kwargs={"interval": target} if target else None,
            )
        st.text(span_text(window))


def draw_picture(seen: Picture, laser: datetime | None) -> None:
    assert seen.window is not None
    how = picture.counted_chart if seen.is_counted else picture.bars_chart
    chart = how(seen.drawn, seen.hatched, seen.window.start, seen.window.end, laser, has_time=bool(table.time))
    select: Any = brushed if seen.is_counted else "rerun"
    event = st.vega_lite_chart(
        spec=chart, key="timeline", on_select=select, alt="Segments and tombstones by time and ordinal"
    )
    if seen.is_counted:
        st.caption("Too many to draw one by one: counted by time. Select a range of columns to zoom in.")
    elif event.selection.get(picture.PICKED):
        draw_picked(seen, str(event.selection[picture.PICKED][0]["id"]))


def draw_picked(seen: Picture, entry: str) -> None:
    """A bar was clicked: show its details, and put the laser through its middle."""
    parts = seen.drawn[seen.drawn["id"] == entry]
    if parts.empty:
        return
    one = parts.iloc[0]
    span = Interval.of(one["span"])
    seen_part = span.intersect(Interval(one["start"].to_pydatetime(), one["end"].to_pydatetime())) or span
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.text(f"{one['what']}: {one['from']} – {one['until']}, ordinal {one['ordinal']}, {one['rows']:,} rows")
        st.button("Put the laser here", icon=":material/flare:", on_click=aim, args=[seen_part])
        where = pick.parameters(interval=one["span"])
        if one["what"].startswith("segment"):
            st.page_link("views/segments.py", label="See the segment", query_params={**where, "segment": entry})
        else:
            st.page_link("views/tombstones.py", label="See the tombstone", query_params=where)


def aim(at: Interval) -> None:
    """Put the laser into the middle of an interval, at a full second if there is one."""
    middle = at.start + (at.end - at.start) / 2
    second = middle.replace(microsecond=0)
    st.session_state["laser"] = text_of(second if at.contains(second) else middle)


def aimed() -> datetime | None:
    """The position of the laser, for the picture; an error in what was typed is shown below it."""
    with suppress(InvalidInput):
        text = str(st.session_state.get("laser") or st.query_params.get("laser") or "").strip()
        return to_utc(text) if text else None
    return None


def draw_laser() -> None:
    pick_what = "Pick an instant, and optionally keys," if table.time else "Give keys"
    shell.section("Laser", f"{pick_what} to see what lies there and what hides it.")
    at_column, keys_column = st.columns(2)
    at_text = at_column.text_input(
        "At", key="laser", bind="query-params", placeholder="2013-02-08 12:00", disabled=not table.time
    )
    example = next(iter(table.cluster_by), "column")
    keys_text = keys_column.text_input("Keys", key="keys", bind="query-params", placeholder=f"{example}=value")
    if at_text.strip() or (keys_text.strip() and not table.time):
        keys = read_keys(keys_text, table.schema)
        at = to_utc(at_text) if table.time else MIN_TIME  # all of time is alike there
        draw_probed(read_laser(opened.lake(), table.name, version, at, keys))


def same_probe() -> list[str]:
    """What the laser shows, in Python: the slice there, its rows with these keys, and what happened to it."""
    keys = None
    with suppress(InvalidInput):
        keys = read_keys(str(st.session_state.get("keys") or ""), table.schema)
    at = aimed()
    if at is None and (table.time or keys is None):
        return []
    instant = Interval(at, at + MICROSECOND) if at is not None and table.time else None
    where = copied.is_among(keys)
    return [
        f"print({copied.call('table.timeline', interval=instant, as_of=version)})",
        f"print({copied.call('table.scan', interval=instant, where=where or None, as_of=version)}.to_arrow())",
        f"print({copied.call('table.history', interval=instant)})",
    ]


def draw_probed(laser: Laser) -> None:
    st.text(laser.sentence)
    settings = columns.without("rows")
    if len(laser.probed):
        st.dataframe(laser.probed, hide_index=True, column_config=columns.COLUMNS, alt="Segments probed", key="probed")
    if len(laser.met):
        with st.expander("Tombstones on the way"):
            st.dataframe(laser.met, hide_index=True, alt="Tombstones met", key="met")
    if len(laser.happened):
        st.caption("What happened here, newest first.")
        happened = laser.happened.drop(columns="dropped")
        st.dataframe(happened, hide_index=True, column_config=settings, alt="Versions that changed it", key="happened")


seen = read_picture(opened.lake(), table.name, version, interval)
shell.figures(
    {
        "Rows stored": seen.rows,
        "Size": size_text(seen.bytes),
        "Segments": seen.segments,
        "Overshadowed": seen.overshadowed,
        "Tombstones": seen.tombstones,
    }
)
draw_slider()
if seen.window is not None and table.time:
    draw_zoom(seen.window)
if seen.drawn.empty:
    shell.empty("Nothing is stored here at this version. Pick another version, or another time, at the left.")
else:
    draw_picture(seen, aimed())
with shell.frame():
    draw_laser()
copied.offer(
    "timeline",
    copied.Copied(
        python=copied.python(
            f"table = {copied.call('lake.table', table.name)}",
            f"print({copied.call('table.timeline', interval=interval, as_of=version)})",
            *same_probe(),
        ),
        command=copied.command("timeline", table.name, as_of=version, interval=interval),
    ),
    laser=st.session_state.get("laser") or None,
    keys=st.session_state.get("keys") or None,
)

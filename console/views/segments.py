"""The Segments page: the files of a table, filtered and sorted, and the details of one."""

import streamlit as st

import columns
import copied
import opened
import pick
import shell
from lakehouse.core import Segment
from queries import segments
from queries.query import drawable
from queries.words import size_text
from shown import shown

PAGE_ROWS = 100
ANY = "any"

pick.title("Segments", "Immutable files of rows, live at the version. Pick one to see its details.")
lake, table, version, interval = opened.lake(), pick.table(), pick.version(), pick.interval()


def picked() -> None:
    """A row was picked: its segment is in the address."""
    rows = st.session_state["listed"].selection.rows
    st.session_state["segment"] = listed["segment"].iloc[rows[0]] if rows else ""


def find() -> tuple[segments.Found, str, str, str]:
    """Segments that pass the filters, and these."""
    state_column, order_column, where_column = st.columns([1, 1, 2])
    states = [ANY, segments.SEEN, segments.OVERSHADOWED]
    state = state_column.selectbox("State", states, key="state", bind="query-params")
    order = order_column.selectbox("Order", list(segments.ORDERS), key="order", bind="query-params")
    where = where_column.text_input(
        "May hold rows where", key="where", bind="query-params", placeholder="carrier = 'UA' AND dep_delay > 60"
    )
    found = segments.find_segments(
        lake, table.name, version, interval, where=where, order=order, state=None if state == ANY else state
    )
    return found, state, order, where


def same_segments() -> copied.Copied:
    """The same segments elsewhere. The catalog decides them for a scan in the same way, and has its indexes besides."""
    field, is_reversed = segments.ORDERS_ELSEWHERE[order]
    scan = copied.call("table.scan", where=where or None, interval=interval, as_of=version)
    hidden = "[one for left in scan.pruned() if left.reason == 'overshadowed' for one in left.segments]"
    chosen = {ANY: f"[*scan.plan().segments, *{hidden}]", segments.SEEN: "scan.plan().segments"}.get(state, hidden)
    by = f"key=lambda one: one.{field}{', reverse=True' if is_reversed else ''}"
    sql = copied.select(
        f"{table.name}.segments VERSION AS OF {version}",
        *copied.within(interval, "start", "`end`"),
        order=f"`{field}`{' DESC' if is_reversed else ''}",
    )
    is_plain = state == ANY and not where.strip()
    return copied.Copied(
        python=copied.python(
            f"table = {copied.call('lake.table', table.name)}",
            f"scan = {scan}",
            f"for one in sorted({chosen}, {by}):",
            "    print(one)",
        ),
        sql=sql if is_plain else None,
        command=copied.command("sql", sql) if is_plain else None,
    )


def draw_one(segment: Segment, found: segments.Found) -> None:
    """The details of one segment. Only its own file is read."""
    shell.section("One segment")
    rewritten = f", rewrites without erased rows: {segment.rewrites}" if segment.rewrites else ""
    st.text(f"Segment {segment.id}: {segments.span(segment)}, ordinal {segment.ordinal}{rewritten}")
    st.code(f"{lake.warehouse}/{segment.path}", language=None, wrap_lines=True)
    known, stored, rows = st.tabs(["Bounds and key coordinates", "File", "Rows"])
    with known:
        st.dataframe(segments.statistics_of(table, segment), hide_index=True, alt="Bounds", key="bounds")
    with stored, shell.frame():
        draw_file(segment)
    with rows, shell.frame():
        preview = segments.preview(lake, table.name, version, segment, found.tombstones)
        if len(preview):
            st.caption(f"The first rows that are visible at this version, at most {segments.PREVIEW_ROWS}.")
            st.dataframe(drawable(preview), hide_index=True, alt="Rows", key="rows")
        else:
            shell.empty("No row of this segment is visible at this version: tombstones hide all of them.")


def draw_file(segment: Segment) -> None:
    file = segments.read_file(lake, segment)
    shell.figures(dict(list(file.facts.items())[:4]))
    st.text(f"Written by {file.facts['Written by']}")
    st.text(f"Checksum {file.facts['Checksum']}")
    st.dataframe(file.schema, hide_index=True, alt="Parquet schema", key="schema")
    settings = {**columns.COLUMNS, "compressed": columns.COLUMNS["size"]}
    st.dataframe(file.row_groups, hide_index=True, column_config=settings, alt="Row groups", key="row groups")


found, state, order, where = find()
shell.figures(
    {
        "Segments": len(found.segments),
        "Rows stored": found.segments.rows,
        "Size": size_text(found.segments.bytes),
        "Overshadowed": len(found.overshadowed),
    }
)
if not len(found.segments):
    shell.empty("No segment passes these filters at this version. Widen them, or the time at the left.")
    st.stop()
pages = -(-len(found.segments) // PAGE_ROWS)
page = st.pagination(pages, key="page", bind="query-params") if pages > 1 else 1
part = found.segments[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
listed = segments.describe_segments(lake, table.name, found, part)
st.dataframe(
    listed,
    hide_index=True,
    column_config=columns.COLUMNS,
    key="listed",
    on_select=picked,
    selection_mode="single-row",
    alt="Segments",
)
sizes = st.expander("Sizes", on_change="rerun")
if sizes.open:  # otherwise the page would wait for the charting package
    sizes.bar_chart(segments.histogram(found.segments), x="from size", y="segments", sort=False, height=220)
wanted = st.text_input("Segment", key="segment", bind="query-params", placeholder="pick a row", width=320)
if wanted.strip():
    place = [number for number, held in enumerate(found.segments.ids.tolist()) if str(held) == wanted.strip()]
    if place:
        draw_one(found.segments[place[0]], found)
    else:
        st.text(f"No segment {shown(wanted, 40)} passes these filters at this version.")
copied.offer("segments", same_segments(), state=None if state == ANY else state, order=order, where=where or None,
             segment=wanted or None)  # fmt: skip

"""The lake on one page: its tables, one table's versions, and the timeline that can be seen at one of them."""

import streamlit as st

import queries
import timeline
from lakehouse.errors import LakehouseError

LOG_LIMIT = 500
EMPTY = ":material/hourglass_empty:"
TIMES = {
    name: st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")
    for name in ("first row", "last row", "chunk", "until")
}
COLUMNS = {
    **TIMES,
    "committed": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss"),
    "size": st.column_config.NumberColumn(format="bytes"),
    "rows": st.column_config.NumberColumn(format="localized"),
}


@st.cache_resource
def lake():
    return queries.open_lake()


def pick_version(versions: list[int]) -> None:
    """A row of the log was clicked: show that version."""
    picked = st.session_state["log"].selection.rows
    st.session_state["version"] = versions[picked[0]] if picked else versions[0]


def draw() -> None:
    st.title("Lakehouse", anchor=False)
    opened = lake()
    st.text(f"{opened.catalog.url}    {opened.warehouse}")
    tables = queries.list_tables(opened)
    if tables.empty:
        st.info("This lake has no tables yet. Fill one with real flights, or make your own:", icon=":material/water:")
        st.code("lakehouse demo\nlakehouse init NAME --schema 'at timestamp, value double' --time at", language="bash")
        return
    draw_tables(tables)
    name_column, version_column = st.columns(2)
    name = name_column.selectbox("Table", list(tables["table"]), key="table", bind="query-params")
    versions = queries.list_versions(opened, name, LOG_LIMIT)
    if versions.empty:
        st.info("Nothing is stored in this table yet. Append rows: `lakehouse append TABLE FILE`.", icon=EMPTY)
        return
    numbers = list(versions["version"])
    version = version_column.selectbox("Version", numbers, key="version", bind="query-params")
    draw_state(queries.read_state(opened, name, version))
    draw_log(versions, numbers)


def draw_tables(tables) -> None:
    st.subheader("Tables", anchor=False)
    st.dataframe(tables, hide_index=True, column_config=COLUMNS, alt="Tables of the lake", key="tables")


def draw_state(state: queries.TableState) -> None:
    figures = {
        "Rows stored": f"{state.rows_stored:,}",
        "Size": queries.size_text(state.bytes),
        "Segments": f"{state.segments:,}",
        "Overshadowed": f"{state.overshadowed:,}",
        "Tombstones": f"{state.tombstones:,}",
        "Chunks": f"{len(state.chunks):,}",
    }
    for column, (label, figure) in zip(st.columns(len(figures)), figures.items(), strict=True):
        column.metric(label, figure, border=True)
    st.subheader("Timeline", anchor=False)
    if state.picture.empty:
        st.info(
            "Nothing is stored at this version. Pick another one above, or append rows.",
            icon=EMPTY,
        )
        return
    st.caption(
        "Time runs from left to right, in UTC; newer writes lie above older ones. Solid can be seen, faint is "
        "overshadowed, and a thin bar is a tombstone: it hides what lies below it, or, if pale, some rows of it."
    )
    st.altair_chart(timeline.chart(state.picture), key="timeline", alt="Segments and tombstones by time and ordinal")
    if len(state.picture) < state.bars:
        st.caption(f"{state.bars:,} bars, drawn as {len(state.picture):,}: neighbours are joined.")
    with st.expander("Chunks"):
        st.dataframe(state.chunks, hide_index=True, column_config=COLUMNS, alt="Time chunks", key="chunks")


def draw_log(versions, numbers: list[int]) -> None:
    st.subheader("Versions", anchor=False)
    st.caption("Newest first. Pick a row to see the table as it was then.")
    st.dataframe(
        versions,
        hide_index=True,
        column_config={name: held for name, held in COLUMNS.items() if name != "rows"},
        key="log",
        on_select=lambda: pick_version(numbers),
        selection_mode="single-row",
        alt="Version log",
    )


try:
    draw()
except LakehouseError as error:
    st.error("The lake cannot be read.", icon=":material/error:")
    st.code(str(error), language=None)
    st.markdown("`lakehouse doctor` tells what is wrong and what to do. Then reload this page.")
    lake.clear()

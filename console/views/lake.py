"""The Lake page: every table with its size, growth and health, and current activity."""

import streamlit as st

import columns
import copied
import opened
import pick
import shell
from queries.lake import GROWTH_DAYS, cache_text, list_tables
from queries.words import size_text

shell.title("Lakehouse", "Every table of this lake as it is stored now. Pick one to show it on every page.")
lake = opened.lake()
st.text(f"{lake.catalog.url}    {lake.warehouse}")
if copies := cache_text(lake):
    st.text(copies)


def picked() -> None:
    """A table was picked."""
    rows = st.session_state["tables"].selection.rows
    if rows:
        st.session_state["table"] = tables["table"].iloc[rows[0]]


tables = list_tables(lake)
shell.figures(
    {
        "Tables": len(tables),
        "Head": lake.head,
        "Rows stored": int(tables["rows stored"].sum()),
        "Size": size_text(int(tables["size"].sum())),
        "Segments": int(tables["segments"].sum()),
        "Tasks waiting": int(tables["tasks waiting"].sum()),
        "Operations": int(tables["running"].sum()),
    }
)
growth = st.column_config.BarChartColumn(
    f"growth, {GROWTH_DAYS} days", help="Rows added minus rows dropped by versions, one bar for each day."
)
st.dataframe(
    tables,
    hide_index=True,
    column_config={**columns.COLUMNS, "growth": growth},
    key="tables",
    on_select=picked,
    selection_mode="single-row",
    alt="Tables of the lake",
)
st.text(f"Picked: {pick.table().name}")
with st.container(horizontal=True):
    for page, label, icon in (
        ("schema", "Schema", "table"),
        ("versions", "Versions", "commit"),
        ("timeline", "Timeline", "view_timeline"),
        ("locks", "Operations", "lock"),
    ):
        st.page_link(
            f"views/{page}.py", label=label, icon=f":material/{icon}:", query_params={"table": pick.table().name}
        )
copied.offer(
    "lake",
    copied.Copied(python=copied.python("print(lake.tables())"), sql="SHOW TABLES", command=copied.command("tables")),
)

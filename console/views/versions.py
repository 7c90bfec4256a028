"""The Versions page: the commit log."""

import streamlit as st

import columns
import copied
import opened
import pick
import shell
from queries.versions import list_versions

LOG_LIMIT = 500

shell.title("Versions", "Every commit that changed the table, newest first. Pick a row to look at the table as of it.")
name = pick.table().name
versions = list_versions(opened.lake(), name, LOG_LIMIT)
if versions.empty:
    shell.empty("Nothing is stored in this table yet. Append rows:", "lakehouse append TABLE FILE")
    st.stop()
numbers = list(versions["version"])


def picked() -> None:
    rows = st.session_state["log"].selection.rows
    if rows:
        pick.show(version=numbers[rows[0]])


st.dataframe(
    versions,
    hide_index=True,
    column_config=columns.without("rows"),
    key="log",
    on_select=picked,
    selection_mode="single-row",
    alt="Version log",
)
copied.offer(
    "versions",
    copied.Copied(
        python=copied.python(f"lake.table({copied.literal(name)}).log()"), command=copied.command("log", name)
    ),
)

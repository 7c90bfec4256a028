"""The Lake page: every table, with how large it is."""

import streamlit as st

import columns
import copied
import opened
import shell
from queries.lake import list_tables

shell.title("Lakehouse", "Tables of this lake as they are now. Pick one at the left to look at it on every page.")
lake = opened.lake()
st.text(f"{lake.catalog.url}    {lake.warehouse}")
st.dataframe(list_tables(lake), hide_index=True, column_config=columns.COLUMNS, alt="Tables of the lake", key="tables")
copied.offer(
    "lake",
    copied.Copied(python=copied.python("lake.tables()"), sql="SHOW TABLES", command=copied.command("tables")),
)

"""How columns of one name look in every data frame: times to the minute, sizes in their unit, links as words."""

import streamlit as st

_MINUTE = st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")
COLUMNS = {
    **dict.fromkeys(("first row", "last row", "chunk", "until", "from"), _MINUTE),
    "begun": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss"),
    **dict.fromkeys(("ended", "not before"), st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss")),
    **dict.fromkeys(
        ("reads", "read", "written", "rewritten", "bytes less"), st.column_config.NumberColumn(format="bytes")
    ),
    **dict.fromkeys(
        ("score", "predicted ms", "gained ms", "ms a scan", "took s", "ratio"),
        st.column_config.NumberColumn(format="%.1f"),
    ),
    "made": st.column_config.LinkColumn("made", display_text="version"),
    "committed": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss"),
    "size": st.column_config.NumberColumn(format="bytes"),
    **dict.fromkeys(("rows", "rows stored"), st.column_config.NumberColumn(format="localized")),
    "run": st.column_config.LinkColumn("run", display_text="Dagster run"),
}
"""Column settings by column name; a frame takes those that it has."""
STREAMS = {
    **COLUMNS,
    "failed": COLUMNS["ended"],
    "rows a second": st.column_config.NumberColumn(format="%.1f"),
    "took s": st.column_config.NumberColumn(format="%.2f"),
}
"""Those of topics, whose batches take less than a second."""

SERVING = {
    **COLUMNS,
    "flipped": COLUMNS["ended"],
    "took s": st.column_config.NumberColumn(format="%.3f"),
}
"""Those of query nodes, whose statements take less than a second."""


def without(*names: str) -> dict[str, object]:
    """The settings without some columns, which hold words on this page."""
    return {name: held for name, held in COLUMNS.items() if name not in names}

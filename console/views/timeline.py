"""The Timeline page: time across, what can be seen solid, what is overshadowed faint, tombstones over it."""

import streamlit as st

import columns
import copied
import opened
import pick
import picture
import shell
from queries.timeline import read_state
from queries.words import size_text

shell.title(
    "Timeline",
    "Time runs from left to right, in UTC; newer writes lie above older ones. Solid can be seen, faint is "
    "overshadowed, and a thin bar is a tombstone: it hides what lies below it, or, if pale, some rows of it.",
)
table, version, interval = pick.table(), pick.version(), pick.interval()
state = read_state(opened.lake(), table.name, version)
shell.figures(
    {
        "Rows stored": state.rows_stored,
        "Size": size_text(state.bytes),
        "Segments": state.segments,
        "Overshadowed": state.overshadowed,
        "Tombstones": state.tombstones,
        "Chunks": len(state.chunks),
    }
)
if state.picture.empty:
    shell.empty("Nothing is stored at this version. Pick another one at the left, or append rows.")
    st.stop()
st.altair_chart(picture.chart(state.picture), key="timeline", alt="Segments and tombstones by time and ordinal")
if len(state.picture) < state.bars:
    st.caption(f"{state.bars:,} bars, drawn as {len(state.picture):,}: neighbours are joined.")
with st.expander("Chunks"):
    st.dataframe(state.chunks, hide_index=True, column_config=columns.COLUMNS, alt="Time chunks", key="chunks")
copied.offer(
    "timeline",
    copied.Copied(
        python=copied.python(f"lake.table({copied.literal(table.name)}).timeline(as_of={version})"),
        command=copied.command("timeline", table.name, as_of=version, interval=interval),
    ),
)

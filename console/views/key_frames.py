"""The Key frames page: how a chunk's state is built, as a strip of frames."""

import streamlit as st

import columns
import copied
import opened
import pick
import shell
import strip
from lakehouse.core import Interval
from queries.key_frames import MOST_CHUNKS, ChunkHistory, list_chains, read_chunk_histories
from queries.words import size_text, span_text

shell.title(
    "Key frames",
    "A key frame is the whole state of a chunk at one version. Any version is built from the newest key frame "
    "before it and the deltas since, which add (up, green) and drop (down, orange) segments and tombstones.",
)
lake, table, version, interval = opened.lake(), pick.table(), pick.version(), pick.interval()


def picked() -> None:
    """A chunk was picked: show it."""
    rows = st.session_state["chains"].selection.rows
    if rows:
        row = chains.iloc[rows[0]]
        pick.show(interval=Interval(row["chunk"].to_pydatetime(), row["until"].to_pydatetime()))


def chunk_looked_at() -> Interval:
    """The chunk in which the picked time begins, or else the one changed last."""
    if interval is not None:
        found: Interval = table.spec.grain.chunk(interval.start)
        return found
    wide = chains["until"] - chains["chunk"]
    newest = chains[wide == wide.min()].iloc[
        0
    ]  # bins of centuries hold entries over all time, such as the keys of an upsert
    return table.spec.grain.chunk(newest["chunk"].to_pydatetime())


def draw_history(chunk_history: ChunkHistory) -> None:
    with st.container(border=True):
        st.text(f"{span_text(chunk_history.chunk)}")
        shell.figures(
            {
                "Key frames": chunk_history.key_frames,
                "Their size": size_text(chunk_history.key_frame_bytes),
                "Deltas after the one used": chunk_history.chain,
            }
        )
        drawn = strip.chart(chunk_history.strip)
        st.vega_lite_chart(spec=drawn, width="content", key=f"history {chunk_history.chunk}", alt="Film strip")
        with st.expander("Steps"):
            st.dataframe(chunk_history.strip, hide_index=True, alt="Steps", key=f"steps {chunk_history.chunk}")


chains = list_chains(lake, table.name, interval)
if chains.empty:
    shell.empty("Nothing was ever written here, so there is nothing to build.")
    st.stop()
chunk = chunk_looked_at()
shell.section("Film", "The chunk in which the time at the left begins, or else the one changed last.")
histories = read_chunk_histories(lake, table.name, version, chunk)
st.text(f"{span_text(chunk)} at version {version}")
if histories:
    st.caption(f"Rebuilt from key frames and deltas in {histories[0].read_milliseconds:.1f} ms.")
for chunk_history in histories:
    draw_history(chunk_history)
if not histories:
    shell.empty("Nothing was ever written to this chunk. Pick another one below, or another time at the left.")
shell.section("Chunks", f"The {MOST_CHUNKS} changed last. Pick one to see its history.")
st.dataframe(
    chains,
    hide_index=True,
    column_config=columns.COLUMNS,
    key="chains",
    on_select=picked,
    selection_mode="single-row",
    alt="Chunks and their chains",
)
copied.offer(
    "key_frames",
    copied.Copied(
        python=copied.python(f'lake.table({copied.literal(table.name)}).chain("{chunk}", as_of={version})'),
        command=copied.command("show", table.name, as_of=version, interval=chunk, key_frames=True),
    ),
)

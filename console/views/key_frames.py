"""The Key frames page: how a chunk's state is built, as a strip of frames."""

import streamlit as st

import columns
import copied
import opened
import pick
import shell
import strip
from lakehouse.core import Interval
from queries.key_frames import MOST_CHUNKS, ChunkHistory, how_built, list_chains, read_chunk_histories
from queries.words import size_text

pick.title(
    "Key frames",
    "How the state of a chunk is stored. Each commit adds a delta: the segments and tombstones that it added and "
    "dropped. Now and then the whole state is written down as a key frame, so that a reader replays few deltas.",
)
lake, table, version, interval = opened.lake(), pick.table(), pick.version(), pick.interval()


def picked() -> None:
    """A chunk was picked: show it."""
    rows = st.session_state["chains"].selection.rows
    if rows:
        row = chains.iloc[rows[0]]
        pick.show(interval=Interval(row["from"].to_pydatetime(), row["until"].to_pydatetime()))


def chunk_looked_at() -> Interval:
    """The chunk in which the picked time begins, or else the one changed last."""
    if interval is not None:
        found: Interval = table.spec.grain.chunk(interval.start)
        return found
    wide = chains["until"] - chains["from"]
    newest = chains[wide == wide.min()].iloc[0]  # not a run of chunks, where one of them was changed by itself
    return table.spec.grain.chunk(newest["from"].to_pydatetime())


def draw_history(place: int, chunk_history: ChunkHistory) -> None:
    label = chunk_history.label
    with st.container(border=True):
        st.text(label[:1].upper() + label[1:])
        if chunk_history.is_shared:
            st.caption("What touches many chunks, such as the keys of an upsert, is kept once for all of them.")
        st.text(how_built(chunk_history, version))
        shell.figures(
            {
                "Key frames": chunk_history.key_frames,
                "Their size": size_text(chunk_history.key_frame_bytes),
                "Deltas replayed": chunk_history.chain,
            }
        )
        drawn = strip.chart(chunk_history.strip)
        st.vega_lite_chart(
            spec=drawn,
            width="content",
            key=f"history {place}",
            alt="What versions added and dropped, and key frames",
        )
        with st.expander("The same as a table"):
            st.dataframe(chunk_history.strip, hide_index=True, alt="Steps", key=f"steps {place}")


chains = list_chains(lake, table.name, interval)
if chains.empty:
    shell.empty("Nothing was ever written here, so there is nothing to build.")
    st.stop()
chunk = chunk_looked_at()
shell.section(
    "History of a chunk",
    "Of the chunk in which the time at the left begins, or else of the one changed last. Pale bars are not needed for "
    "the version shown.",
)
histories = read_chunk_histories(lake, table.name, version, chunk)
if histories:
    st.caption(f"Rebuilt from key frames and deltas in {histories[0].read_milliseconds:.1f} ms.")
for place, chunk_history in enumerate(histories):
    draw_history(place, chunk_history)
if not histories:
    shell.empty("Nothing was ever written to this chunk. Pick another one below, or another time at the left.")
shell.section("Chunks", f"The {MOST_CHUNKS} changed last. Pick one to see its history.")
st.dataframe(
    chains,
    hide_index=True,
    column_config={**columns.without("chunk"), "from": None, "until": None},
    key="chains",
    on_select=picked,
    selection_mode="single-row",
    alt="Chunks and their chains",
)
of_chunk = chunk if table.time else None
copied.offer(
    "key_frames",
    copied.Copied(
        python=copied.python(
            f"table = {copied.call('lake.table', table.name)}",
            f"print({copied.call('table.chain', interval=of_chunk, as_of=version)})",
        ),
        command=copied.command("show", table.name, as_of=version, interval=of_chunk, key_frames=True),
    ),
)

"""The Streams page: topics that processes run, how far each is, and the consumers of change feeds."""

import streamlit as st

import columns
import copied
import opened
import shell
from queries.streams import streams

REFRESH_SECONDS = 3
_MOST_TROUBLES = 10

shell.title(
    "Streams",
    "Topics that `lakehouse stream run` keeps running, as their processes reported them last, and named readers of "
    "tables. Rows and restarts count from when the process began.",
)


@st.fragment(run_every=REFRESH_SECONDS)
def draw() -> None:
    """The frames, which refresh by themselves."""
    with shell.frame():
        now = streams(opened.lake())
        shell.figures(
            {
                "Topics": len(now.topics),
                "Running": now.running,
                "Stalled or failed": now.stalled,
                "Rows a second": f"{now.rows_per_second:,.0f}",
            }
        )
        for name, why in now.troubles[:_MOST_TROUBLES]:
            st.error("A topic makes no progress.", icon=":material/error:")
            st.code(f"{name}: {why}", language=None, wrap_lines=True)
        shell.section("Topics", "Those that make no progress first.")
        if now.topics.empty:
            shell.empty("No topic has been run. A file of topics says what is read, and into which tables:",
                        "lakehouse stream run topics.toml")  # fmt: skip
        else:
            st.dataframe(now.topics, hide_index=True, column_config=columns.STREAMS, alt="Topics", key="topics")
        shell.section("Consumers", "What a reader has yet to read is kept for it until the time shown.")
        if now.consumers.empty:
            shell.empty("No named reader. `table.follow(consumer=...)` and Spark's streams from tables make them.")
        else:
            st.dataframe(
                now.consumers, hide_index=True, column_config=columns.COLUMNS, alt="Consumers", key="consumers"
            )


draw()
copied.offer(
    "streams",
    copied.Copied(
        python=copied.python("print(lake.topics(), lake.consumers())"), command=copied.command("stream", "list")
    ),
)

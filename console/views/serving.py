"""The Serving page: query nodes, the versions that they answer at and load, hit rates and slow statements."""

import streamlit as st

import columns
import copied
import opened
import shell
from queries.serving import serving

REFRESH_SECONDS = 3
_MOST_TROUBLES = 10

shell.title(
    "Serving",
    "Query nodes that `lakehouse serve` runs, as they reported themselves last. A group answers at one version; the "
    "next one goes live once every node has loaded it.",
)


@st.fragment(run_every=REFRESH_SECONDS)
def draw() -> None:
    """The frames, which refresh by themselves."""
    with shell.frame():
        now = serving(opened.lake())
        shell.figures(
            {"Groups": len(now.groups), "Nodes": now.live, "Handoffs": now.handoffs, "Answers": f"{now.queries:,}"}
        )
        for name, why in now.troubles[:_MOST_TROUBLES]:
            st.error("A node cannot load a version, and its group waits.", icon=":material/error:")
            st.code(f"{name}: {why}", language=None, wrap_lines=True)
        if now.groups.empty:
            shell.empty("No query node has been started. One answers statements by HTTP:",
                        "lakehouse serve --group dashboards")  # fmt: skip
            return
        shell.section("Groups", "What is live, and what the next version waits for.")
        st.dataframe(now.groups, hide_index=True, column_config=columns.SERVING, alt="Groups", key="groups")
        shell.section("Nodes", "A silent one has not renewed its lease; no handoff waits for it.")
        st.dataframe(now.nodes, hide_index=True, column_config=columns.SERVING, alt="Nodes", key="nodes")
        if not now.slow.empty:
            shell.section("Slow statements", "Their values are left out.")
            st.dataframe(now.slow, hide_index=True, column_config=columns.SERVING, alt="Slow statements", key="slow")


draw()
copied.offer("serving", copied.Copied(python=copied.python("print(lake.serving())"), command=copied.command("serving")))

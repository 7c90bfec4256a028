"""The Locks and operations page: what runs, what it holds, who waits, and how to end an operation."""

from functools import partial

import streamlit as st

import acting
import columns
import copied
import opened
import shell
import who
from lakehouse.actions.roles import Action
from queries.locks import goings_on

REFRESH_SECONDS = 5

shell.title(
    "Locks and operations",
    "Everything that runs now, on all tables. An operation whose process died keeps its locks until its lease "
    "expires; then others can take them.",
)
acting.show_result()


@st.fragment(run_every=REFRESH_SECONDS)
def draw() -> None:
    """The frames, which refresh by themselves: a lease lasts seconds."""
    with shell.frame():
        now = goings_on(opened.lake())
        shell.figures({"Operations": len(now.operations), "Locks": len(now.locks), "Waiting": len(now.waits)})
        shell.section("Operations", "Oldest first. Each reads the version shown beside it.")
        if now.operations.empty:
            shell.empty("Nothing runs now. This page refreshes by itself.")
        else:
            st.dataframe(
                now.operations, hide_index=True, column_config=columns.COLUMNS, alt="Operations", key="operations"
            )
        shell.section("Locks", "Who holds which chunks, and for which keys.")
        if now.locks.empty:
            shell.empty("No chunk is locked: an operation gets any chunk at once.")
        else:
            st.dataframe(
                now.locks, hide_index=True, column_config=columns.without("from", "until"), alt="Locks", key="locks"
            )
        if not now.waits.empty:
            shell.section("Waiting", "First come, first served.")
            st.dataframe(
                now.waits, hide_index=True, column_config=columns.without("from", "until"), alt="Waiting", key="waits"
            )


draw()
running = [one.operation for one in opened.lake().operations()]
if running:
    shell.section("Release", "Ends any operation and releases its locks. For administrators.")
    operation = st.selectbox("Operation", running, key="operation")
    acting.offer(
        Action.RELEASE,
        "Release",
        partial(who.actions().release, operation),
        key=f"release {operation}",
        icon=":material/lock_open:",
        describe=lambda _: f"Operation {operation} has ended; its locks are free.",
    )
copied.offer("locks", copied.Copied(python=copied.python("print(lake.activity())"), command=copied.command("locks")))

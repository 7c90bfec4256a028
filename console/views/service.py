"""The Service page: what waits, runs and was done, why, what it gains, and buttons for those with a role."""

from functools import partial

import altair as alt
import pandas as pd
import streamlit as st

import acting
import columns
import copied
import opened
import pick
import shell
import who
from lakehouse.actions.roles import Action
from lakehouse.core.task import Task, TaskState
from queries import service
from queries.words import size_text

REFRESH_SECONDS = 3

shell.title(
    "Service",
    "Maintenance rewrites segments so that scans cost less, and removes expired versions. It changes no row and "
    "gives way to users. The score is what it saves, in milliseconds of scans a day, for each megabyte read.",
)
acting.show_result()
lake, table = opened.lake(), pick.table()
scope = st.segmented_control("Tables", ["all", "picked"], default="all", key="of", bind="query-params")
chosen = table.name if scope == "picked" else None
st.text("Every table of the lake" if chosen is None else f"Table {chosen}")


def listing(frame: pd.DataFrame, name: str, words: str) -> None:
    """A frame, or a text that says why there is none."""
    if frame.empty:
        shell.empty(words)
    else:
        st.dataframe(frame, hide_index=True, column_config=columns.COLUMNS, alt=name, key=name)


@st.fragment(run_every=REFRESH_SECONDS)
def draw_now() -> None:
    """What runs and what waits; refreshes by itself."""
    with shell.frame():
        runs, waits = service.running(lake, chosen), service.queue(lake, chosen)
        shell.figures(
            {
                "Running": len(runs),
                "Waiting": len(waits) if len(waits) < service.MOST else f"{service.MOST} or more",
                "To be read": size_text(int(waits["reads"].sum())) if len(waits) else "0 B",
                "Saved by a scan of all": f"{waits['ms a scan'].sum():,.0f} ms" if len(waits) else "0 ms",
            }
        )
        shell.section("Running")
        listing(runs, "running", "No task runs now. This page refreshes by itself.")
        shell.section("Queue", "Best first. Predicted is what one scan of the interval saves.")
        listing(
            waits, "queue", "Nothing waits. A round plans tables that changed, and runs the tasks that are worth it."
        )


@st.fragment(run_every=REFRESH_SECONDS)
def draw_history() -> None:
    """What ended; refreshes by itself."""
    with shell.frame():
        plans = st.toggle("Show plans too", key="plans")
        done = service.history(lake, chosen, plans=plans)
        listing(done, "history", "No task has ended yet.")
        measured = done[done["gained ms"].notna()] if len(done) else done
        if len(measured) > 1:
            st.caption("Predicted gain of a scan (across) and actual gain (up), in milliseconds; each point is a task.")
            drawn = measured[["predicted ms", "gained ms", "kind"]].set_axis(["x", "y", "kind"], axis=1)
            marks = alt.Chart(drawn).mark_circle(size=70)
            points = marks.encode(x=alt.X("x:Q", title="predicted"), y=alt.Y("y:Q", title="gained"), color="kind:N")
            st.altair_chart(points, key="gains", alt="Predicted and actual gain of each task")


def named(task: Task) -> str:
    """A task in a list to choose from."""
    return f"{task.id}: {task.kind.value} of {task.table or 'the lake'}, {task.state.value}"


draw_now()
actions = who.actions()
with st.container(horizontal=True):
    acting.offer(
        Action.MAINTAIN,
        "Do a round now",
        partial(actions.maintain, chosen),
        key=f"maintain {chosen}",
        icon=":material/play_arrow:",
        is_long=True,
        describe=lambda _: "The round has begun; what it does is listed here.",
    )
is_dry = st.toggle("Dry run: what a round would do now, from a plan that is not stored", key="dry")
if is_dry:
    listing(service.dry_run(lake, chosen), "dry run", "A round would do nothing: no table needs anything.")
tasks = [
    *lake.tasks(table=chosen, state=TaskState.RUNNING, limit=service.MOST),
    *lake.tasks(table=chosen, state=TaskState.WAITING, limit=service.MOST),
]
if tasks:
    held = {one.id: one for one in tasks}
    task = held[st.selectbox("Task", list(held), format_func=lambda one: named(held[one]), key="task")]
    acting.offer(
        Action.RUN_TASK,
        "Run now",
        partial(actions.run_task, task.id, task.cause),
        key=f"run {task.id}",
        icon=":material/bolt:",
        is_long=True,
        describe=lambda _: f"Task {task.id} has begun.",
    )
    acting.offer(
        Action.CANCEL_TASK,
        "Cancel it",
        partial(actions.cancel_task, task.id),
        key=f"cancel {task.id}",
        icon=":material/cancel:",
        describe=lambda _: f"Task {task.id} is cancelled.",
    )
done_tab, bytes_tab, policy_tab = st.tabs(["History", "Write amplification", f"Policy of {table.name}"])
with done_tab:
    draw_history()
with bytes_tab:
    st.caption("Bytes that users wrote, and bytes that maintenance rewrote.")
    tables = lake.tables() if chosen is None else [chosen]
    listing(service.amplification(lake, tables[: service.MOST]), "amplification", "Nothing was written yet.")
with policy_tab:
    listing(service.policy(table), "policy", "This table has no policy.")
copied.offer(
    "service",
    copied.Copied(
        python=copied.python(
            f"print({copied.call('lake.tasks', table=chosen)})",
            f"print({copied.call('lake.maintain', table=chosen, dry_run=True)}.tasks)",
        ),
        command=copied.command("maintain", dry_run=True, table=chosen),
    ),
    of=None if scope == "all" else scope,
)

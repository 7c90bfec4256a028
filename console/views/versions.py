"""The Versions page: the commit log as in a Git client, what a version did, differences, and restoring."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

import acting
import columns
import copied
import links
import opened
import pick
import shell
import who
from lakehouse.actions.roles import Action
from lakehouse.core.commit import Commit
from lakehouse.errors import LakehouseError
from queries import versions
from queries.query import drawable
from queries.restored import Effect, read_effect
from shown import shown

LOG_LIMIT = 100
ANY = "any"

pick.title(
    "Versions",
    "Every commit, newest first. Pick one row to see what it did, or two to compare them. The time at the left "
    "keeps the commits that touched it.",
)
acting.show_result()
lake, table, interval = opened.lake(), pick.table(), pick.interval()


def picked() -> None:
    """Rows of the log were picked: one is shown, two are compared."""
    rows = st.session_state["log"].selection.rows
    chosen = sorted(int(number) for number in listed["version"].iloc[rows[-2:]])
    if chosen:
        pick.show(version=chosen[-1])
        st.session_state["compare"] = str(chosen[0]) if len(chosen) == 2 else ""


def go_to(before: int | None) -> None:
    st.session_state["before"] = before


def draw_filters() -> pd.DataFrame:
    """Filters, and the versions that pass them."""
    of_column, operation_column, before_column = st.columns(3)
    whole_lake = of_column.segmented_control(
        "Of", ["table", "lake"], default="table", key="of", bind="query-params", required=True
    )
    operation = operation_column.selectbox(
        "Operation", [ANY, *versions.OPERATIONS], key="operation", bind="query-params"
    )
    before = before_column.number_input(
        "Older than version", min_value=1, value=None, key="before", bind="query-params", placeholder="newest first"
    )
    return versions.list_versions(
        lake,
        None if whole_lake == "lake" else table.name,
        LOG_LIMIT,
        before=before,
        operation=None if operation == ANY else operation,
        interval=interval,
    )


def draw_log() -> None:
    if listed.empty:
        shell.empty("No version passes these filters. Widen them, or append rows:", "lakehouse append TABLE FILE")
        return
    st.dataframe(
        listed,
        hide_index=True,
        column_config=columns.without("rows", "size"),
        key="log",
        on_select=picked,
        selection_mode="multi-row",
        alt="Version log",
    )
    draw_gaps()
    with st.container(horizontal=True):
        if len(listed) == LOG_LIMIT:
            last = int(listed["version"].iloc[-1])
            st.button("Older", icon=":material/arrow_downward:", key="older", on_click=go_to, args=[last])
        if st.session_state.get("before") is not None:
            st.button("Newest", icon=":material/arrow_upward:", key="newest", on_click=go_to, args=[None])


def draw_gaps() -> None:
    """Why numbers are left out, where nothing else leaves them out: filters do."""
    of_table = st.session_state["of"] == "table"
    if operation_of() is not None or (of_table and interval is not None):
        return
    said = versions.explain_gaps(lake, listed["version"].tolist(), of_table=of_table)
    if said:
        with st.expander("No version is lost: numbers between these"):
            st.text("\n".join(said))


def draw_version(commit: Commit) -> None:
    """The details of one version."""
    run = links.run(commit.properties)
    with st.container(border=True):
        st.text(f"{commit.operation} of {', '.join(commit.tables)}, {commit.committed_at:%Y-%m-%d %H:%M:%S} UTC")
        if commit.message:
            st.text(shown(commit.message))
        if commit.properties or commit.txn:
            properties = {**commit.properties, **({"txn": str(commit.txn)} if commit.txn else {})}
            rows = [{"property": shown(name, 100), "value": shown(value)} for name, value in properties.items()]
            st.dataframe(pd.DataFrame(rows), hide_index=True, alt="Properties", key="properties")
        with st.container(horizontal=True):
            if run:
                st.link_button("Dagster run", run, icon=":material/open_in_new:")
            parameters = {**pick.parameters(version=commit.version)}
            for page, icon in (("timeline", "view_timeline"), ("segments", "grid_view")):
                label = f"See the {page}"
                st.page_link(f"views/{page}.py", label=label, icon=f":material/{icon}:", query_params=parameters)


def draw_difference(a: int, b: int) -> None:
    found = versions.read_difference(lake, table.name, a, b, interval)
    shell.figures(found.totals)
    if not found.columns.empty:
        st.dataframe(found.columns, hide_index=True, alt="Changes of columns", key="column changes")
    if found.chunks.empty:
        what = "Nothing" if found.columns.empty else "No segment and no tombstone"
        shell.empty(f"{what} differs between them here.")
        return
    by_chunk, by_entry, by_row = st.tabs(["By chunk", "Segments and tombstones", "Rows"])
    with by_chunk:
        st.dataframe(found.chunks, hide_index=True, alt="ADD and DROP by chunk", key="by chunk")
    with by_entry:
        st.dataframe(found.entries, hide_index=True, alt="ADD and DROP by entry", key="by entry")
    if found.is_cut:
        st.caption("Not all are listed; the figures count all.")
    with by_row:
        draw_changes(a, b)


def draw_schemas() -> None:
    """The columns that the table had, if they ever changed."""
    if not table.spec.schema_number:
        return
    shell.section("Columns over time", "Each version reads with the columns that the table had then.")
    settings = {"changes": st.column_config.TextColumn(width="large")}
    found = versions.list_schemas(lake, table.name)
    st.dataframe(found, hide_index=True, column_config=settings, alt="Columns over time", key="schemas")


def draw_changes(a: int, b: int) -> None:
    """Rows are counted only on request, because files are read for it."""
    st.caption("Reads the files that changed, to list the rows that were inserted, deleted and updated.")
    if not st.toggle("Compare rows", key="rows"):
        return
    found = versions.count_changes(lake, table.name, a, b)
    if not found.counts:
        shell.empty("No row differs: the new files hold the same rows.")
        return
    shell.figures({name.replace("_", " "): count for name, count in sorted(found.counts.items())})
    if found.is_cut:
        st.caption("Counting stopped at its limit: there are more.")
    st.dataframe(drawable(found.preview), hide_index=True, alt="Rows that changed", key="changed")


def preview_restore(version: int) -> Callable[[], None]:
    """What a restore would do to rows, counted once; a file that cannot be read is no reason not to restore."""
    with st.spinner("Counting rows that would change..."):
        try:
            return partial(draw_effect, read_effect(lake, table.name, version))
        except LakehouseError as error:
            return partial(shell.failed, error)


def draw_effect(effect: Effect) -> None:
    st.text(effect.sentence)
    for change in effect.columns:
        st.text(shown(change))
    if len(effect.chunks):
        st.dataframe(effect.chunks, hide_index=True, alt="Rows that a restore changes", key="effect")


def draw_actions(version: int) -> None:
    shell.section("Keep, or go back", "A tag protects a version from expiry. A restore is a new version.")
    tag_column, restore_column = st.columns(2)
    with tag_column, st.container(border=True):
        name = st.text_input("Tag", key="tag name", placeholder="before-the-release")
        acting.offer(
            Action.TAG,
            "Tag this version",
            partial(who.actions().tag, name, version),
            key=f"tag {version}",
            icon=":material/sell:",
            describe=lambda _: f"Version {version} has the tag.",
        )
    with restore_column, st.container(border=True):
        st.text(f"Make {table.name} what it was at version {version}.")
        acting.offer(
            Action.RESTORE,
            "Restore this version",
            partial(who.actions().restore, table.name, version),
            key=f"restore {table.name} {version}",
            icon=":material/history:",
            describe=lambda commit: f"Version {commit.version} is what version {version} was.",
            preview=partial(preview_restore, version),
        )


def newest_listed() -> int:
    """The picked version, or else the newest that passes the filters."""
    if pick.as_of() is None and st.session_state["of"] == "table" and not listed.empty:
        return int(listed["version"].iloc[0])
    return versions.version_at(lake, table.name, pick.as_of())


def versions_to_compare() -> tuple[int | None, int]:
    """The version to compare with and the version shown; the first may be picked."""
    compared = st.text_input(
        "Compare with", key="compare", bind="query-params", placeholder="the version before it", width=320
    )
    version = newest_listed()
    if compared.strip():
        return versions.version_at(lake, table.name, compared.strip()), version
    return versions.version_before(lake, table.name, version), version


def operation_of() -> str | None:
    """The kind of operation that is listed; None for all."""
    found = st.session_state["operation"]
    return None if found == ANY else str(found)


def same_versions(since: int | None, version: int) -> copied.Copied:
    """The log as it is filtered, and the difference below it."""
    older, operation = st.session_state.get("before"), operation_of()
    conditions = [f"version < {older}"] if older else []
    conditions += [f"operation = '{operation}'"] if operation else []
    if st.session_state["of"] == "lake":
        passes = " and ".join(f"one.{one.replace(' = ', ' == ')}" for one in conditions)
        log = f"[one for one in lake.log(){f' if {passes}' if passes else ''}][:{LOG_LIMIT}]"
        history = "information_schema.versions"
    else:
        log = copied.call(
            "table.log",
            LOG_LIMIT,
            before=older,
            operation=operation,
            interval=interval,
            definitions=True if interval is None else None,
        )
        history = f"{table.name}.history"
    lines = [f"table = {copied.call('lake.table', table.name)}", f"print({log})"]
    sql = copied.select(history, *conditions, order="version DESC", limit=LOG_LIMIT)
    commands = [copied.command("sql", sql)]
    if since is not None:
        diff = copied.call("table.diff", since, version)
        chosen = f"[one for one in {diff}.chunks.items() if one[0].overlaps(lakehouse.Interval.of('{interval}'))]"
        lines.append(f"print({diff if interval is None else chosen})")
        commands.append(copied.command("diff", table.name, since, version))
    if interval is not None:  # which neither form can say
        return copied.Copied(python=copied.python(*lines))
    return copied.Copied(python=copied.python(*lines), sql=sql, command="\n".join(commands))


listed = draw_filters()
draw_log()
shell.section("What changed")
before, version = versions_to_compare()
commits = table.log(1, before=version + 1, definitions=True)
if not commits or commits[0].version != version:
    shell.empty("Nothing was written to this table at that version.")
else:
    st.text(f"From version {before} to version {version}" if before else f"Version {version}")
    draw_version(commits[0])
    if before is None:
        shell.empty("This is the first version, or the one before it has expired: there is nothing to compare it with.")
    else:
        with shell.frame():
            draw_difference(before, version)
    draw_actions(version)
draw_schemas()
copied.offer(
    "versions",
    same_versions(before, version),
    version=version,
    compare=st.session_state.get("compare") or None,
    of="lake" if st.session_state["of"] == "lake" else None,
    operation=operation_of(),
    before=st.session_state.get("before"),
)

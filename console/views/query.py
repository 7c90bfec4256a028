"""The Query page: one statement of SQL at a version, its rows, a chart of them, and what was read for them."""

from functools import partial
from zlib import crc32

import altair as alt
import pyarrow as pa
import streamlit as st

import acting
import columns
import copied
import opened
import pick
import shell
import who
from lakehouse.actions.roles import Action
from lakehouse.errors import InvalidInput, LakehouseError, QueryLimitExceeded, TableNotFound
from lakehouse.sql.parse import is_query
from queries import query, refused
from queries.words import count_text, size_text
from shown import shown

MOST_DRAWN = 2_000
MOST_SAVED = 50


def ask(sql: str, as_of: str | None, limits: query.Limits) -> query.Asked:
    """Wait for a slot, showing the reader's place in the queue, and return the answer."""
    place = st.empty()
    with st.spinner("Asking..."):
        asked = query.ask(
            opened.lake(),
            sql,
            as_of,
            reader=who.reader(),
            limits=limits.within(query.MOST[who.person().role]),
            on_wait=lambda number: place.caption(f"Other queries run. Yours is number {number} in the queue."),
        )
    place.empty()
    return asked


def example() -> None:
    """Fill in a statement on the picked table."""
    table = pick.table()
    newest = f" ORDER BY `{table.time}` DESC" if table.time else ""
    st.session_state["sql"] = f"SELECT * FROM {table.name}{newest} LIMIT 100"  # noqa: S608 - names


def draw_chart(rows: pa.Table) -> None:
    numbers = query.measures(rows)
    if not numbers or rows.num_rows < 2:
        st.caption("A chart needs two rows and a column of numbers.")
        return
    left, right, shape = st.columns(3)
    across = left.selectbox("Across", rows.column_names, key="across")
    others = [name for name in numbers if name != across] or numbers
    up = right.selectbox("Up", others, key="up")
    kind = shape.selectbox("As", ["line", "bars", "points"], key="shape")
    drawn = pa.table({"x": rows[across], "y": rows[up]}).slice(0, MOST_DRAWN).to_pandas()
    temporal = pa.types.is_timestamp(rows[across].type) or pa.types.is_date32(rows[across].type)
    scale = "T" if temporal else "Q" if across in numbers else "N"
    x = alt.X(f"x:{scale}", title=shown(across, 60), scale=alt.Scale(type="utc") if temporal else alt.Undefined)
    y = alt.Y("y:Q", title=shown(up, 60))
    chart = alt.Chart(drawn)
    marked = {"line": chart.mark_line(), "bars": chart.mark_bar(), "points": chart.mark_point()}[kind]
    st.altair_chart(marked.encode(x=x, y=y, tooltip=["x", "y"]), key="chart", alt="Chart of the rows")
    if rows.num_rows > MOST_DRAWN:
        st.caption(f"The first {MOST_DRAWN:,} rows are drawn.")


def draw_read(read: query.TableRead, place: int) -> None:
    with st.container(border=True):
        st.text(f"{read.table} at version {read.version}")
        if read.opened is None:
            st.caption("The filter is too long to show what it leaves out.")
            st.code(f"{read.columns}\n{read.where}", language="sql", wrap_lines=True)
            return
        shell.figures(
            {
                "Segments opened": f"{read.opened:,} of {read.segments:,}",
                "Bytes opened": f"{size_text(read.bytes_opened)} of {size_text(read.bytes)}",
            }
        )
        st.caption("Columns and filter that reach the scan:")
        st.code(f"{read.columns}\n{read.where}", language="sql", wrap_lines=True)
        if read.reasons.empty:
            st.caption("No segment was left out.")
            return
        st.caption("Left out, each for its first reason:")
        st.dataframe(
            read.reasons, hide_index=True, column_config=columns.COLUMNS, alt="Reasons", key=f"reasons {place}"
        )
        with st.expander("Segments left out"):
            if len(read.left_out) < read.segments - read.opened:
                st.caption(f"The first {query.MOST_LISTED:,} for each reason.")
            st.dataframe(
                read.left_out, hide_index=True, column_config=columns.COLUMNS, alt="Left out", key=f"left out {place}"
            )


def draw_limits() -> query.Limits:
    """The limits of the next query, up to what the reader's role may set."""
    role = who.person().role
    least, most, usual = query.LEAST, query.MOST[role], query.LIMITS
    with st.expander("Limits"):
        left, middle, right = st.columns(3)
        rows = left.number_input("Rows", least.rows, most.rows, usual.rows, key="most rows")
        seconds = middle.number_input("Seconds", least.seconds, most.seconds, usual.seconds, key="most seconds")
        memory = right.number_input("Memory, MB", least.megabytes, most.megabytes, usual.megabytes, key="most memory")
        st.caption(
            f"A {role} may set {most.rows:,} rows, {most.seconds} seconds and {most.megabytes:,} MB. "
            "Rows beyond are left out, and the page says so; a query that needs more time or memory fails."
        )
    return query.Limits(int(rows), int(seconds), int(memory))


def draw_refused(error: LakehouseError, sql: str) -> None:
    """Why a statement did not run, in the engine's words, and what may have been meant. Values are code and text."""
    lake = opened.lake()
    found = refused.explain(error, sql, [*lake.tables(), *lake.views()])
    stopped = isinstance(error, QueryLimitExceeded)
    st.error("The query was stopped." if stopped else "The statement was not run.", icon=":material/error:")
    st.code("\n\n".join(filter(None, (found.words, found.pointer))), language=None, wrap_lines=True)
    if found.near:
        st.text(f"Did you mean {' or '.join(shown(one, 100) for one in found.near)}?")
    if found.known:
        st.text(f"There are: {shown(', '.join(found.known), 2_000)}")
    if found.advice:
        st.text(shown(found.advice))


def draw_saved(as_of: str | None) -> None:
    """The lake's views as links, each opening this page with a query of it."""
    views = opened.lake().views()
    with st.expander(f"Saved queries ({len(views):,})"):
        st.caption("Views of this lake, which are queries with a name. Each link has its statement and version.")
        for one in views[:MOST_SAVED]:
            statement = f"SELECT * FROM {one}"  # noqa: S608 - a name
            where = {"sql": statement, "title": one, "table": pick.table().name, "version": as_of}
            st.page_link(
                "views/query.py", label=one, query_params={key: held for key, held in where.items() if held is not None}
            )
        if len(views) > MOST_SAVED:
            st.caption("SHOW VIEWS lists the rest.")


def draw_save(sql: str) -> str:
    """Give a query a name: for its address and the browser's tab, and in the lake, for those who may. Returns it."""
    with st.expander("Save this query"):
        st.caption("Its name is in the address and in the browser's tab: a bookmark of this page says what it is.")
        given = st.text_input("Name", key="title", bind="query-params", placeholder="late_flights", width=320)
        name = shown(given.strip(), 100)
        if name:
            st.set_page_config(page_title=f"{name} · Query · {shell.PRODUCT}")
            acting.offer(
                Action.SAVE_QUERY,
                "Save it in the lake, as a view",
                partial(who.actions().save_query, name, sql),
                key=f"save {crc32(f'{name} {sql}'.encode())}",
                icon=":material/bookmark_add:",
                describe=lambda _: f"The view {name} gives the rows of this query, at every version from now on.",
            )
    return name


shell.title(
    "Query",
    "One statement of Spark's SQL over all tables, run by DuckDB. It changes nothing: SELECT, SHOW, DESCRIBE, EXPLAIN.",
)
as_of = pick.as_of()
acting.show_result()
st.text("All tables at their newest version" if as_of is None else f"All tables as of {shown(as_of, 100)}")
draw_saved(as_of)
sql = st.text_area("SQL", key="sql", bind="query-params", height=120, placeholder="SELECT ...").strip()
with st.container(horizontal=True):
    st.button("Run", type="primary", icon=":material/play_arrow:", key="run")
    st.button("Example", on_click=example, key="example")
limits = draw_limits()
if not sql:
    query.prepare(opened.lake())
    shell.empty("Write a statement and run it. The address of this page then contains it and can be shared.")
    st.stop()
point = as_of or opened.lake().head  # of all tables: a link to the newest shows the same later
try:
    asked = ask(sql, as_of, limits)
except (InvalidInput, TableNotFound) as error:
    draw_refused(error, sql)
    st.stop()
name = draw_save(sql)
rows = query.drawable(asked.rows)
more = "; more were left out" if asked.is_cut else ""
st.text(f"{count_text(asked.rows.num_rows, 'row')} in {asked.seconds:.2f} s{more}")
table_tab, chart_tab, plan_tab = st.tabs(["Rows", "Chart", "Read and left out"])
with table_tab:
    # Lazy, so that the frame has no download of its own, which would contain cut values and unescaped formulas.
    st.dataframe(rows, hide_index=True, lazy=True, alt="Rows", key="rows")
    with st.container(horizontal=True):
        st.download_button(
            "Parquet", lambda: query.to_parquet(asked.rows), "rows.parquet", on_click="ignore", key="parquet"
        )
        st.download_button(
            "CSV", lambda: query.to_csv(asked.rows), "rows.csv", "text/csv", on_click="ignore", key="csv"
        )
with chart_tab:
    draw_chart(rows)
with plan_tab:
    if not asked.reads:
        st.caption("This statement reads no table.")
    for place, read in enumerate(asked.reads):
        draw_read(read, place)
most = {"most_rows": limits.rows, "most_seconds": limits.seconds, "most_memory": limits.megabytes * 1_000_000}
copied.offer(
    "query",
    copied.Copied(
        python=copied.python(f"print({copied.call('lake.query', sql, as_of=point, **most)}.rows)"),
        sql=sql,
        command=copied.command("sql", sql, as_of=point if is_query(sql) else as_of),
    ),
    sql=sql,
    version=point,
    title=name or None,
)

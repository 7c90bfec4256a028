"""The Tombstones page: what hides rows, what that costs, and when it will be removed."""

import streamlit as st

import copied
import opened
import pick
import shell
from queries.tombstones import KINDS, describe_tombstones, list_tombstones

PAGE_ROWS = 50
ANY = "any"

pick.title(
    "Tombstones",
    "Tombstones hide rows of segments written before them: by time and keys, by primary key, or by row.",
)
lake, table, version, interval = opened.lake(), pick.table(), pick.version(), pick.interval()
kind = st.segmented_control("Kind", [ANY, *KINDS], default=ANY, key="kind", bind="query-params", required=True)
listed, segments = list_tombstones(lake, table.name, version, interval, None if kind == ANY else kind)
shell.figures(
    {
        "Tombstones": len(listed),
        **{f"By {one}": sum(held.kind == one for held in listed) for one in KINDS},
        "Rows and keys in sets": sum(one.rows for one in listed),
    }
)
if listed:
    pages = -(-len(listed) // PAGE_ROWS)
    page = st.pagination(pages, key="page", bind="query-params") if pages > 1 else 1
    part = listed[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    st.dataframe(
        describe_tombstones(lake, table.name, part, segments), hide_index=True, alt="Tombstones", key="tombstones"
    )
else:
    shell.empty("No tombstone is live here at this version: every row of every segment is visible.")
found = copied.call("table.tombstones", as_of=version, interval=interval)
of_kind = [] if kind == ANY else [f"kind = '{kind}'"]
sql = copied.select(
    f"{table.name}.tombstones VERSION AS OF {version}",
    *copied.within(interval, "start", "`end`"),
    *of_kind,
    order="ordinal DESC, id DESC",
)
copied.offer(
    "tombstones",
    copied.Copied(
        python=copied.python(
            f"table = {copied.call('lake.table', table.name)}",
            f"print({found})" if kind == ANY else f"print([one for one in {found} if one.kind == {kind!r}])",
        ),
        sql=sql,
        command=copied.command("show", table.name, as_of=version, interval=interval, tombstones=True)
        if kind == ANY
        else copied.command("sql", sql),
    ),
    kind=None if kind == ANY else kind,
)

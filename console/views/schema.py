"""The Schema page: a table's columns and definition, and its first rows, at a version."""

import streamlit as st

import copied
import opened
import pick
import shell
from queries import schema
from queries.query import drawable

pick.title("Schema", "The columns that the table has at the version, what each is for, and the first of its rows.")
lake, table, as_of, interval = opened.lake(), pick.table(), pick.as_of(), pick.interval()
version = pick.version()
definition = schema.read_definition(lake, table.name, as_of)
st.text("\n".join(f"{fact}: {held}" for fact, held in definition.facts.items()))
shell.section("Columns", "A field id stays with a column whatever it is renamed to; files know it by that.")
st.dataframe(definition.columns, hide_index=True, alt="Columns", key="columns")
shell.section("First rows", f"At most {schema.PREVIEW_ROWS}, of the oldest files, in no order.")
with shell.frame():
    rows = schema.preview(lake, table.name, as_of, interval)
    if rows.num_rows:
        # Lazy, so that the frame has no download of its own, which would contain cut values and unescaped formulas.
        st.dataframe(drawable(rows), hide_index=True, lazy=True, alt="First rows", key="rows")
    else:
        shell.empty("No row is visible here at this version. Add some, or pick another version or time:",
                    "lakehouse append TABLE FILE")  # fmt: skip
if len(definition.properties):
    shell.section("Properties")
    st.dataframe(definition.properties, hide_index=True, alt="Properties", key="properties")
sql = copied.select(
    f"{table.name} VERSION AS OF {version}",
    *copied.within(interval, f"`{table.time}`"),
    limit=schema.PREVIEW_ROWS,
)
st.page_link(
    "views/query.py", label="Query it", icon=":material/search:", query_params={"table": table.name, "sql": sql}
)
copied.offer(
    "schema",
    copied.Copied(
        python=copied.python(
            f"table = {copied.call('lake.table', table.name)}",
            f"print({copied.call('table.spec_at', version)}.schema)",
            f"print({copied.call('lake.query', sql)}.rows)",
        ),
        sql=sql,
        command=f"{copied.command('show', table.name, as_of=version)}\n{copied.command('sql', sql)}",
    ),
)

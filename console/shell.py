"""The frame of every page: its title, figures, and what it shows when there is nothing or something failed.

No value is ever rendered as markdown or HTML: values go to text, code, metrics' numbers and data frames only.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st

import opened
from lakehouse.errors import CatalogUnavailable, LakehouseError, TableNotFound, VersionNotFound
from shown import shown

logger = logging.getLogger("lakehouse.console")
PRODUCT = "Lakehouse"
_MOST_CHARACTERS = 4_000
NAMELESS: Mapping[str, Any] = {"aria": False}
"""A chart has a name, and a table beside it; its marks have none, so a screen reader gets nothing from them."""
_MOST_NAMES = 50
_REMEDIES = {
    "catalog_unavailable": "`lakehouse doctor` says what is wrong and what to do. Then reload this page.",
    "version_not_found": "Pick another version at the left, or clear it to see the newest one.",
    "table_not_found": "Pick another table at the left. It may have been renamed or dropped.",
    "invalid_input": "Change the value named here, at the left or on this page.",
    "segment_unreadable": "Restore the named file from a copy; `lakehouse check` lists all that are missing.",
    "forbidden": "Ask somebody with that role, or start the console with `--allow-actions`.",
}
_ELSE = "`lakehouse doctor` checks the lake. Then reload this page."


@contextmanager
def frame() -> Iterator[None]:
    """Around drawing code: an error becomes a text and a remedy; its trace goes to the log, never to the page."""
    try:
        yield
    except LakehouseError as error:
        failed(error)
    except Exception as error:
        logger.exception("a page failed: %s", type(error).__name__)
        st.error("This page has a bug. Its details are in the console's log.", icon=":material/error:")


def failed(error: LakehouseError) -> None:
    """What went wrong, as the library says it, and what to do."""
    headline = "The lake cannot be read." if isinstance(error, CatalogUnavailable) else "That cannot be shown."
    if isinstance(error, TableNotFound | VersionNotFound):
        headline = "That is not in the lake."
    st.error(headline, icon=":material/error:")
    st.code(shown(str(error), _MOST_CHARACTERS), language=None, wrap_lines=True)
    st.markdown(_REMEDIES.get(error.kind, _ELSE))
    if isinstance(error, CatalogUnavailable):
        opened.forget()


def title(text: str, explanation: str, *, of: str = "") -> None:
    """A page's heading, also in the browser's tab, and one line on what it shows: the console's own texts.

    ``of`` is a table's name, which has only letters, digits and underscores; no other value is a part of a heading.
    """
    heading = f"{text} of {of}" if of else text
    st.set_page_config(page_title=heading if heading == PRODUCT else f"{heading} · {PRODUCT}")
    st.title(heading, anchor=False)
    st.caption(explanation)


def section(text: str, explanation: str | None = None) -> None:
    """A section's heading, the console's own text."""
    st.subheader(text, anchor=False)
    if explanation:
        st.caption(explanation)


def figures(named: Mapping[str, str | int]) -> None:
    """Figures with labels, side by side, in more rows if the page is narrow."""
    with st.container(horizontal=True):
        for label, figure in named.items():
            st.metric(label, f"{figure:,}" if isinstance(figure, int) else figure, border=True)


def inked(chart: Mapping[str, Any]) -> dict[str, Any]:
    """A chart of Vega-Lite with the page's colour of text: its own is too pale to be read by everybody."""
    ink = "#e4e9f0" if st.context.theme.type == "dark" else "#1b2430"
    coloured = {"labelColor": ink, "titleColor": ink}
    return {**chart, "config": {**chart.get("config", {}), "axis": coloured, "legend": coloured}}


def empty(words: str, *commands: str) -> None:
    """Say that there is nothing, and how to change that. Both are the console's own texts."""
    st.info(words, icon=":material/hourglass_empty:")
    if commands:
        st.code("\n".join(commands), language="bash")


def no_such_table(name: str, names: Sequence[str]) -> None:
    """For an address with an unknown table: show no other in its place, and list the existing ones."""
    st.set_page_config(page_title=f"No such table · {PRODUCT}")
    st.title("No such table", anchor=False)
    st.error("That is not in the lake.", icon=":material/error:")
    st.code(f"no table is called {shown(name, 200)}", language=None, wrap_lines=True)
    st.markdown("It may have been renamed or dropped. Existing tables:")
    for one in names[:_MOST_NAMES]:
        st.page_link("views/lake.py", label=one, query_params={"table": one})
    if len(names) > _MOST_NAMES:
        st.caption(f"And {len(names) - _MOST_NAMES:,} more, which the Lake page lists.")
        st.page_link("views/lake.py", label="Lake")


def no_tables() -> None:
    """A lake without tables."""
    st.title("Lakehouse", anchor=False)
    st.info("This lake has no tables yet. Load real flights, or create your own:", icon=":material/water:")
    st.code("lakehouse demo\nlakehouse init NAME --schema 'at timestamp, value double' --time at", language="bash")

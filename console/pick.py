"""The table, version and interval that every page shows: picked at the left, kept in the address.

The three are the query parameters ``table``, ``version`` and ``interval``, so an address says what is shown. A
parameter with its default value is absent: the first table, the newest version, all time.
"""

from contextlib import suppress
from typing import Any

import streamlit as st

import opened
import shell
from lakehouse.core import Interval
from lakehouse.errors import LakehouseError
from queries.words import span_text
from shown import shown

NEWEST = "newest"
_OFFERED = 200
"""Versions that can be picked without typing; any other version, tag or time can be typed."""


def draw() -> bool:
    """The pickers, at the left of every page; shows a note and returns False where there is no table."""
    names = opened.lake().tables()
    wanted = st.session_state.get("table") or st.query_params.get("table")
    if not names or (wanted is not None and wanted not in names):
        # Without its picker the address keeps the name, and the page says so until another table is picked.
        shell.no_such_table(wanted, names) if names else shell.no_tables()
        return False
    with st.sidebar:
        st.selectbox("Table", names, key="table", bind="query-params")
        st.selectbox(
            "Version",
            offered(),
            key="version",
            bind="query-params",
            accept_new_options=True,
            help="A number, a tag, or a time such as 2013-02-01T08:00. Shows the table as it was then.",
        )
        st.text_input(
            "Time",
            key="interval",
            bind="query-params",
            placeholder="all of it",
            help="2013, 2013-02, 2013-W02, 2013-02-08, 2013-02-08T07 or FROM/UNTIL, in UTC.",
            disabled=st.session_state.get("table") in names and not table().time,
        )
    return True


def offered() -> list[str]:
    """The newest, the tags, the numbers of the newest versions of the picked table, and what was typed."""
    lake = opened.lake()
    listed = [NEWEST, *sorted(lake.tags()), *(str(commit.version) for commit in table().log(_OFFERED))]
    held = st.session_state.get("version") or st.query_params.get("version")
    return listed if held is None or held in listed else [*listed, held]


def title(text: str, explanation: str) -> None:
    """The heading of a page about the picked table, with its version and time: a phone folds the pickers away."""
    shell.title(text, explanation, of=table().name)
    st.text(shown_at())


def shown_at() -> str:
    """The version and time that are shown, in words; text that means neither stays as it was typed."""
    asked = as_of()
    with suppress(LakehouseError):
        number = version()
        point = "the newest" if asked is None else "" if asked == str(number) else f"as of {shown(asked, 100)}"
        words = ", ".join(filter(None, (f"Version {number}", point)))
        within = interval()
        return words if within is None else f"{words}; {span_text(within)}"
    return f"Version {shown(asked or NEWEST, 100)}"


def table() -> Any:
    """The picked table. Raises `TableNotFound` if it is gone."""
    lake = opened.lake()
    name = st.session_state.get("table")
    return lake.table(name if name is not None else lake.tables()[0])


def as_of() -> str | None:
    """The version as it was picked or typed: a number, a tag or a time; None for the newest."""
    text = str(st.session_state.get("version") or "").strip()
    return None if text in ("", NEWEST) else text


def version() -> int:
    """The table's version that is shown. Raises `VersionNotFound`."""
    number: int = table().version_at(as_of())
    return number


def interval() -> Interval | None:
    """The interval that is shown; None for all, as always of a timeless table. Raises `InvalidInput`."""
    text = str(st.session_state.get("interval") or "").strip()
    return Interval.of(text) if text and table().time else None


def show(*, version: int | None = None, interval: Interval | None = None) -> None:
    """Show another version or interval from the next run on; for callbacks of widgets."""
    if version is not None:
        st.session_state["version"] = str(version)
    if interval is not None:
        st.session_state["interval"] = str(interval)


def show_all_time() -> None:
    """Show all time from the next run on; for callbacks of widgets."""
    st.session_state["interval"] = ""


def parameters(**changed: object) -> dict[str, str]:
    """Query parameters of an address that always shows the same: it names the version, even the newest."""
    held: dict[str, object] = {"table": table().name, "version": as_of(), "interval": None}
    with suppress(LakehouseError):  # text that means nothing is reported where it is used
        held["version"] = version()
        held["interval"] = interval()
    return {name: str(value) for name, value in (held | changed).items() if value is not None}

"""The lake that the console shows: opened once a process."""

from typing import Any

import streamlit as st

import lakehouse


def _close(lake: Any) -> None:
    lake.close()


@st.cache_resource(show_spinner=False, on_release=_close)
def lake() -> Any:
    """The lake that LAKEHOUSE_CATALOG and LAKEHOUSE_WAREHOUSE name, or the one in ./.lakehouse."""
    return lakehouse.connect()


def forget() -> None:
    """Reopen it next time, after an error of its catalog."""
    lake.clear()

"""The console: pages that draw the results of `queries`, which call the library."""

from pathlib import Path

import streamlit as st

import pick
import shell
import who

FOLDER = Path(__file__).parent

# An icon given by name would be fetched from the web; this page needs nothing from outside.
st.set_page_config(page_title="Lakehouse", page_icon=str(FOLDER / "icon.svg"), layout="wide")


def page(name: str, title: str, icon: str) -> object:
    """One page: a file of that name, found under ``/name``; the lake is the front page.

    The folder is not called ``pages``: Streamlit runs files of such a folder by themselves, without this one, for the
    first visitor after a start.
    """
    return st.Page(f"views/{name}.py", title=title, icon=f":material/{icon}:", default=name == "lake")


# In one list: headings between pages would stand in it where a screen reader expects its items.
chosen = st.navigation(
    [
        page("lake", "Lake", "water"),
        page("schema", "Schema", "table"),
        page("query", "Query", "search"),
        page("versions", "Versions", "commit"),
        page("timeline", "Timeline", "view_timeline"),
        page("tombstones", "Tombstones", "visibility_off"),
        page("key_frames", "Key frames", "theaters"),
        page("segments", "Segments", "grid_view"),
        page("service", "Service", "build"),
        page("streams", "Streams", "conveyor_belt"),
        page("serving", "Serving", "bolt"),
        page("locks", "Locks and operations", "lock"),
    ],
    expanded=True,
)
st.html(FOLDER / "contrast.css")
with shell.frame():
    who.let_in()
    if pick.draw():
        chosen.run()

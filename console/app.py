"""The console: pages that draw, over `queries`, which asks the library."""

from pathlib import Path

import streamlit as st

# An icon by name would be fetched from the web; the page needs nothing that is not on this machine.
st.set_page_config(page_title="Lakehouse", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
st.navigation([st.Page("pages/home.py", title="Lake", default=True)], position="hidden").run()

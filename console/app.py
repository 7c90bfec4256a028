"""The console: pages that draw, over `queries`, which asks the library."""

import streamlit as st

st.set_page_config(page_title="Lakehouse", page_icon=":material/stacks:", layout="wide")
st.navigation([st.Page("pages/home.py", title="Lake", icon=":material/stacks:", default=True)], position="hidden").run()

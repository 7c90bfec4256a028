"""The console as a server: its pages, and the addresses for those who watch it."""

import streamlit as st
from starlette.routing import Route

import watched

app = st.App("app.py", routes=[Route("/healthz", watched.health), Route("/metrics", watched.metrics)])

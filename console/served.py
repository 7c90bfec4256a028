"""The console as a server: its pages, and addresses for monitoring."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route

import watched
from hosts import Hosts
from returned import Returned


@asynccontextmanager
async def life(_: st.App) -> AsyncIterator[None]:
    """Runs the server; at the end, waits for started actions and closes the lake."""
    # Streamlit collects garbage after each page run; exclude everything loaded so far.
    gc.freeze()
    yield
    st.cache_resource.clear()
    watched.close()


app = st.App(
    "app.py",
    lifespan=life,
    routes=[Route("/healthz", watched.health), Route("/metrics", watched.metrics)],
    middleware=[Middleware(Hosts), Middleware(Returned)],
)

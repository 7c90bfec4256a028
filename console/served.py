"""The console as a server: its pages, and the addresses for those who watch it."""

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
    """From the start to the end, when what was begun is waited for and the lake is closed."""
    # Streamlit collects garbage after each run of a page: what was loaded until now need not be walked through then.
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

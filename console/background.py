"""Work that continues while users view other pages: one action at a time, in this process."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import streamlit as st

from lakehouse.errors import LakehouseError

logger = logging.getLogger("lakehouse.console")


def _end(threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=True)


@st.cache_resource(show_spinner=False, on_release=_end)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="console")


@st.cache_resource(show_spinner=False)
def _last() -> dict[str, str]:
    """The error of the last action, by its name."""
    return {}


def begin(what: str, work: Callable[[], Any]) -> None:
    """Run something after what was started before it; a failure is shown under ``what``."""
    _last().pop(what, None)
    failures = _last()

    def ended(done: Future[Any]) -> None:
        error = done.exception()
        if isinstance(error, LakehouseError):
            failures[what] = str(error)
        elif error is not None:
            failures[what] = "It failed. Its details are in the console's log."
            logger.error("%s failed", what, exc_info=error)

    _threads().submit(work).add_done_callback(ended)


def failures() -> dict[str, str]:
    """Errors of started actions, by their names."""
    return dict(_last())

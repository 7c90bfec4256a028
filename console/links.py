"""Addresses: of the console's pages, and of the Dagster run that made a version."""

import os
import re
from collections.abc import Mapping
from urllib.parse import urlencode

_RUN_ID = re.compile(r"[0-9a-fA-F-]{8,64}")
RUN_ID = "dagster_run_id"
"""Property of a version that a Dagster run made."""


def page(name: str, **parameters: object) -> str:
    """A page of the console, from its root; ``lake`` is the root itself."""
    query = urlencode({key: str(value) for key, value in parameters.items() if value is not None})
    return f"/{'' if name == 'lake' else name}{'?' if query else ''}{query}"


def run(properties: Mapping[str, str]) -> str:
    """The Dagster run that made a version, in the web server at LAKEHOUSE_DAGSTER_URL; empty if none did.

    A property can hold anything: text that does not look like a run's id makes no address.
    """
    found = properties.get(RUN_ID, "")
    server = os.environ.get("LAKEHOUSE_DAGSTER_URL") or "http://127.0.0.1:3000"
    return f"{server.rstrip('/')}/runs/{found}" if _RUN_ID.fullmatch(found) else ""

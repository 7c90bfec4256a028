"""The rows of a command's file, whose reading is shown. Loads what reads files only when one is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse import progress

if TYPE_CHECKING:
    import pyarrow as pa

STDIN = Path("-")


@contextmanager
def opened(path: Path, schema: pa.Schema, form: str | None) -> Iterator[pa.RecordBatchReader]:
    """The rows of a file, as `files.open_rows` reads them, with a step of progress that knows how much there is."""
    files = import_module("lakehouse.cli.files")
    unit, total = files.measured(path, form)
    with progress.step(f"read {'standard input' if path == STDIN else path.name}", unit, total) as step:
        yield files.open_rows(path, schema, form, step)

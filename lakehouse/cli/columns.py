"""The columns of a user's file: what a table that is made for it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse.cli.files import format_of
from lakehouse.cli.ingest import STDIN
from lakehouse.errors import InvalidArgument
from lakehouse.extras import load

_OTHER_SEPARATORS = ";\t|"


def text_columns(path: Path, form: str | None) -> pa.Schema | None:
    """The columns of a file of text, by all of its rows; None if the file is no text, so that its own schema says them.

    A column without any value is text. Raises `InvalidArgument` for standard input, which cannot be read twice.
    """
    kind = form or format_of(path)
    if kind not in ("csv", "jsonl"):
        return None
    if path == STDIN:
        raise InvalidArgument(
            "text from standard input says no types; make the table by lakehouse init TABLE --schema, and append to it",
            format=kind,
        )
    duckdb = load("duckdb")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            rows = (
                connection.read_csv(str(path), delimiter=",", quotechar='"', header=True, sample_size=-1)
                if kind == "csv"
                else connection.read_json(str(path), format="newline_delimited", sample_size=-1)
            )
            schema = rows.limit(0).to_arrow_table().schema
        except duckdb.Error as error:
            raise InvalidArgument("cannot read the file", path=path, cause=str(error).splitlines()[0][:200]) from error
    (first, *more) = schema.names
    if kind == "csv" and not more and any(one in first for one in _OTHER_SEPARATORS):
        raise InvalidArgument(
            "only commas separate columns of CSV; write the file anew with commas", path=path, first_line=first[:200]
        )
    return pa.schema([(one.name, pa.string() if pa.types.is_time(one.type) else one.type) for one in schema])


def time_column(schema: Any, given: str | None, option: str = "--time") -> str:
    """The column of a row's time: the one that is given, the only timestamp, or the only date.

    Raises `InvalidArgument`, which says the ``option`` that names it.
    """
    stamps = [one.name for one in schema if pa.types.is_timestamp(one.type)]
    dates = [one.name for one in schema if pa.types.is_date(one.type)]
    if given is not None:
        if given in schema.names:
            return given
    elif len(only := stamps or dates) == 1:
        return str(only[0])
    facts: dict[str, str | Sequence[str]] = {} if given is None else {"time": given}
    raise InvalidArgument(
        f"name the column of a row's time by {option}", **facts, times=[*stamps, *dates], columns=list(schema.names)
    )

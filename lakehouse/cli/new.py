"""The command that makes a Dagster project around a user's own table."""

from __future__ import annotations

import keyword
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer

import lakehouse
from lakehouse.cli.options import JsonOption
from lakehouse.cli.output import print_json, print_line
from lakehouse.core.chunk import Grain
from lakehouse.errors import AlreadyExists, InvalidArgument, InvalidName
from lakehouse.extras import DISTRIBUTION, load

_PACKAGE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_READERS: Mapping[str, tuple[str, ...]] = {
    "read_csv": (".csv", ".csv.gz", ".tsv"),
    "read_json": (".json", ".jsonl", ".ndjson"),
    "read_parquet": (".parquet", ".pq"),
}
"""DuckDB's functions, by the ends of names that they read."""
_TAKEN = frozenset(
    (
        *(
            "build_checks",
            "checks",
            "chunk_asset",
            "context",
            "dg",
            "duckdb",
            "found",
            "lake",
            "lakehouse",
            "maintenance",
        ),
        *("partitions", "read_source", "replace_chunks", "resources", "run_interval", "table", "tests"),
    )
)
"""Names that the project's modules use."""
_FIRST_YEAR = 1000
_EXAMPLE = """\
at,client,price
2026-01-05T07:00:00Z,12,1.5
2026-01-05T08:30:00Z,77,2.0
2026-01-06T07:15:00Z,12,1.5
2026-01-07T09:00:00Z,1234,7.25
"""


def new(
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="the folder to make", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(help="a CSV, JSON lines or Parquet file, copied into it; default: an example", show_default=False),
    ] = None,
    table: Annotated[str | None, typer.Option(help="its table; default: the file's name", show_default=False)] = None,
    time: Annotated[
        str | None,
        typer.Option(help="the column of a row's time; default: the only timestamp", show_default=False),
    ] = None,
    grain: Annotated[str, typer.Option(help="length of a time chunk: hour, day, week, month or year")] = "day",
    as_json: JsonOption = False,
) -> None:
    """Make a Dagster project around a table of your own, which loads and passes its test as it is made."""
    target = project.absolute()
    _check_package(target.name)
    if os.path.lexists(target):
        raise AlreadyExists("there is something of that name already; choose another folder", folder=target)
    if not _is(target.parent.is_dir):
        raise InvalidArgument("there is no folder to make the project in; make it first", folder=target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        source = data
        if source is None:
            source = Path(scratch, "trips.csv")
            source.write_text(_EXAMPLE)
        values = {"package": target.name, "distribution": DISTRIBUTION, "version": lakehouse.__version__}
        values |= _described(source, table, time, Grain.of(grain), Path(scratch))
        made = Path(scratch, target.name)
        _fill(files("lakehouse.cli") / "project", made, values)
        (made / "data").mkdir()
        shutil.copyfile(source, made / "data" / values["file"])
        made.rename(target)
    if as_json:
        return print_json({"project": str(target), "table": values["table"], "start": values["start"]})
    print_line(f"{target}: table {values['table']} by {grain} of {values['column']}, from {values['start']}")
    return print_line("cd into it, then: pytest, dagster dev, lakehouse console; README.md says more")


def _check_package(name: str) -> None:
    """Refuse a name that no Python package can have, or that hides another one. Raises `InvalidName`."""
    if not _PACKAGE.fullmatch(name) or keyword.iskeyword(name):
        raise InvalidName(
            "bad name of a project; use a lower-case letter, then up to 63 letters, digits or underscores (ASCII), and "
            "no word of Python's",
            project=repr(name),
        )
    if name in sys.stdlib_module_names or name in _TAKEN or find_spec(name) is not None:
        raise InvalidName(
            "a Python module has that name, and the project's would hide it; choose another", project=name
        )


def _described(source: Path, table: str | None, time: str | None, grain: Grain, scratch: Path) -> dict[str, str]:
    """What the templates say of a file, found by making its table in a lake of its own."""
    suffix, reader = _reader_of(source)
    name = table or source.name[: -len(suffix)]
    if name in _TAKEN or keyword.iskeyword(name):
        raise InvalidName("the project uses that name itself; choose another by --table", table=name)
    duckdb = load("duckdb")
    try:
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        rows = getattr(connection, reader)(str(source))
        schema = rows.limit(0).to_arrow_table().schema
        column = load("lakehouse.cli.columns").time_column(schema, time)
        ((first, missing),) = rows.aggregate(f'min("{column}"), count(*) - count("{column}")').fetchall()
    except duckdb.Error as error:
        raise InvalidArgument("cannot read the file", path=source, cause=error) from error
    if first is None or missing:
        raise InvalidArgument(
            "every row needs a time; give a file with rows, or another column by --time", time=column, missing=missing
        )
    if first.year < _FIRST_YEAR:
        raise InvalidArgument(f"Dagster has no partitions before {_FIRST_YEAR}-01-01", time=column, first=first)
    with lakehouse.connect(f"sqlite:///{scratch}/catalog.db", scratch / "warehouse") as lake:
        made = lake.create_table(name, schema, time=column, grain=grain)
        shown = load("lakehouse.sql.show").create_text(made)
    columns = shown.partition("(\n")[2].partition("\n)\n")[0]
    return {
        "table": name,
        "file": f"{name}{suffix}",
        "kind": suffix.split(".")[1],
        "reader": reader,
        "column": column,
        "time": repr(column),
        "grain": grain.value,
        "start": grain.floor(_in_utc(first)).strftime("%Y-%m-%d"),
        "schema": columns.replace("\\", "\\\\"),
    }


def _reader_of(source: Path) -> tuple[str, str]:
    """The end of a file's name, and the function that reads it. Raises `InvalidArgument`."""
    for reader, suffixes in _READERS.items():
        for suffix in suffixes:
            if source.name.lower().endswith(suffix):
                if not _is(source.is_file):
                    raise InvalidArgument("there is no such file", path=source)
                return suffix, reader
    known = ", ".join(suffix for suffixes in _READERS.values() for suffix in suffixes)
    raise InvalidArgument(f"unknown file format; use one of the suffixes {known}", path=source)


def _is(kind: Callable[[], bool]) -> bool:
    """Whether a path is something; one that is too long is nothing."""
    try:
        return kind()
    except OSError:
        return False


def _in_utc(first: Any) -> datetime:
    """The least time, of a timestamp with or without a zone, or of a date."""
    moment = first if isinstance(first, datetime) else datetime(first.year, first.month, first.day, tzinfo=UTC)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _fill(template: Traversable, folder: Path, values: Mapping[str, str]) -> None:
    """Write a template's files: the package is beside data/ and tests/, ``.in`` is left out of names."""
    package = values["package"]
    homes = {"package.py.in": "__init__.py", "table.py.in": f"{values['table']}.py", "gitignore.in": ".gitignore"}
    for path, text in _templates(template):
        *folders, last = path
        is_code = folders[:1] == ["defs"] or last in ("package.py.in", "definitions.py.in")
        written = folder.joinpath(*([package] if is_code else []), *folders, homes.get(last, last.removesuffix(".in")))
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(Template(text).substitute(values))


def _templates(found: Traversable) -> list[tuple[tuple[str, ...], str]]:
    texts: list[tuple[tuple[str, ...], str]] = []
    for one in sorted(found.iterdir(), key=lambda one: one.name):
        if one.is_dir():
            texts.extend(((one.name, *path), text) for path, text in _templates(one))
        elif one.name.endswith(".in"):
            texts.append(((one.name,), one.read_text()))
    return texts

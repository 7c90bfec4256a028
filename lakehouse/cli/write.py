"""Commands that write: init, append, replace, compact, restore, tag."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pyarrow as pa
import typer

from lakehouse.arguments import unknown_column
from lakehouse.cli.ingest import STDIN, opened
from lakehouse.cli.options import (
    CatalogOption,
    IntervalOption,
    JsonOption,
    MessageOption,
    QuietOption,
    SchemaOption,
    TableArgument,
    WarehouseOption,
    open_lake,
    point_in_history,
)
from lakehouse.cli.output import print_json, print_line, print_table
from lakehouse.errors import InvalidArgument, InvalidInterval

if TYPE_CHECKING:
    from lakehouse.core.commit import Commit
    from lakehouse.table.table import Table


def there(path: Path | None) -> Path | None:
    """A file that is there, or ``-``: standard input. Anything else is wrong usage."""
    if path is None or path == STDIN or path.is_file():
        return path
    raise typer.BadParameter(f"{path} is a folder" if path.is_dir() else f"file {path} does not exist")


FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        callback=there,
        help="Parquet, Arrow, CSV or JSON lines, also .csv.gz; - is standard input",
        show_default=False,
    ),
]
InputFormatOption = Annotated[
    Literal["csv", "jsonl", "parquet", "arrow", "stream"] | None,
    typer.Option("--format", help="what FILE is; default: by its suffix", show_default=False),
]
GrainOption = Annotated[
    str | None, typer.Option(help="hour, day (the default), week, month or year", show_default=False)
]
ColumnsOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="a column; repeat for more", show_default=False)
]


def init(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="also create this table", show_default=False)
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(help="columns, as in SQL: 'at timestamp, client int, price double'", show_default=False),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="the time column; without one the table is timeless", show_default=False)
    ] = None,
    grain: GrainOption = None,
    primary_key: ColumnsOption = None,
    cluster_by: ColumnsOption = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="do nothing if the table exists")] = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create the catalog and the warehouse, and with TABLE a table in them."""
    if table is not None and schema is None:
        raise typer.BadParameter("a table needs --schema; to take the columns of a file: lakehouse create TABLE FILE")
    with open_lake(catalog, warehouse) as lake:
        import_module("lakehouse.admin.doctor_store").require_writable(lake.session.warehouse)
        lake.session.require_home()
        if table is not None and schema is not None:
            lake.create_table(
                table,
                schema,
                time=time,
                grain=grain,
                primary_key=tuple(primary_key or ()),
                cluster_by=tuple(cluster_by or ()),
                if_not_exists=if_not_exists,
            )
        head, names = lake.head, lake.tables()
    if as_json:
        return print_json({"head": head, "tables": names})
    return print_line(f"lake at version {head} with {len(names)} {'table' if len(names) == 1 else 'tables'}")


def append(
    table: TableArgument,
    file: FileArgument,
    form: InputFormatOption = None,
    schema: SchemaOption = "strict",
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Append the rows of a file."""
    with open_lake(catalog, warehouse) as lake:
        target = lake.table(table)
        with opened(file, target.schema, form) as rows:
            commit = target.append(rows, message=message, schema=schema)
    print_commit(commit, as_json)


def replace(
    table: TableArgument,
    interval: Annotated[
        str,
        typer.Argument(
            metavar="INTERVAL",
            help="2013-01-05, 2013-W02, 2013-01 or start/end; all for a timeless table",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            callback=there,
            help="the new rows; or --empty",
            show_default=False,
        ),
    ] = None,
    form: InputFormatOption = None,
    empty: Annotated[bool, typer.Option("--empty", help="no new rows: drop the old ones")] = False,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE", help="only these rows; repeat for more values or columns", show_default=False
        ),
    ] = None,
    schema: SchemaOption = "strict",
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Replace the rows of an interval by the rows of a file, atomically."""
    if (file is None) is not empty:
        raise typer.BadParameter("give either FILE or --empty")
    with open_lake(catalog, warehouse) as lake:
        target = lake.table(table)
        window = _window(target, interval)
        keys = _keys(target, key or [])
        if file is None:
            commit = target.replace(None, window, keys=keys, message=message)
        else:
            with opened(file, target.schema, form) as rows:
                commit = target.replace(rows, window, keys=keys, message=message, schema=schema)
    print_commit(commit, as_json)


def compact(
    table: TableArgument,
    interval: IntervalOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rewrite the segments of an interval into fewer, without hidden rows. No row changes."""
    with open_lake(catalog, warehouse) as lake:
        commit = lake.table(table).compact(interval)
    if commit is None:
        return print_json(None) if as_json else print_line(f"nothing to gain in {table}")
    return print_commit(commit, as_json)


def rebuild(
    table: TableArgument,
    cluster_by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN[=BUCKETS]", help="repeat for more; 'none' for none", show_default=False),
    ] = None,
    primary_key: ColumnsOption = None,
    grain: Annotated[str | None, typer.Option(help="hour, day, week, month or year", show_default=False)] = None,
    engine: Annotated[str | None, typer.Option(help="spark: read and write with Spark", show_default=False)] = None,
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a table anew for other cluster columns, keys or time chunks, as one version. No row changes."""
    clustered = None if cluster_by is None else {} if cluster_by == ["none"] else dict(map(_clustered, cluster_by))
    with open_lake(catalog, warehouse) as lake:
        commit = lake.table(table).rebuild(
            cluster_by=clustered, primary_key=primary_key, grain=grain, engine=engine, message=message
        )
    print_commit(commit, as_json)


def _clustered(text: str) -> tuple[str, int]:
    name, sign, buckets = text.partition("=")
    if sign and not buckets.isdecimal():
        raise typer.BadParameter(f"write COLUMN or COLUMN=BUCKETS: {text}")
    return name, int(buckets or 0)


def restore(
    table: TableArgument,
    version: Annotated[
        str, typer.Argument(metavar="VERSION", help="version, tag or time to restore", show_default=False)
    ],
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a new version that equals an old one of the table."""
    with open_lake(catalog, warehouse) as lake:
        commit = lake.table(table).restore(point_in_history(version))
    print_commit(commit, as_json)


def tag(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="the tag; without it, list the tags", show_default=False)
    ] = None,
    version: Annotated[
        int | None, typer.Argument(metavar="VERSION", help="default: the head", show_default=False)
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="remove the tag")] = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name a version, which protects it from expiry; or list or remove tags."""
    if delete and (name is None or version is not None):
        raise typer.BadParameter("--delete takes the name of a tag and no version")
    with open_lake(catalog, warehouse) as lake:
        if delete and name is not None:
            lake.untag(name)
        elif name is not None:
            lake.tag(name, version)
        tags = lake.tags()
    if as_json:
        return print_json(tags)
    print_table(["tag", "version"], sorted(tags.items(), key=lambda one: one[1]))
    return None


def _window(table: Table, interval: str) -> Any:
    """The interval of a command; a timeless table has all of time alone."""
    if table.time:
        return table.spec.interval_of(interval)
    if interval != "all":
        raise InvalidInterval(
            f"the table has no time, so that it has no intervals; write all, as in lakehouse replace {table.name} all "
            "FILE, and choose rows by --key",
            table=table.name,
            interval=interval,
        )
    return None


def _keys(table: Table, given: list[str]) -> dict[str, list[Any]] | None:
    """Parse ``["carrier=UA", "carrier=AA"]`` into values of the columns' types."""
    keys: dict[str, list[Any]] = {}
    for text in given:
        column, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"write --key COLUMN=VALUE, not {text!r}")
        if column not in table.schema.names:
            raise unknown_column("no such column", column, table.schema.names, table=table.name)
        kind = table.schema.field(column).type
        try:
            keys.setdefault(column, []).append(pa.scalar(value).cast(kind).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeError) as error:
            raise InvalidArgument("not a value of the column", column=column, type=kind, value=value) from error
    return keys or None


def print_commit(commit: Commit, as_json: bool) -> None:
    """Print a commit in one line, or as JSON."""
    if as_json:
        return print_json(commit)
    segments = f"segments +{commit.added:,} -{commit.dropped:,}"
    rows = f"rows +{commit.rows_added:,} -{commit.rows_lost}"
    return print_line(f"version {commit.version}: {commit.operation} {', '.join(commit.tables)}: {segments}, {rows}")

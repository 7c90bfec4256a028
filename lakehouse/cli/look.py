"""Commands that show things: tables, log, show, diff, timeline, locks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse.cli.options import (
    AsOfOption,
    CatalogOption,
    IntervalOption,
    JsonOption,
    TableArgument,
    WarehouseOption,
    open_existing,
    open_lake,
    pinned,
    point_in_history,
)
from lakehouse.cli.output import (
    console,
    last_instant,
    plain,
    print_json,
    print_line,
    print_table,
    show,
    show_bytes,
    show_last,
)
from lakehouse.cli.picture import LEGEND, draw
from lakehouse.core.bars import bars
from lakehouse.core.drawn import gaps, said_of_others
from lakehouse.core.erased import receipt_text
from lakehouse.core.interval import Interval

if TYPE_CHECKING:
    from lakehouse.core.commit import Commit
    from lakehouse.table.table import Table

LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="the most to list")]
_PIPE_WIDTH = 100


def tables(catalog: CatalogOption = None, warehouse: WarehouseOption = None, as_json: JsonOption = False) -> None:
    """List the tables with their version, rows and size."""
    with open_lake(catalog, warehouse) as lake:
        found = [_summary(lake.table(name)) for name in lake.tables()]
        head = lake.head
    if as_json:
        return print_json({"head": head, "tables": found})
    if not found:
        return print_line(f"no tables at version {head}; create one with: lakehouse create NAME FILE")
    print_table(
        ["table", "version", "grain", "first row", "last row", "chunks", "segments", "tombstones", "rows", "size"],
        [
            [
                one["name"],
                one["version"],
                one["grain"],
                one["start"],
                one["end"] and last_instant(one["end"]),
                one["chunks"],
                one["segments"],
                one["tombstones"],
                one["rows"] if one["rows"] is not None else f"{one['rows_stored']:,} stored",
                show_bytes(one["bytes"]),
            ]
            for one in found
        ],
        spare=["tombstones", "segments", "chunks", "grain"],
    )
    return None


def _summary(table: Table) -> dict[str, Any]:
    """What a table holds. ``rows_stored`` includes hidden rows; ``rows`` is null where counting would be expensive."""
    version = table.version
    segments, chunks = table.segments(as_of=version), table.chunks(as_of=version)
    tombstones, stored = len(table.tombstones(as_of=version)), sum(segment.rows for segment in segments)
    return {
        "name": table.name,
        "version": version,
        "grain": str(table.grain),
        "time": table.time,
        "start": min((segment.start for segment in segments), default=None) if table.time else None,
        "end": max((segment.end for segment in segments), default=None) if table.time else None,
        "chunks": len(chunks),
        "segments": len(segments),
        "tombstones": tombstones,
        "rows": table.count(as_of=version),
        "rows_stored": stored,
        "bytes": sum(segment.bytes for segment in segments),
    }


def log(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="only commits that touched this table", show_default=False)
    ] = None,
    limit: LimitOption = 20,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List commits, newest first, and what became of numbers between them that are no versions."""
    with open_existing(catalog, warehouse) as lake:
        commits = lake.log(limit) if table is None else lake.table(table).log(limit, definitions=True)
        missing = gaps(one.version for one in commits)
        drawn = lake.catalog.drawn(missing)
        tags: dict[int, list[str]] = {}
        for name, version in lake.tags().items():
            tags.setdefault(version, []).append(name)
    if as_json:
        return print_json(commits)
    print_table(
        ["version", "time", "operation", "tables", "segments", "rows", "tombstones", "tags", "message"],
        [_log_line(commit, tags.get(commit.version, [])) for commit in commits],
        spare=["tombstones", "segments", "tags", "tables"],
    )
    for one in drawn:
        print_line(str(one))
    others = said_of_others(missing, drawn, of_table=table is not None)
    if others is not None:
        print_line(f"other numbers between them {others}; no version is lost")
    return None


def _log_line(commit: Commit, tags: list[str]) -> list[Any]:
    return [
        commit.version,
        commit.committed_at.replace(microsecond=0),
        commit.operation,
        commit.tables,
        _change(commit.added, commit.dropped),
        _rows_changed(commit),
        _change(commit.tombstones_added, commit.tombstones_dropped),
        tags,
        commit.message or receipt_text(commit),
    ]


def _change(added: int, dropped: int) -> str:
    return " ".join(f"{sign}{count:,}" for sign, count in (("+", added), ("-", dropped)) if count)


def _rows_changed(commit: Commit) -> str:
    gone = "" if commit.rows_lost == "0" else f"-{commit.rows_lost}"
    return f"{_change(commit.rows_added, 0)} {gone}".strip()


def show_table(
    table: TableArgument,
    as_of: AsOfOption = None,
    interval: IntervalOption = None,
    segments: Annotated[bool, typer.Option("--segments", help="list the segments")] = False,
    tombstones: Annotated[bool, typer.Option("--tombstones", help="list the tombstones")] = False,
    frames: Annotated[bool, typer.Option("--key-frames", help="list the key frames")] = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a table: columns, keys, properties, and its chunks, segments or tombstones at a version."""
    with open_existing(catalog, warehouse) as lake:
        shown = lake.table(table)
        point = pinned(shown, as_of)
        spec = shown.spec_at(as_of)
        window = None if interval is None else spec.interval_of(interval)
        document: dict[str, Any] = {
            "name": shown.name,
            "version": shown.version if as_of is None else point,
            "time": spec.time or None,
            "grain": spec.grain.value,
            "primary_key": list(spec.primary_key),
            "cluster_by": dict(spec.cluster_by),
            "properties": shown.properties,
            "policy": shown.policy.described(),
            "schema": [
                {"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in spec.schema
            ],
            "chunks": [
                one
                for one in shown.chunks(as_of=point)
                if window is None or window.overlaps(Interval(one.start, one.end))
            ],
        }
        if segments:
            document["segments"] = shown.segments(as_of=point, interval=window)
        if tombstones:
            document["tombstones"] = shown.tombstones(as_of=point, interval=window)
        if frames:
            document["key_frames"] = shown.key_frames()
    if as_json:
        return print_json(document)
    return _print_document(document)


def _print_document(document: dict[str, Any]) -> None:
    print_line(f"{document['name']} at {document['version']}")
    for name in ("time", "grain", "primary_key", "cluster_by", "properties"):
        if document[name]:
            print_line(f"  {name.replace('_', ' ')}: {show(document[name])}")
    print_table(
        ["property", "value"],
        [[name, f"{value} (default)" if name not in document["properties"] else value]
         for name, value in document["policy"].items()],
        title="maintenance",
    )  # fmt: skip
    print_table(["column", "type", "null"], [[one["name"], one["type"], one["nullable"]] for one in document["schema"]])
    print_table(
        ["chunk", "until", "version", "segments", "tombstones", "rows", "size"],
        [
            [one.start, one.end, one.version, one.segments, one.tombstones, one.rows, show_bytes(one.bytes)]
            for one in document["chunks"]
        ],
        title="chunks (rows as stored)",
    )
    if "segments" in document:
        print_table(
            ["id", "ordinal", "first row", "last row", "rows", "size", "path"],
            [
                [one.id, one.ordinal, one.start, last_instant(one.end), one.rows, show_bytes(one.bytes), one.path]
                for one in document["segments"]
            ],
            title="segments",
        )
    if "tombstones" in document:
        print_table(
            ["id", "ordinal", "kind", "first", "last", "keys"],
            [
                [one.id, one.ordinal, one.kind, one.start, show_last(one.end), one.keys]
                for one in document["tombstones"]
            ],
            title="tombstones",
        )
    if "key_frames" in document:
        print_table(
            ["chunk", "version", "entries", "size"],
            [[one.chunk, one.version, one.entries, show_bytes(one.bytes)] for one in document["key_frames"]],
            title="key frames",
        )


def diff(
    table: TableArgument,
    a: Annotated[str, typer.Argument(metavar="FROM", help="version, tag or time", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="TO", help="version, tag or time", show_default=False)],
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was added to and dropped from a table between two versions, by chunk, and how its columns changed."""
    with open_existing(catalog, warehouse) as lake:
        found = lake.table(table).diff(point_in_history(a), point_in_history(b))
    rows = found.to_arrow().to_pylist()
    if as_json:
        columns = list(found.columns)
        return print_json({"table": table, "from": found.a, "to": found.b, "changes": rows, "columns": columns})
    for change in found.columns:
        print_line(str(change))
    if not rows and found.columns:
        return None
    if not rows:
        return print_line(f"{table} is the same at {a} and {b}")
    print_table(
        ["chunk", "change", "kind", "id", "ordinal", "first", "last", "rows"],
        [
            [
                one["chunk_start"],
                one["action"],
                one["kind"],
                one["id"],
                one["ordinal"],
                one["start"],
                show_last(one["end"]),
                one["rows"],
            ]
            for one in rows
        ],
        title=f"{table}: {a} .. {b}",
        spare=["ordinal", "id"],
    )
    return None


def timeline(
    table: TableArgument,
    interval: IntervalOption = None,
    as_of: AsOfOption = None,
    width: Annotated[
        int | None, typer.Option(min=30, metavar="N", help="characters across; default: the terminal's")
    ] = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw what is visible of a table: time across, a line for each place in the write order, the newest on top.

    A line is labelled with the version that added what is on it.
    """
    with open_existing(catalog, warehouse) as lake:
        shown = lake.table(table)
        window = None if interval is None else shown.spec.interval_of(interval)
        point = pinned(shown, as_of)
        drawn = bars(
            shown.segments(as_of=point, interval=window), shown.tombstones(as_of=point, interval=window), window
        )
        origins = shown.session.catalog.origins(shown.spec, {bar.of.id for bar in drawn})
        if as_json:
            found = shown.timeline(interval=window, as_of=point)
            document = {"table": table, "version": point, "slices": [plain_slice(one) for one in found.slices]}
            return print_json({**document, "overshadowed": [one.id for one in found.overshadowed]})
    if not drawn:
        return print_line(f"nothing of {table} is visible at {point}")
    print_line(f"{table} at {point}   {LEGEND}")
    characters = width or (console().width if sys.stdout.isatty() else _PIPE_WIDTH)
    for line in draw(drawn, characters, {entry: origin.version for entry, origin in origins.items()}):
        console().print(line, soft_wrap=True)
    return None


def plain_slice(one: Any) -> dict[str, Any]:
    """A slice, with the ids of its segments and tombstones."""
    document = {"start": one.start, "end": one.end}
    listed = {"segments": [held.id for held in one.segments], "tombstones": [held.id for held in one.tombstones]}
    found: dict[str, Any] = plain({**document, **listed})
    return found


def locks(
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="only this table's", show_default=False)] = None,
    release: Annotated[
        str | None, typer.Option(help="end this operation first; its commit then fails", show_default=False)
    ] = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who holds which chunks, and until when."""
    with open_existing(catalog, warehouse) as lake:
        if release is not None:
            lake.release(release)
        names = lake.tables() if table is None else [table]
        found = [(name, lock) for name in names for lock in lake.table(name).locks()]
    if as_json:
        return print_json([{"table": name, **plain(lock)} for name, lock in found])
    if not found:
        return print_line("no locks are held")
    print_table(
        ["table", "chunk", "keys", "operation", "kind", "priority", "token", "expires"],
        [
            [name, lock.chunk, lock.keys, lock.operation, lock.kind, lock.priority, lock.token, lock.expires_at]
            for name, lock in found
        ],
    )
    return None

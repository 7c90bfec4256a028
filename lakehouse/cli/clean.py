"""Commands that keep a lake tidy: expire, collect, check."""

from __future__ import annotations

from typing import Annotated

import typer

from lakehouse import interrupts
from lakehouse.cli.options import CatalogOption, JsonOption, QuietOption, WarehouseOption, open_lake
from lakehouse.cli.output import plain, print_json, print_line, print_table, show_bytes
from lakehouse.core.duration import duration_seconds

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="only show what would be removed")]


def expire(
    older_than: Annotated[
        str | None, typer.Option(help="an age such as 30d or 12h, or a time (ISO 8601)", show_default=False)
    ] = None,
    keep_last: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="keep this many versions", show_default=False)
    ] = None,
    dry_run: DryRunOption = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Expire old versions. Tagged ones and each table's newest stay; `collect` deletes the files."""
    interrupts.in_steps()
    if older_than is None and keep_last is None:
        raise typer.BadParameter("say what to keep: --older-than 30d, --keep-last 10, or both")
    with open_lake(catalog, warehouse) as lake:
        found = lake.expire(older_than=older_than, keep_last=keep_last, dry_run=dry_run)
    if as_json:
        return print_json(found)
    done = "would be expired" if dry_run else "expired"
    went = f"{found.segments:,} segments ({show_bytes(found.bytes)}) and {found.tombstones:,} tombstones"
    print_line(f"{found.versions:,} versions {done}, with {went}; readable from version {found.horizon}")
    if found.held:
        print_line(f"{found.held} holds the others: {_UNTIL[found.held]}")
    return None


_UNTIL = {
    "an operation that runs": "until it ends (lakehouse locks)",
    "a reader": "until it ends, and what reads lazily for connect's pin_seconds, an hour",
    "a consumer": "until it has read on, or its lease is over (lakehouse consumers)",
    "a query node": "until it has moved on, or its lease is over (lakehouse serving)",
}


def collect(
    grace: Annotated[str, typer.Option(help="keep what has been garbage for less than this")] = "1h",
    dry_run: DryRunOption = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Delete files of expired versions and of operations that never committed."""
    interrupts.in_steps()
    seconds = duration_seconds(grace)
    if seconds is None:
        raise typer.BadParameter("write --grace as 1h, 30m or seconds")
    with open_lake(catalog, warehouse) as lake:
        found = lake.collect(grace_seconds=seconds, dry_run=dry_run)
    if as_json:
        return print_json(found)
    done = "would be deleted" if dry_run else "deleted"
    operations = f"{found.operations:,} operations that never committed"
    return print_line(f"{found.files:,} files ({show_bytes(found.bytes)}) {done}, with those of {operations}")


def check(
    rebuild_key_frames: Annotated[
        bool, typer.Option("--rebuild-key-frames", help="write every key frame again")
    ] = False,
    delete_unknown: Annotated[
        bool, typer.Option("--delete-unknown", help="delete unknown files in tables' folders that are a day old")
    ] = False,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="read every byte and row, and compare what maintenance read with what it wrote"),
    ] = False,
    add_checksums: Annotated[
        bool, typer.Option("--add-checksums", help="add checksums to sound files that have none")
    ] = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare the catalog with itself and with what is stored; exit code 1 if anything is wrong."""
    if rebuild_key_frames or delete_unknown:
        interrupts.in_steps()
    with open_lake(catalog, warehouse) as lake:
        found = lake.check(
            rebuild_key_frames=rebuild_key_frames,
            delete_unknown=delete_unknown,
            deep=deep,
            add_checksums=add_checksums,
        )
    if as_json:
        print_json({**plain(found), "is_sound": found.is_sound})
    else:
        if found.findings:
            print_table(
                ["kind", "what", "problem", "repaired"],
                [[one.kind, one.subject, one.problem, one.is_repaired] for one in found.findings],
            )
        looked = f"{found.segments:,} files ({show_bytes(found.bytes)}), {found.deltas:,} deltas"
        wrong = sum(not one.is_repaired for one in found.findings)
        print_line(f"{looked} and {found.key_frames:,} key frames checked: {wrong:,} problems")
        if found.forgotten:
            print_line(f"{found.forgotten:,} entries of expired versions are left for the next expiry")
        if found.unsummed:
            print_line(f"{found.unsummed:,} files have no checksum; --add-checksums gives them one")
    raise typer.Exit(0 if found.is_sound else 1)

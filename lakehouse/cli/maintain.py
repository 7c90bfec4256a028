"""Commands of the table service: maintain, tasks, alter."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from lakehouse import interrupts
from lakehouse.cli.options import (
    CatalogOption,
    JsonOption,
    QuietOption,
    TableArgument,
    WarehouseOption,
    open_existing,
    open_lake,
)
from lakehouse.cli.output import print_json, print_line, print_table, show_bytes
from lakehouse.cli.write import print_commit
from lakehouse.core.policy import read_size
from lakehouse.core.task import Task, Worker
from lakehouse.errors import InvalidInput

if TYPE_CHECKING:
    from lakehouse.service import Limits

_CHANGES = ("ADD", "DROP", "RENAME", "ALTER", "CHANGE", "SET", "UNSET", "CLUSTER", "CLUSTERED", "PARTITIONED")
"""What a change of columns begins with."""
TableOption = Annotated[str | None, typer.Option("--table", help="only this table", show_default=False)]


def maintain(
    once: Annotated[bool, typer.Option("--once", help="run one round, then exit")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="only show what would be done, why, and what it gains")
    ] = False,
    table: TableOption = None,
    budget: Annotated[
        str | None, typer.Option(help="bytes to read in a round, such as 4GiB", show_default=False)
    ] = None,
    engine: Annotated[str | None, typer.Option(help="spark: compact with Spark", show_default=False)] = None,
    worker: Annotated[str | None, typer.Option(help="only resident or elastic tasks", show_default=False)] = None,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="seconds between rounds")] = 5.0,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Keep tables in shape: plan, compact, resolve, clean, collect. Runs until Ctrl-C, or one round with --once."""
    interrupts.in_steps()
    limits = _limits(table, budget, engine, worker)
    with open_lake(catalog, warehouse) as lake:
        if once or dry_run:
            done = lake.maintain(
                table=table, budget_bytes=limits.budget_bytes, dry_run=dry_run, engine=engine, workers=limits.workers
            )
            return print_json(done.tasks) if as_json else _show(done.tasks, dry_run=dry_run)
        from lakehouse.service import Service  # noqa: PLC0415 - see `_limits`

        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        on_end = print_json if as_json else _show_one
        Service(lake.session, limits, every_seconds=every, on_end=on_end).run(stop)
    return None


def tasks(
    table: TableOption = None,
    state: Annotated[
        str | None, typer.Option(help="waiting, running, done, failed or cancelled", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="the most to list")] = 50,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tasks of the table service, newest first; waiting ones by score."""
    with open_existing(catalog, warehouse) as lake:
        found = lake.tasks(table=table, state=state, limit=limit)
    return print_json(found) if as_json else _show(found)


def alter(
    table: TableArgument,
    changes: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE | CHANGE",
            help="properties (NAME= removes one), or a change of columns: \"ADD COLUMN gate STRING DEFAULT 'A1'\"",
            show_default=False,
        ),
    ],
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a table's properties, such as its maintenance policy (see `show`), or its columns as ALTER TABLE does."""
    if changes[0].split(maxsplit=1)[:1] and changes[0].split()[0].upper() in _CHANGES:
        with open_lake(catalog, warehouse) as lake:
            name = lake.table(table).name
            commit = lake.sql(f"ALTER TABLE {name} {' '.join(changes)}")
        if commit is None:
            is_name = " ".join(changes).upper().split()[:2] == ["RENAME", "TO"]
            return print_json(None) if as_json else print_line("renamed" if is_name else "nothing changed")
        return print_commit(commit, as_json)
    given: dict[str, str | None] = {}
    for one in changes:
        name, is_there, value = one.partition("=")
        if not is_there:
            raise typer.BadParameter(f"write NAME=VALUE: {one}")
        given[name] = value or None
    with open_lake(catalog, warehouse) as lake:
        altered = lake.table(table)
        altered.set_properties(given)
        shown = altered.policy.described()
    return print_json(shown) if as_json else print_table(["property", "value"], [list(one) for one in shown.items()])


def _limits(table: str | None, budget: str | None, engine: str | None, worker: str | None) -> Limits:
    if engine not in (None, "spark", "duckdb"):
        raise typer.BadParameter("--engine is spark or duckdb")
    from lakehouse.service import Limits  # noqa: PLC0415 - the catalog takes a second to load, `--help` need not wait

    if worker not in (None, *Worker):
        raise typer.BadParameter("--worker is resident or elastic")
    try:
        size = None if budget is None else read_size(budget)
    except InvalidInput as error:
        raise typer.BadParameter(f"--budget: {error}") from error
    return Limits(tuple(Worker) if worker is None else (Worker(worker),), table, size, engine)


def _show(found: list[Task], *, dry_run: bool = False) -> None:
    if not found:
        return print_line("nothing to do" if dry_run else "no tasks")
    print_table(
        ["id", "table", "kind", "state", "interval", "score", "reads", "gains", "gained", "why"],
        [
            [
                one.id or "-",
                one.table or "-",
                one.kind.value,
                one.state.value,
                str(one.interval or "-"),
                f"{one.score:,.1f}",
                show_bytes(one.budget_bytes),
                f"{one.predicted.cost_ms:,.1f} ms",
                "-" if one.actual is None else f"{one.actual.cost_ms:,.1f} ms",
                one.error or one.cause,
            ]
            for one in found
        ],
    )
    return print_line(f"{len(found):,} tasks, which read {show_bytes(sum(one.budget_bytes for one in found))} at most")


def _show_one(done: Task) -> None:
    gained = "" if done.actual is None else f", gains {done.actual.cost_ms:,.1f} ms a scan"
    print_line(f"{done.kind.value} {done.table or ''} {done.state.value}{gained}: {done.error or done.cause}")

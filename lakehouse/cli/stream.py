"""Commands of streams: run the topics of a file, list them, forget one."""

from __future__ import annotations

import json
import signal
import sys
import threading
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lakehouse
from lakehouse import interrupts
from lakehouse.cli.group import Group
from lakehouse.cli.options import CatalogOption, JsonOption, WarehouseOption, open_existing, open_lake
from lakehouse.cli.output import console, plain, print_json, print_line, print_table, printable
from lakehouse.core.topic import STALLED_SECONDS, Health, Topic
from lakehouse.extras import load

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from lakehouse.core.listing import Listing

stream = typer.Typer(cls=Group, help="Streams from sources into tables, side by side.", no_args_is_help=True)
_LINE_SECONDS = 10.0


@stream.command()
def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="a file of topics, such as topics.toml", show_default=False)
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="only this one; repeat for more", show_default=False),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="read what there is, then exit: 1 if a topic failed, which is not repeated")
    ] = False,
    metrics: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="port of /metrics for Prometheus, on this machine",
            show_default=False,
        ),
    ] = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run each topic of a file as a stream of its own, until Ctrl-C; one that fails is started again after a while.

    With --json a line for each topic every ten seconds, and when its state changes.
    """
    interrupts.in_steps()
    # These load Spark, for which other commands need not wait.
    config, sources, supervisor, figures, session = (
        load(f"lakehouse.{one}")
        for one in (
            *(f"streaming.topics.{one}" for one in ("config", "sources", "supervisor", "figures")),
            "engine.spark.session",
        )
    )
    found = config.read_topics(file).chosen(topic or ())
    if once:
        found = found.at_once()
    with open_lake(catalog, warehouse) as lake:
        config.check_tables(found, lake)
        for one in found.topics:
            sources.checkpoint_of(lake, one, found.file)
    spark = session.start_session(sources.session_settings(found))
    stop = threading.Event()
    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _: Any) -> None:
        stop.set()
        signal.signal(number, before[number])  # a second one does not wait for batches

    with ExitStack() as stack:
        stack.callback(session.stop_session, spark)
        lake = stack.enter_context(lakehouse.connect(catalog, warehouse, spark=spark))
        shown = stack.enter_context(_Shown(found.topics, as_json=as_json))
        for number in before:
            signal.signal(number, ask)
        running = supervisor.Supervisor(
            lake, found, stop=stop, is_once=once, on_look=shown.look, on_change=shown.change
        )
        if metrics is not None:
            port = stack.enter_context(figures.serving(metrics, lambda: figures.exposition(running.topics())))
            print(f"metrics: http://127.0.0.1:{port}/metrics", file=sys.stderr, flush=True)
        is_well = running.run()
    raise typer.Exit(0 if is_well else 1)


@stream.command("list")
def list_topics(
    stalled_after: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="seconds without progress after which a topic is stalled")
    ] = STALLED_SECONDS,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List topics as their processes reported them last: rows, lag, versions, restarts, and why one is stalled."""
    with open_existing(catalog, warehouse) as lake:
        found = lake.topics()
    if as_json:
        return print_json([_document(one, stalled_after) for one in found])
    if not found:
        return print_line("no topics; `lakehouse stream run topics.toml` runs those of a file")
    print_table(list(COLUMNS), [_row(one, stalled_after) for one in found])
    for one in found:
        if why := one.stall(stalled_after):
            print_line(f"{one.name}: {why}")
    return None


@stream.command()
def forget(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="a topic that is not to run any more", show_default=False)
    ],
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a topic from those that are listed; its table and its checkpoint stay."""
    with open_lake(catalog, warehouse) as lake:
        lake.forget_topic(name)
    return print_json({"forgotten": name}) if as_json else print_line(f"topic {name} is forgotten")


COLUMNS = ("topic", "table", "state", "rows", "rows/s", "lag", "batch", "version", "restarts")


def _row(one: Topic, stalled_after: float = STALLED_SECONDS) -> list[Any]:
    told = one.progress
    state = "stalled" if one.health(stalled_after) is Health.STALLED else one.state.value
    lag = "-" if told.lag is None else f"{told.lag:,}"
    return [
        one.name, told.table, state, told.rows, f"{told.rows_per_second:,.1f}", lag,
        "-" if told.batch is None else str(told.batch), "-" if told.version is None else str(told.version),
        told.restarts,
    ]  # fmt: skip


def _document(one: Topic, stalled_after: float = STALLED_SECONDS) -> dict[str, Any]:
    held: dict[str, Any] = plain(one)
    told = held.pop("progress")
    return {
        **held,
        "health": one.health(stalled_after).value,
        "why": one.stall(stalled_after),
        **told,
        "last_batch_at": plain(one.at(one.progress.batch_ago)),
        "last_error_at": plain(one.at(one.progress.error_ago)),
    }


class _Shown:
    """How topics are, while they run: a table on a terminal, lines elsewhere, JSON if asked for."""

    def __init__(self, topics: Any, *, as_json: bool) -> None:
        self._as_json = as_json
        self._is_live = not as_json and sys.stdout.isatty()
        self._live: Any = None
        self._looks = 0
        self._one_line = threading.Lock()

    def __enter__(self) -> _Shown:
        if self._is_live:
            live = import_module("rich.live").Live
            self._live = live(console=console(), auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    def look(self, topics: Listing[Topic]) -> None:
        """All topics, each second."""
        if self._live is not None:
            self._live.update(drawn(topics), refresh=True)
        elif self._looks % _LINE_SECONDS == 0 and self._as_json:
            for one in topics:
                self._print(one)
        self._looks += 1

    def change(self, one: Topic) -> None:
        """A topic whose state has changed."""
        if self._live is None:
            self._print(one)

    def _print(self, one: Topic) -> None:
        with self._one_line:
            if self._as_json:
                print(json.dumps(_document(one), ensure_ascii=False), flush=True)
                return
            told = one.progress
            text = f"{one.name}: {one.state.value}"
            if one.state == "waiting" and told.error:
                text += f", again in {told.next_in or 0:.1f} s: {told.error}"
            elif told.batches:
                text += f", {told.rows:,} rows in {told.batches:,} {'batch' if told.batches == 1 else 'batches'}"
            print(printable(text), flush=True)


def drawn(topics: Listing[Topic]) -> RichTable:
    """Topics as a table of 80 columns, and below it the last error of each that is not well."""
    from rich.table import Table as RichTable  # noqa: PLC0415 - other commands print without it

    table = RichTable(box=None, pad_edge=False, padding=(0, 1))
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in COLUMNS[:3] else "right", no_wrap=True, overflow="ellipsis")
    for one in topics:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else printable(cell) for cell in _row(one)))
    grid = RichTable.grid()
    grid.add_row(table)
    for one in topics:
        if one.progress.failures and one.progress.error:
            grid.add_row(printable(f"{one.name}: {one.progress.error}"))
    return grid

"""The console's pages in a real Chromium: how long from the address to a page that answers.

``python benchmarks/console.py`` makes two lakes: a small one of a hundred segments with files, and a large one of
10,000 segments in 1,000 versions (``--full``: 100,000 in 10,000), committed through the catalog without files. It
serves each by ``lakehouse console`` and comes to every page in two ways: by its address, in a new tab of a browser that
has a profile, as a person's, and has seen the console before; and by a click on its name beside another page. Medians
in seconds until nothing runs and the page's title stands there, until every table and picture in sight is drawn, and of
the processor's seconds that the server took for it, which other work on the machine does not change; for the large lake
with ``--full`` also zoomed to a week, and at an old version. ``--keep FOLDER`` keeps the lakes, and uses those that are
there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from figures import keep
from playwright.sync_api import BrowserContext, Page, sync_playwright
from rich.console import Console
from rich.table import Table

import lakehouse
from lakehouse.core.contribution import AppendContribution, ReplaceContribution
from lakehouse.core.interval import Interval
from lakehouse.core.operation import Kind
from lakehouse.core.segment import NewSegment

PAGES = (
    "",
    "schema",
    "query",
    "versions",
    "timeline",
    "tombstones",
    "key_frames",
    "segments",
    "service",
    "streams",
    "serving",
    "locks",
)
CHROMIUM_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FIRST = datetime(2023, 1, 1, tzinfo=UTC)
DAYS = 1000
SEGMENTS_A_VERSION = 10
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("client", pa.int64()), ("key", pa.string()), ("value", pa.float64())]
)
QUIET = "document.querySelector('[data-test-script-state=notRunning]') && document.querySelector('h1')"
DRAWN = """() => [...document.querySelectorAll('[data-testid=stVegaLiteChart], [data-testid=stDataFrame]')].every(
    one => !one.checkVisibility() || !one.offsetHeight || one.getBoundingClientRect().top > innerHeight - 50
        || one.querySelector('canvas, svg.marks'))
    && !document.querySelector('[data-testid=stSkeleton]')"""
CHANGED = """before => document.querySelector('[data-test-script-state=notRunning]')
    && document.querySelector('h1') && document.querySelector('h1').innerText != before"""
START_SECONDS = 60


def make_small(folder: Path) -> None:
    """A hundred days by the library: appended, some replaced, some deleted from."""
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        table = lake.create_table("events", SCHEMA, time="ts", cluster_by=["client"])
        for day in range(0, 100, 10):
            table.append(rows_of(day, 10))
        table.replace(rows_of(40, 2), (FIRST + timedelta(days=40), FIRST + timedelta(days=42)))
        table.replace(None, (FIRST + timedelta(days=50), FIRST + timedelta(days=51)), keys={"client": 3})
        table.delete("client = 5 AND value < 100")


def rows_of(day: int, days: int) -> pa.Table:
    """A row a minute."""
    minutes = range(1440 * days)
    times = pa.array([FIRST + timedelta(days=day, minutes=one) for one in minutes], SCHEMA.field("ts").type)
    clients = [one % 10 for one in minutes]
    return pa.table([times, clients, [f"k{one}" for one in clients], [float(one) for one in minutes]], schema=SCHEMA)


def make_large(folder: Path, versions: int) -> None:
    """Versions of ten segments each over a thousand days; every fiftieth replaces one client's rows of a day."""
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        table = lake.create_table("events", SCHEMA, time="ts", cluster_by=["client"])
        for number in range(versions):
            day = FIRST + timedelta(days=number * 7 % DAYS)
            if number % 50 == 49:
                span, keys = Interval(day, day + timedelta(days=1)), {"client": (number % 10,)}
                begun = lake.catalog.begin(table.spec, Kind.REPLACE, interval=span, keys=keys)
                lake.catalog.commit([ReplaceContribution(begun)], message=f"restate client {number % 10}")
                continue
            begun = lake.catalog.begin(table.spec, Kind.APPEND)
            made = tuple(
                new_segment(f"{table.spec.folder}/{begun.id}/{one}.parquet", number, one)
                for one in range(SEGMENTS_A_VERSION)
            )
            lake.catalog.commit([AppendContribution(begun, segments=made)], message=f"batch {number}")


def new_segment(path: str, number: int, place: int) -> NewSegment:
    """A segment of half an hour on one day, with statistics."""
    start = FIRST + timedelta(days=(number * 7 + place) % DAYS, minutes=30 * (number % 47))
    end = start + timedelta(minutes=30)
    low = {"ts": start, "client": place, "key": f"k{number:06d}", "value": 0.5}
    high = {"ts": end - timedelta(seconds=1), "client": place + 3, "key": f"k{number + 99:06d}", "value": 99.5}
    return NewSegment(path, start, end, rows=1000, bytes=40_000, min=low, max=high, nulls=dict.fromkeys(low, 0))


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, int]]:
    """The console of a lake, started as a user starts it: its address and process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = {
        "LAKEHOUSE_CATALOG": f"sqlite:///{folder}/catalog.db",
        "LAKEHOUSE_WAREHOUSE": str(folder / "warehouse"),
    }
    command = [Path(sys.executable).with_name("lakehouse"), "console", "--port", str(port)]
    with (folder / "console.log").open("wb") as log:
        server = subprocess.Popen(command, env={**os.environ, **place}, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", server.pid
    finally:
        server.terminate()
        server.wait(timeout=30)


class Taken(NamedTuple):
    """Seconds of a visit: until the page answers, until what is in sight is drawn, and of the server's processor."""

    answers: float
    drawn: float
    worked: float


def median(visits: list[Taken]) -> Taken:
    return Taken(*map(statistics.median, zip(*visits, strict=True)))


def visit(page: Page, process: int, go: Callable[[], object], answers: str, seen: str | None = None) -> Taken:
    """Go somewhere and wait there."""
    before, started = processor_seconds(process), time.perf_counter()
    go()
    page.wait_for_function(answers, arg=seen, timeout=120_000)
    answered = time.perf_counter() - started
    page.wait_for_function(DRAWN, timeout=120_000)
    return Taken(answered, time.perf_counter() - started, processor_seconds(process) - before)


def open_page(browser: BrowserContext, server: tuple[str, int], path: str, turns: int) -> Taken:
    """Medians of opening a path in a new tab."""
    address, process = server
    visits = []
    for _ in range(turns):
        page = browser.new_page()
        visits.append(visit(page, process, partial(page.goto, address + path), QUIET))
        page.close()
    return median(visits)


def follow(browser: BrowserContext, server: tuple[str, int], turns: int) -> dict[str, Taken]:
    """By page the medians of a click on its name; the first time round is not counted."""
    address, process = server
    page = browser.new_page()
    page.goto(address)
    page.wait_for_function(QUIET, timeout=120_000)
    links = page.get_by_test_id("stSidebarNavLink")
    visits: dict[str, list[Taken]] = {name: [] for name in PAGES}
    for _ in range(turns + 1):
        for place in (*range(1, len(PAGES)), 0):
            title = page.locator("h1").first.inner_text()
            visits[PAGES[place]].append(visit(page, process, links.nth(place).click, CHANGED, title))
    page.close()
    return {name: median(taken[1:]) for name, taken in visits.items()}


def processor_seconds(process: int) -> float:
    """Processor seconds that a process has used; 0 where the system does not report them."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(
    browser: BrowserContext, folder: Path, queries: dict[str, str], turns: int
) -> Iterator[tuple[str, str, Taken]]:
    """Each page with each query, at its first opening and again, and by a click."""
    with served(folder) as server:
        yield "first visit of all", "", open_page(browser, server, "/", 1)
        for name in PAGES:
            for what, query in queries.items():
                yield name or "lake", f"{what}, first", open_page(browser, server, f"/{name}{query}", 1)
                yield name or "lake", f"{what}, again", open_page(browser, server, f"/{name}{query}", turns)
        for name, taken in follow(browser, server, turns).items():
            yield name or "lake", "by a click", taken


def main() -> None:
    """Make the lakes, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="10,000 versions")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, CHROMIUM_COMMANDS)), None)
    if chromium is None:
        print("Chromium is not installed: nothing is measured", file=sys.stderr)
        return
    versions = 10_000 if asked.full else 1_000
    shown = Table("lake", "page", "what", "seconds", "until drawn", "server's processor")
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        root = asked.keep or Path(temporary)
        browser = playwright.chromium.launch_persistent_context(
            Path(temporary) / "profile",
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu"],
            viewport={"width": 1440, "height": 900},
        )
        for name in ("small", "large"):
            folder = root / name
            if not folder.exists():
                folder.mkdir(parents=True)
                started = time.perf_counter()
                make_small(folder) if name == "small" else make_large(folder, versions)
                print(f"made {name} in {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
            queries = {"newest": ""}
            if name == "large" and asked.full:
                queries |= {"a week": "?interval=2024-03-04/2024-03-11", "an old version": f"?version={versions // 2}"}
            for page, what, taken in measure(browser, folder, queries, asked.turns):
                row = (name, page, what, *(f"{seconds:.2f}" for seconds in taken))
                shown.add_row(*row)
                print(*row, file=sys.stderr, flush=True)
                figures[f"{name}, {page}, {what}, s"] = taken.answers
                figures[f"{name}, {page}, {what}, drawn, s"] = taken.drawn
        browser.close()
    Console().print(shown)
    keep(__file__, figures)


if __name__ == "__main__":
    main()

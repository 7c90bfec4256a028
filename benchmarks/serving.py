"""How fast query nodes answer, on the flights of the demo: two nodes as processes, beside their clients.

Measured: a one-day aggregate by one client (a day that was not asked for before, and the same again); the same by 16
clients at a time, each asking anew as soon as it has an answer, at one node and at all, and each twice a second; and
how long after the last node's load the live version flips, for commits one after the other.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
from figures import keep

import lakehouse
from lakehouse.demo.source import Flights
from lakehouse.testing.serving_nodes import NodeProcess

DAY = (
    "SELECT carrier, count(*) AS flights, avg(dep_time) AS delay FROM flights "
    "WHERE scheduled_at >= '{first}' AND scheduled_at < '{last}' GROUP BY carrier ORDER BY carrier"
)


def statement(day: int, salt: str = "") -> str:
    first = date(2013, 1, 1) + timedelta(days=day)
    return DAY.format(first=first, last=first + timedelta(days=1)) + salt


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"p{part}_ms": round(ordered[min(len(ordered) - 1, len(ordered) * part // 100)] * 1000, 2) for part in (50, 99)
    }


def timed(ask: Callable[[int], object], count: int) -> dict[str, float]:
    found = []
    for number in range(count):
        began = time.perf_counter()
        ask(number)
        found.append(time.perf_counter() - began)
    return quantiles(found)


def many(
    urls: Sequence[str], clients: int, each: int, text: Callable[[int, int], str], every: float = 0.0
) -> dict[str, float]:
    """Questions of clients at a time, the clients in turn at the nodes; ``every`` so many seconds, or without pause."""
    found: list[float] = []
    ready = threading.Barrier(clients)

    def work(place: int) -> None:
        with lakehouse.connect_serving(urls[place % len(urls)]) as client:
            client.sql("SELECT 1")
            ready.wait()
            first = time.perf_counter() + every * place / clients
            for number in range(each):
                threading.Event().wait(max(0.0, first + number * every - time.perf_counter()))
                began = time.perf_counter()
                client.sql(text(place, number))
                found.append(time.perf_counter() - began)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(clients)]
    began = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return {**quantiles(found), "queries_per_second": round(len(found) / (time.perf_counter() - began))}


def flips(lake: lakehouse.Lake, rows: pa.Table, count: int) -> dict[str, float]:
    """How long after the last node reported that it had loaded a version the group's live one was that version."""
    groups, found = lake.catalog.serving(), []
    for _ in range(count):
        version = lake.table("flights").append(rows).version
        loaded = None
        while True:
            group = groups.group("test")
            assert group is not None
            if loaded is None and all(version in one.report.loaded for one in group.nodes):
                loaded = time.perf_counter()
            if group.live >= version:
                found.append(time.perf_counter() - (loaded or time.perf_counter()))
                break
            threading.Event().wait(0.005)
    return quantiles(found)


def read_flights() -> pa.Table:
    names = ["scheduled_at", "carrier", "flight", "origin", "dest", "dep_time"]
    return pa.Table.from_pandas(Flights().rows[names], preserve_index=False)


def make(folder: Path) -> tuple[str, str]:
    catalog, warehouse = f"sqlite:///{folder}/catalog.db", str(folder / "warehouse")
    with lakehouse.connect(catalog, warehouse) as lake:
        flights = read_flights()
        lake.create_table("flights", flights.schema, time="scheduled_at", grain="day").append(flights)
    return catalog, warehouse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--each", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        catalog, warehouse = make(Path(folder))
        nodes = [
            NodeProcess(catalog, warehouse, "--cache-dir", f"{folder}/copies{place}", "--name", f"n{place}")
            for place in range(chosen.nodes)
        ]
        try:
            with lakehouse.connect(catalog, warehouse) as lake, lakehouse.connect_serving(nodes[0].url) as client:
                while not all(one.report.loaded for one in lake.serving()[0].nodes):
                    threading.Event().wait(0.1)
                days = list(range(119))
                random.Random(7).shuffle(days)
                client.sql(statement(0, " LIMIT 1"))
                figures = {
                    "one client, a day that nobody has asked for": timed(lambda n: client.sql(statement(days[n])), 100),
                    "one client, the same day, calculated again": timed(
                        lambda n: client.sql(statement(days[3], f" LIMIT {n + 20}")), 100
                    ),
                    "one client, a known answer": timed(lambda _: client.sql(statement(days[3])), 300),
                    f"{chosen.clients} clients, a dashboard of 8 statements": many(
                        [nodes[0].url], chosen.clients, chosen.each,
                        lambda place, number: statement(days[(place + number) % 8]),
                    ),
                    f"{chosen.clients} clients, days of their own, twice a second": many(
                        [nodes[0].url], chosen.clients, chosen.each // 4,
                        lambda place, number: statement(days[(place * 31 + number) % 119], f" LIMIT {place + 20}"), 0.5,
                    ),
                    f"{chosen.clients} clients, days of their own, without pause": many(
                        [nodes[0].url], chosen.clients, chosen.each,
                        lambda place, number: statement(days[(place * 31 + number) % 119], f" LIMIT {place + 40}"),
                    ),
                    f"{chosen.clients} clients, days of their own, without pause, at {chosen.nodes} nodes": many(
                        [one.url for one in nodes], chosen.clients, chosen.each,
                        lambda place, number: statement(days[(place * 31 + number) % 119], f" LIMIT {place + 60}"),
                    ),
                    "flip after the last load": flips(lake, read_flights().slice(0, 100), 20),
                }  # fmt: skip
        finally:
            for one in nodes:
                one.stop()
    keep(__file__, figures)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()

"""Lakes in an object store, beside Delta Lake, Iceberg and DuckLake: requests, appends, cold and warm scans.

``python benchmarks/stores.py`` starts a store on loopback behind a proxy that adds 20 ms to each request, and runs each
system as a process of its own: appends of one segment, then scans of 5,000,000 rows in 30 segments, cold (a new
process, an empty cache) and again, which is the least of seven. It prints times, the requests of each step by kind, and
how long a PUT of an append's bytes takes alone. Ours is run once more in a folder.
``--peers delta-rs,pyiceberg,DuckLake`` runs those of `benchmarks.peers`, too, which installs them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

DAYS, DAY_US, FIRST_US = 30, 86_400_000_000, 1_704_067_200_000_000
APPENDS, REPEATS = 15, 7
SUM = "SELECT count(*), sum(value) FROM t"


def rows_of(count: int, first: int = 0) -> pa.Table:
    """Events of one day."""
    random = np.random.default_rng(first)
    ids = np.arange(first, first + count)
    start = FIRST_US + first % DAYS * DAY_US
    columns = {
        "ts": pa.array(np.arange(count) * (DAY_US // max(count, 1)) + start, pa.timestamp("us", "UTC")),
        "id": pa.array(ids),
        "value": pa.array(random.integers(0, 4_000, count) / 4.0),
        "payload": pa.array([f"{one:020x}" for one in random.integers(0, 1 << 62, count)], pa.string()),
    }  # fmt: skip
    return pa.table(columns)


class Ours:
    """This library, in process."""

    def __init__(self, place: dict[str, Any]) -> None:
        import lakehouse  # noqa: PLC0415 - a peer's environment does not have it

        more = {"storage_options": place["options"], "cache_dir": place["cache"]} if place["options"] else {}
        self._lake = lakehouse.connect(f"sqlite:///{place['folder']}/catalog.db", place["url"], **more)

    def create(self, name: str) -> None:
        self._lake.create_table(name, rows_of(0).schema, time="ts")

    def append(self, name: str, rows: pa.Table) -> None:
        self._lake.table(name).append(rows)

    def sum(self, name: str) -> Any:
        return self._lake.sql(SUM.replace("FROM t", f"FROM {name}")).fetchall()[0]

    def read(self, name: str) -> int:
        return int(self._lake.table(name).scan().to_arrow().num_rows)


class DeltaRs:
    """Delta Lake by delta-rs."""

    def __init__(self, place: dict[str, Any]) -> None:
        names = {"aws_endpoint": "AWS_ENDPOINT_URL", "aws_region": "AWS_REGION", "allow_http": "AWS_ALLOW_HTTP"}
        self._options = {names.get(name, name.upper()): value for name, value in place["options"].items()}
        self._options["AWS_S3_ALLOW_UNSAFE_RENAME"] = "true"
        self._url = place["url"]

    def _table(self, name: str) -> Any:
        from deltalake import DeltaTable  # noqa: PLC0415 - in the peers' environment

        return DeltaTable(f"{self._url}/{name}", storage_options=self._options)

    def create(self, name: str) -> None:
        from deltalake import DeltaTable, Schema  # noqa: PLC0415

        DeltaTable.create(f"{self._url}/{name}", Schema.from_arrow(rows_of(0).schema), storage_options=self._options)

    def append(self, name: str, rows: pa.Table) -> None:
        from deltalake import write_deltalake  # noqa: PLC0415

        write_deltalake(f"{self._url}/{name}", rows, mode="append", storage_options=self._options)

    def sum(self, name: str) -> Any:
        from deltalake import QueryBuilder  # noqa: PLC0415

        found = QueryBuilder().register("t", self._table(name)).execute(SUM)
        return tuple(pa.table(found.read_all() if hasattr(found, "read_all") else found).to_pylist()[0].values())

    def read(self, name: str) -> int:
        return int(self._table(name).to_pyarrow_table().num_rows)


class PyIceberg:
    """Apache Iceberg by pyiceberg, its catalog in SQLite."""

    def __init__(self, place: dict[str, Any]) -> None:
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

        options = place["options"]
        self._catalog = SqlCatalog(
            "ice",
            uri=f"sqlite:///{place['folder']}/iceberg.db",
            warehouse=place["url"],
            **{
                "s3.endpoint": options["aws_endpoint"],
                "s3.region": options["aws_region"],
                "s3.access-key-id": options["aws_access_key_id"],
                "s3.secret-access-key": options["aws_secret_access_key"],
            },
        )
        self._catalog.create_namespace_if_not_exists("db")

    def create(self, name: str) -> None:
        self._catalog.create_table(f"db.{name}", rows_of(0).schema)

    def append(self, name: str, rows: pa.Table) -> None:
        self._catalog.load_table(f"db.{name}").append(rows)

    def sum(self, name: str) -> Any:
        values = self._catalog.load_table(f"db.{name}").scan(selected_fields=("value",)).to_arrow()["value"]
        return len(values), float(pa.compute.sum(values).as_py())

    def read(self, name: str) -> int:
        return int(self._catalog.load_table(f"db.{name}").scan().to_arrow().num_rows)


class DuckLake:
    """DuckLake with DuckDB's httpfs."""

    def __init__(self, place: dict[str, Any]) -> None:
        import duckdb  # noqa: PLC0415
        import duckdb_extension_ducklake  # noqa: PLC0415
        import duckdb_extension_httpfs  # noqa: PLC0415

        options = place["options"]
        self._connection = duckdb.connect()
        for module in (duckdb_extension_httpfs, duckdb_extension_ducklake):
            folder = Path(module.__file__).parent / "extensions" / f"v{duckdb.__version__}"
            (extension,) = folder.glob("*.duckdb_extension")
            self._connection.execute(f"LOAD '{extension}'")
        self._connection.execute("SET TimeZone = 'UTC'; SET threads = 2")
        self._connection.execute(
            f"CREATE SECRET s (TYPE s3, KEY_ID '{options['aws_access_key_id']}', "
            f"SECRET '{options['aws_secret_access_key']}', REGION '{options['aws_region']}', URL_STYLE 'path', "
            f"USE_SSL false, ENDPOINT '{options['aws_endpoint'].removeprefix('http://')}')"
        )
        self._connection.execute(
            f"ATTACH 'ducklake:{place['folder']}/ducklake.db' AS lake "
            f"(DATA_PATH '{place['url']}/', DATA_INLINING_ROW_LIMIT 0)"
        )

    def create(self, name: str) -> None:
        self._connection.execute(f"CREATE TABLE lake.{name} (ts TIMESTAMPTZ, id BIGINT, value DOUBLE, payload VARCHAR)")

    def append(self, name: str, rows: pa.Table) -> None:
        self._connection.register("given", rows)
        self._connection.execute(f"INSERT INTO lake.{name} SELECT * FROM given")

    def sum(self, name: str) -> Any:
        return self._connection.execute(SUM.replace("FROM t", f"FROM lake.{name}")).fetchall()[0]

    def read(self, name: str) -> int:
        return int(self._connection.execute(f"SELECT * FROM lake.{name}").to_arrow_table().num_rows)


SYSTEMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "lakehouse": Ours,
    "lakehouse in a folder": Ours,
    "delta-rs": DeltaRs,
    "pyiceberg": PyIceberg,
    "DuckLake": DuckLake,
}


def answer_steps() -> None:
    """In a process of its own: do each step that a line asks for, and print how long it took and what it found."""
    place = json.loads(sys.stdin.readline())
    system = SYSTEMS[place["system"]](place)
    for line in sys.stdin:
        asked = json.loads(line)
        given = [] if asked["rows"] is None else [rows_of(*asked["rows"])]
        started = time.perf_counter()
        found = getattr(system, asked["step"])(asked["table"], *given)
        print(json.dumps({"seconds": time.perf_counter() - started, "found": found}), flush=True)


class Running:
    """A system in its process."""

    def __init__(self, place: dict[str, Any], python: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--steps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._send(place)

    def _send(self, what: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def step(self, step: str, table: str, rows: tuple[int, int] | None = None) -> tuple[float, Any]:
        """Seconds of one step, and what it found."""
        self._send({"step": step, "table": table, "rows": rows})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a system ended during {step}")
        found = json.loads(line)
        return found["seconds"], found["found"]

    def end(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def running(place: dict[str, Any], python: str) -> Iterator[Running]:
    """A system for as long as the block."""
    one = Running(place, python)
    try:
        yield one
    finally:
        one.end()


def measure(place: dict[str, Any], python: str, proxy: Any, rows: int) -> tuple[dict[str, float], dict[str, str]]:
    """Seconds and requests of each step."""
    seconds: dict[str, float] = {}
    requests: dict[str, str] = {}

    def counted(name: str) -> None:
        requests[name] = ", ".join(f"{count} {kind.name}" for kind, count in sorted(proxy.counts().items())) or "none"
        proxy.forget()

    with running(place, python) as one:
        one.step("create", "small")
        one.step("append", "small", (1000, 0))
        taken = []
        for number in range(APPENDS):
            proxy.forget()
            taken.append(one.step("append", "small", (1000, 1000 * number + 30))[0])
        counted("append")
        seconds["append"] = statistics.median(taken)
        one.step("create", "large")
        for day in range(DAYS):
            one.step("append", "large", (rows // DAYS, day))
    for step in ("sum", "read"):
        if place.get("cache"):
            shutil.rmtree(place["cache"], ignore_errors=True)
        with running(place, python) as one:
            one.step("append", "small", (1, 0))  # what is imported and connected once
            proxy.forget()
            seconds[f"cold {step}"], found = one.step(step, "large")
            counted(f"cold {step}")
            seconds[f"second {step}"] = min(one.step(step, "large")[0] for _ in range(REPEATS))
            counted(f"second {step}")
            assert (found if step == "read" else found[0]) == rows // DAYS * DAYS, (place["system"], found)
    return seconds, requests


def put_seconds(store: Any) -> float:
    """The median of PUTs of as many bytes as an append's segment has, by the client alone."""
    import obstore  # noqa: PLC0415 - a peer's environment has none of these
    import pyarrow.parquet  # noqa: PLC0415

    written = pa.BufferOutputStream()
    pyarrow.parquet.write_table(rows_of(1000), written, compression="zstd")
    body = written.getvalue().to_pybytes()
    client = obstore.store.from_url(store.url, config=store.config, client_options=store.client_options)
    taken = []
    for number in range(APPENDS):
        started = time.perf_counter()
        obstore.put(client, f"put/{number}", body, mode="create", use_multipart=False)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def main() -> None:
    """Measure and print."""
    from figures import keep  # noqa: PLC0415 - a peer's environment has none of these
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from lakehouse.testing.object_stores import Unavailable, moto_server, versitygw_server  # noqa: PLC0415
    from lakehouse.testing.store_proxy import StoreProxy  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--peers", default="", help="names, with commas: delta-rs,pyiceberg,DuckLake")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    times, counts, figures = Table("system"), Table("system"), {}
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        try:
            store = stack.enter_context(versitygw_server(folder / "store"))
        except Unavailable as reason:
            print(f"{reason}; moto is used instead, which takes longer for each request")
            store = stack.enter_context(moto_server())
        proxy = stack.enter_context(StoreProxy(store.port, latency_seconds=asked.latency_ms / 1000))
        print(f"a PUT alone: {1000 * put_seconds(store.under('put').through(proxy.port)):,.1f} ms", flush=True)
        names = ["lakehouse", "lakehouse in a folder", *filter(None, asked.peers.split(","))]
        peers = _peers_python() if len(names) > 2 else sys.executable
        for name in names:
            there = folder / name.replace(" ", "_")
            there.mkdir()
            reached = store.under(there.name).through(proxy.port)
            place = {"system": name, "folder": str(there), "url": reached.url, "options": dict(reached.options)}
            place["cache"] = str(there / "cache")
            if name == "lakehouse in a folder":
                place |= {"url": str(there / "warehouse"), "options": {}}
            python = sys.executable if name.startswith("lakehouse") else peers
            seconds, requests = measure(place, python, proxy, asked.rows)
            for table, held in ((times, seconds), (counts, requests)):
                if len(table.columns) == 1:
                    for step in held:
                        table.add_column(step)
            times.add_row(name, *(f"{1000 * one:,.0f} ms" for one in seconds.values()))
            counts.add_row(name, *requests.values())
            figures[name] = seconds
            print(f"{name}: " + ", ".join(f"{step} {1000 * one:,.0f} ms" for step, one in seconds.items()), flush=True)
    for table in (times, counts):
        Console(width=170).print(table)
    keep(__file__, {f"{name}: {step}": value for name, held in figures.items() for step, value in held.items()})


def _peers_python() -> str:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.environments import python_of  # noqa: PLC0415
    from benchmarks.peers.environment import FOLDER, install  # noqa: PLC0415

    install()
    return str(python_of(FOLDER))


if __name__ == "__main__":
    if "--steps" in sys.argv:
        answer_steps()
    else:
        main()

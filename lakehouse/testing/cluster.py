"""A Spark cluster whose machines share nothing but this checkout: ``python -m`` this module uses a lake on it.

A master and its workers are processes, each worker with folders of its own for work and copies; the catalog is in
PostgreSQL, the warehouse in a bucket alone. Whatever Spark does there is compared with a list of rows.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakehouse
from lakehouse.core.task import TaskKind, TaskState, Worker
from lakehouse.engine.spark.stores import FILE_SYSTEMS
from lakehouse.service import Limits, Service
from lakehouse.testing.object_stores import SERVERS
from lakehouse.testing.postgres import PostgresServer
from lakehouse.testing.processes import dies_with_parent, free_port, wait_until_it_listens
from lakehouse.testing.store_programs import Unavailable, kept_folder

_DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_CACHE = "LAKEHOUSE_CACHE_DIR"
COLUMNS = "at TIMESTAMP, id BIGINT, v STRING"
Rows = dict[int, tuple[dt.datetime, str]]
"""What a table should hold: time and value by id."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running master's URL, and its workers by the folder of their copies."""

    master: str
    workers: Mapping[str, subprocess.Popen[bytes]]

    def kill(self, cache: str) -> None:
        """Kill a worker with its executors, as when its machine goes away."""
        os.killpg(self.workers[cache].pid, signal.SIGKILL)


@contextmanager
def cluster(home: Path, workers: int = 2) -> Iterator[Cluster]:
    """A standalone master and workers of one core each, which end with the block."""
    import pyspark  # noqa: PLC0415 - what it brings is looked for where it lies

    spark = Path(pyspark.__file__).parent
    launch = [*dies_with_parent(), str(spark / "bin" / "spark-class")]
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:
        name = "org.apache.spark.deploy.master.Master"
        master = _start(stack, [*launch, name, *place, "--port", str(port)], home / "master", spark)
        if not wait_until_it_listens(port, master):
            raise RuntimeError("Spark's master did not start: " + (home / "master" / "log").read_text()[-2000:])
        held = {}
        for number in range(workers):
            folder = home / f"worker-{number}"
            name = "org.apache.spark.deploy.worker.Worker"
            command = [*launch, name, *place, "-c", "1", "-m", "1g", "-d", str(folder / "work"), url]
            held[str(folder / "copies")] = _start(stack, command, folder, spark)
        yield Cluster(url, held)


def _start(stack: ExitStack, command: Sequence[str], folder: Path, spark: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    own = {
        "SPARK_HOME": str(spark),
        "SPARK_DAEMON_MEMORY": "192m",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "HOME": str(folder),
        _CACHE: str(folder / "copies"),
    }
    log = stack.enter_context((folder / "log").open("wb"))
    process = subprocess.Popen(
        command,
        env={**os.environ, **own},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )

    def end() -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    stack.callback(end)
    return process


UNAVAILABLE = 69
"""The exit status where the jars cannot be had."""


def start_session(master: str, home: Path, scheme: str = "s3") -> Any:
    """A session on a cluster of this machine, with the jars that read a store. Raises `Unavailable` without them."""
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - it takes half a second
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    jars = kept_folder("spark-jars")
    settings = {
        **FILE_SYSTEMS[scheme].settings,
        "spark.jars.ivy": str(jars),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.local.dir": str(home / "driver"),
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(master).appName("lakehouse-cluster")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        system = FILE_SYSTEMS[scheme]
        if any(jars.rglob(f"*{system.packages[0].split(':')[1]}*.jar")):
            raise
        wanted = system.settings["spark.jars.packages"]
        raise Unavailable(f"the jars that read a store cannot be had, no step was taken: {wanted}") from error


@dataclass
class Trial:
    """One table on a cluster, and what it should hold."""

    lake: Any
    table: Any
    cluster: Cluster
    rows: Rows

    def ingest(self) -> None:
        """Rows of five days, by tasks that cannot write where the driver is."""
        self.table.append(self._frame(range(2000), "a", 3))
        self.rows |= rows_of(range(2000), "a")

    def replace(self) -> None:
        """A day, by rows of which footers alone do not say where they lie."""
        inside = [one for one in range(3000, 4000) if one % 5 == 1]
        day = (_DAY + dt.timedelta(days=1)).date().isoformat()
        self.table.replace(self._frame(inside, "b", 2), day)
        self.rows = {one: held for one, held in self.rows.items() if one % 5 != 1} | rows_of(inside, "b")

    def delete(self) -> None:
        """Rows here and there."""
        self.table.delete("id % 7 = 0", engine="spark")
        self.rows = {one: held for one, held in self.rows.items() if one % 7}

    def merge(self) -> None:
        """Rows some of which are there."""
        given = range(1990, 2010)
        self.table.merge(self._frame(given, "c", 2), on=["id"], when_matched_update=True, engine="spark")
        self.rows |= rows_of(given, "c")

    def compact(self) -> None:
        """The table service's tasks, by Spark."""
        self.table.append(self._frame(range(5000, 5010), "d", 2))
        self.rows |= rows_of(range(5000, 5010), "d")
        done = self.lake.maintain(engine="spark").tasks
        wrong = [one.error for one in done if one.state is not TaskState.DONE]
        if wrong or not done:
            raise AssertionError(f"maintenance: {wrong or 'no task'}")

    def elastic(self) -> None:
        """A service whose one worker begins jobs on the cluster when tasks wait for it."""
        for first in (5100, 5110):
            self.table.append(self._frame(range(first, first + 10), "g", 2))
            self.rows |= rows_of(range(first, first + 10), "g")
        before = {one.id for one in self.lake.tasks(state="done")}
        self.lake.plan_tasks()
        stop = threading.Event()
        service = Service(self.lake.session, Limits(workers=(Worker.ELASTIC,), engine="spark"), every_seconds=0.1)
        with _in_background(partial(service.run, stop)) as running:
            give_up = time.monotonic() + 120
            while self.lake.tasks(state="waiting") or self.lake.tasks(state="running"):
                if time.monotonic() > give_up:
                    break
                stop.wait(0.1)
            stop.set()
            running.result()
        found = {one.kind: one.worker for one in self.lake.tasks(state="done") if one.id not in before}
        if found.get(TaskKind.COMPACT) is not Worker.ELASTIC:
            raise AssertionError(f"no elastic worker joined segments: {found}")

    def lose_worker(self) -> None:
        """A worker is killed while a task of an ingest runs on it, after another task has put its file."""
        before = self.table.version
        with socket.create_server(("127.0.0.1", 0)) as asked:
            asked.settimeout(120)
            frame = self._frame(range(6000, 6400), "e", 4).mapInArrow(_Stalls(asked.getsockname()[1]), COLUMNS)
            with _in_background(lambda: self.table.append(frame)) as running:
                held, _ = asked.accept()
                with held:
                    self.cluster.kill(held.recv(4096).decode())
                    running.result()
        self.rows |= rows_of(range(6000, 6400), "e")
        if self.table.version != before + 1:
            raise AssertionError("the ingest is not one version")

    def lose_compactor(self) -> None:
        """A worker is killed while tasks of a compaction run on it."""
        for first in (7000, 7500, 8000):
            self.table.append(self._frame(range(first, first + 500), "f", 2))
            self.rows |= rows_of(range(first, first + 500), "f")
        before = {cache: self._folders(cache) for cache in self.cluster.workers}
        with _in_background(partial(self.lake.maintain, engine="spark")) as running:
            lost = None
            while lost is None and not running.done():
                lost = next((one for one, held in before.items() if self._folders(one) - held), None)
                time.sleep(0.002)  # a worker writes the first file of it; nothing tells so
            if lost is None:
                raise AssertionError("no worker took part in the compaction")
            self.cluster.kill(lost)
            was_running = not running.done()
            done = running.result().tasks
        wrong = [one.error for one in done if one.state is not TaskState.DONE]
        if wrong or not done or not was_running:
            raise AssertionError(f"maintenance: {wrong or 'it had ended before'}")

    @staticmethod
    def _folders(cache: str) -> set[Path]:
        """What operations have folders for in a worker's copies."""
        return {one.parent for one in Path(cache).rglob("*.parquet")}

    def compare(self, as_of: Any = None, rows: Rows | None = None) -> None:
        """Read by Spark: all rows, a filter's, and ids; no copy comes to the driver for it."""
        wanted = self.rows if rows is None else rows
        fetched = self.lake.cache.misses
        scan = self.table.scan(as_of=as_of)
        found = {row.id: (row.at.replace(tzinfo=dt.UTC), row.v) for row in scan.to_spark().collect()}
        some = self.table.scan(columns=["id"], where="id % 3 = 1 AND v <> 'b'", as_of=as_of).to_spark().collect()
        few = sorted(one for one, (_, v) in wanted.items() if one % 3 == 1 and v != "b")
        if found != wanted or sorted(row.id for row in some) != few:
            raise AssertionError(f"Spark reads {len(found)} rows and {len(some)}, not {len(wanted)} and {len(few)}")
        if self.lake.cache.misses != fetched:
            raise AssertionError("the driver fetched what Spark should read itself")

    def compare_in_process(self) -> None:
        """Read by DuckDB, from copies; nothing is half there, and nothing left."""
        found = {row["id"]: (row["at"], row["v"]) for row in self.table.scan().to_arrow().to_pylist()}
        if found != self.rows:
            raise AssertionError(f"{len(found)} rows in process, not {len(self.rows)}")
        findings = self.lake.check(deep=True).findings
        if findings:
            raise AssertionError(f"the lake is not sound: {findings}")

    def _frame(self, ids: Sequence[int], v: str, parts: int) -> Any:
        ordered = [(at, one, value) for one, (at, value) in rows_of(ids, v).items()]
        return self.lake.spark.createDataFrame(ordered, COLUMNS).repartition(parts)


STEPS = ("ingest", "replace", "delete", "merge", "compact", "elastic", "lose_worker", "lose_compactor")


def rows_of(ids: Sequence[int], v: str) -> Rows:
    """Rows of some ids, day by day in turn."""
    return {one: (_DAY + dt.timedelta(days=one % 5, seconds=one), v) for one in ids}


class _Stalls:
    """Lets rows through, but a first attempt on one partition says where it runs and then waits to be killed."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __call__(self, batches: Any) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - there is a context only where tasks run

        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 2 and context.attemptNumber() == 0:
            with socket.create_connection(("127.0.0.1", self.port)) as asked:
                asked.sendall(os.environ[_CACHE].encode())
                asked.recv(1)


@contextmanager
def _in_background(work: Callable[[], Any]) -> Iterator[Future[Any]]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work)


@contextmanager
def trial(home: Path, postgres: PostgresServer, server: str = "moto", workers: int = 2) -> Iterator[Trial]:
    """An empty table on a new cluster, in a bucket of its own server."""
    with ExitStack() as stack:
        store = stack.enter_context(SERVERS[server](home / "store"))
        running = stack.enter_context(cluster(home, workers))
        spark = start_session(running.master, home, store.url.partition("://")[0])
        stack.callback(spark.stop)
        lake = stack.enter_context(
            lakehouse.connect(
                postgres.url(postgres.create_database()),
                store.url,
                spark=spark,
                storage_options=dict(store.options),
                cache_dir=home / "driver-copies",
            )
        )
        properties = {"small_files": "2", "tombstone_debt": "0"}
        table = lake.create_table("events", COLUMNS, time="at", primary_key="id", properties=properties)
        yield Trial(lake, table, running, {})


def run(trial: Trial, steps: Sequence[str] = STEPS) -> None:
    """Take steps, compare after each, and read the version after the first one at the end."""
    first: tuple[int, Rows] | None = None
    for step in steps:
        getattr(trial, step)()
        trial.compare()
        first = first or (trial.table.version, dict(trial.rows))
        sys.stdout.write(f"{step}: {len(trial.rows)} rows as they should be\n")
        sys.stdout.flush()
    if first is not None:
        trial.compare(*first)
    trial.compare_in_process()


def main(arguments: Sequence[str] | None = None) -> int:
    """Take all steps on a new cluster, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m lakehouse.testing.cluster", description=__doc__)
    parser.add_argument("steps", nargs="*", help=f"of {', '.join(STEPS)}; all if none is named")
    parser.add_argument("--server", choices=["moto", "versitygw", "azurite"], default="moto")
    asked = parser.parse_args(arguments)
    steps = asked.steps or STEPS
    unknown = sorted(set(steps) - set(STEPS))
    if unknown:
        parser.error(f"no such step: {', '.join(unknown)}; choose of {', '.join(STEPS)}")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="lakehouse-cluster-") as home,
            PostgresServer() as postgres,
            trial(Path(home), postgres, asked.server, 1 + sum(one.startswith("lose_") for one in steps)) as made,
        ):
            run(made, steps)
    except Unavailable as reason:
        sys.stdout.write(f"{reason}\n")
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    # Tasks import the module by its name.
    from lakehouse.testing.cluster import main as main_by_name

    sys.exit(main_by_name())

"""Spark, the same for every system on it, and plain Parquet by it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.peers.data import Totals, day_text
from benchmarks.peers.systems.base import SCAN, Groups, System, Unsupported, groups_of

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.log.level": "OFF",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
JARS = "PEERS_JARS"
"""Environment variable: jars by system, as JSON."""
_BEGUN_SECONDS = 2.0
_BURN = 200


def start(root: Path, settings: Mapping[str, str], jars: str | None = None) -> Any:
    """A session of two cores; ``settings`` go before the common ones."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").appName("peers")
    chosen = {
        **SETTINGS,
        "spark.sql.warehouse.dir": str(root / "warehouse"),
        "spark.local.dir": str(root / "local"),
        **settings,
    }
    if jars is not None:
        chosen["spark.jars"] = ",".join(json.loads(os.environ[JARS])[jars])
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def jar_version(jars: str, artifact: str) -> str:
    """The version in the file name of a jar."""
    (found,) = (Path(path).stem for path in json.loads(os.environ[JARS])[jars] if artifact in path)
    return found.rpartition("-")[2]


class OnSpark(System):
    """What systems with Spark SQL statements have in common."""

    packages = ("pyspark",)
    settings: ClassVar[Mapping[str, str]] = {}
    jars: str | None = None

    def __init__(self, root: Path, shared: Path) -> None:
        super().__init__(root, shared)
        named = {key: value.format(root=root) for key, value in self.settings.items()}
        self.spark = start(root, named, self.jars)

    def close(self) -> None:
        self.spark.stop()

    def named(self, table: str) -> str:
        """The table in a statement."""
        raise NotImplementedError

    def sql(self, text: str) -> list[Any]:
        found: list[Any] = self.spark.sql(text).collect()
        return found

    def batch(self, rows: pa.Table) -> Any:
        return self.spark.createDataFrame(rows)

    # Writes

    def delete(self, table: str, clients: list[int], days: tuple[int, int] | None = None) -> None:
        self.sql(f"DELETE FROM {self.named(table)} WHERE {_where('client', clients, days)}")

    def merge(self, table: str, batch: Any) -> None:
        batch.createOrReplaceTempView("given")
        self.sql(
            f"MERGE INTO {self.named(table)} t USING given s ON t.key = s.key "
            "WHEN MATCHED THEN UPDATE SET t.value = s.value, t.payload = s.payload "
            "WHEN NOT MATCHED THEN INSERT (ts, client, key, value, payload) "
            "VALUES (s.ts, s.client, s.key, s.value, s.payload)"
        )

    def begin(self, table: str, kind: str, argument: Any) -> Callable[[], None]:
        """The operation runs in a thread and takes long, by work on each row that no filter can leave out."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                if kind == "delete":
                    clients, days = argument
                    burnt = f"client + 0 * length(sha2(repeat(payload, {_BURN}), 512))"
                    self.sql(f"DELETE FROM {self.named(table)} WHERE {_where(burnt, clients, days)}")
                elif kind == "append":
                    self.append(table, _slowed(argument))
                else:
                    self.overwrite(table, argument[0], _slowed(argument[1]))
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(_BEGUN_SECONDS)

        def finish() -> None:
            thread.join()
            if failed:
                raise failed[0]

        return finish

    # Reads

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        wanted = "count(*), sum(value)" + (", count(DISTINCT key)" if keys else "")
        found = self.sql(f"SELECT {wanted} FROM {self.named(table)}")[0]
        return Totals(int(found[0]), float(found[1] or 0), int(found[2]) if keys else None)

    def scan(self, table: str) -> Groups:
        return groups_of(self.sql(SCAN.format(table=self.named(table))))

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        chosen = f"{between((day, day + 1))} AND client = {client}"
        found = self.sql(f"SELECT count(*), sum(value) FROM {self.named(table)} WHERE {chosen}")[0]
        return int(found[0]), float(found[1] or 0)


def between(days: tuple[int, int]) -> str:
    """A condition on the time: from one day up to before another."""
    first, last = (f"TIMESTAMP '{day_text(day)} 00:00:00'" for day in days)
    return f"ts >= {first} AND ts < {last}"


def _where(client: str, clients: list[int], days: tuple[int, int] | None) -> str:
    wanted = f"{client} IN ({', '.join(map(str, clients))})"
    return wanted if days is None else f"{between(days)} AND {wanted}"


def _slowed(batch: Any) -> Any:
    """The same rows in one task that takes some seconds."""
    times = _BURN * 625_000 // batch.count()
    return batch.repartition(1).where(f"sha2(repeat(payload, {times}), 512) <> 'x'")


class PlainSpark(OnSpark):
    """The floor: Parquet written and read by Spark, a folder a day, without commits."""

    def _folder(self, table: str) -> Path:
        return self.root / table

    def create(self, table: str) -> None:
        """Nothing: a folder comes with its first file."""

    def drop(self, table: str) -> None:
        shutil.rmtree(self._folder(table))

    def named(self, table: str) -> str:
        return f"parquet.`{self._folder(table)}`"

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        self.append(table, self.spark.read.parquet(*files))

    def append(self, table: str, batch: Any) -> None:
        days = batch.selectExpr("*", "CAST(ts AS DATE) AS day").write.mode("append").partitionBy("day")
        days.parquet(str(self._folder(table)))

    def delete(self, table: str, clients: list[int], days: tuple[int, int] | None = None) -> None:
        raise Unsupported

    def merge(self, table: str, batch: Any) -> None:
        raise Unsupported

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        found = self.sql(
            f"SELECT count(*), sum(value) FROM {self.named(table)} "
            f"WHERE day = DATE '{day_text(day)}' AND client = {client}"
        )[0]
        return int(found[0]), float(found[1] or 0)

    def files(self, table: str) -> dict[str, int]:
        return {str(path): path.stat().st_size for path in self._folder(table).rglob("*.parquet")}

"""Delta Lake on Spark, with deletion vectors."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlparse

from benchmarks.peers.data import day_text
from benchmarks.peers.fabricate import delta_files, delta_versions
from benchmarks.peers.systems.base import folder_bytes
from benchmarks.peers.systems.spark import OnSpark, between, jar_version


class Delta(OnSpark):
    """Tables by path, partitioned by a day that Delta derives from the time."""

    jars = "delta"
    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The default of 50 tasks for the state of a table is for clusters.
        "spark.databricks.delta.snapshotPartitions": "2",
    }

    def versions(self) -> dict[str, str]:
        return {**super().versions(), "delta": jar_version("delta", "delta-spark")}

    def folder(self, table: str) -> Path:
        return self.root / table

    def named(self, table: str) -> str:
        return f"delta.`{self.folder(table)}`"

    def create(self, table: str) -> None:
        self.sql(
            f"CREATE TABLE {self.named(table)} (ts TIMESTAMP, client BIGINT, key STRING, value DOUBLE, payload STRING, "
            "day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))) USING delta PARTITIONED BY (day) "
            "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )

    def drop(self, table: str) -> None:
        self._forget()
        shutil.rmtree(self.folder(table))

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        frame = self.spark.read.parquet(*files)
        self.append(table, frame.repartition(scatter) if scatter else frame)

    def append(self, table: str, batch: Any) -> None:
        batch.write.format("delta").mode("append").save(str(self.folder(table)))

    def overwrite(self, table: str, day: int, batch: Any) -> None:
        chosen = batch.write.format("delta").mode("overwrite").option("replaceWhere", f"day = '{day_text(day)}'")
        chosen.save(str(self.folder(table)))

    def compact(self, table: str) -> None:
        self.sql(f"OPTIMIZE {self.named(table)}")

    def files(self, table: str) -> dict[str, int]:
        listed = self.spark.sql(f"SELECT * FROM {self.named(table)}").inputFiles()
        paths = [unquote(urlparse(path).path) for path in listed]
        return {path: Path(path).stat().st_size for path in paths}

    def metadata_bytes(self, table: str) -> int:
        """The log, and the deletion vectors."""
        folder = self.folder(table)
        vectors = sum(path.stat().st_size for path in folder.rglob("deletion_vector_*.bin"))
        return folder_bytes(folder / "_delta_log") + vectors

    def fabricate(self, table: str, files: int, days: int) -> None:
        delta_files(self.folder(table), files, days)

    def plan(self, table: str, day: int, *, cold: bool) -> int | None:
        if cold:
            self._forget()
        return len(self.spark.sql(f"SELECT * FROM {self.named(table)} WHERE {between((day, day + 1))}").inputFiles())

    def fabricate_versions(self, table: str, count: int) -> None:
        delta_versions(self.folder(table), count)

    def open_version(self, table: str, number: int) -> int:
        self._forget()
        opened = self.spark.read.format("delta").option("versionAsOf", number).load(str(self.folder(table)))
        return len(opened.inputFiles())

    def _forget(self) -> None:
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

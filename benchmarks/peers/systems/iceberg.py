"""Apache Iceberg on Spark, format 3, merge on read, with a catalog in SQLite."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.peers.data import day_text
from benchmarks.peers.fabricate import BYTES, ROWS, iceberg_files, iceberg_versions
from benchmarks.peers.systems.base import day_us, folder_bytes
from benchmarks.peers.systems.spark import OnSpark, between


class Iceberg(OnSpark):
    """Tables of one catalog, partitioned by the day of the time."""

    jars = "iceberg"
    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "jdbc",
        "spark.sql.catalog.ice.jdbc.schema-version": "V1",
        "spark.sql.catalog.ice.uri": "jdbc:sqlite:{root}/catalog.db?journal_mode=WAL&busy_timeout=30000",
        "spark.sql.catalog.ice.warehouse": "{root}/ice",
    }

    def versions(self) -> dict[str, str]:
        return {**super().versions(), "iceberg": self._java.org.apache.iceberg.IcebergBuild.version()}

    @property
    def _java(self) -> Any:
        return self.spark._jvm

    def named(self, table: str) -> str:
        return f"ice.db.{table}"

    def create(self, table: str) -> None:
        modes = ", ".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("delete", "update", "merge"))
        self.sql(
            f"CREATE TABLE {self.named(table)} (ts TIMESTAMP, client BIGINT, key STRING, value DOUBLE, payload STRING) "
            f"USING iceberg PARTITIONED BY (days(ts)) TBLPROPERTIES ('format-version' = '3', {modes})"
        )

    def drop(self, table: str) -> None:
        self.sql(f"DROP TABLE {self.named(table)}")
        shutil.rmtree(self.root / "ice" / "db" / table, ignore_errors=True)

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        frame = self.spark.read.parquet(*files)
        if scatter:
            many = frame.repartition(scatter).writeTo(self.named(table)).option("distribution-mode", "none")
            many.option("fanout-enabled", "true").append()
        else:
            self.append(table, frame)

    def append(self, table: str, batch: Any) -> None:
        batch.writeTo(self.named(table)).append()

    def overwrite(self, table: str, day: int, batch: Any) -> None:
        from pyspark.sql import functions  # noqa: PLC0415 - only Spark's systems have it

        batch.writeTo(self.named(table)).overwrite(functions.expr(between((day, day + 1))))

    def compact(self, table: str) -> None:
        self.sql(f"CALL ice.system.rewrite_data_files(table => 'db.{table}')")

    def files(self, table: str) -> dict[str, int]:
        listed = self.sql(f"SELECT file_path, file_size_in_bytes FROM {self.named(table)}.files WHERE content = 0")
        return {row[0]: int(row[1]) for row in listed}

    def metadata_bytes(self, table: str) -> int:
        """Metadata, manifests, and the catalog, which other tables share."""
        location = self._opened(table).location().removeprefix("file:")

        return folder_bytes(Path(location) / "metadata")

    def fabricate(self, table: str, files: int, days: int) -> None:
        self._register(table, iceberg_files(self.shared, files, days))

    def plan(self, table: str, day: int, *, cold: bool) -> int | None:
        if cold:
            self._forget(table)
        scan = self._opened(table).newScan()
        made = self._java.org.apache.iceberg.expressions.Expressions
        both = getattr(made, "and")
        chosen = both(made.greaterThanOrEqual("ts", day_us(day)), made.lessThan("ts", day_us(day + 1)))
        return self._count(scan.filter(chosen))

    def fabricate_versions(self, table: str, count: int) -> None:
        """By Java's own commits, which merge manifests as they do by default."""
        place, self._snapshots = iceberg_versions(self.shared, count, lambda: self._commit_all(count))
        self._register(table, place)

    def _commit_all(self, count: int) -> tuple[str, list[int]]:
        self.create("committed")
        table = self._opened("committed")
        snapshots = []
        for number in range(count):
            made = self._java.org.apache.iceberg.DataFiles.builder(table.spec())
            made = made.withPath(f"{table.location()}/data/{number:08d}.parquet")
            made = made.withPartitionPath(f"ts_day={day_text(number % 30)}")
            made = made.withFileSizeInBytes(BYTES).withRecordCount(ROWS)
            table.newAppend().appendFile(made.build()).commit()
            snapshots.append(int(table.currentSnapshot().snapshotId()))
        return str(table.operations().current().metadataFileLocation()), snapshots

    def open_version(self, table: str, number: int) -> int:
        self._forget(table)
        return self._count(self._opened(table).newScan().useSnapshot(self._snapshots[number - 1]))

    def _register(self, table: str, metadata_file: str) -> None:
        self.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        self.sql(f"CALL ice.system.register_table(table => 'db.{table}', metadata_file => '{metadata_file}')")

    def _opened(self, table: str) -> Any:
        return self._java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            self.spark._jsparkSession, self.named(table)
        )

    def _count(self, scan: Any) -> int:
        found = scan.planFiles()
        count = self._java.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size(found)
        found.close()
        return int(count)

    def _forget(self, table: str) -> None:
        catalog = self._java.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(self.spark._jsparkSession, "ice")
        if catalog.getClass().getSimpleName() == "CachingCatalog":
            gateway = self.spark.sparkContext._gateway
            names = gateway.new_array(gateway.jvm.java.lang.String, 2)
            names[0], names[1] = "db", table
            catalog.invalidateTable(self._java.org.apache.iceberg.catalog.TableIdentifier.of(names))

"""A Spark frame into durable Parquet files: one pass, no shuffle, no sort."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.engine import ROW_ID_FIELD, WriteTarget
from lakehouse.engine.spark.columns import CHUNK, REFUSED, chunk_start, conformed
from lakehouse.engine.spark.settings import held
from lakehouse.errors import InternalError, InvalidInput
from lakehouse.storage.files import make_folder, sync, sync_files

_SETTINGS = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"
_OPEN_COLUMNS = 1600
_OPTIONS = {
    "compression": "zstd",
    # A dictionary pays off for few distinct values. Kept small it is given up early in other columns: the many files
    # of a split by chunk would spend most of their time on dictionaries that they throw away.
    "parquet.dictionary.page.size": str(32 << 10),
    # Without a checksum file beside each file, which is not durable with it; Parquet's pages have their own checksums.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
    # The second version of the committer shows a task's files before the job is done.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
_REFUSED = re.compile(re.escape(REFUSED) + r": column=(.*?) type=(.*?);")


def write_frame(frame: DataFrame, target: WriteTarget) -> list[str]:
    """Run the frame's job, writing below the target's folder; return the files of its winning task attempts.

    They are listed from a folder that only this job wrote to, after Spark has committed it: attempts that failed or
    lost leave nothing there. The rows in them are counted against the rows that went in.
    """
    if frame.isStreaming:
        raise InvalidInput("a streaming frame cannot be written at once; use writeStream")
    spec = target.spec
    schema = spec.schema.append(ROW_ID_FIELD) if target.row_ids else spec.schema
    note = {"lakehouse.table": spec.folder, "lakehouse.operation": target.operation_id}
    rows = conformed(frame, schema, note)
    counted = Observation()
    rows = rows.observe(counted, F.count(F.lit(1)).alias("rows"))
    make_folder(target.folder)
    folder = target.folder / f"{target.batch:05d}"
    writer_settings = {**_SETTINGS, _WRITERS: str(max(8, min(64, _OPEN_COLUMNS // len(schema))))}
    with held(frame.sparkSession, writer_settings):
        if not spec.ragged:
            rows = rows.withColumn(CHUNK, chunk_start(spec.time, spec.grain))
        writer = rows.write.options(**_OPTIONS).option("maxRecordsPerFile", spec.target_rows)
        if not spec.ragged:
            writer = writer.partitionBy(CHUNK)
        try:
            writer.parquet(str(folder))
        except PySparkException as error:
            raise _refused(error) or error from error
    return _listed(target, folder, int(counted.get["rows"]))


def _refused(error: PySparkException) -> InvalidInput | None:
    """The error of a value that a column cannot hold, out of the job's error."""
    found = _REFUSED.search(str(error))
    if not found:
        return None
    return InvalidInput(
        "the column cannot hold a value; correct it or cast the column first", column=found[1], type=found[2]
    )


def _listed(target: WriteTarget, folder: Path, expected_rows: int) -> list[str]:
    files = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet" and not path.name.startswith((".", "_")):
            files.append(path)
        elif path.suffix == ".crc" or path.name == "_SUCCESS":
            path.unlink()  # a checksum that is not as durable as its file would make it unreadable after a power loss
    with ThreadPoolExecutor(8, "lakehouse-count") as pool:
        found_rows = sum(pool.map(lambda path: int(pq.read_metadata(path).num_rows), files))
    if found_rows != expected_rows:
        raise InternalError(
            "Spark stored another number of rows than went in; run the operation again",
            expected=expected_rows,
            found=found_rows,
        )
    sync_files(files)
    for one in (folder, target.folder):
        sync(one)
    return [path.relative_to(target.folder).as_posix() for path in files]

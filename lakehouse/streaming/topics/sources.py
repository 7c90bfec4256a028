"""What a topic reads, as a streaming DataFrame, and how it is started."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lakehouse.errors import InvalidTopics
from lakehouse.extras import load
from lakehouse.lake import Lake
from lakehouse.storage.exports import STREAMS
from lakehouse.streaming import read, write
from lakehouse.streaming.tasks import release
from lakehouse.streaming.topics.config import VIEW, TopicConfig, TopicsFile

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""Spark's own connector."""
_NEWEST = "4.2.0"
"""The newest release that there is a connector of."""
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"
# Topics wait for slots in the order of their jobs: under spark.scheduler.mode=FAIR some were seen to wait for ever.
_SETTINGS = {
    "spark.driver.extraJavaOptions": "-Xss4m",  # Spark searches long texts of errors by deep recursion
    "spark.log.level": "FATAL",  # what fails is reported, without traces of hundreds of lines
    "spark.sql.shuffle.partitions": "4",
    # Renaming by Hadoop's other interface starts a process for each file, a third of what a small batch costs.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.streaming.metricsEnabled": "false",
}
"""Of a session that runs many small batches side by side; a file's own settings go before them."""
_one_view = threading.Lock()


def session_settings(found: TopicsFile) -> dict[str, str]:
    """The settings of the session that topics share: those of their file, our own, and the connector to Kafka."""
    settings = {**_SETTINGS, **found.spark}
    if any(one.source.format == "kafka" for one in found.topics):
        packages = [one for one in settings.get("spark.jars.packages", "").split(",") if one]
        if not any("spark-sql-kafka" in one for one in packages) and "spark.jars" not in settings:
            settings["spark.jars.packages"] = ",".join([*packages, connector()])
    return settings


def connector(spark: str | None = None) -> str:
    """The connector to Kafka for a release of Spark (the installed one): of that release, if there is such a one.

    >>> connector("4.0.1"), connector("4.3.0")
    ('org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.1', 'org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0')
    """
    found: str = spark or load("pyspark").__version__
    return f"{KAFKA}:{min(found, _NEWEST, key=release)}"


def checkpoint_of(lake: Lake, topic: TopicConfig, file: str = "topics") -> str:
    """Where a topic's checkpoint is: as it says, else below the lake. Raises `InvalidTopics`."""
    if topic.checkpoint is not None:
        return topic.checkpoint
    warehouse = lake.session.warehouse
    if warehouse.cache is not None:
        raise InvalidTopics(
            "a warehouse in an object store has no folder for checkpoints; give each topic one: a folder that stays on "
            "this machine or is shared, or a URL that Spark's Hadoop reaches, such as s3a://",
            file=file,
            topic=topic.name,
            key="checkpoint",
        )
    return str(Path(warehouse.root) / STREAMS / topic.name)


def open_frame(lake: Lake, topic: TopicConfig) -> Any:
    """The rows that a topic writes: those of its source, through its SQL."""
    source = topic.source
    if source.table is not None:
        frame = read(lake, source.table, **source.options)
    else:
        assert source.format is not None, "a source is a table or has a format"
        reader = lake.spark.readStream.format(source.format).options(**source.options)
        frame = (reader if source.columns is None else reader.schema(source.columns)).load()
    return frame if topic.transform is None else _transformed(frame, topic.transform)


def _transformed(frame: Any, statement: str) -> Any:
    """A statement over the view of a frame. The session has one view of that name, so topics take turns."""
    with _one_view:
        frame.createOrReplaceTempView(VIEW)
        try:
            return frame.sparkSession.sql(statement)
        finally:
            frame.sparkSession.catalog.dropTempView(VIEW)


def start_query(lake: Lake, topic: TopicConfig, checkpoint: str) -> Any:
    """Start a topic as a query of Spark's; it runs until it fails, is stopped, or has read all that it is to read."""
    asked: Mapping[str, Any] = {
        "keys": topic.keys,
        "sequence_by": topic.sequence_by,
        "deletes": topic.deletes,
        "resume": topic.resume,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    if topic.mode == "apply_changes":
        given["scd"] = topic.scd
    if topic.schema != "strict":
        given["schema"] = topic.schema
    return write(
        open_frame(lake, topic),
        lake.table(topic.table),
        mode=topic.mode,
        checkpoint=checkpoint,
        stream_id=topic.stream,
        trigger=topic.spark_trigger,
        **given,
    )

"""``lakehouse.streaming.write``: a stream of Spark's into tables, exactly once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from lakehouse.arguments import Fit, read_fit, read_txn
from lakehouse.core.stream import CHECKPOINT, MODES, TAKEN_BY, Batch, Mode
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidArgument
from lakehouse.operations.row_change import require_columns
from lakehouse.operations.upsert import require_column, require_primary_key
from lakehouse.streaming.batch import BatchWriter, How, Work, keys_of, opened
from lakehouse.streaming.changes import read_keys
from lakehouse.streaming.checkpoint import Checkpoint
from lakehouse.streaming.places import open_place
from lakehouse.table.table import Table

if TYPE_CHECKING:
    import pyspark.sql
    from pyspark.sql.streaming.query import StreamingQuery


def write(
    df: pyspark.sql.DataFrame,
    table: Table | str,
    *,
    mode: Mode | Work = "append",
    checkpoint: str | os.PathLike[str],
    stream_id: str | None = None,
    trigger: Mapping[str, str | bool] | None = None,
    keys: str | Sequence[str] | None = None,
    sequence_by: str | None = None,
    deletes: str | None = None,
    scd: int = 1,
    resume: Literal["table"] | None = None,
    schema: Fit = "strict",
    name: str | None = None,
) -> StreamingQuery:
    """Start a query that writes each micro-batch of a streaming frame as one commit, exactly once.

    A batch commits under ``txn=(stream, batch)`` and keeps what it read of its sources with its rows. So a batch that
    Spark runs again is recognised, and a checkpoint that was lost, or lost a file, is put right from the table.

    Parameters
    ----------
    df
        A streaming frame, of a classic or a Connect session.
    table
        Where the rows go, and where the stream's batches are counted; or its name, in the lake that the environment
        names.
    mode
        ``append``; ``upsert`` by primary key; ``replace`` of the time chunks (and values of the cluster columns
        ``keys``) that a batch has rows in; ``apply_changes``, with ``keys``, ``sequence_by``, ``deletes`` and ``scd``
        of `lakehouse.streaming.apply_changes`. Or a function that is given an open
        `Transaction` and the batch's rows, to write to several tables: all or none of it is committed, with the
        batch's mark on ``table``.
    checkpoint
        Spark's checkpoint folder, of this stream alone: a local path, or in a classic session whatever Hadoop reaches.
    stream_id
        The stream's name in the table's marks; None: the query's own id, which the checkpoint has.
    trigger
        As ``DataStreamWriter.trigger`` takes it, such as ``{"availableNow": True}``; None: as fast as possible.
    sequence_by
        In mode ``upsert``: of several rows of a batch with one key the one with the greatest value is kept.
    resume
        ``table``: if the checkpoint is lost, make it again from the table. Without it, that is an error.
    schema
        What becomes of rows with other columns than the table's, as for `Table.append`.
    name
        Spark's name of the query.

    Raises
    ------
    CheckpointMismatch
        The checkpoint is that of another stream, or lost.
    InvalidInput
        Arguments that do not fit the table. Errors of batches end the query and are its ``exception()``.

    Examples
    --------
    >>> from lakehouse.streaming import write
    >>> write(None, flights, checkpoint="checkpoint")
    Traceback (most recent call last):
    lakehouse.errors.InvalidArgument: not a streaming frame; pass one of spark.readStream (found=NoneType)
    """
    if not (is_spark_frame(df) and df.isStreaming):
        raise InvalidArgument("not a streaming frame; pass one of spark.readStream", found=type(df).__name__)
    if resume not in (None, "table"):
        raise InvalidArgument('resume is "table" or None', resume=repr(resume)[:100])
    if isinstance(table, str):
        table = opened({}, df.sparkSession).table(table)
    how = _read_how(table, mode, keys_of(keys), sequence_by, deletes, scd, schema)
    return _started(df, table, how, checkpoint, stream_id, trigger, resume, name)


def _started(
    df: pyspark.sql.DataFrame,
    table: Table,
    how: How,
    checkpoint: Any,
    stream_id: str | None,
    trigger: Mapping[str, Any] | None,
    resume: str | None,
    name: str | None,
) -> StreamingQuery:
    """The query, once its checkpoint agrees with the table."""
    spark = df.sparkSession
    kept = Checkpoint(open_place(spark, checkpoint))
    stream, last = _stream(table, kept, stream_id)
    kept.agree(table.spec, stream, last, resume=resume == "table")
    kept.claim(table.spec, stream)
    is_here = hasattr(spark, "_jvm")
    session = table.session
    lake = {
        "catalog": session.catalog.address,
        "warehouse": session.warehouse.address,
        **session.warehouse.settings,
        "lease_seconds": session.catalog.lease_seconds,
    }
    batches = BatchWriter(table.name, lake, stream, kept, how, table if is_here else None)
    writer = df.writeStream.foreachBatch(batches if not is_here else batches.__call__)
    writer = writer.option("checkpointLocation", kept.place.address)
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    query: StreamingQuery = writer.start()
    return query


def _stream(table: Table, kept: Checkpoint, stream_id: str | None) -> tuple[str, Batch | None]:
    """The stream's id, and its last batch on the table."""
    catalog, spec = table.session.catalog, table.spec
    if stream_id is not None:
        mark = read_txn((stream_id, 0))
        assert mark is not None
        return mark[0], catalog.newest_batch(spec.id, mark[0])
    known = kept.owner.get("stream") or kept.query_id
    if known is not None:
        return known, catalog.newest_batch(spec.id, known)
    here = [one for one in catalog.newest_batches(spec.id) if one.properties.get(CHECKPOINT) == kept.place.address]
    if here:  # its checkpoint was here, and is lost
        last = max(here, key=lambda one: one.version)
        return last.stream, last
    return str(uuid4()), None


def _read_how(
    table: Table,
    mode: Any,
    keys: tuple[str, ...],
    sequence_by: str | None,
    deletes: str | None,
    scd: int,
    schema: Any,
) -> How:
    """What becomes of rows, checked as far as the table tells before there are any."""
    fit = read_fit(schema)
    if callable(mode):
        return How("together", schema=fit, work=mode)
    if mode not in MODES:
        raise InvalidArgument(
            "mode is append, upsert, replace, apply_changes or a function of a transaction and rows",
            mode=repr(mode)[:100],
        )
    spec = table.spec
    given = {"keys": bool(keys), "sequence_by": sequence_by is not None, "deletes": deletes is not None}
    wrong = [one for one, is_given in given.items() if is_given and one not in TAKEN_BY[mode]]
    if wrong:
        raise InvalidArgument(f"mode {mode} takes no such argument; leave it out", arguments=wrong)
    if mode == "apply_changes":
        read_keys(spec, keys or None, sequence_by, scd)
        return How(mode, keys, sequence_by, deletes, scd, fit)
    require_columns(keys, spec)
    if mode == "upsert":
        require_primary_key(spec)
        if keys and set(keys) != set(spec.primary_key):
            raise InvalidArgument(
                "an upsert goes by the table's primary key; leave keys out, or change the key",
                keys=keys,
                primary_key=spec.primary_key,
            )
        if sequence_by is not None:
            require_column(sequence_by, spec)
    if mode == "replace" and not set(keys) <= set(spec.cluster_by):
        raise InvalidArgument("a replace takes cluster columns as keys", keys=keys, cluster_by=list(spec.cluster_by))
    return How(mode, keys, sequence_by, deletes, scd, fit)

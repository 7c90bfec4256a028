"""What tasks of Spark read of a table and store for it, whether a query is a stream or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from lakehouse.core.column import listed_type
from lakehouse.core.interval import to_us
from lakehouse.core.operation import Begun
from lakehouse.core.spec import TableSpec
from lakehouse.engine import WriteTarget, Written
from lakehouse.errors import EngineUnavailable, InvalidArgument
from lakehouse.lake import Lake

T = TypeVar("T")
ASKING = (4, 2)
"""The first Spark that asks a source in Python how much to read."""
STORING = (4, 1)
"""The first Spark that gives a stream's rows to a sink in Python as Arrow."""
PARTITION_BYTES = 128 << 20
"""Of how many bytes of files one task reads."""


def require_spark(version: str, least: tuple[int, int], use: str) -> None:
    """Raise `EngineUnavailable` if a use needs a newer Spark than there is.

    >>> require_spark("4.1.4", ASKING, "a table as a streaming source")
    Traceback (most recent call last):
    lakehouse.errors.EngineUnavailable: a table as a streaming source needs Spark 4.2 or newer; batch reads \
and writes work with this one (found=4.1.4)
    """
    if release(version) < least:
        raise EngineUnavailable(
            f"{use} needs Spark {least[0]}.{least[1]} or newer; batch reads and writes work with this one",
            found=version,
        )


def release(version: str) -> tuple[int, int]:
    """Major and minor number of a version of Spark.

    >>> release("4.1.0.dev3")
    (4, 1)
    """
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def read_flag(options: Mapping[str, str], name: str) -> bool:
    """An option that is true or false, which it is if it is not given."""
    given = str(options.get(name, "false")).strip().lower()
    if given not in ("true", "false"):
        raise InvalidArgument(f"the option {name} is true or false", found=given[:100])
    return given == "true"


def packed(things: Iterable[T], bytes_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Things in order, in lists of at most `PARTITION_BYTES`, or of a single one.

    >>> [len(some) for some in packed([1, 2, PARTITION_BYTES, 3], int)]
    [2, 1, 1]
    """
    held: list[T] = []
    size = 0
    for one in things:
        its = bytes_of(one)
        if held and size + its > PARTITION_BYTES:
            yield held
            held, size = [], 0
        held.append(one)
        size += its
    if held:
        yield held


def with_lists(spec: TableSpec) -> TableSpec:
    """The table with lists in the place of lists of fixed size, which Spark takes none of from a Python source."""
    return replace(spec, schema=pa.schema([one.with_type(listed_type(one.type)) for one in spec.schema]))


def written(
    lake: Lake, begun: Begun, rows: pa.RecordBatchReader, *, is_lenient: bool, batch: int = 0
) -> tuple[Written, ...]:
    """Store a task's rows below the folder of an operation, whose lease is kept meanwhile."""
    lake.catalog.renew([begun])
    lake.session.heartbeat.watch(begun)
    warehouse = lake.session.warehouse
    target = WriteTarget(
        begun.table,
        warehouse.root / begun.table.folder / begun.id,
        begun.id,
        batch=batch,
        is_lenient=is_lenient,
        now_us=to_us(lake.catalog.now()),
        warehouse=warehouse,
    )
    return tuple(lake.session.local_engine.write(rows, target))


def chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Batches of which the first was taken already."""
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], rest))

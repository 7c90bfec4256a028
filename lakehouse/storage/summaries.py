"""Builds summaries from segments' files, and stores those too large for the catalog in files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.core.bloom import Owner, encode_blocks, make_blocks
from lakehouse.core.distinct import Registers, add_hashes, encode_registers, no_registers
from lakehouse.core.hashing import Hashes, distinct, distinct_hashes
from lakehouse.core.segment import Segment
from lakehouse.core.spec import FIELD_ID, TableSpec
from lakehouse.core.summary import INLINE_BYTES, Summary, SummaryKind, columns_of, field_id
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.checksums import checksum_of, opened
from lakehouse.storage.footer import DAMAGE, primitive_columns
from lakehouse.storage.verify import file_of
from lakehouse.storage.warehouse import Warehouse

_BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class Summarizing:
    """Builds summaries of one kind, below an operation's ``folder``, a stored path."""

    spec: TableSpec
    warehouse: Warehouse
    folder: str
    kind: SummaryKind

    def __call__(self, segment: Segment, attempt: str = "") -> list[Summary]:
        """A segment's summaries, one for each column. Cost: a read of these columns; memory for their distinct values.

        ``attempt`` distinguishes the files of one try from those of another; they are durable after `sync`.
        Raises `SegmentUnreadable`, and `OSError` if a summary cannot be written.
        """
        made = self.contents(segment)
        if self.kind is SummaryKind.SKETCH:
            return [Summary(segment.id, one, content) for one, content in made.items()]
        return list(self._stored(segment, made, attempt))

    def contents(self, segment: Segment) -> dict[int, bytes]:
        """The contents of a segment's summaries, by Parquet field id, wherever they will be stored."""
        if self.kind is SummaryKind.SKETCH:
            return {one.id: encode_registers(one.registers, one.bytes) for one in self._gathered(segment)}
        return {
            one.id: encode_blocks(make_blocks(distinct(one.parts)), Owner(segment.id, one.id))
            for one in self._gathered(segment)
        }

    def below(self, name: str) -> Summarizing:
        """The same with its files in a folder below its own."""
        return replace(self, folder=f"{self.folder}/{name}")

    def sync(self, made: Iterable[list[Summary]]) -> None:
        """Make the files of summaries durable, many at once. Raises `OSError`."""
        self.warehouse.publish(self.warehouse.root / path for one in made for path in self.files(one))

    def files(self, made: list[Summary]) -> list[str]:
        """Stored paths of the files of summaries."""
        return [one.path for one in made if one.path]

    def _gathered(self, segment: Segment) -> list[_Column]:
        stored = self.spec.stored_names
        wanted = [stored.get(name, name) for name in columns_of(self.spec, self.kind)]
        with file_of(self.warehouse, segment, "pages", wanted) as path:
            try:
                with pq.ParquetFile(path) as file:
                    return self._read(file)
            except DAMAGE as error:
                raise SegmentUnreadable(
                    "data file is cut short or malformed; restore it", path=str(path), cause=error
                ) from error

    def _read(self, file: pq.ParquetFile) -> list[_Column]:
        stored = {int((one.metadata or {}).get(FIELD_ID, b"-1")): one.name for one in file.schema_arrow}
        leaves = primitive_columns(file.schema_arrow)
        found = []
        for name in columns_of(self.spec, self.kind):
            known = field_id(self.spec, name)
            there = stored.get(known)
            size = 0 if there is None else _column_bytes(file.metadata, leaves[there])
            found.append(_Column(known, there, self.spec.schema.field(name).type, size))
        there = [one for one in found if one.stored is not None]
        if there:
            is_large = file.metadata.num_rows > _BATCH_ROWS  # below, threads cost more than they save
            columns = [one.stored for one in there]
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=is_large):
                for one in there:
                    one.add(batch.column(one.stored), self.kind)
        return found

    def _stored(self, segment: Segment, made: Mapping[int, bytes], attempt: str) -> Iterator[Summary]:
        for column, content in made.items():
            if len(content) <= INLINE_BYTES:
                yield Summary(segment.id, column, content)
                continue
            name = f"{segment.id}-{column}{attempt}.{self.kind.value}"
            path = self.warehouse.root / self.folder / name
            self.warehouse.make_folder(path.parent)
            path.write_bytes(content)
            yield Summary(
                segment.id, column, path=f"{self.folder}/{name}", bytes=len(content), checksum=checksum_of(content)
            )


@dataclass(slots=True)
class _Column:
    """The values seen of a column, by field id, under its name in the file (None: absent, all values are null)."""

    id: int
    stored: str | None
    type: pa.DataType
    bytes: int
    parts: list[Hashes] = field(default_factory=list)
    registers: Registers = field(default_factory=no_registers)

    def add(self, values: pa.Array, kind: SummaryKind) -> None:
        """Add the values of one batch."""
        hashes = distinct_hashes(values if values.type == self.type else values.cast(self.type))
        if kind is SummaryKind.INDEX:
            self.parts.append(hashes)
        else:
            add_hashes(self.registers, hashes)


def _column_bytes(footer: pq.FileMetaData, leaf: int) -> int:
    return sum(footer.row_group(group).column(leaf).total_compressed_size for group in range(footer.num_row_groups))


def read_part(path: Path, offset: int, length: int) -> bytes:
    """Some bytes of a file. Raises `OSError`, and `SegmentUnreadable` if it is not a plain file."""
    with opened(path) as handle:
        return os.pread(handle, length, offset)

"""Files of several chunks written side by side are those that one thread writes, and none is left open by a failure."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.core.codec import codec_number
from lakehouse.engine import WriteTarget
from lakehouse.engine import write as writing
from lakehouse.engine.write import write_tables
from lakehouse.storage.footer import read_footers
from tests.unit.engine.harness import spec_of

DAY_US = 86_400_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("value", pa.float64())])


@pytest.fixture(autouse=True)
def few_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads, although the rows are few."""
    monkeypatch.setattr(writing, "ALONE_BYTES", 0)


def events(rows: int, days: int) -> pa.Table:
    """Rows in any order, of which one in a hundred is not a number."""
    chance = np.random.default_rng(11)
    values = np.where(chance.random(rows) < 0.01, np.nan, chance.random(rows))
    times = pa.array(chance.integers(0, days * DAY_US, rows)).cast(SCHEMA.field("ts").type)
    return pa.table([times, np.arange(rows), values], schema=SCHEMA)


def written(folder: Path, threads: int, buffer_bytes: int = 1 << 30, **properties: object) -> dict[str, pa.Table]:
    """Rows of each file, by its name."""
    target = WriteTarget(spec_of(SCHEMA, properties=properties), folder, "0" * 32)
    files = write_tables(events(20_000, 40).to_batches(700), target, buffer_bytes=buffer_bytes, threads=threads)
    return {name: pq.read_table(folder / name, schema=SCHEMA) for name in (one.name for one in files)}


@pytest.mark.parametrize("buffer_bytes", [1 << 30, 100_000])
def test_threads_write_every_row_once_and_in_order(tmp_path, monkeypatch, buffer_bytes):
    monkeypatch.setattr(writing, "OPEN_FILES", 8)
    files = written(tmp_path, 4, buffer_bytes, target_rows=300)
    ids = np.concatenate([rows["id"].to_numpy() for rows in files.values()])
    assert np.array_equal(np.sort(ids), np.arange(20_000))
    assert all(rows.num_rows <= 300 for rows in files.values())
    for rows in files.values():
        days = rows["ts"].cast(pa.int64()).to_numpy() // DAY_US
        assert len(set(days.tolist())) == 1
        assert (np.diff(rows["id"].to_numpy()) > 0).all()


def test_what_threads_write_is_what_one_writes(tmp_path):
    alone, together = (written(tmp_path / str(threads), threads) for threads in (1, 4))
    assert list(alone) == list(together)
    assert all((tmp_path / "1" / name).read_bytes() == (tmp_path / "4" / name).read_bytes() for name in alone)


def test_a_disk_that_is_full_ends_every_file(tmp_path, monkeypatch):
    count, whole = itertools.count(1), pq.ParquetWriter.write_table

    def full(writer, *rows, **options):
        if next(count) > 5:
            raise OSError(errno.ENOSPC, "no space left on device")
        whole(writer, *rows, **options)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match="no space"):
        written(tmp_path, 4)
    assert next(count) > 6
    opened = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    assert not [one for one in opened if one.startswith(str(tmp_path))]


@pytest.mark.parametrize("ragged", ["false", "true"])
@pytest.mark.parametrize("buffer_bytes", [1 << 30, 1])
def test_no_file_gets_a_codec_that_it_has_outgrown(tmp_path, ragged, buffer_bytes):
    properties = {"compression": "none, lz4 after 3d, zstd after 9d", "ragged": ragged}
    spec = spec_of(SCHEMA, properties=properties)
    now_us = 30 * DAY_US + 1
    target = WriteTarget(spec, tmp_path, "0" * 32, now_us=now_us)
    # A sorted rewrite comes so: a file of a ragged table begins with its oldest rows, and may end with young ones.
    rows = events(4_000, 40).sort_by("ts")
    files = write_tables(rows.to_batches(100), target, buffer_bytes=buffer_bytes)
    made = read_footers(tmp_path, [one.name for one in files], spec)
    bounds = spec.codecs.bounds(spec.grain, now_us)
    codecs = np.array([codec_number(one.codec) for one in made])
    last_us = np.array([one.interval.end_us - 1 for one in made])
    assert not spec.codecs.outgrown(codecs, last_us, bounds).any()
    if ragged == "false":
        days = {one.interval.start_us // DAY_US: one.codec for one in made}
        assert {day: codec for day, codec in days.items() if day in (20, 21, 26, 27, 39)} == {
            20: "zstd", 21: "lz4", 26: "lz4", 27: "none", 39: "none"
        }  # fmt: skip

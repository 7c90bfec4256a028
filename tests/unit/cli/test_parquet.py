"""Parquet files that are small and hold much: their rows come in batches of bounded size, all of them and unchanged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.cli.parquet import BATCH_BYTES, open_parquet

APPEND = """
import sys
from pathlib import Path
from lakehouse.cli import main
sys.argv = ["lakehouse", "append", "t", sys.argv[1]]
try:
    main()
finally:
    print("PEAK", Path("/proc/self/status").read_text(), flush=True)
"""


@pytest.mark.parametrize("has_dictionary", [True, False])
def test_batches_are_bounded_whatever_the_file_hides(tmp_path: Path, has_dictionary: bool) -> None:
    texts = [("x" if place % 2 else "y") * 500_000 if place % 5 else None for place in range(400)]
    rows = pa.table({"n": range(400), "s": texts, "b": pa.array([b"z"] * 400), "t": ["a"] * 400})
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path, use_dictionary=has_dictionary, compression="zstd")
    assert path.stat().st_size < 200_000
    schema, batches = open_parquet(path)
    found = list(batches)
    assert schema == rows.schema
    assert pa.Table.from_batches(found).equals(rows)
    assert max(batch.nbytes for batch in found) < 2 * BATCH_BYTES


def test_ordinary_rows_come_in_large_batches(tmp_path: Path) -> None:
    rows = pa.table({"n": range(200_000), "s": [f"text {place % 100}" for place in range(200_000)]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    _, batches = open_parquet(tmp_path / "rows.parquet")
    assert [batch.num_rows for batch in batches] == [65_536, 65_536, 65_536, 3_392]


def test_an_append_of_much_text_in_a_small_file_stays_within_a_gigabyte(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    times = pa.array([1_357_369_200_000_000] * 1000, pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": times, "s": ["x" * 1_500_000] * 1000}), path)
    assert path.stat().st_size < 1_000_000
    environment = {"LAKEHOUSE_CATALOG": f"sqlite:///{tmp_path}/catalog.db", "LAKEHOUSE_WAREHOUSE": str(tmp_path / "w")}
    with lakehouse.connect(environment["LAKEHOUSE_CATALOG"], environment["LAKEHOUSE_WAREHOUSE"]) as lake:
        lake.sql("CREATE TABLE t (at TIMESTAMP, s STRING) PARTITIONED BY (days(at))")
        done = subprocess.run(
            [sys.executable, "-c", APPEND, str(path)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        [peak] = re.findall(r"VmHWM:\s+(\d+) kB", done.stdout)
        assert int(peak) * 1024 < 1_000_000_000, done.stderr
        assert lake.table("t").scan().count() == 1000

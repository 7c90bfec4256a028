"""Progress: every operation that takes long says what it does of how much, to whoever listens in its thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse import progress

SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("client", pa.int64())])
START = datetime(2013, 1, 5, tzinfo=UTC)


class Heard:
    """Remembers every step: how it began, and how it ended."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[tuple[str, str]] = []

    def step_began(self, step: progress.Step) -> None:
        self.began.append(step.what)

    def step_ended(self, step: progress.Step) -> None:
        self.ended.append((step.what, step.counts))


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakehouse.Lake]:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as one:
        yield one


@pytest.fixture
def trips(lake: lakehouse.Lake) -> lakehouse.Table:
    """Two days of four segments with two rows each."""
    table = lake.create_table("trips", SCHEMA, time="at", primary_key=["client"])
    for number in range(8):
        table.append(rows(number % 2, number))
    return table


def rows(day: int, first: int, count: int = 2) -> pa.Table:
    at = START + timedelta(days=day)
    return pa.table({"at": [at] * count, "client": [first * 100 + one for one in range(count)]}, schema=SCHEMA)


def heard_of(work: Callable[[], Any]) -> list[tuple[str, str]]:
    heard = Heard()
    with progress.listening(heard):
        work()
    assert progress.listener() is None
    assert len(heard.began) == len(heard.ended)
    return heard.ended


def test_what_is_written_is_counted_of_what_was_given(trips: lakehouse.Table) -> None:
    assert heard_of(lambda: trips.append(rows(0, 9, 5))) == [("append trips", "5 of 5 rows")]
    assert heard_of(lambda: trips.replace(rows(1, 9, 3), "2013-01-06")) == [("replace trips", "3 of 3 rows")]
    batches = rows(0, 11, 5).to_batches(max_chunksize=2)
    stream = pa.RecordBatchReader.from_batches(SCHEMA, batches)
    assert heard_of(lambda: trips.append(stream)) == [("append trips", "5 rows")]


def test_a_compaction_counts_the_rows_of_all_its_segments_also_hidden_ones(trips: lakehouse.Table) -> None:
    trips.delete("client = 100")
    assert heard_of(trips.compact) == [("compact trips", "16 of 16 rows")]
    assert heard_of(trips.compact) == [("compact trips", "0 of 0 rows")]


def test_an_erasure_and_a_resolve_count_what_they_look_at(trips: lakehouse.Table) -> None:
    assert ("erase from trips", "3 of 3 files") in heard_of(lambda: trips.erase("client < 300"))
    trips.upsert(rows(0, 4))
    trips.upsert(rows(1, 5))
    assert heard_of(trips.resolve) == [("resolve trips", "2 of 2 tombstones")]


def test_a_check_counts_tables_files_and_rows_of_files(lake: lakehouse.Lake, trips: lakehouse.Table) -> None:
    assert heard_of(lake.check) == [("check the catalog", "1 of 1 tables"), ("check files", "8 of 8 files")]
    deep = heard_of(lambda: lake.check(deep=True))
    assert deep[1:] == [("check bytes of files", "8 of 8 files"), ("check rows of trips", "8 of 8 files")]


def test_a_collection_counts_folders_and_files(lake: lakehouse.Lake, trips: lakehouse.Table) -> None:
    with pytest.raises(lakehouse.InvalidInput):
        trips.replace(rows(0, 1), "2013-02")  # written, and refused
    trips.compact()
    lake.expire(keep_last=1)
    assert heard_of(lambda: lake.collect(grace_seconds=0)) == [
        ("delete folders of ended operations", "1 folders"),
        ("delete files", "8 of 8 files"),
    ]


def test_a_round_of_maintenance_counts_its_tasks_around_what_each_does(
    lake: lakehouse.Lake, trips: lakehouse.Table
) -> None:
    for number in range(12):
        trips.append(rows(0, number))
    *parts, whole = heard_of(lake.maintain)
    assert "compact trips" in {what for what, _ in parts}
    what, counts = whole
    assert what == "maintain"
    done, total = counts.removesuffix(" tasks").split(" of ")
    assert done == total
    assert int(done) >= 1


def test_an_error_ends_its_steps(trips: lakehouse.Table) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield rows(0, 1).to_batches()[0]
        raise OSError("the pipe broke")

    heard = Heard()
    stream = pa.RecordBatchReader.from_batches(SCHEMA, broken())
    with progress.listening(heard), pytest.raises(lakehouse.LakehouseError):
        trips.append(stream)
    assert [what for what, _ in heard.ended] == ["append trips"]


def test_a_listener_hears_its_own_thread_alone(trips: lakehouse.Table) -> None:
    other = threading.Thread(target=trips.append, args=(rows(0, 20),))
    heard = Heard()
    with progress.listening(heard):
        other.start()
        other.join()
        assert heard.began == []
        with progress.listening(None):
            trips.append(rows(0, 21))
        assert heard.began == []
        progress.ignore()
        trips.append(rows(0, 22))
    assert heard.began == []


def test_the_innermost_step_of_a_unit_counts() -> None:
    with progress.listening(Heard()):
        with progress.step("outer", "files", 2) as outer, progress.step("inner", "rows") as inner:
            progress.advance("rows", 3)
            progress.advance("files")
            progress.advance("bytes", 7)
            progress.remain("files", 4)
        progress.advance("files")
    assert (outer.counts, inner.counts) == ("1 of 5 files", "3 rows")


def test_a_step_is_described_in_one_line() -> None:
    step = progress.Step("read trips.csv", "bytes", total=3_000_000, done=1_500_000)
    assert step.described(seconds=3) == "read trips.csv: 1.5 MB of 3.0 MB (50 %), 500.0 kB/s"
    assert progress.Step("check", "files", total=0).described(seconds=1) == "check: 0 of 0 files"


def test_a_step_asks_where_nobody_counts() -> None:
    said = iter([-1.0, 12.7, 5.0])
    step = progress.Step("query", "percent", 100, asked=lambda: next(said))
    assert [step.described(), step.described(), step.described()] == ["query: 0 %", "query: 12 %", "query: 12 %"]


def test_reads_searches_and_queries_say_how_much_is_done(lake: lakehouse.Lake) -> None:
    trips = lake.create_table("trips", "at TIMESTAMP, n BIGINT", time="at")
    lake.sql("INSERT INTO trips SELECT TIMESTAMP '2013-01-05', id FROM range(3000)")
    query = "SELECT count(*) FROM range(9000) a, range(9000) b WHERE (a.id * b.id) % 7 = 3"
    heard = heard_of(lambda: trips.delete("n % 5 = 1"))
    assert ("read trips", "100 %") in heard
    assert heard_of(trips.scan(where="n % 3 = 1").count) == [("count trips", "100 %")]
    (asked,) = heard_of(lambda: lake.query(query, most_seconds=300))
    assert asked[0] == "query"
    assert asked[1].endswith(" %")
    (exported,) = heard_of(lake.export)
    done, total = exported[1].removesuffix(" tables").split(" of ")
    assert (exported[0], done) == ("export", total)

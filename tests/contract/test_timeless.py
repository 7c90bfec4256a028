"""Timeless tables: one chunk of all rows, and otherwise what every table is. The oracle is a list of rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse import Interval
from lakehouse.errors import InvalidInput, InvalidInterval, InvalidKeys, LockTimeout
from lakehouse.service.planning import plan_table
from lakehouse.testing.rows import DDL as TIMED

Row = tuple[str, str | None, int | None]
DDL = "code STRING, region STRING, value BIGINT"
SCHEMA = pa.schema([("code", pa.string()), ("region", pa.string()), ("value", pa.int64())])
ON_ONE_CATALOG = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
"""For what no catalog decides."""
CODES, REGIONS = ("UA", "b'6", "ü`", "", "x y"), (None, "west", "o'st", "")


def arrow(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def listed(table: Any, **asked: Any) -> list[Row]:
    rows = table.scan(**asked).to_arrow().select(SCHEMA.names).to_pylist()
    return ordered(tuple(row.values()) for row in rows)


def ordered(rows: Any) -> list[Row]:
    return sorted(rows, key=repr)


@pytest.fixture
def codes(lake: Any) -> Any:
    return lake.create_table("codes", DDL, primary_key="code", cluster_by="region")


class Oracle:
    """What each version holds, by loops over lists."""

    def __init__(self, table: Any, chance: random.Random) -> None:
        self.table, self.chance = table, chance
        self.now: list[Row] = []
        self.versions: dict[int, list[Row]] = {}

    def row(self, code: str | None = None) -> Row:
        chance = self.chance
        return (code or chance.choice(CODES), chance.choice(REGIONS), chance.choice([None, 0, 1, 2, 3]))

    def rows(self, codes: tuple[str, ...] = ()) -> list[Row]:
        return [self.row(code) for code in codes or self.chance.choices(CODES, k=self.chance.randrange(4))]

    def some(self) -> tuple[str, ...]:
        return tuple(self.chance.sample(CODES[:3], 2))

    def append(self) -> Any:
        given = self.rows()
        self.now = self.now + given
        return self.table.append(arrow(*given))

    def replace(self) -> Any:
        self.now = given = self.rows()
        return self.table.replace(arrow(*given), self.chance.choice([None, Interval(None, None)]))

    def replace_keys(self) -> Any:
        region = self.chance.choice(REGIONS)
        given = [(code, region, value) for code, _, value in self.rows()]
        self.now = [row for row in self.now if row[1] != region] + given
        return self.table.replace(arrow(*given), keys={"region": region})

    def drop_keys(self) -> Any:
        self.now = [row for row in self.now if row[1] not in (None, "west")]
        return self.table.drop(keys={"region": [None, "west"]})

    def delete(self) -> Any:
        self.now = [row for row in self.now if not (row[2] is not None and row[2] > 1)]
        return self.table.delete("value > 1")

    def delete_scope(self) -> Any:
        self.now = [row for row in self.now if row[1] != "west"]
        return self.table.delete("region = 'west'")

    def update(self) -> Any:
        self.now = [
            (code, "west", None if value is None else value + 1) if code == "UA" else (code, region, value)
            for code, region, value in self.now
        ]
        return self.table.update({"value": "value + 1", "region": "'west'"}, "code = 'UA'")

    def upsert(self) -> Any:
        given = self.rows(self.some())
        self.now = [row for row in self.now if row[0] not in {one[0] for one in given}] + given
        return self.table.upsert(arrow(*given))

    def delete_keys(self) -> Any:
        gone = self.some()
        self.now = [row for row in self.now if row[0] not in gone]
        return self.table.delete_keys(pa.table({"code": list(gone)}))

    def merge(self) -> Any:
        given = {row[0]: row for row in self.rows(self.some())}
        here = {row[0] for row in self.now}
        merged = [given.get(row[0], row) for row in self.now]
        self.now = merged + [row for code, row in given.items() if code not in here]
        return self.table.merge(arrow(*given.values()), ["code"], when_matched_update=True)

    def erase(self) -> Any:
        self.versions[-1] = self.now
        self.versions = {version: [row for row in rows if row[0] != "x y"] for version, rows in self.versions.items()}
        self.now = self.versions.pop(-1)
        return self.table.erase("code = 'x y'")

    def restore(self) -> Any:
        version = self.chance.choice(sorted(self.versions))
        self.now = self.versions[version]
        return self.table.restore(version)

    def maintain(self) -> Any:
        return self.chance.choice([self.table.compact, self.table.clean, self.table.resolve])()


STEPS = [
    name for name, held in vars(Oracle).items() if callable(held) and name not in ("__init__", "row", "rows", "some")
]


@pytest.mark.parametrize(
    ("catalog_url", "options"),
    [("sqlite", {"write_order": "start", "properties": {"order": "zorder"}}), ("sqlite", {}), ("postgresql", {})],
    indirect=["catalog_url"],
    ids=str,
)
def test_a_random_history_is_what_loops_over_lists_say(lake: Any, connect: Callable[..., Any], options: Any) -> None:
    table = lake.create_table("codes", DDL, primary_key="code", cluster_by={"region": 4}, **options)
    oracle = Oracle(table, random.Random(11))
    steps = [*STEPS, *oracle.chance.choices(STEPS, k=len(STEPS))]
    oracle.append()
    oracle.versions[table.version] = oracle.now
    for step in steps:
        getattr(oracle, step)()
        assert listed(table) == ordered(oracle.now), step
        assert table.count() == len(oracle.now), step
        oracle.versions[table.version] = oracle.now
    other = connect().table("codes")
    for version, rows in oracle.versions.items():
        assert listed(other, as_of=version) == ordered(rows), version
    assert all(one.interval == Interval(None, None) for one in [*table.segments(), *table.tombstones()])
    assert len(table.chunks()) <= 1
    found = lake.check(deep=True)
    assert found.is_sound, found.findings


@ON_ONE_CATALOG
def test_a_table_says_that_it_has_no_time(lake: Any, codes: Any, connect: Callable[..., Any]) -> None:
    for table in (codes, connect().table("codes")):
        assert (table.time, table.grain, table.primary_key) == (None, "all", ("code",))
        assert repr(table) == "<table codes, 3 columns>"
    codes.append(arrow(("UA", "west", 1)))
    (segment,) = codes.segments()
    assert segment.min == {"code": "UA", "region": "west", "value": 1}
    assert [one.column for one in codes.statistics()] == SCHEMA.names
    (chunk,) = codes.chunks()
    assert Interval(chunk.start, chunk.end) == Interval(None, None)
    assert len(codes.history()) == len(codes.log()) == 1
    assert codes.chunk_history()
    assert codes.diff(codes.version - 1, codes.version).chunks
    assert len(codes.timeline().slices) == 1
    with pytest.raises(InvalidInput, match="ragged"):
        codes.set_properties({"ragged": True})


@ON_ONE_CATALOG
def test_every_interval_is_refused_by_name(codes: Any) -> None:
    codes.append(arrow(("UA", "west", 1)))
    day = "2013-01-05"
    refused: dict[str, Callable[[], Any]] = {
        "scan": lambda: codes.scan(interval=day),
        "count": lambda: codes.count(interval=day),
        "log": lambda: codes.log(interval=day),
        "history": lambda: codes.history(day),
        "segments": lambda: codes.segments(interval=day),
        "tombstones": lambda: codes.tombstones(interval=day),
        "statistics": lambda: codes.statistics(interval=day),
        "timeline": lambda: codes.timeline(day),
        "chunk_history": lambda: codes.chunk_history(day),
        "chain": lambda: codes.chain(day),
        "replace": lambda: codes.replace(None, day),
        "drop": lambda: codes.drop((day, None)),
        "compact": lambda: codes.compact(day),
        "clean": lambda: codes.clean(Interval.of(day)),
    }
    for name, call in refused.items():
        with pytest.raises(InvalidInterval, match=r"no time.*table=codes"):
            call()
        assert listed(codes) == [("UA", "west", 1)], name
    with pytest.raises(InvalidKeys, match="cluster"):
        codes.replace(None, keys={"code": "UA"})


@ON_ONE_CATALOG
def test_a_table_with_a_time_still_asks_for_an_interval(lake: Any) -> None:
    timed = lake.create_table("timed", TIMED, time="time")
    for call in (lambda: timed.replace(None), timed.drop, timed.chunk_history):
        with pytest.raises(InvalidInterval, match="not an interval"):
            call()


def test_replaces_of_other_keys_run_side_by_side_and_appends_are_kept(codes: Any, connect: Callable[..., Any]) -> None:
    codes.append(arrow(("UA", "west", 1), ("AA", "east", 1)))
    other = connect().table("codes")
    with codes.begin_replace(keys={"region": "west"}) as west, other.begin_replace(keys={"region": "east"}) as east:
        with pytest.raises(LockTimeout):
            other.replace(None, wait_seconds=0)
        west.write(arrow(("UA", "west", 2)))
        codes.append(arrow(("B6", "west", 3)))
        east.commit()
        west.commit()
    assert listed(codes) == [("B6", "west", 3), ("UA", "west", 2)]
    with pytest.raises(InvalidInput, match="outside"):
        codes.replace(arrow(("UA", "east", 2)), keys={"region": "west"})


@ON_ONE_CATALOG
def test_what_changed_between_versions_is_told(codes: Any) -> None:
    first = codes.append(arrow(("UA", "west", 1), ("AA", "east", 1))).version
    codes.update({"value": "7"}, "code = 'UA'")
    codes.delete("code = 'AA'")
    codes.upsert(arrow(("B6", None, 2)))
    changes = codes.changes(first).to_arrow()
    found = list(zip(*(changes[name].to_pylist() for name in ("_change_type", "code", "value")), strict=True))
    assert found == [("update_before", "UA", 1), ("update_after", "UA", 7), ("delete", "AA", 1), ("insert", "B6", 2)]


@ON_ONE_CATALOG
def test_an_empty_table_answers_everything(lake: Any, codes: Any) -> None:
    for _ in range(2):
        assert (listed(codes), codes.count(), codes.scan(where="value > 1").count()) == ([], 0, 0)
        assert (codes.chunks(), codes.segments(), codes.timeline().slices) == ([], [], ())
        assert codes.compact() is codes.clean() is codes.resolve() is None
        for step in (
            lambda: codes.replace(None),
            lambda: codes.replace(arrow(), keys={"region": [None, "west"]}),
            lambda: codes.append(arrow()),
            lambda: codes.upsert(arrow()),
            lambda: codes.merge(arrow(), ["code"], when_matched_delete=True),
            lambda: codes.delete("TRUE"),
            lambda: codes.update({"value": "1"}, "TRUE"),
            lambda: codes.erase("TRUE"),
        ):
            step()
        lake.maintain()
        assert lake.check(deep=True).is_sound
        (glance,) = lake.catalog.overview()
        assert (glance.rows, glance.start, glance.end) == (0, None, None)
        codes.replace(arrow(("UA", None, 1)))  # and once more when all of its rows are gone
        (glance,) = lake.catalog.overview()
        assert (glance.rows, glance.start, glance.end) == (1, None, None)
        codes.drop()


@ON_ONE_CATALOG
def test_rows_and_keys_that_cannot_be_are_refused_and_nothing_is_written(lake: Any, codes: Any) -> None:
    codes.append(arrow(("UA", "west", 1)))
    head = lake.head
    for call in (
        lambda: codes.append(arrow((None, "west", 1))),  # type: ignore[arg-type]
        lambda: codes.replace(arrow(("AA", "west", 1), (None, "west", 1))),  # type: ignore[arg-type]
        lambda: codes.upsert(arrow((None, "west", 1))),  # type: ignore[arg-type]
        lambda: codes.upsert(arrow(("AA", "west", 1), ("AA", "east", 2))),
        lambda: codes.delete_keys(pa.table({"region": ["west"]})),
        lambda: codes.replace(arrow(("AA", "east", 1)), keys={"region": [None, "west"]}),
        lambda: codes.replace(arrow(("AA", "west", 1)), keys={}),
        lambda: codes.replace(pa.table({"code": ["AA"], "when": [1]})),
        lambda: codes.update({"code": "NULL"}, "TRUE"),
    ):
        with pytest.raises(InvalidInput):
            call()
        assert (lake.head, listed(codes)) == (head, [("UA", "west", 1)])


def test_maintenance_keeps_the_rows_the_tags_and_what_retention_says(lake: Any, codes: Any, warehouse: Any) -> None:
    codes.set_properties({"index": "code", "compression": "lz4, zstd after 1h", "small_files": 2})
    for number in range(12):
        codes.append(arrow((f"c{number}", "west", number)))
    lake.tag("twelve")
    codes.upsert(arrow(("c3", None, 33)))
    rows = [(f"c{number}", "west", number) for number in range(12) if number != 3] + [("c3", None, 33)]
    kinds = {str(one.kind) for _ in range(3) for one in lake.maintain(table="codes").tasks}
    assert {"compact", "index"} <= kinds
    assert (listed(codes), len(codes.segments()), codes.tombstones()) == (ordered(rows), 1, [])
    assert plan_table(lake.session, codes).due_seconds in (None, 3600)
    assert listed(codes, where="code = 'c3'") == [("c3", None, 33)]
    codes.set_properties({"retention": "0s", "keep_last": 1})
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    codes.refresh()
    assert listed(codes, as_of="twelve") == ordered((f"c{number}", "west", number) for number in range(12))
    lake.untag("twelve")
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert listed(codes) == ordered(rows)
    assert {one.name for one in warehouse.rglob("*.parquet")} >= {one.path.split("/")[-1] for one in codes.segments()}
    assert lake.check(deep=True).is_sound


@ON_ONE_CATALOG
def test_every_form_of_its_rows_and_every_point_in_history(lake: Any, codes: Any) -> None:
    first = codes.append(arrow(("UA", "west", 1), ("B6", None, 2)))
    lake.tag("first")
    codes.replace(arrow(("DL", "west", 3)), keys={"region": "west"})
    codes.compact()  # a dataset shows whole files
    now, then = [("B6", None, 2), ("DL", "west", 3)], [("B6", None, 2), ("UA", "west", 1)]
    scan = codes.scan()
    forms = (
        scan.to_reader().read_all(),
        pa.Table.from_pandas(scan.to_pandas(), schema=SCHEMA),
        scan.to_polars(lazy=True).collect().to_arrow().cast(SCHEMA),
        scan.to_dataset().to_table(),
        scan.to_duckdb().to_arrow_table(),
    )
    for form in forms:
        assert ordered(tuple(row.values()) for row in form.select(SCHEMA.names).to_pylist()) == now
    for point in (first.version, "first", first.committed_at):
        assert listed(codes, as_of=point) == then, point
    with lake.transaction() as tx:
        tx.table("codes").replace(arrow(("AA", "west", 4)), keys={"region": "west"})
        tx.table("codes").append(arrow(("AS", "west", 5)))
    assert listed(codes) == [("AA", "west", 4), ("AS", "west", 5), ("B6", None, 2)]
    codes.restore("first")
    assert listed(codes) == then


@ON_ONE_CATALOG
def test_no_column_of_before_needs_to_stay(lake: Any) -> None:
    """Without a time there is no column that every file has."""
    table = lake.create_table("odd", pa.schema([("file_row_number", pa.int64()), ("a", pa.list_(pa.int32()))]))
    table.append(pa.table({"file_row_number": [1, 2, 3], "a": [[1], None, []]}, schema=table.schema))
    table.delete("file_row_number = 2")
    before = table.version
    table.add_column("b", "STRING", default="new")
    table.drop_column("a")
    table.drop_column("file_row_number")
    with pytest.raises(InvalidInput, match="needs a column"):
        table.drop_column("b")
    assert table.scan().to_arrow().to_pylist() == [{"b": "new"}] * 2
    assert table.count() == len(table.scan().to_arrow()) == lake.sql("SELECT count(*) FROM odd").fetchall()[0][0] == 2
    assert table.update({"b": "'newer'"}, "b = 'new'").rows_added == 2
    assert table.compact() is not None
    assert table.scan(where="b = 'newer'").count() == 2
    assert table.scan(as_of=before).to_arrow().num_rows == 2
    table.erase("b = 'newer'")
    assert (table.count(), table.scan(as_of=before).count()) == (0, 2)
    table.erase("b = 'new'")  # what they are by the default
    assert table.scan(as_of=before).count() == 0


@ON_ONE_CATALOG
def test_a_table_of_nested_columns_only_is_written_in_every_way(lake: Any) -> None:
    table = lake.create_table("nested", "held STRUCT<a: INT, b: STRING>")
    rows = pa.table({"held": [{"a": 1, "b": "x"}, {"a": 2, "b": None}, None]}, schema=table.schema)
    table.append(rows)
    table.append(rows)
    assert table.update({"held": "held"}, "held IS NULL").rows_added == 2
    lake.sql("UPDATE nested SET held = NULL WHERE held.a IN (SELECT min(held.a) FROM nested)")
    lake.sql("DELETE FROM nested WHERE held.a IN (SELECT max(held.a) FROM nested)")
    assert table.compact() is not None
    assert table.scan().to_arrow()["held"].to_pylist() == [None] * 4
    assert table.count() == 4
    table.replace(rows)
    assert table.delete("held IS NULL").rows_deleted == 1
    assert table.scan().to_arrow()["held"].to_pylist() == rows["held"].to_pylist()[:2]


@pytest.mark.parametrize("exported", [True, False])
def test_a_lost_catalog_comes_back(lake: Any, codes: Any, tmp_path: Any, warehouse: Any, exported: bool) -> None:
    codes.append(arrow(("UA", "west", 1)))
    codes.upsert(arrow(("B6", None, 2)))
    if exported:
        lake.export()
    codes.append(arrow(("AA", "east", 3)))
    expected = listed(codes)
    url = f"sqlite:///{tmp_path}/again.db"
    lakehouse.recover(warehouse, url, adopt=True)
    with lakehouse.connect(url, warehouse) as found:
        again = found.table("codes")
        assert (again.time, again.grain, again.primary_key) == (None, "all", ("code",))
        assert listed(again) == expected
        again.replace(arrow(("C", None, 0)))
        assert listed(again) == [("C", None, 0)]
        assert found.check(deep=True).is_sound

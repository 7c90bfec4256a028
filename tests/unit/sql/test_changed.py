"""``t.changes`` has what a list of what was done to each row says, for whatever part of it is asked."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound, VersionNotFound
from tests.unit.sql.conftest import rows_of

Change = tuple[int, int | None, str, int]
"""What ``SELECT id, n, _change_type, _commit_version`` gives."""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: Any) -> Any:
    """A table with a random history, and every change of it, told by a loop over a dictionary of rows."""
    folder, chance = tmp_path_factory.mktemp("changed"), random.Random(3)
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        lake.sql("CREATE TABLE t (at TIMESTAMP, id BIGINT, n INT) PARTITIONED BY (days(at))")
        lake.sql("CREATE TABLE other (at TIMESTAMP) PARTITIONED BY (days(at))")
        rows: dict[int, int | None] = {}
        listed: list[Change] = []
        kinds = ["insert", "update", "delete"] * 3 + ["compact", "other"]
        chance.shuffle(kinds)
        for turn, does in enumerate(["insert", "insert", *kinds], 1):
            low = chance.randrange(1 + len(rows))
            match does:
                case "insert":
                    new = {turn * 10 + place: chance.choice([None, 1, 2]) for place in range(2)}
                    values = (f"('2013-01-0{1 + one % 5}', {one}, {n or 'NULL'})" for one, n in new.items())
                    version = lake.sql(f"INSERT INTO t VALUES {', '.join(values)}").version
                    listed += [(one, n, "insert", version) for one, n in new.items()]
                    rows |= new
                case "update":
                    version = lake.sql(f"UPDATE t SET n = 1 WHERE id % 7 >= {low % 7}").version
                    for one in [one for one, n in rows.items() if one % 7 >= low % 7 and n != 1]:
                        listed += [(one, rows[one], "update_before", version), (one, 1, "update_after", version)]
                        rows[one] = 1
                case "delete":
                    version = lake.sql(f"DELETE FROM t WHERE id % 5 = {low % 5}").version
                    gone = [one for one in rows if one % 5 == low % 5]
                    listed += [(one, rows.pop(one), "delete", version) for one in gone]
                case "compact":
                    lake.table("t").compact()
                case "other":
                    lake.sql("INSERT INTO other VALUES ('2013-01-01')")
        assert {one[2] for one in listed} == {"insert", "update_before", "update_after", "delete"}
        yield lake, listed


CONDITIONS: list[tuple[str, Any]] = [
    ("TRUE", lambda *_: True),
    ("_commit_version > {mid}", lambda mid, key, n, kind, version: version > mid),
    ("_commit_version > {mid} AND _commit_version <= {mid} + 3", lambda mid, key, n, kind, v: mid < v <= mid + 3),
    ("_commit_version BETWEEN {mid} - 2 AND {mid}", lambda mid, key, n, kind, v: mid - 2 <= v <= mid),
    ("_commit_version = {mid}", lambda mid, key, n, kind, v: v == mid),
    ("{mid} >= _commit_version", lambda mid, key, n, kind, v: v <= mid),
    ("_commit_version IN ({mid}, 3)", lambda mid, key, n, kind, v: v in (mid, 3)),
    ("_commit_version < 5 OR _commit_version = {mid} + 2", lambda mid, key, n, kind, v: v < 5 or v == mid + 2),
    ("_commit_version > 5 AND _commit_version < 4", lambda *_: False),
    ("_commit_version > 99", lambda *_: False),
    ("_commit_version > -9", lambda *_: True),
    ("_commit_version >= {mid} AND n = 1 AND id > 30", lambda mid, key, n, kind, v: v >= mid and n == 1 and key > 30),
    ("id < 40 AND n IS NULL", lambda mid, key, n, kind, v: key < 40 and n is None),
    ("_change_type = 'delete'", lambda mid, key, n, kind, v: kind == "delete"),
    ("_change_type LIKE 'update%' AND _commit_version > {mid}", lambda mid, key, n, k, v: k[:2] == "up" and v > mid),
    ("at >= '2013-01-04'", lambda mid, key, n, kind, v: key % 5 >= 3),
]


def test_every_condition_leaves_what_it_would_of_a_list(changed: Any) -> None:
    lake, listed = changed
    columns = "SELECT id, n, _change_type, _commit_version FROM t.changes"
    mid = listed[6][3]
    for text, passes in CONDITIONS:
        found = Counter(rows_of(lake, f"{columns} WHERE {text.format(mid=mid)}"))
        assert found == Counter(one for one in listed if passes(mid, *one)), text


def test_changes_are_those_of_the_table_and_are_joined_like_any_table(changed: Any) -> None:
    lake, listed = changed
    assert Counter(rows_of(lake, "SELECT id, n, _change_type, _commit_version FROM t.changes")) == Counter(listed)
    times = {one.version: one.committed_at for one in lake.log()}
    found = rows_of(lake, "SELECT DISTINCT _commit_version, _commit_timestamp FROM t.changes")
    assert dict(found) == {one[3]: times[one[3]] for one in listed}
    names = lake.sql("SELECT * FROM t.changes", engine="duckdb").columns
    assert names == ["at", "id", "n", "_change_type", "_commit_version", "_commit_timestamp"]
    assert rows_of(lake, "SELECT count(*) FROM other.changes o JOIN t.changes c ON o.at = c._commit_timestamp") == [
        (0,)
    ]
    deleted = "SELECT c.id FROM t.changes c LEFT JOIN t ON t.id = c.id WHERE t.id IS NULL AND c._change_type = 'insert'"
    assert len(rows_of(lake, deleted)) == sum(one[2] == "delete" for one in listed)


def test_a_version_bounds_the_changes_and_a_view_of_them(changed: Any) -> None:
    lake, listed = changed
    mid = listed[6][3]
    expected = Counter(one for one in listed if one[3] <= mid)
    columns = "id, n, _change_type, _commit_version"
    for text, as_of in ((f"SELECT {columns} FROM t.changes VERSION AS OF {mid}", None),
                        (f"SELECT {columns} FROM t.changes", mid)):  # fmt: skip
        assert Counter(rows_of(lake, text, as_of=as_of)) == expected
    lake.create_view("seen", f"SELECT {columns.replace('_commit_version', '_commit_version AS v')} FROM t.changes")
    assert Counter(rows_of(lake, f"SELECT * FROM seen WHERE v <= {mid}")) == expected
    plan = lake.sql(f"EXPLAIN SELECT id FROM seen WHERE v > {mid} AND n = 1", engine="duckdb")
    assert f"changes of t after version {mid} up to {lake.head}" in plan
    assert f"filter (`_commit_version` > {mid}) AND (`n` = 1)" in plan
    lake.drop_view("seen")


def test_only_what_the_versions_touched_is_read_and_of_it_what_a_condition_can_reach(lake: lakehouse.Lake) -> None:
    since = lake.head
    lake.sql("INSERT INTO trips (at, id) VALUES ('2013-03-01', 7), ('2013-04-01', 8)")
    first, second = (lake.table("trips").segments(interval=f"2013-0{month}")[0] for month in (3, 4))
    for one in (*lake.table("trips").segments(as_of=since), second):
        (lake.warehouse / one.path).unlink()
    text = f"SELECT id FROM trips.changes WHERE _commit_version > {since} AND at < '2013-03-15'"
    assert rows_of(lake, text) == [(7,)]
    assert (lake.warehouse / first.path).exists()
    with pytest.raises(lakehouse.errors.SegmentUnreadable):
        rows_of(lake, text.replace("at <", "id <> 7 AND at <>"))


def test_changes_since_an_expired_version_are_an_error_and_never_a_gap(lake: lakehouse.Lake) -> None:
    lake.sql("UPDATE trips SET price = 0 WHERE id = 1")
    lake.sql("DELETE FROM trips WHERE id = 2")
    horizon = lake.expire(keep_last=1).horizon
    assert rows_of(lake, "SELECT id FROM trips.changes") == []
    lake.sql("DELETE FROM trips WHERE id = 3")
    assert rows_of(lake, "SELECT id FROM trips.changes") == [(3,)]
    assert rows_of(lake, f"SELECT id FROM trips.changes WHERE _commit_version > {horizon}") == [(3,)]
    with pytest.raises(VersionNotFound):
        rows_of(lake, f"SELECT id FROM trips.changes WHERE _commit_version >= {horizon}")
    for wrong, error in (
        ("INSERT INTO trips.changes VALUES (1)", TableNotFound),
        ("DELETE FROM trips.changes", TableNotFound),
        ("SELECT _version FROM trips.changes", InvalidInput),
        ("SELECT * FROM nowhere.changes", TableNotFound),
    ):
        with pytest.raises(error):
            lake.sql(wrong, engine="duckdb")

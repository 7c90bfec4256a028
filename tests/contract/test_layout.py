"""Cluster columns, primary key and time chunks change, and every row stays where a list of rows has it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import (
    DuplicateKey,
    InvalidArgument,
    InvalidProperty,
    InvalidRows,
    InvalidSchema,
    LockTimeout,
    SchemaMismatch,
    UnknownColumn,
    WriteConflict,
)
from lakehouse.schema.changes import AddColumn, RenameColumn, SetClusterBy, SetGrain, SetPrimaryKey

START = datetime(2024, 1, 30, tzinfo=UTC)
STEPS = ("append", "append", "replace", "delete", "update", "cluster", "grain", "compact", "rebuild")
GRAINS = ("hour", "day", "week", "month", "year")


def rows_of(pairs, names=("a", "b")):
    """Rows (id, hours since START, a, b), of which the last two columns may have other names."""
    at = pa.array([START + timedelta(hours=hours) for _, hours, _, _ in pairs], pa.timestamp("us", "UTC"))
    columns = list(zip(*pairs, strict=True)) if pairs else [(), (), (), ()]
    return pa.table(
        {"at": at, "id": pa.array(columns[0], pa.int64()), names[0]: pa.array(columns[2], pa.string()),
         names[1]: pa.array(columns[3], pa.int64())}
    )  # fmt: skip


def seen(scan):
    """The first four columns of the rows, whatever they are called."""
    found = scan.to_arrow().select(range(4)).rename_columns(["at", "id", "a", "b"]).to_pylist()
    return sorted((row["id"], (row["at"] - START) // timedelta(hours=1), row["a"], row["b"]) for row in found)


def make(lake, **options):
    return lake.create_table("t", "at TIMESTAMP, id BIGINT, a STRING, b BIGINT", time="at", **options)


@pytest.mark.parametrize("seed", range(2))
def test_layouts_change_at_random_among_writes_and_no_row_moves(lake, seed):
    chance = random.Random(seed)
    properties = {"ragged": chance.choice(["true", "false"]), "target_rows": "20"}
    table = make(lake, cluster_by={"a": 16}, properties=properties)
    held, versions, number, names = [], {}, 0, ["a", "b"]

    def some(count):
        nonlocal number
        made = [
            (number + k, chance.randrange(24 * 40), chance.choice("xyz"), chance.randrange(3)) for k in range(count)
        ]
        number += count
        return made

    for step in range(34):
        match chance.choice(
            ["append", "append", "replace", "delete", "cluster", "grain", "compact", "rebuild", "update", "rename"]
        ):
            case "append":
                new = some(chance.randrange(1, 12))
                table.append(rows_of(new, names))
                held += new
            case "replace":
                first = chance.randrange(24 * 40)
                last = first + chance.randrange(1, 100)
                span = (START + timedelta(hours=first), START + timedelta(hours=last))
                keys = {}
                if table.cluster_by:
                    name = chance.choice(list(table.cluster_by))
                    keys = {name: chance.choice("xyz") if name == names[0] else chance.randrange(3)}
                place = {names[0]: 2, names[1]: 3}
                new = [one for one in some(6) if first <= one[1] < last]
                new = [one for one in new if all(one[place[k]] == v for k, v in keys.items())]
                table.replace(rows_of(new, names), span, keys=keys or None)
                gone = [r for r in held if first <= r[1] < last and all(r[place[k]] == v for k, v in keys.items())]
                held = [one for one in held if one not in gone] + new
            case "delete":
                digit = chance.randrange(7)
                table.delete(f"id % 7 = {digit}")
                held = [one for one in held if one[0] % 7 != digit]
            case "update":
                digit = chance.randrange(5)
                table.update({names[1]: f"{names[1]} + 1"}, f"id % 5 = {digit}")
                held = [(*one[:3], one[3] + 1) if one[0] % 5 == digit else one for one in held]
            case "cluster":
                a, b = names
                table.set_cluster_by(chance.choice([(), {a: 64}, {b: 8}, [b, a], {a: 7, b: 7}]))
            case "rename":
                before, names = names, chance.choice([names[::-1], ["a", "b"], [f"a{step}", names[1]], ["b", "a"]])
                table.alter([
                    *(RenameColumn(old, f"{old} for a moment") for old in before),
                    *(RenameColumn(f"{old} for a moment", new) for old, new in zip(before, names, strict=True)),
                ])  # fmt: skip
            case "grain":
                table.set_grain(chance.choice(GRAINS))
            case "compact":
                table.compact()
            case "rebuild":
                table.rebuild(
                    grain=chance.choice([None, *GRAINS]), cluster_by=chance.choice([None, (), {names[1]: 16}])
                )
        versions[table.version] = sorted(held)
        assert seen(table.scan()) == sorted(held)
        digit, letter = chance.randrange(3), chance.choice("xyz")
        wanted = sorted(one for one in held if one[3] == digit and one[2] == letter)
        assert seen(table.scan(where=f"{names[1]} = {digit} AND {names[0]} = '{letter}'")) == wanted
        day = START + timedelta(days=chance.randrange(40))
        hours = (day - START) // timedelta(hours=1)
        wanted = sorted(one for one in held if hours <= one[1] < hours + 24)
        assert seen(table.scan(interval=(day, day + timedelta(days=1)))) == wanted
    for version, then in versions.items():
        assert seen(table.scan(as_of=version)) == seen(table.scan(as_of=version, schema="current")) == then
    assert sum(one.rows for one in table.segments()) >= len(held)
    assert sorted((one.start, one.end) for one in table.chunks()) == sorted({(o.start, o.end) for o in table.chunks()})
    assert sum(one.segments for one in table.chunks()) >= len(table.segments())
    assert not lake.check(deep=True).findings
    earlier = chance.choice(list(versions))
    table.restore(earlier)
    assert seen(table.scan()) == versions[earlier]
    table.compact()
    assert seen(table.scan()) == versions[earlier]
    assert not lake.check(deep=True).findings


def test_a_rebuild_is_one_version_that_changes_no_row_and_keeps_ids(lake):
    table = make(lake, cluster_by={"a": 8})
    for day in range(6):
        table.append(rows_of([(day * 10 + n, day * 24 + n, "xy"[n % 2], n) for n in range(5)]))
    table.delete("id % 10 = 3")
    before, ids = table.version, table.unheld_scan(row_ids=True).to_arrow().sort_by("id")
    commit = table.rebuild(grain="year", cluster_by={"b": 32}, primary_key=["id"])
    assert commit.version == before + 1 == table.version
    assert (table.grain, table.cluster_by, table.primary_key) == ("year", {"b": 32}, ("id",))
    assert len(table.segments()) == 1
    assert not table.tombstones()
    again = table.unheld_scan(row_ids=True).to_arrow().sort_by("id")
    assert again.column("_row_id").equals(ids.column("_row_id"))
    assert table.changes(before).to_arrow().num_rows == 0
    assert seen(table.scan(as_of=before)) == seen(table.scan())
    assert len(table.diff(before, commit.version).dropped) == 7
    table.upsert(rows_of([(0, 5, "z", 9), (99, 1, "z", 9)]))
    assert table.scan(where="b = 9").count() == 2
    assert list(map(str, table.column_changes(before, commit.version))) == [
        "column id nullability: may be null to never null", "primary key: none to id",
        "cluster by: a in 8 buckets to b in 32 buckets", "grain: day to year",
    ]  # fmt: skip
    assert [one.cluster_by for one in (table.spec_at(before), table.spec_at(None))] == [{"a": 8}, {"b": 32}]
    assert not lake.check(deep=True).findings


def test_a_primary_key_is_checked_before_it_is_accepted(lake):
    table = make(lake)
    table.append(rows_of([(1, 0, "x", 1), (2, 0, "x", 2)]))
    before = table.version
    with pytest.raises(DuplicateKey, match=r"one key twice.*'a': 'x'"):
        table.set_primary_key(["a"])
    table.append(rows_of([(3, 0, None, 1)]))
    with pytest.raises(InvalidRows, match="null in a column of the primary key"):
        table.set_primary_key(["a", "b"])
    with pytest.raises(UnknownColumn):
        table.set_primary_key("c")
    with pytest.raises(InvalidSchema, match="has one value"):
        table.alter([AddColumn("c", pa.int64(), default=1), SetPrimaryKey(["c"])])
    assert table.version == before + 1
    assert table.primary_key == ()
    table.alter([RenameColumn("id", "number"), SetPrimaryKey(["number"])])
    assert table.primary_key == ("number",)
    assert not table.schema.field("number").nullable
    table.rename_column("number", "id")
    table.delete("a IS NULL")
    table.upsert(rows_of([(1, 3, "y", 5)]))
    with pytest.raises(InvalidSchema, match="call resolve"):
        table.set_primary_key(["a", "b"])
    table.resolve()
    table.set_primary_key(["a", "b"])
    table.upsert(rows_of([(7, 4, "y", 5)]))
    assert seen(table.scan()) == [(2, 0, "x", 2), (7, 4, "y", 5)]
    table.resolve()
    table.set_primary_key()
    assert table.primary_key == ()
    assert seen(table.scan(as_of=before, schema="current")) == [(1, 0, "x", 1), (2, 0, "x", 2)]


def test_rows_that_come_while_a_key_is_checked_make_it_look_again(lake):
    table = make(lake)
    table.append(rows_of([(1, 0, "x", 1)]))
    alter = table.begin_alter([SetPrimaryKey(["id"])])
    table.append(rows_of([(1, 1, "y", 1)]))
    with pytest.raises(WriteConflict, match="rows came"):
        alter.commit()
    alter = table.begin_alter([SetPrimaryKey(["b", "a"])])
    lake.table("t").alter([RenameColumn("a", "c"), RenameColumn("b", "a"), RenameColumn("c", "b")])
    with pytest.raises(WriteConflict, match="columns changed"):
        alter.commit()
    lake.table("t").alter([RenameColumn("a", "c"), RenameColumn("b", "a"), RenameColumn("c", "b")])
    alter = table.begin_alter([SetPrimaryKey(["b", "a"])])
    table.compact()
    alter.commit()
    assert table.schema == table.schema
    running = lake.table("t").begin_append()
    running.write(rows_of([(5, 5, "z", 5)]))
    running.commit()
    assert lake.table("t").primary_key == ("b", "a")


def test_operations_that_began_before_commit_or_are_told_to_begin_again(lake):
    table = make(lake, cluster_by=["a"], primary_key=["id"])
    table.append(rows_of([(n, n, "xy"[n % 2], n) for n in range(48)]))
    other = lake.table("t")
    replace = table.begin_replace("2024-01-30", keys={"a": "x"})
    replace.write(rows_of([(100, 2, "x", 0)]))
    append = table.begin_append()
    append.write(rows_of([(101, 25, "y", 0)]))
    upsert = table.begin_upsert()
    upsert.write(rows_of([(1, 1, "y", -1)]))
    delete = table.begin_delete("id = 30")
    delete.run()
    compaction = table.begin_compaction("2024-01-31")
    compaction.run()
    other.set_grain("month")
    replace.commit()
    append.commit()
    upsert.commit()
    delete.commit()
    compaction.commit()
    kept = [(n, n, "xy"[n % 2], -1 if n == 1 else n) for n in range(48) if n != 30 and (n >= 24 or n % 2)]
    assert seen(lake.table("t").scan()) == sorted([*kept, (100, 2, "x", 0), (101, 25, "y", 0)])
    delete = other.begin_delete("id = 31")
    delete.run()
    replace = other.begin_replace("2024-01", keys={"a": "x"})
    lake.table("t").set_cluster_by(["b"])
    with pytest.raises(WriteConflict, match="cluster columns are others"):
        delete.commit()
    replace.commit()
    table = lake.table("t")
    delete = table.begin_delete("id = 33")
    delete.run()
    replace = table.begin_replace("2024-01-31", keys={"b": [35]})
    replace.commit()
    delete.commit()
    assert seen(table.scan()) == sorted(
        one for one in [*kept, (101, 25, "y", 0)] if one[2] == "y" and one[0] not in (33, 35)
    )  # fmt: skip
    upsert = table.begin_upsert()
    upsert.write(rows_of([(1, 1, "y", -1)]))
    table.resolve()
    table.set_primary_key()
    with pytest.raises(WriteConflict, match="another primary key"):
        upsert.commit()
    assert not lake.check(deep=True).findings


def test_a_rebuild_waits_for_replaces_and_takes_in_row_changes_beside_it(lake):
    table = make(lake, cluster_by=["a"])
    table.append(rows_of([(n, n, "xy"[n % 2], n) for n in range(48)]))
    with table.begin_replace("2024-01-30") as replace:
        with pytest.raises(LockTimeout):
            table.rebuild(grain="month", wait_seconds=0.0)
        replace.write(rows_of([(100, 2, "x", 0)]))
    assert table.grain == "day"
    rewrite = table.begin_rewrite(table.spec, None, 0.0)
    table.delete("id = 30")
    rewrite.run()
    table.update({"b": "-1"}, "id = 31")
    table.append(rows_of([(101, 2, "x", 0)]))
    rewrite.commit()
    kept = [(n, n, "xy"[n % 2], -1 if n == 31 else n) for n in range(24, 48) if n != 30]
    assert seen(table.scan()) == sorted([*kept, (100, 2, "x", 0), (101, 2, "x", 0)])


def test_what_names_rows_by_a_column_keeps_it(lake):
    table = make(lake, cluster_by=["a"])
    table.append(rows_of([(n, n, "xy"[n % 2], n) for n in range(4)]))
    table.replace(None, "2024-01-30", keys={"a": "x"})
    table.set_cluster_by()
    with pytest.raises(InvalidSchema, match="is or was clustered by the column"):
        table.drop_column("a")
    assert seen(table.scan()) == [(1, 1, "y", 1), (3, 3, "y", 3)]
    before = table.version
    table.add_column("c", "STRING", default="k")
    table.set_cluster_by(["c"])
    table.replace(None, "2024-01-30T01", keys={"c": "k"})
    assert seen(table.scan()) == [(3, 3, "y", 3)]
    hidden = table.version
    table.restore(before)
    assert seen(table.scan()) == [(1, 1, "y", 1), (3, 3, "y", 3)]
    assert seen(table.scan(as_of=hidden)) == [(3, 3, "y", 3)]
    with pytest.raises(SchemaMismatch, match='schema="then"'):
        table.scan(as_of=hidden, schema="current").to_arrow()
    table.add_column("c", "STRING", default="other")
    with pytest.raises(SchemaMismatch, match='schema="then"'):
        table.scan(as_of=hidden, schema="current").to_arrow()


def test_a_cluster_column_is_renamed_beside_what_names_rows_by_it(lake, tmp_path):
    table = make(lake, cluster_by=["a"])
    table.append(rows_of([(n, 12 * n, "xy"[n % 2], n) for n in range(6)]))
    first = table.version
    replace = table.begin_replace("2024-01-30", keys={"a": "x"})
    replace.write(rows_of([(100, 2, "x", 0)]))
    delete = table.begin_delete("a = 'y' AND at >= '2024-01-31' AND at < '2024-02-01'")
    delete.run()
    other = lake.table("t")
    other.alter([RenameColumn("a", "c"), RenameColumn("b", "a")])
    assert (other.cluster_by, [one.keys for one in other.locks()]) == ({"c": 0}, [{"c": ("x",)}])
    assert [one.keys for one in lake.activity().locks] == [{"c": ("x",)}]
    with pytest.raises(LockTimeout, match="c"):
        other.begin_replace("2024-01-30", keys={"c": "x"}, wait_seconds=0.0)
    other.begin_replace("2024-01-30", keys={"c": "y"}, wait_seconds=0.0).abort()
    replace.commit()
    delete.commit()
    both = [(1, 12, "y", 1), (2, 24, "x", 2), (4, 48, "x", 4), (5, 60, "y", 5), (100, 2, "x", 0)]
    assert seen(other.scan()) == seen(other.scan(where="c IN ('x', 'y')")) == both
    assert {tuple(one.keys.items()) for one in other.tombstones()} == {(("c", ("x",)),), (("c", ("y",)),)}
    hidden = other.version
    other.replace(None, "2024-02-01", keys={"c": "x"})
    other.rename_column("c", "d")
    other.add_column("c", "STRING", default="x")
    other.drop_column("c")
    kept = [one for one in both if one[0] != 4]
    assert seen(other.scan()) == kept
    assert seen(other.scan(as_of=hidden)) == seen(other.scan(as_of=hidden, schema="current")) == both
    url = f"sqlite:///{tmp_path}/recovered.db"
    lake.tag("hidden", hidden)
    lake.export()
    lakehouse.recover(lake.warehouse, url)
    with lakehouse.connect(url, str(lake.warehouse)) as again:
        assert seen(again.table("t").scan()) == kept
        assert seen(again.table("t").scan(as_of="hidden", schema="current")) == both
    other.erase("d = 'x'")
    assert {tuple(one.keys.items()) for one in other.tombstones(as_of=hidden)} == {(("c", ("y",)),)}
    other.set_cluster_by()
    other.rename_column("d", "e")
    assert seen(other.scan()) == [one for one in kept if one[2] != "x"]
    assert seen(other.scan(as_of=hidden, schema="current")) == [one for one in both if one[2] != "x"]
    other.restore(first)
    assert (other.cluster_by, other.schema.names) == ({"a": 0}, ["at", "id", "a", "b"])
    other.replace(None, "2024-01-30", keys={"a": "y"})
    assert seen(other.scan()) == [(n, 12 * n, "y", n) for n in (3, 5)]
    assert not lake.check(deep=True).findings


def test_buckets_are_of_the_column_and_not_of_its_name(lake):
    table = make(lake)
    table.append(rows_of([(n, n, "x", n) for n in range(4)]))
    table.alter([RenameColumn("a", "c"), RenameColumn("b", "a"), RenameColumn("c", "b")])
    table.set_cluster_by({"a": 64, "b": 64})
    swapped = rows_of([(n, n, "y", n) for n in range(4, 8)]).rename_columns(["at", "id", "b", "a"])
    table.append(swapped)
    assert [table.scan(where=f"a = {n} AND b = '{'x' if n < 4 else 'y'}'").count() for n in range(8)] == [1] * 8
    assert len(table.scan(where="a = 5").plan().segments) == 1
    assert len(table.scan(where="b = 'z'").plan().segments) == 0
    table.replace(None, "2024-01-30", keys={"a": [5], "b": "y"})
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 6, 7]
    assert not lake.check(deep=True).findings


def test_a_name_that_another_column_has_now_hides_and_takes_no_rows(lake):
    table = make(lake, primary_key=["id"])
    first = table.append(rows_of([(1, 0, "x", 5), (2, 30, "y", 5)])).version
    upserted = table.upsert(rows_of([(1, 0, "z", 6)])).version
    table.resolve()
    table.set_primary_key()
    table.drop_column("id")
    table.add_column("id", "STRING", default="n")
    assert sorted(table.scan(as_of=upserted).to_arrow()["a"].to_pylist()) == ["y", "z"]
    with pytest.raises(SchemaMismatch, match="column=id"):
        table.scan(as_of=upserted, schema="current").to_arrow()
    with pytest.raises(SchemaMismatch, match="column=id"):
        table.changes(first).to_arrow()
    assert not lake.check(deep=True).findings


@pytest.mark.parametrize("kind", ["replace", "delete"])
def test_rows_go_by_the_column_that_was_meant_though_a_restore_exchanges_names(lake, kind):
    table = make(lake)
    rows = [(1, 0, "x", 5), (2, 2, "y", 1), (3, 30, "z", 1)]
    before = table.append(rows_of(rows)).version
    table.alter([RenameColumn("b", "old"), RenameColumn("id", "b")])
    table.set_cluster_by(["b"])
    if kind == "replace":
        op = table.begin_replace("2024-01-30", keys={"b": 1})
    else:
        op = table.begin_delete("b = 1")
        op.run()
    restored = lake.table("t").restore(before).version
    op.commit()
    assert seen(lake.table("t").scan()) == rows[1:]
    assert seen(lake.table("t").scan(as_of=restored)) == rows
    assert not lake.check(deep=True).findings


def test_layouts_change_in_sql(lake):
    table = make(lake, cluster_by=["a"])
    table.append(rows_of([(n, n, "xy"[n % 2], n) for n in range(4)]))
    for text, told in {
        "CLUSTER BY (B, a)": {"b": 0, "a": 0}, "CLUSTERED BY (a) INTO 16 BUCKETS": {"a": 16}, "CLUSTER BY NONE": {},
    }.items():  # fmt: skip
        lake.sql(f"ALTER TABLE t {text}")
        assert lake.table("t").cluster_by == told
    lake.sql("ALTER TABLE t PARTITIONED BY (months(AT))")
    lake.sql("ALTER TABLE t ADD PRIMARY KEY (id, `b`)")
    assert (lake.table("t").grain, lake.table("t").primary_key) == ("month", ("id", "b"))
    created = lake.sql("SHOW CREATE TABLE t").to_pylist()[0]
    assert "PRIMARY KEY (`id`, `b`)" in str(created)
    assert "months(`at`)" in str(created)
    lake.sql("ALTER TABLE t DROP PRIMARY KEY")
    assert lake.table("t").primary_key == ()
    before = lake.head
    for text in (
        "CLUSTER BY", "PARTITIONED BY (months(b))", "PARTITIONED BY (at)", "CLUSTERED BY (a)", "ADD PRIMARY KEY",
        "CLUSTERED BY (a) INTO many BUCKETS", "CLUSTER BY (a) NONE", "ADD PRIMARY KEY (nope)",
    ):  # fmt: skip
        with pytest.raises((lakehouse.errors.InvalidStatement, UnknownColumn)):
            lake.sql(f"ALTER TABLE t {text}")
    assert lake.head == before


def test_a_refused_change_leaves_nothing_by_which_later_plans_prune(lake):
    table, other = make(lake), lake.create_table("u", "k BIGINT, n BIGINT")
    table.append(rows_of([(1, 0, "x", 100), (2, 1, "y", 200)]))
    lake.sql("INSERT INTO u VALUES (1, 1)")
    swap = [RenameColumn("b", "c"), RenameColumn("id", "b"), RenameColumn("c", "id")]
    tx = lake.transaction()
    tx.table("t").alter(swap)
    tx.table("t").replace(None, ("2024-01-30T12", "2024-01-30T13"))
    tx.table("u").update({"n": "n + 1"}, "k = 1")
    other.update({"n": "5"}, "k = 1")
    with pytest.raises(WriteConflict):
        tx.commit()
    table.comment("the id", "id")
    assert [table.scan(where=one).count() for one in ("id = 1", "b = 200", "id = 100")] == [1, 1, 0]
    table.append(rows_of([(3, 0, "z", 300)]))
    assert [table.scan(where=one).count() for one in ("id = 1", "b = 300", "TRUE")] == [1, 1, 3]


def test_a_transaction_that_changes_the_layout_takes_appends_only(lake):
    table = make(lake, cluster_by=["a"], primary_key=["id"])
    table.append(rows_of([(1, 0, "x", 5), (2, 2, "y", 6)]))
    writes = {
        "replace": lambda one: one.replace(None, "2024-01-30", keys={"a": "x"}),
        "upsert": lambda one: one.upsert(rows_of([(2, 2, "z", 7)])),
        "delete_keys": lambda one: one.delete_keys(pa.table({"id": [1]})),
        "delete": lambda one: one.delete("id = 1"),
    }
    for change in (SetPrimaryKey(()), SetClusterBy(["b"]), SetGrain("month")):
        for write in writes.values():
            tx = lake.transaction()
            tx.table("t").alter([change])
            with pytest.raises(InvalidArgument, match="commit that first"):
                write(tx.table("t"))
            tx.abort()
    with lake.transaction() as tx:
        tx.table("t").alter([SetClusterBy(["b"]), SetGrain("month")])
        tx.table("t").append(rows_of([(3, 30, "z", 7)]))
    table = lake.table("t")
    assert (table.cluster_by, table.grain) == ({"b": 0}, "month")
    assert seen(table.scan()) == [(1, 0, "x", 5), (2, 2, "y", 6), (3, 30, "z", 7)]


def test_buckets_of_dates_leave_no_timestamp_out(lake):
    table = lake.create_table("t", "at TIMESTAMP, c DATE", time="at")
    row = pa.table({"at": pa.array([START], pa.timestamp("us", "UTC")), "c": [START.date()]})
    before = table.append(row).version
    table.widen_column("c", "TIMESTAMP")
    wide = table.set_cluster_by({"c": 4096}).version
    table.restore(before)
    between = table.set_cluster_by({"c": 4096}).version
    op = table.begin_append()
    op.write(row)
    table.restore(wide)
    op.commit()
    where = "c = TIMESTAMP '2024-01-30 00:00:00'"
    assert table.scan(where=where).count() == table.scan().count() == 2
    assert table.scan(as_of=between, schema="current", where=where).count() == 1
    table.replace(None, "2024-01", keys={"c": START})
    assert table.scan().count() == 0
    assert not lake.check(deep=True).findings


def test_key_frames_from_before_a_layout_are_sound(lake):
    table = make(lake, cluster_by={"b": 64})
    table.append(rows_of([(1, 0, "x", 1), (2, 0, "x", 9)]))
    table.set_cluster_by()
    while not table.key_frames():
        table.append(rows_of([(5, 1, "y", 6)]))
    table.set_cluster_by({"b": 64})
    assert not lake.check(deep=True).findings


def test_layouts_are_no_properties(lake):
    table = make(lake)
    for name in ("cluster_by", "primary_key", "grain"):
        with pytest.raises(InvalidProperty, match="this is no property"):
            table.set_properties({name: "id"})


def test_the_service_brings_rows_to_new_chunks_by_itself(lake):
    table = make(lake, properties={"small_files": "4"})
    for day in range(8):
        table.append(rows_of([(day, day * 24, "x", day)]))
    lake.maintain()
    table.set_grain("year")
    assert any(task.kind == "compact" for task in lake.maintain().tasks)
    assert len(table.segments()) == 1
    assert lake.maintain().tasks == []
    assert len(seen(table.scan())) == 8

"""Changes of columns beside everything else, on each catalog: nothing waits, nothing is lost, every version stays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import (
    InvalidArgument,
    InvalidInput,
    InvalidName,
    InvalidRows,
    InvalidSchema,
    SchemaMismatch,
    UnknownColumn,
    VersionNotFound,
    WriteConflict,
)
from lakehouse.schema.changes import AddColumn, DropColumn, RenameColumn, WidenColumn
from lakehouse.testing.faults import armed, on_count

DAY = datetime(2013, 1, 5, tzinfo=UTC)


def rows(ids, **columns):
    held = {"at": pa.array([DAY.replace(minute=one % 60) for one in ids], pa.timestamp("us", "UTC")), "id": ids}
    return pa.table({**held, **columns})


@pytest.fixture
def trips(lake):
    table = lake.create_table("trips", "at TIMESTAMP, id BIGINT, price INT", time="at", primary_key=["id"])
    table.append(rows([1, 2, 3], price=[10, 20, 30]))
    return table


@pytest.fixture
def elsewhere(lake):
    """The same lake as another process sees it."""
    with lakehouse.connect(lake.catalog.url, str(lake.warehouse)) as other:
        yield other


def seen(table, *columns, **scan):
    found = table.scan(**scan).to_arrow().sort_by("id").select(columns)
    return [tuple(row.values()) for row in found.to_pylist()]


def test_a_change_is_one_version_and_touches_no_file(lake, trips):
    files = sorted(lake.warehouse.rglob("*.parquet"))
    commit = trips.add_column("gate", "STRING", default="A1")
    assert (commit.operation, commit.version, commit.added, commit.tables) == ("alter", 3, 0, ("trips",))
    assert sorted(lake.warehouse.rglob("*.parquet")) == files
    assert [commit.message for commit in lake.log(1)] == ["add column gate string"]
    assert [(one.version, one.schema.names) for one in trips.schemas()] == [
        (1, ["at", "id", "price"]), (3, ["at", "id", "price", "gate"]),
    ]  # fmt: skip


def test_appends_by_objects_from_before_have_the_columns_of_now(trips, elsewhere):
    elsewhere.table("trips").rename_column("price", "cost")
    with trips.begin_append() as op:
        op.write(rows([4], cost=[40]))
    elsewhere.table("trips").rename_column("cost", "fare")
    trips.append(rows([5], fare=[50]))
    elsewhere.table("trips").rename_column("fare", "sum")
    trips.append(rows([6], sum=[60]), schema="ignore")
    with pytest.raises(InvalidRows, match="column=sum"):
        trips.append(rows([7], fare=[70]))
    assert seen(trips, "id", "sum") == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)]
    other = elsewhere.table("trips")
    other.add_column("gate", "INT", default=5)
    other.set_default("gate", 6)
    other.drop_column("sum")
    other.add_column("sum", "INT")
    trips.append(rows([8], sum=[80]))
    assert seen(trips, "id", "sum", "gate")[-2:] == [(6, None, 5), (8, 80, 6)]


@pytest.mark.parametrize("schema", ["ignore", "merge"])
def test_rows_without_columns_are_as_many_as_they_are(lake, schema):
    table = lake.create_table("t", "id BIGINT")
    for none in (pa.table({}), pa.Table.from_pylist([]), pa.RecordBatchReader.from_batches(pa.schema([]), [])):
        assert table.append(none, schema=schema).rows_added == 0
    assert table.append(pa.table({"id": [1, 2]}).select([]), schema=schema).rows_added == 2
    assert table.scan().to_arrow()["id"].to_pylist() == [None, None]


def test_an_append_that_began_before_a_change_commits_after_it(trips, elsewhere):
    op = trips.begin_append()
    op.write(rows([4], price=[40]))
    other = elsewhere.table("trips")
    other.add_column("gate", "STRING", default="A1")
    other.widen_column("price", "BIGINT")
    other.rename_column("price", "cost")
    op.commit()
    with pytest.raises(InvalidRows, match="column=cost"):
        trips.append(rows([5], price=[50]))  # this object hears of it
    trips.append(rows([5], cost=[50]))
    assert seen(other, "id", "cost", "gate")[2:] == [(3, 30, "A1"), (4, 40, "A1"), (5, 50, "A1")]


@pytest.mark.parametrize("kind", ["replace", "upsert", "delete", "update", "compaction", "delete_keys"])
def test_operations_that_began_before_a_change_commit_after_it(trips, elsewhere, kind):
    op = begun(trips, kind)
    other = elsewhere.table("trips")
    other.alter([AddColumn("gate", pa.string(), "A1"), RenameColumn("price", "cost"), WidenColumn("cost", pa.int64())])
    op.commit()
    expected = {
        "replace": [(9, 90)],
        "upsert": [(1, 11), (2, 20), (3, 30)],
        "delete": [(1, 10), (3, 30)],
        "update": [(1, 10), (2, 21), (3, 30)],
        "compaction": [(1, 10), (2, 20), (3, 30)],
        "delete_keys": [(1, 10), (2, 20)],
    }
    assert seen(other, "id", "cost") == expected[kind]
    assert set(other.scan().to_arrow()["gate"].to_pylist()) == {"A1"}


def begun(table, kind):
    match kind:
        case "replace":
            op = table.begin_replace("2013-01-05")
            op.write(rows([9], price=[90]))
        case "upsert":
            op = table.begin_upsert()
            op.write(rows([1], price=[11]))
        case "delete":
            op = table.begin_delete("price = 20")
            op.run()
        case "update":
            op = table.begin_update({"price": "price + 1"}, "id = 2")
            op.run()
        case "delete_keys":
            op = table.begin_delete_keys()
            op.write(pa.table({"id": [3]}))
        case "compaction":
            table.append(rows([], price=pa.array([], pa.int32())))
            op = table.begin_compaction(segments=[one.id for one in table.segments()], interval="2013-01-05")
            op.run()
    return op


def test_rows_found_by_a_key_that_was_renamed_meanwhile_are_looked_for_again(trips, elsewhere):
    op = trips.begin_delete("price = 20")
    op.run()
    elsewhere.table("trips").rename_column("id", "trip")
    with pytest.raises(WriteConflict, match="renamed or widened"):
        op.commit()
    trips.delete("price = 20")
    assert trips.scan().to_arrow()["trip"].to_pylist() == [1, 3]


def test_an_object_that_has_not_heard_of_a_change_reads_and_writes_the_new_columns(trips, elsewhere):
    elsewhere.table("trips").rename_column("price", "cost")
    assert trips.scan(columns=["cost"], where="cost > 15").count() == 2
    assert trips.schema.names == ["at", "id", "cost"]
    elsewhere.table("trips").rename_column("cost", "fare")
    trips.update({"fare": "fare + 1"}, "fare = 10")
    elsewhere.table("trips").rename_column("fare", "price")
    trips.merge(rows([3, 4], price=[31, 41]), on=["id"], when_matched_update=True)
    assert seen(trips, "id", "price") == [(1, 11), (2, 20), (3, 31), (4, 41)]


def test_two_changes_at_once_both_hold_unless_they_are_about_one_column(trips, elsewhere):
    first = trips.begin_alter([AddColumn("gate", pa.string())])
    second = elsewhere.table("trips").begin_alter([RenameColumn("price", "cost")])
    third = elsewhere.table("trips").begin_alter([DropColumn("price")])
    for op in (second, first):
        op.commit()
    with pytest.raises(UnknownColumn, match="price"):
        third.commit()
    third.abort()
    assert elsewhere.table("trips").schema.names == ["at", "id", "cost", "gate"]
    assert not trips.session.catalog.activity().operations


def test_a_version_reads_with_its_own_columns_or_with_those_of_now(trips):
    before = trips.version
    trips.drop_column("price")
    trips.add_column("price", "DOUBLE", default=0.5)
    assert seen(trips, "id", "price", as_of=before) == [(1, 10), (2, 20), (3, 30)]
    assert seen(trips, "id", "price", as_of=before, schema="current") == [(1, 0.5), (2, 0.5), (3, 0.5)]
    assert seen(trips, "id", "price") == [(1, 0.5), (2, 0.5), (3, 0.5)]
    with pytest.raises(UnknownColumn, match="gate"):
        trips.scan(as_of=before, columns=["gate"])
    with pytest.raises(InvalidInput, match="then"):
        trips.scan(schema="newest")


def test_restore_brings_the_columns_back_and_refuses_rows_that_no_longer_fit(trips, elsewhere):
    before = trips.version
    trips.widen_column("price", "BIGINT")
    trips.append(rows([4], price=[1 << 40]))
    op = elsewhere.table("trips").begin_append()
    op.write(rows([5], price=[1 << 41]))
    trips.restore(before)
    assert trips.schema.field("price").type == pa.int32()
    assert seen(trips, "id", "price") == [(1, 10), (2, 20), (3, 30)]
    with pytest.raises(SchemaMismatch, match="price"):
        op.commit()
    op.abort()
    trips.append(rows([6], price=[60]))
    assert trips.scan().count() == 4


def test_changes_and_rows_of_one_transaction_are_one_version(lake, trips):
    with lake.transaction() as tx:
        table = tx.table("trips")
        table.alter([AddColumn("gate", pa.string(), "A1")])
        table.append(rows([4], price=[40], gate=["B2"]))
    assert tx.version == 3
    assert seen(trips, "id", "gate") == [(1, "A1"), (2, "A1"), (3, "A1"), (4, "B2")]


def test_a_transaction_that_makes_columns_gives_way_to_another_change(lake, trips, elsewhere):
    tx = lake.transaction()
    table = tx.table("trips")
    table.alter([AddColumn("gate", pa.string(), "A1")])
    table.append(rows([4], price=[40], gate=["B2"]))
    elsewhere.table("trips").add_column("note", "STRING")
    with pytest.raises(WriteConflict, match="altered the table first"):
        tx.commit()
    assert elsewhere.table("trips").schema.names == ["at", "id", "price", "note"]
    assert trips.scan().count() == 3


def test_rows_with_other_columns_are_refused_fitted_or_make_columns(trips):
    with pytest.raises(InvalidRows, match="gate"):
        trips.append(rows([4], price=[40], gate=["B2"]))
    trips.append(rows([4], gate=["B2"]), schema="ignore")
    version = trips.append(rows([5], price=[1 << 40], gate=["B2"]), schema="merge").version
    assert (trips.schema.names, version) == (["at", "id", "price", "gate"], 4)
    assert seen(trips, "id", "price", "gate")[2:] == [(3, 30, None), (4, None, None), (5, 1 << 40, "B2")]
    assert trips.append(rows([6], price=[60], gate=["C3"]).to_pandas(), schema="merge").operation == "append"
    with pytest.raises(InvalidRows, match="wrong type"):
        trips.append(rows([7], price=["7"], gate=["C3"]), schema="merge")
    with pytest.raises(InvalidInput, match="strict, merge or ignore"):
        trips.append(rows([7], price=[7], gate=["C3"]), schema="loose")
    with pytest.raises(InvalidName, match="case does not count"):
        trips.append(rows([7], Price=[7]), schema="merge")
    given = rows([7], price=[7])
    with pytest.raises(InvalidRows, match="twice"):
        trips.append(given.append_column("id", given["id"]), schema="merge")


def test_a_difference_of_versions_says_what_became_of_columns(lake, trips):
    """By who a column is: a dropped name that is used again is another column, and a restore brings back the first."""
    before = trips.version
    lake.tag("before")
    trips.add_column("place", "STRUCT<zone: INT>", after="at")
    trips.widen_column(("place", "zone"), "BIGINT")
    trips.drop_column("price")
    again = trips.add_column("price", "INT").version
    found = trips.diff("before", again)
    assert [str(one) for one in found.columns] == [
        "column price dropped: int32", "column place added: struct<zone: int64>", "column price added: int32",
    ]  # fmt: skip
    assert found.columns == tuple(trips.column_changes(before, again))
    assert "column price dropped" in repr(found)
    assert [str(one) for one in trips.column_changes(again, before)] == [
        "column place dropped: struct<zone: int64>", "column price dropped: int32", "column price added: int32",
    ]  # fmt: skip
    trips.restore("before")
    assert trips.diff("before", trips.version).columns == ()
    assert [one.changes for one in trips.schemas()][1:3] == [
        ("column place added: struct<zone: int32>",), ("column place.zone widened: int32 to int64",),
    ]  # fmt: skip
    assert trips.append(rows([9], price=[9])).version == trips.version
    assert trips.diff(trips.version - 1, trips.version).columns == ()


FIT = {"strict": 0, "ignore": 1, "merge": 2}
COLUMNS = {"at": "time", "id": 64, "price": 32, "tax": 32}
"""The columns of the table below with their bits; tax has a default for new rows."""


def fitted(given, fit):
    """What becomes of rows of integers, in plain Python: the table's columns after them, and the rows; None: refused.

    ``given`` are lists of values by column, and their bits.
    """
    columns = dict(COLUMNS)
    for name, (bits, values) in given.items():
        if name not in columns and fit == "strict":
            return None
        if fit == "merge" and name != "at":
            columns[name] = max(columns.get(name, 0), bits)
        if name in columns and any(abs(value) >> (columns[name] - 1) for value in values):
            return None
    if fit == "strict" and "price" not in given:
        return None
    missing = {"tax": 7}
    count = len(given["id"][1])
    return columns, [
        {name: given[name][1][n] if name in given else missing.get(name) for name in columns if name != "at"}
        for n in range(count)
    ]


ROWS_OF_OTHER_COLUMNS = [
    {"id": (64, [2, 9]), "price": (32, [5, 6])},
    {"id": (64, [2, 9])},
    {"id": (64, [2, 9]), "price": (64, [5, 6])},
    {"id": (64, [2, 9]), "price": (64, [5, 1 << 40])},
    {"id": (32, [2, 9]), "price": (32, [5, 6]), "gate": (32, [1, 2])},
    {"id": (64, [2, 9]), "gate": (64, [1, 2]), "tax": (32, [8, 9])},
]


@pytest.mark.parametrize("fit", FIT)
@pytest.mark.parametrize("kind", ["append", "replace", "upsert"])
def test_rows_of_other_columns_become_what_a_list_says_by_every_write(lake, kind, fit):
    for number, given in enumerate(ROWS_OF_OTHER_COLUMNS):
        table = lake.create_table(f"t{number}", "at TIMESTAMP, id BIGINT, price INT", time="at", primary_key=["id"])
        table.add_column("tax", "INT", default_for_new=7)
        table.append(rows([1, 2], price=[10, 20], tax=pa.array([0, 0], pa.int32())))
        kinds = {32: pa.int32(), 64: pa.int64()}
        frame = rows(given["id"][1], **{name: pa.array(held, kinds[bits]) for name, (bits, held) in given.items()})
        interval = {"interval": ("2013-01-05T00:02", "2013-01-06")} if kind == "replace" else {}
        expected, before = fitted(given, fit), len(lake.log())
        if expected is None:
            with pytest.raises(InvalidRows):
                getattr(table, kind)(frame, schema=fit, **interval)
            assert (len(lake.log()), table.refresh(), table.scan().count()) == (before, False, 2), given
            continue
        commit = getattr(table, kind)(frame, schema=fit, **interval)
        assert (commit.version, len(lake.log())) == (lake.head, before + 1), given
        columns, added = expected
        assert table.schema.names == list(columns), given
        assert {name: table.schema.field(name).type for name in columns if name != "at"} == {
            name: kinds[bits] for name, bits in columns.items() if name != "at"
        }, given  # fmt: skip
        gone = () if kind == "append" else (2,)
        kept = [{"id": one, "price": 10 * one, "tax": 0} for one in (1, 2) if one not in gone]
        whole = [{name: row.get(name) for name in columns if name != "at"} for row in kept] + added
        found = table.scan(columns=[name for name in columns if name != "at"]).to_arrow().to_pylist()
        assert sorted(found, key=str) == sorted(whole, key=str), given


def test_a_merge_of_columns_repeats_where_others_make_the_same_ones_meanwhile(trips, elsewhere):
    """The other one has committed when this one has written its rows: it writes them again, for the columns of now."""
    other = elsewhere.table("trips")
    add = on_count(1, lambda: other.append(rows([8], price=[80], gate=["Z"]), schema="merge"))
    with armed({"write.after": add}):
        trips.replace(rows([2, 9], price=[5, 6], gate=["A", "B"]), ("2013-01-05T00:02", "2013-01-05T00:10"),
                      schema="merge")  # fmt: skip
    assert trips.schema.names == ["at", "id", "price", "gate"]
    assert seen(trips, "id", "gate") == [(1, None), (2, "A"), (9, "B")]
    once = on_count(1, lambda: other.add_column("note", "STRING"))
    stream = rows([7], price=[7], note=["n"]).to_reader()
    with armed({"write.after": once}), pytest.raises(InvalidName):
        trips.append(stream, schema="merge")  # a stream is read once
    assert seen(trips, "id") == [(1,), (2,), (9,)]


def test_threads_that_share_a_table_make_columns_at_once_and_each_row_has_its_own(trips):
    def write(name):
        for number in range(3):
            trips.append(rows([100 + number], **{f"{name}{number}": [number], "shared": [number]}), schema="merge")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, "xyz"))
    found = trips.scan(where="id >= 100").to_arrow().to_pylist()
    expected = [(f"{name}{number}", number) for name in "xyz" for number in range(3)]
    own = [(name, value) for row in found for name, value in row.items() if name[0] in "xyz" and value is not None]
    assert sorted(own) == expected
    assert all(row["shared"] == row["id"] - 100 for row in found)


def test_a_repeated_write_makes_no_column_again(lake, trips):
    given, mark = rows([4], price=[40], gate=["B2"]), ("job", 1)
    first = trips.upsert(given, schema="merge", txn=mark).version
    trips.drop_column("gate")
    assert trips.upsert(given, schema="merge", txn=mark).version == first
    with lake.transaction() as tx:
        tx.table("trips").upsert(given, schema="merge", txn=mark)
    assert trips.schema.names == ["at", "id", "price"]
    assert [one.operation for one in lake.log(2)] == ["alter", "transaction"]


def test_a_transaction_makes_the_columns_of_its_rows(lake, trips):
    with lake.transaction() as tx:
        table = tx.table("trips")
        table.replace(rows([4], price=[1 << 40], gate=["B2"]), "2013-01-05", schema="merge")
        table.append(rows([5], gate=["B3"]), schema="ignore")
    assert seen(trips, "id", "price", "gate") == [(4, 1 << 40, "B2"), (5, None, "B3")]
    assert tx.version == lake.head
    assert len(lake.log()) == 3


def test_the_newest_row_may_be_told_by_a_column_that_the_rows_bring(trips):
    given = rows([3, 3], price=[1, 2], stamp=[5, 4])
    with pytest.raises(UnknownColumn, match="stamp"):
        trips.upsert(given, newest="stamp")
    trips.upsert(given, newest="stamp", schema="merge")
    assert seen(trips, "id", "price", "stamp")[2:] == [(3, 1, 5)]
    with pytest.raises(InvalidRows, match=r"missing column.*stamp"):
        trips.upsert(rows([3], price=[1]), newest="stamp", schema="ignore")


def test_rows_are_erased_from_versions_that_have_other_columns(lake, trips):
    before = trips.version
    trips.drop_column("price")
    trips.add_column("gate", "STRING", default="A1")
    trips.append(rows([4], gate=["B2"]))
    erased = trips.erase("gate = 'A1' AND id = 2")
    assert (erased.rows_deleted, erased.segments_rewritten) == (1, 1)
    assert seen(trips, "id", "price", as_of=before) == [(1, 10), (3, 30)]
    assert seen(trips, "id", "gate") == [(1, "A1"), (3, "A1"), (4, "B2")]
    assert not lake.check(deep=True).findings


BAD = {
    "a narrower type": (lambda t: t.widen_column("price", "SMALLINT"), InvalidSchema, "does not hold"),
    "another kind of type": (lambda t: t.widen_column("price", "STRING"), InvalidSchema, "does not hold"),
    "the time dropped": (lambda t: t.drop_column("at"), InvalidSchema, "the time"),
    "the time widened": (lambda t: t.make_nullable("at"), InvalidSchema, "no nulls"),
    "a key dropped": (lambda t: t.drop_column("id"), InvalidSchema, "primary key"),
    "a key as a decimal": (lambda t: t.widen_column("id", "DECIMAL(20)"), InvalidSchema, "longer integer"),
    "a name that differs by case": (lambda t: t.add_column("PRICE", "INT"), InvalidName, "case"),
    "a new name that is taken": (lambda t: t.rename_column("price", "ID"), InvalidName, "case"),
    "a reserved name": (lambda t: t.add_column("_row_id", "INT"), InvalidName, "_row_id"),
    "no such column": (lambda t: t.drop_column("gate"), UnknownColumn, "gate"),
    "no such place": (lambda t: t.move_column("price", after="gate"), UnknownColumn, "gate"),
    "two places": (lambda t: t.move_column("price", after="id", first=True), InvalidSchema, "not both"),
    "a default of another type": (lambda t: t.add_column("gate", "INT", default="x"), InvalidRows, "gate"),
    "a default for new rows": (lambda t: t.add_column("g", "INT", default_for_new=1 << 40), InvalidRows, "g"),
    "a default of a nested column": (lambda t: t.add_column("g", "ARRAY<INT>", default=[1]), InvalidSchema, "nested"),
    "not a type": (lambda t: t.add_column("gate", "GATE"), InvalidSchema, "no such type"),
    "a type that takes no nulls": (lambda t: t.add_column("gate", "INT NOT NULL"), InvalidSchema, "null"),
    "a path into a number": (lambda t: t.add_column(("price", "x"), "INT"), InvalidSchema, "structs"),
    "an empty path": (lambda t: t.drop_column(()), InvalidName, "a column is text"),
    "no name": (lambda t: t.alter([DropColumn(None)]), InvalidName, "a column is text"),
    "no changes": (lambda t: t.alter([]), InvalidSchema, "at least one"),
    "not a list of changes": (lambda t: t.alter(None), InvalidSchema, "a list"),
    "not a change": (lambda t: t.alter(["drop price"]), InvalidSchema, "not a change"),
    "a comment that is no text": (lambda t: t.comment(5, "price"), InvalidArgument, "must be text"),
    "a new column's comment": (lambda t: t.add_column("g", "INT", comment=5), InvalidArgument, "must be text"),
    "half a character": (lambda t: t.comment("\ud800", "price"), InvalidArgument, "surrogates"),
    "a struct without fields": (lambda t: t.alter([AddColumn("g", pa.struct([]))]), InvalidSchema, "distinct names"),
    "a type that tables lack": (lambda t: t.alter([AddColumn("g", pa.uint64())]), InvalidSchema, r"DECIMAL\(20, 0\)"),
    "one field twice": (
        lambda t: t.alter([AddColumn("g", pa.struct([("a", pa.int8()), ("A", pa.int8())]))]),
        InvalidSchema,
        "distinct names",
    ),
}


def test_what_cannot_be_is_refused_and_nothing_changes(lake, trips):
    before = lake.head
    for change, error, said in BAD.values():
        with pytest.raises(error, match=said):
            change(trips)
        assert (lake.head, trips.schema.names, len(trips.schemas())) == (before, ["at", "id", "price"], 1)
    assert not lake.operations()


def test_columns_that_plans_locks_and_indexes_use_stay(lake):
    table = lake.create_table(
        "t", "at TIMESTAMP, client BIGINT, line INT", time="at", cluster_by={"client": 4}, properties={"index": "line"}
    )
    for name, used in (("client", "clustered by"), ("line", "index")):
        with pytest.raises(InvalidSchema, match=used):
            table.drop_column(name)
        with pytest.raises(InvalidSchema, match=used):
            table.widen_column(name, "DECIMAL(30)")
    with pytest.raises(InvalidSchema, match="index"):
        table.rename_column("line", "x")
    table.rename_column("client", "customer")
    assert (table.cluster_by, table.schema.names) == ({"customer": 4}, ["at", "customer", "line"])


def test_parts_of_columns_change_and_old_rows_follow(lake):
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT, s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<p: INT>>",
                              time="at")  # fmt: skip
    made = {"at": DAY, "id": 1, "s": {"a": 1, "b": "x"}, "l": [{"p": 1}, None]}
    bare = pa.schema([(field.name, field.type) for field in table.schema])
    table.append(pa.Table.from_pylist([made, {"at": DAY, "id": 2, "s": None, "l": []}], schema=bare))
    before = table.version
    table.rename_column(("s", "a"), "first")
    table.drop_column(("s", "b"))
    table.add_column(("s", "b"), "DATE", default=date(2013, 1, 5))
    table.widen_column(("l", "element", "p"), "BIGINT")
    assert seen(table, "s", "l") == [
        ({"first": 1, "b": date(2013, 1, 5)}, [{"p": 1}, None]), (None, []),
    ]  # fmt: skip
    assert seen(table, "s", as_of=before) == [({"a": 1, "b": "x"},), (None,)]
    table.compact()
    assert seen(table, "s") == [({"first": 1, "b": date(2013, 1, 5)},), (None,)]
    for bad in (("s", "nope"), ("s", "first", "x"), ("l", "p")):
        with pytest.raises(InvalidInput):
            table.drop_column(bad)


def test_columns_with_the_names_of_an_engine_s_own_are_read_beside_deleted_rows(lake):
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT, file_index INT", time="at")
    table.append(rows([1, 2, 3], file_index=[7, 8, 9]))
    table.delete("id = 2")
    table.add_column("gate", "INT", default=5)
    assert seen(table, "gate", "file_index") == [(5, 7), (5, 9)]
    assert table.scan(columns=["gate"]).to_arrow()["gate"].to_pylist() == [5, 5]
    table.rename_column("file_index", "other")
    assert seen(table, "other") == [(7,), (9,)]


def test_a_map_keeps_the_fields_of_its_keys(lake):
    table = lake.create_table("t", "at TIMESTAMP, m MAP<STRUCT<x: INT, y: INT>, STRUCT<x: INT, y: INT>>", time="at")
    with pytest.raises(InvalidSchema, match="keys"):
        table.drop_column(("m", "key", "y"))
    table.drop_column(("m", "value", "y"))


def test_a_source_for_a_name_that_is_gone_is_not_merged(trips, elsewhere):
    elsewhere.table("trips").rename_column("price", "cost")
    with pytest.raises(SchemaMismatch, match="name=cost"):
        trips.merge(rows([9], price=[90]), on=["id"])
    trips.merge(rows([9], cost=[90]), on=["id"])
    assert seen(trips, "cost")[-1] == (90,)


def test_maintenance_goes_by_the_properties_of_now(trips, elsewhere):
    elsewhere.table("trips").set_properties({"target_rows": 2})
    with trips.begin_compaction() as op:
        op.run()
    assert trips.properties == {"target_rows": "2"}


def test_restore_brings_the_defaults_and_comments_of_then_back(trips):
    trips.add_column("seats", "INT", default=5, comment="free ones")
    then = trips.append(rows([4], price=[40])).version
    trips.set_default("seats", None)
    trips.comment(None, "seats")
    trips.widen_column("seats", "DECIMAL(12, 1)")
    trips.restore(then)
    trips.append(rows([5], price=[50]))
    assert seen(trips, "id", "seats")[2:] == [(3, 5), (4, 5), (5, 5)]
    assert trips.spec.history(trips.schema.field("seats")).comment == "free ones"


def test_comments_and_defaults_are_part_of_the_definition(trips):
    trips.comment("what a trip costs", "price")
    trips.set_default("price", 7)
    trips.append(rows([4]))
    assert seen(trips, "id", "price")[3:] == [(4, 7)]
    assert trips.spec.history(trips.schema.field("price")).comment == "what a trip costs"
    assert trips.comment("all trips").operation == "alter"
    assert trips.properties == {"comment": "all trips"}


def test_versions_with_a_wider_column_than_now_are_read_as_they_were(lake, trips):
    before = trips.version
    trips.widen_column("price", "DECIMAL(12, 2)")
    wide = trips.append(rows([4], price=pa.array(["3.55"]).cast(pa.decimal128(12, 2)))).version
    back = trips.restore(before).version
    assert trips.scan(as_of=wide).count() == 4
    with pytest.raises(SchemaMismatch, match="price"):
        trips.scan(as_of=wide, schema="current").to_arrow()
    assert trips.scan(as_of=wide, schema="current", columns=["id"]).to_arrow().num_rows == 4
    with pytest.raises(SchemaMismatch, match="price"):
        trips.changes(wide, back).to_arrow()
    assert trips.diff(wide, back).dropped
    assert trips.erase("id = 4").rows_deleted == 1
    assert seen(trips, "id", as_of=wide) == [(1,), (2,), (3,)]
    trips.restore(wide)
    assert trips.schema.field("price").type == pa.decimal128(12, 2)
    assert not lake.check(deep=True).findings


def test_an_expiry_keeps_the_version_that_changed_columns_last(lake, trips):
    before = trips.version
    altered = trips.add_column("gate", "STRING", default="A1").version
    lake.create_table("other", "id BIGINT")
    lake.expire(keep_last=1)
    assert trips.version == altered
    assert seen(trips, "id", "gate", as_of=altered) == [(1, "A1"), (2, "A1"), (3, "A1")]
    with pytest.raises(VersionNotFound):
        trips.scan(as_of=before)
    trips.restore(trips.version)
    assert seen(trips, "id", "gate") == [(1, "A1"), (2, "A1"), (3, "A1")]
    assert not lake.check(deep=True).findings

"""Changes applied in order: any split, order and repetition of them gives the same table as sorting all of them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.streaming import apply_changes
from lakehouse.testing.faults import armed

FEED = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.int64()), ("op", pa.string())])


@pytest.fixture
def lake(sqlite_url: str, warehouse: Any) -> Any:
    with lakehouse.connect(sqlite_url, warehouse) as opened:
        yield opened


def feed(rows: list[tuple[int, str | None, int, str]]) -> pa.Table:
    return pa.table(
        [pa.array(list(one), field.type) for one, field in zip(zip(*rows, strict=True), FEED, strict=True)], schema=FEED
    )


def changes(chance: random.Random, count: int) -> list[tuple[int, str | None, int, str]]:
    """Distinct key and sequence: ties have a test of their own."""
    places = chance.sample([(key, n) for key in range(6) for n in range(30)], count)
    return [
        (key, None if (op := chance.choice("UUD")) == "D" else chance.choice(["a", "ü'", None]), n, op)
        for key, n in places
    ]


def newest(rows: list[tuple[int, str | None, int, str]]) -> dict[int, str | None]:
    found: dict[int, str | None] = {}
    for key, name, _, op in sorted(rows, key=lambda one: one[2]):
        if op == "D":
            found.pop(key, None)
        else:
            found[key] = name
    return found


def histories(rows: list[tuple[int, str | None, int, str]]) -> set[tuple[Any, ...]]:
    found = set()
    for key in {one[0] for one in rows}:
        mine = sorted((one for one in rows if one[0] == key), key=lambda one: one[2])
        ends = [one[2] for one in mine[1:]] + [None]
        found |= {(key, one[1], one[2], end) for one, end in zip(mine, ends, strict=True) if one[3] != "D"}
    return found


def batches(chance: random.Random, rows: list[Any]) -> list[list[Any]]:
    mixed = [*rows, *chance.sample(rows, len(rows) // 4)]
    chance.shuffle(mixed)
    cuts = sorted(chance.sample(range(1, len(mixed)), min(5, len(mixed) - 1)))
    return [mixed[a:b] for a, b in zip([0, *cuts], [*cuts, len(mixed)], strict=True)]


@pytest.mark.parametrize("seed", range(6))
def test_the_newest_state_of_each_key(lake: Any, seed: int) -> None:
    chance = random.Random(seed)
    table = lake.create_table("people", "id BIGINT NOT NULL, name STRING", primary_key=["id"])
    rows = changes(chance, 40)
    for batch in batches(chance, rows):
        apply_changes(table, feed(batch), sequence_by="n", deletes="op = 'D'")
        if chance.random() < 0.5:
            table.compact()
    assert {one["id"]: one["name"] for one in table.scan().to_arrow().to_pylist()} == newest(rows)
    assert table.count() == len(newest(rows))


@pytest.mark.parametrize("seed", range(6))
def test_every_state_of_each_key(lake: Any, seed: int) -> None:
    chance = random.Random(seed)
    table = lake.create_table(
        "people", "id BIGINT NOT NULL, name STRING, __START_AT BIGINT NOT NULL, __END_AT BIGINT",
        primary_key=["id", "__START_AT"],
    )  # fmt: skip
    rows = changes(chance, 40)
    for batch in batches(chance, rows):
        apply_changes(table, feed(batch), sequence_by="n", deletes="op = 'D'", scd=2)
    found = table.scan().to_arrow().to_pylist()
    assert {(one["id"], one["name"], one["__START_AT"], one["__END_AT"]) for one in found} == histories(rows)
    assert len(found) == len(histories(rows))


def test_ties_are_decided_the_same_way_however_they_arrive(lake: Any) -> None:
    rows = [(1, "a", 5, "U"), (1, "b", 5, "U"), (2, "a", 5, "U"), (2, None, 5, "D")]
    seen = []
    for place, order in enumerate(([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2])):
        table = lake.create_table(f"t{place}", "id BIGINT NOT NULL, name STRING", primary_key=["id"])
        for one in order:
            apply_changes(table, feed([rows[one]]), sequence_by="n", deletes="op = 'D'")
        seen.append(table.scan().to_arrow().to_pylist())
    assert seen[0] == seen[1] == seen[2]
    assert [one["id"] for one in seen[0]] == [1]


def test_two_writers_of_one_key_leave_the_newer(lake: Any, sqlite_url: str, warehouse: Any) -> None:
    table = lake.create_table("people", "id BIGINT NOT NULL, name STRING", primary_key=["id"])
    apply_changes(table, feed([(9, "x", 1, "U")]), sequence_by="n", deletes="op = 'D'")
    with lakehouse.connect(sqlite_url, warehouse) as other:
        raced: list[int] = []

        def race() -> None:
            if not raced:
                raced.append(1)
                there = other.table("people")
                apply_changes(there, feed([(1, None, 7, "D")]), sequence_by="n", deletes="op = 'D'")

        with armed({"commit.before": race}):
            apply_changes(table, feed([(1, "late", 5, "U")]), sequence_by="n", deletes="op = 'D'")
    assert raced
    assert [one["id"] for one in table.scan().to_arrow().to_pylist()] == [9]


def test_a_repeated_mark_changes_nothing(lake: Any) -> None:
    table = lake.create_table("people", "id BIGINT NOT NULL, name STRING", primary_key=["id"])
    first = apply_changes(table, feed([(1, "a", 1, "U")]), sequence_by="n", deletes="op = 'D'", txn=("feed", 1))
    again = apply_changes(table, feed([(1, "b", 9, "U")]), sequence_by="n", deletes="op = 'D'", txn=("feed", 1))
    assert first.version == again.version
    assert table.scan().to_arrow()["name"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("rows", "given"),
    [
        ([(1, "a", None, "U")], {}), ([(None, "a", 1, "U")], {}), ([(1, "a", 1, "U")], {"keys": "name"}),
        ([(1, "a", 1, "U")], {"scd": 3}), ([(1, "a", 1, "U")], {"sequence_by": "m"}),
        ([(1, "a", 1, "U")], {"deletes": None}),
    ],
)  # fmt: skip
def test_what_cannot_be_applied_is_refused(lake: Any, rows: Any, given: Any) -> None:
    table = lake.create_table("people", "id BIGINT NOT NULL, name STRING", primary_key=["id"])
    head = table.version
    with pytest.raises(InvalidInput):
        apply_changes(table, feed(rows), **{"sequence_by": "n", "deletes": "op = 'D'", **given})
    assert table.version == head


PEOPLE = "id BIGINT NOT NULL, name STRING"
CHANGE = {"sequence_by": "n", "deletes": "op = 'D'"}


def own(lake: Any) -> list[str]:
    """The tables that the lake made for itself."""
    return sorted(set(lake.catalog.table_names()) - set(lake.tables()))


def test_columns_that_the_table_lacks_are_refused_made_or_left_out(lake: Any) -> None:
    table = lake.create_table("people", PEOPLE, primary_key=["id"])
    more = feed([(1, "a", 1, "U"), (2, "b", 1, "U")]).append_column("age", [[7, 8]])
    with pytest.raises(InvalidInput, match="age"):
        apply_changes(table, more, **CHANGE)
    apply_changes(table, more, schema="ignore", **CHANGE)
    assert table.schema.names == ["id", "name"]
    later = feed([(1, "c", 2, "U"), (2, None, 2, "D")]).append_column("age", [[9, None]])
    apply_changes(table, later, schema="merge", **CHANGE)
    apply_changes(table, more, schema="merge", **CHANGE)  # late
    apply_changes(table, feed([(3, "d", 1, "U")]).drop(["name"]), schema="merge", **CHANGE)
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "name": "c", "age": 9}, {"id": 3, "name": None, "age": None},
    ]  # fmt: skip


def test_what_remembers_changes_is_no_table_of_the_users_and_goes_with_theirs(lake: Any) -> None:
    table = lake.create_table("people", PEOPLE, primary_key=["id"])
    apply_changes(table, feed([(1, None, 7, "D")]), **CHANGE)
    (memory,) = own(lake)
    assert lake.tables() == ["people"]
    assert [one.name for one in lake.catalog.overview()] == ["people"]
    assert lake.sql("SHOW TABLES")["table"].to_pylist() == ["people"]
    lake.rename_table("people", "persons")
    apply_changes(lake.table("persons"), feed([(1, "late", 5, "U")]), **CHANGE)
    assert (lake.table("persons").count(), own(lake)) == (0, [memory])
    lake.drop_table("persons")
    assert lake.catalog.table_names() == []
    apply_changes(lake.create_table("persons", PEOPLE, primary_key=["id"]), feed([(1, "new", 5, "U")]), **CHANGE)
    assert lake.table("persons").count() == 1
    assert own(lake) != [memory]
    assert list(lake.check(deep=True).findings) == []


def remembered(lake: Any, warehouse: Any, column: str = "id") -> list[Any]:
    """A column of all files that remember changes, of any version, once the dead ones are collected."""
    (name,) = own(lake)
    for table in [*lake.tables(), name]:
        lake.table(table).resolve()
    lake.collect(grace_seconds=0)
    folder = warehouse / lake.table(name).spec.folder
    return [one for file in folder.rglob("*.parquet") for one in pq.read_table(file).column(column).to_pylist()]


@pytest.mark.parametrize("scd", [1, 2])
def test_an_erasure_leaves_nothing_of_a_key_where_its_changes_are_remembered(
    lake: Any, warehouse: Any, scd: int
) -> None:
    more = ", __START_AT BIGINT NOT NULL, __END_AT BIGINT" if scd == 2 else ""
    table = lake.create_table("people", PEOPLE + more, primary_key=["id", "__START_AT"] if scd == 2 else ["id"])
    for batch in (
        [(1, "gone", 1, "U"), (2, "kept", 1, "U"), (3, "kept", 1, "U"), (4, "gone", 1, "U")],
        [(1, None, 2, "D"), (2, None, 2, "D"), (4, "gone", 2, "U"), (5, None, 2, "D")],
    ):
        apply_changes(table, feed(batch), scd=scd, **CHANGE)
    erased = table.erase("name = 'gone'")
    assert any("applied changes" in one.where for one in erased.residue)
    left = remembered(lake, warehouse)
    assert set(left).isdisjoint({1, 4})
    assert 2 in left
    apply_changes(table, feed([(2, "late", 1, "U"), (5, "late", 1, "U")]), scd=scd, **CHANGE)
    known = {(one["id"], one["name"]) for one in table.scan().to_arrow().to_pylist()}
    assert known == ({(3, "kept")} if scd == 1 else {(2, "kept"), (3, "kept"), (5, "late")})
    table.erase("id = 5")  # of which version 1 of the table has no row, and no other either
    assert set(remembered(lake, warehouse)).isdisjoint({1, 4, 5})


def test_an_erasure_of_some_rows_of_a_key_lets_the_key_be_remembered(lake: Any, warehouse: Any) -> None:
    table = lake.create_table("people", PEOPLE, primary_key=["id"])
    apply_changes(table, feed([(1, "once", 1, "U")]), **CHANGE)
    apply_changes(table, feed([(1, "now", 5, "U")]), **CHANGE)
    table.erase("name = 'once'")
    assert remembered(lake, warehouse, "lake_sequence") == [5]  # nor a digest of what it was
    apply_changes(table, feed([(1, "late", 3, "U")]), **CHANGE)
    assert table.scan().to_arrow()["name"].to_pylist() == ["now"]


ODD = ["O'Brien", "a\\b", "US$", "${x}", "two\nlines", "nul\x00", "\\'", "''", "\\", "--", "é\u2028"]


def test_keys_are_any_text(lake: Any, warehouse: Any) -> None:
    table = lake.create_table("t", "key STRING NOT NULL, v BIGINT", primary_key=["key"])
    for n in (2, 3, 1):
        apply_changes(table, pa.table({"key": ODD, "v": [n] * len(ODD), "n": [n] * len(ODD)}), sequence_by="n")
    assert sorted(table.scan().to_arrow()["key"].to_pylist()) == sorted(ODD)
    assert set(table.scan().to_arrow()["v"].to_pylist()) == {3}
    table.erase("v = 3")
    assert remembered(lake, warehouse, "key") == []


def test_a_batch_without_changes_changes_nothing(lake: Any) -> None:
    table = lake.create_table("people", PEOPLE, primary_key=["id"])
    assert apply_changes(table, FEED.empty_table(), **CHANGE) is None
    assert apply_changes(table, FEED.empty_table().drop(["op"]), sequence_by="n") is None
    apply_changes(table, feed([(1, "a", 1, "U")]), **CHANGE)
    assert apply_changes(table, FEED.empty_table(), **CHANGE) is None


@pytest.mark.parametrize("scd", [1, 2])
def test_keys_and_sequences_are_renamed_and_widened_between_changes(lake: Any, scd: int) -> None:
    more = ", __START_AT INT NOT NULL, __END_AT INT" if scd == 2 else ""
    table = lake.create_table(
        "t", f"a INT NOT NULL, b INT NOT NULL, v STRING{more}",
        primary_key=["a", "b", "__START_AT"] if scd == 2 else ["a", "b"],
    )  # fmt: skip

    def given(rows: list[tuple[int, int, str, int]], kind: pa.DataType) -> pa.Table:
        a, b, v, n = zip(*rows, strict=True)
        names = [one for one in table.schema.names if not one.startswith("__")] + ["n"]
        return pa.table([pa.array(a, kind), pa.array(b, kind), pa.array(v), pa.array(n, kind)], names=names)

    apply_changes(table, given([(1, 2, "one", 5)], pa.int32()), sequence_by="n", scd=scd)
    table.rename_column("a", "c")
    table.rename_column("b", "a")
    table.rename_column("c", "b")  # they have exchanged their names
    for name in ("a", "b", *(("__START_AT", "__END_AT") if scd == 2 else ())):
        table.widen_column(name, "BIGINT")
    big = 2**40
    apply_changes(table, given([(1, 2, "late", 4), (big, 1, "x", big)], pa.int64()), sequence_by="n", scd=scd)
    apply_changes(table, given([(1, 2, "again", 6)], pa.int32()), sequence_by="n", scd=scd)
    now = table.scan(where="__END_AT IS NULL" if scd == 2 else None).to_arrow().to_pylist()
    assert sorted((one["b"], one["a"], one["v"]) for one in now) == [(1, 2, "again"), (big, 1, "x")]
    table.rename_column("b", "z")
    table.erase("v = 'again' OR v = 'one' OR v = 'late'")
    (name,) = own(lake)
    assert lake.table(name).scan().to_arrow()["z"].to_pylist() == [big]


def test_what_does_not_fit_earlier_changes_is_refused_with_a_remedy(lake: Any) -> None:
    table = lake.create_table("people", PEOPLE, primary_key=["id"])
    apply_changes(table, feed([(1, "a", 9, "U")]), **CHANGE)
    text = feed([(1, "b", 10, "U")]).set_column(2, "n", pa.array(["10"]))
    with pytest.raises(InvalidInput, match=r"another type in earlier changes.*known=int64"):
        apply_changes(table, text, **CHANGE)
    versions = lake.create_table(
        "v", "id BIGINT NOT NULL, __START_AT BIGINT NOT NULL, __END_AT BIGINT", primary_key=["id", "__START_AT"]
    )
    whole = pa.table({"id": [1], "__START_AT": [1], "__END_AT": [2], "n": [1]})
    apply_changes(versions, whole, sequence_by="n")
    with pytest.raises(InvalidInput, match="another scd"):
        apply_changes(versions, whole.select(["id", "n"]), sequence_by="n", keys="id", scd=2)
    own_name = lake.create_table("o", "id BIGINT NOT NULL, lake_sequence BIGINT", primary_key=["id"])
    with pytest.raises(InvalidInput, match=r"rename_column.*lake_sequence"):
        apply_changes(own_name, pa.table({"id": [1], "lake_sequence": [1], "n": [1]}), sequence_by="n")

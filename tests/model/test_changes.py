"""The change feed against a list of rows in plain Python, over values that compare in ways of their own."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count, pairwise
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.reading import feed as feeding

NAN = float("nan")
AT = datetime(2013, 1, 5, 7, tzinfo=UTC)
VALUES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "double": (pa.float64(), (None, NAN, 0.0, -0.0, 1.5, math.inf, -math.inf)),
    "single": (pa.float32(), (None, NAN, 0.0, -0.0, 1.5)),
    "number": (pa.int64(), (None, 0, -1, 2**62)),
    "flag": (pa.bool_(), (None, True, False)),
    "text": (pa.string(), (None, "", "a", "A", "é", "e\u0301")),
    "bytes": (pa.binary(), (None, b"", b"\0", b"\xff\0")),
    "price": (pa.decimal128(20, 4), (None, Decimal(0), Decimal("1.1000"), Decimal("1.1001"))),
    "day": (pa.date32(), (None, date(1969, 12, 31), date(1970, 1, 1))),
    "moment": (pa.timestamp("us", tz="UTC"), (None, AT, AT + timedelta(microseconds=1))),
    "list": (pa.list_(pa.float64()), (None, [], [None], [NAN], [NAN, None], [0.0], [1.5])),
    "struct": (
        pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))]),
        (None, {"x": None, "y": None}, {"x": NAN, "y": []}, {"x": NAN, "y": [None]}, {"x": 0.0, "y": ["a"]}),
    ),
}
SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        *(pa.field(name, kind) for name, (kind, _) in VALUES.items()),
    ]
)
Row = dict[str, Any]


def is_same(one: Any, other: Any) -> bool:
    """Null is null, not-a-number is itself, all else as Python has it."""
    if one is None or other is None:
        return one is None and other is None
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return all(is_same(one[name], other[name]) for name in one)
    return bool(one == other)


def made_up(chance: random.Random, number: int) -> Row:
    return {"at": AT, "id": number, **{name: chance.choice(values) for name, (_, values) in VALUES.items()}}


def expected(before: dict[int, Row], after: dict[int, Row]) -> list[tuple[str, int]]:
    found = [("delete", one) for one in before.keys() - after.keys()]
    found += [("insert", one) for one in after.keys() - before.keys()]
    for one in before.keys() & after.keys():
        if not is_same(before[one], after[one]):
            found += [("update_before", one), ("update_after", one)]
    return sorted(found)


def test_a_feed_has_every_change_of_a_value_and_no_other(lake: Any) -> None:
    chance = random.Random(19)
    table = lake.create_table("values", SCHEMA, time="at", primary_key=("id",))
    rows: dict[int, Row] = {}
    states = {table.version: dict(rows)}
    for _ in range(25):
        match chance.choice(["append", "update", "update", "update", "delete", "compact"]):
            case "append":
                new = [made_up(chance, max(rows, default=0) + turn) for turn in range(1, 9)]
                rows |= {row["id"]: row for row in new}
                table.append(pa.Table.from_pylist(new, SCHEMA))
            case "update" if rows:
                names = chance.sample(list(VALUES), 2)
                chosen = chance.sample(sorted(rows), min(6, len(rows)))
                new = [rows[one] | {name: chance.choice(VALUES[name][1]) for name in names} for one in chosen]
                rows |= {row["id"]: row for row in new}
                changed = {name: f"source.{name}" for name in VALUES}
                source = pa.Table.from_pylist(new, SCHEMA)
                table.merge(source, "target.id = source.id", when_matched_update=changed, when_not_matched_insert=False)
            case "delete" if rows:
                gone = chance.choice(sorted(rows))
                del rows[gone]
                table.delete(f"id = {gone}")
            case _:
                table.compact()
        states[table.version] = dict(rows)
    for since, until in pairwise(sorted(states)):
        feed = table.changes(since, until).to_arrow().to_pylist()
        assert sorted((one["_change_type"], one["id"]) for one in feed) == expected(states[since], states[until])
        for one in feed:
            held = states[since if one["_change_type"] in ("delete", "update_before") else until][one["id"]]
            assert is_same({name: one[name] for name in held}, held)
    assert any("update_after" in [change for change, _ in expected(states[a], states[b])] for a, b in pairwise(states))


@pytest.mark.parametrize("seed", [0, 11])
def test_a_feed_is_exact_whatever_grains_its_versions_had(sqlite_url: str, warehouse: Any, seed: int) -> None:
    """A segment of a coarser grain lies in several bins, and what hides its rows in one of them."""
    chance = random.Random(seed)
    schema = pa.schema([SCHEMA.field("at"), SCHEMA.field("id"), pa.field("x", pa.int64())])
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        table = lake.create_table("t", schema, time="at", grain="day")
        table.set_grain("month")
        rows: dict[int, Row] = {}
        states = {table.version: dict(rows)}
        numbers = count(1)
        for _ in range(30):
            chosen = chance.sample(sorted(rows)[-6:], min(2, len(rows)))
            listed = ", ".join(map(str, chosen)) or "-1"
            day = AT + timedelta(days=chance.randrange(40))
            match chance.choice(["append", "move", "move", "move", "set", "delete", "grain", "compact", "restore"]):
                case "append":
                    days = [AT + timedelta(days=chance.randrange(40)) for _ in range(4)]
                    new = [{"at": one, "id": next(numbers), "x": 0} for one in days]
                    rows |= {row["id"]: row for row in new}
                    table.append(pa.Table.from_pylist(new, schema))
                case "move":
                    rows |= {one: rows[one] | {"at": day} for one in chosen}
                    table.update({"at": f"TIMESTAMP '{day:%Y-%m-%dT%H:%M:%SZ}'"}, f"id IN ({listed})")
                case "set":
                    rows |= {one: rows[one] | {"x": rows[one]["x"] + 1} for one in chosen}
                    table.update({"x": "x + 1"}, f"id IN ({listed})")
                case "delete":
                    rows = {one: row for one, row in rows.items() if one not in chosen}
                    table.delete(f"id IN ({listed})")
                case "grain":
                    table.set_grain(chance.choice(["day", "week", "month", "year"]))
                case "restore":
                    version = chance.choice(sorted(states)[-3:])
                    table.restore(version)
                    rows = dict(states[version])
                case _:
                    table.compact()
            states[table.version] = dict(rows)
        table.rebuild(grain="day")
        for since, until in pairwise(sorted(states)):
            feed = table.changes(since, until).to_arrow().to_pylist()
            found = sorted((one["_change_type"], one["id"]) for one in feed)
            assert found == expected(states[since], states[until]), (since, until)
            for one in feed:
                held = states[since if one["_change_type"] in ("delete", "update_before") else until][one["id"]]
                assert {name: one[name] for name in held} == held


@pytest.mark.parametrize("name", VALUES)
def test_each_pair_of_values_is_reported_as_one_update_or_as_none(sqlite_url: str, warehouse: Any, name: str) -> None:
    kind, values = VALUES[name]
    schema = pa.schema([SCHEMA.field("at"), SCHEMA.field("id"), pa.field("x", kind)])
    pairs = [(one, other) for one in values for other in values]
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        table = lake.create_table("pairs", schema, time="at")
        for place in (0, 1):
            rows = [{"at": AT, "id": number, "x": pair[place]} for number, pair in enumerate(pairs)]
            source = pa.Table.from_pylist(rows, schema)
            if place == 0:
                first = table.append(source).version
            else:
                table.merge(source, "target.id = source.id", when_matched_update={"x": "source.x"})
        feed = table.changes(first).to_arrow().to_pylist()
    updated = {one["id"] for one in feed if one["_change_type"] == "update_after"}
    assert updated == {number for number, (one, other) in enumerate(pairs) if not is_same(one, other)}
    assert len(feed) == 2 * len(updated)


@pytest.mark.parametrize("seed", range(2))
def test_updates_of_whole_files_are_exact_whatever_order_their_rows_have(
    sqlite_url: str, warehouse: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What an update leaves as it was is the same bytes in both files, but a merge puts rows in another order."""
    found_alike: list[frozenset[str]] = []
    compare = feeding.same_columns
    monkeypatch.setattr(feeding, "same_columns", lambda *files: found_alike.append(compare(*files)) or found_alike[-1])
    if seed % 2:
        monkeypatch.setattr(feeding, "PAIRED_BYTES", 1000)
    chance = random.Random(seed)
    columns = [("few", pa.int64()), ("name", pa.string()), ("x", pa.float64()), ("list", pa.list_(pa.int64()))]
    schema = pa.schema([SCHEMA.field("at"), SCHEMA.field("id"), *columns])
    lake = lakehouse.connect(sqlite_url, str(warehouse))
    table = lake.create_table("t", schema, time="at", primary_key=("id",))
    rows: dict[int, Row] = {}
    for one in range(40):
        values = {
            "few": one % 2,
            "name": chance.choice(["a", "b", None]),
            "x": chance.choice([NAN, 1.0]),
            "list": [one],
        }
        rows[one] = {"at": AT + timedelta(seconds=one), "id": one, **values}
    table.append(pa.Table.from_pylist(list(rows.values()), schema))
    states = {table.version: dict(rows)}
    for _ in range(9):
        match chance.choice(["all", "all", "all", "merge", "merge", "some", "same", "delete"]):
            case "all":
                rows = {one: row | {"few": row["few"] + 1} for one, row in rows.items()}
                table.update({"few": "few + 1"}, "id >= 0")
            case "merge":
                rows = {one: row | {"list": [one, chance.randrange(9)]} for one, row in rows.items()}
                source = pa.Table.from_pylist(chance.sample(list(rows.values()), len(rows)), schema)
                table.merge(source, "target.id = source.id", when_matched_update={"list": "source.list"})
            case "some":
                chosen = chance.sample(sorted(rows), 3)
                rows |= {one: rows[one] | {"few": 7, "x": 2.0} for one in chosen}
                table.update({"few": "7", "x": "2.0"}, f"id IN ({', '.join(map(str, chosen))})")
            case "same":
                table.update({"few": "few"}, "id >= 0")
            case _:
                gone = chance.choice(sorted(rows))
                del rows[gone]
                table.delete(f"id = {gone}")
        states[table.version] = dict(rows)
    for since, until in pairwise(sorted(states)):
        feed = table.changes(since, until).to_arrow().to_pylist()
        assert sorted((one["_change_type"], one["id"]) for one in feed) == expected(states[since], states[until])
        for one in feed:
            held = states[since if one["_change_type"] in ("delete", "update_before") else until][one["id"]]
            assert is_same({name: one[name] for name in held}, held), (one, held)
    assert any(found_alike) or seed % 2
    lake.close()


def test_columns_of_files_that_exchange_their_values_have_changed(sqlite_url: str, warehouse: Any) -> None:
    """Each file after the update has the same bytes as a file before it, but of other rows."""
    schema = pa.schema(
        [SCHEMA.field("at"), SCHEMA.field("id"), pa.field("x", pa.int64()), pa.field("kept", pa.string())]
    )
    rows = [{"at": AT + timedelta(days=one // 5), "id": one, "x": one // 5, "kept": "k"} for one in range(10)]
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        table = lake.create_table("t", schema, time="at", grain="day", primary_key=("id",))
        since = table.append(pa.Table.from_pylist(rows, schema)).version
        table.update({"x": "1 - x"}, "id >= 0")
        feed = table.changes(since).to_arrow().to_pylist()
    found = [{name: one[name] for name in ("_change_type", *schema.names)} for one in feed]
    before = [{"_change_type": "update_before", **one} for one in rows]
    after = [{"_change_type": "update_after", **one, "x": 1 - one["x"]} for one in rows]
    assert sorted(found, key=repr) == sorted([*before, *after], key=repr)

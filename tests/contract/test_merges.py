"""Merges mean what a loop over two lists of rows says, by call and by statement."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.testing.merges import SOURCE, TARGET, Ambiguous, Planned, Row, planned
from lakehouse.testing.rows import arrow, visible

DAY, NEXT = "2013-01-05", "2013-01-06"


@pytest.fixture
def lake(tmp_path: Any) -> Any:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as opened:
        yield opened


def made(lake: Any, name: str, schema: pa.Schema, rows: list[Row]) -> Any:
    if name in lake.tables():
        lake.drop_table(name)
    table = lake.create_table(name, schema, time=schema.names[0])
    table.append(pa.Table.from_pylist(rows, schema))
    return table


def counted(rows: list[Row]) -> Counter[Any]:
    return Counter(tuple(sorted(row.items(), key=str)) for row in rows)


def change_counts(table: Any, since: int) -> dict[str, int]:
    """How many rows a table says were changed since a version, in which way."""
    kinds = Counter(table.changes(since).to_arrow().column("_change_type").to_pylist())
    return {"insert": kinds["insert"], "update": kinds["update_after"], "delete": kinds["delete"]}


def run_and_compare(lake: Any, case: Planned, form: str, convert: Any = lambda rows: rows) -> str:
    table = made(lake, "t", TARGET, case.target)
    source = pa.Table.from_pylist(case.source, SOURCE)
    before = table.version
    try:
        expected, changed = case.expected()
    except Ambiguous:
        expected = None

    def run() -> Any:
        if form == "call":
            return table.merge_when(convert(source), case.on.text, case.whens())
        made(lake, "s", SOURCE.set(0, pa.field("Time", TARGET.field("time").type, False)), case.source)
        return lake.sql(case.sql("t", "S"), engine=form)

    if expected is None:
        with pytest.raises(InvalidInput, match="several rows of the source"):
            run()
        assert counted(table.scan().to_arrow().to_pylist()) == counted(case.target), case
        return "refused"
    commit = run()
    assert commit.rows_deleted == changed.pop("rewritten") + changed["delete"], case
    assert counted(table.scan().to_arrow().to_pylist()) == counted(expected), case
    assert change_counts(table, before) == changed, case
    return "changed" if any(changed.values()) else "nothing"


@pytest.mark.parametrize("form", ["call", "duckdb"])
def test_random_merges_come_to_what_a_loop_over_rows_comes_to(lake: Any, form: str) -> None:
    outcomes = Counter(run_and_compare(lake, planned(random.Random(seed)), form) for seed in range(60))
    assert min(outcomes[one] for one in ("changed", "nothing", "refused")) > 2, outcomes


@pytest.fixture
def flights(lake: Any) -> Any:
    table = lake.create_table(
        "flights", arrow([(DAY, "a", 1)]).schema.set(0, pa.field("time", pa.timestamp("us", "UTC"), False)), time="time"
    )
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2), (NEXT, "c", 3)]))
    return table


def test_a_clause_that_no_row_meets_writes_nothing(lake: Any, flights: Any) -> None:
    before, files = flights.version, len(flights.segments())
    source = "(SELECT 'a' AS client UNION ALL SELECT 'b') AS s"
    for test in ("1 = 0", "s.client = 'z'", "t.value > NULL", "t.client NOT LIKE '_'"):
        commit = lake.sql(
            f"""MERGE INTO flights t USING {source} ON t.client = s.client
            WHEN MATCHED AND {test} THEN UPDATE SET value = 0""",
            engine="duckdb",
        )
        assert (commit.rows_added, commit.rows_deleted) == (0, 0)
    assert change_counts(flights, before) == {"insert": 0, "update": 0, "delete": 0}
    assert len(flights.segments()) == files


def test_of_two_rows_of_the_source_one_may_meet_the_condition(flights: Any) -> None:
    source = arrow([(DAY, "a", 10), (NEXT, "a", 20)])
    with pytest.raises(InvalidInput, match="several rows of the source would change one row"):
        flights.merge(source, ["client"], when_matched_update=True)
    flights.merge(source, ["client"], when_matched_delete="source.value = 20", when_not_matched_insert=False)
    assert [row[1] for row in visible(flights)] == ["b", "c"]


def test_every_match_may_be_deleted_whatever_the_number_of_rows_it_meets(flights: Any) -> None:
    source = arrow([(DAY, "a", 10), (NEXT, "a", 20), (NEXT, "b", 20)])
    commit = flights.merge(source, ["client"], when_matched_delete=True, when_not_matched_insert=False)
    assert commit.rows_deleted == 2
    assert [row[1] for row in visible(flights)] == ["c"]


@pytest.mark.parametrize("on", [["CLIENT"], "target.Client = source.cLIENT", "target.client = source.Client"])
def test_case_does_not_count_in_the_columns_of_a_merge(flights: Any, on: Any) -> None:
    source = pa.table({"cliENT": ["a", "z"], "Value": [7, 8], "TIME": arrow([(DAY, "a", 1), (DAY, "a", 1)])["time"]})
    flights.merge(source, on, when_matched_update=True)
    assert sorted(row[1:] for row in visible(flights)) == [("a", 7), ("b", 2), ("c", 3), ("z", 8)]


def test_names_that_engines_use_are_columns_like_any_other(lake: Any) -> None:
    names = ["source", "target", "f", "s", "held", "k0", "lakehouse_pairs", "t", "value", "struct"]
    schema = pa.schema([pa.field("time", pa.timestamp("us", "UTC"), False), *((name, pa.int64()) for name in names)])
    rows = [{"time": arrow([(DAY, "a", 1)])["time"][0].as_py(), **dict.fromkeys(names, number)} for number in (1, 2)]
    for name in names:
        table = made(lake, "t", schema, rows[:1])
        made(lake, "s", schema, rows)
        table.merge(
            pa.Table.from_pylist(rows, schema), [name], when_matched_update={name: f"source.{name} + target.{name}"}
        )
        lake.sql(
            f"MERGE INTO t USING s ON t.`{name}` = s.`{name}` WHEN MATCHED THEN UPDATE SET `{name}` = s.`{name}` + 10",
            engine="duckdb",
        )
        assert sorted(table.scan().to_arrow().column(name).to_pylist()) == [2, 12] or sorted(
            table.scan().to_arrow().column(name).to_pylist()
        ) == [12, 12]


def test_a_source_that_has_a_column_twice_is_refused(lake: Any, flights: Any) -> None:
    head = lake.head
    twice = pa.table({"client": ["a"], "CLIENT": ["b"]})
    with pytest.raises(InvalidInput, match="a column twice"):
        flights.merge(twice, "target.client = source.client", when_matched_delete=True, when_not_matched_insert=False)
    for source in ("SELECT 'a' AS client, 'b' AS Client", "SELECT 'a' AS client, 'b' AS client"):
        with pytest.raises(InvalidInput):
            lake.sql(f"MERGE INTO flights t USING ({source}) AS s ON t.client = s.client WHEN MATCHED THEN DELETE",
                     engine="duckdb")  # fmt: skip
    assert lake.head == head


def test_a_column_without_its_side_is_taken_where_one_side_has_it_and_refused_else(flights: Any) -> None:
    source = pa.table({"who": ["a"], "value": [9]})
    flights.merge(source, "client = who", when_matched_update={"value": "source.value"}, when_not_matched_insert=False)
    assert (("a", 9)) in [row[1:] for row in visible(flights)]
    for wrong in ({"value": "value + 1"}, {"value": "nothing"}):
        with pytest.raises(InvalidInput, match=r"several tables have this column|no such column"):
            flights.merge(source, "client = who", when_matched_update=wrong)
    with pytest.raises(InvalidInput):  # where a row is inserted there is none of the target's
        flights.merge(source, "client = who", when_not_matched_insert={"value": "target.value", "time": "target.time"})


def test_rows_without_a_match_are_changed_by_the_first_clause_that_they_meet(lake: Any, flights: Any) -> None:
    commit = flights.merge(
        arrow([(DAY, "a", 10)]),
        ["client"],
        when_matched_update={"value": "source.value"},
        when_not_matched_by_source_update={"value": "target.value * 100"},
        when_not_matched_by_source_delete="client = 'b'",
    )
    assert (commit.rows_added, commit.rows_deleted) == (2, 3)
    assert [row[1:] for row in visible(flights)] == [("a", 10), ("c", 300)]
    with lake.transaction() as tx:
        tx.table("flights").merge(
            arrow([(DAY, "a", 10)]), ["client"], when_not_matched_insert=False, when_not_matched_by_source_delete=True
        )
    assert [row[1:] for row in visible(flights)] == [("a", 10)]
    nobody = arrow([(DAY, "a", 10)]).slice(1)
    flights.merge(nobody, ["client"], when_not_matched_by_source_delete=True)
    assert visible(flights) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"when_not_matched_by_source_update": True},
        {"when_not_matched_by_source_update": {"value": "source.value"}},
        {"when_not_matched_by_source_update": {"nothing": "1"}},
        {"when_not_matched_by_source_delete": "source.value = 1"},
        {"when_not_matched_by_source_delete": 7},
    ],
)
def test_rows_without_a_match_know_no_column_of_the_source(flights: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        flights.merge(arrow([(DAY, "a", 10)]), ["client"], **wrong)


def test_only_segments_that_a_condition_on_rows_without_a_match_can_reach_are_read(lake: Any, flights: Any) -> None:
    (outside,) = flights.segments(interval=NEXT)
    (lake.warehouse / outside.path).unlink()
    text = """MERGE INTO flights t USING (SELECT timestamp'2013-01-05' AS time, 'a' AS client) s
    ON t.client = s.client AND t.time = s.time
    WHEN NOT MATCHED BY SOURCE AND t.time < '2013-01-06' THEN DELETE"""
    assert lake.sql(text, engine="duckdb").rows_deleted == 1
    with pytest.raises(lakehouse.errors.SegmentUnreadable):
        lake.sql(text.replace("AND t.time < '2013-01-06'", ""), engine="duckdb")


def test_a_row_without_a_match_that_others_change_conflicts_and_one_that_they_add_stays(flights: Any) -> None:
    def begun() -> Any:
        operation = flights.begin_merge(
            arrow([(DAY, "a", 10)]),
            ["client"],
            when_not_matched_insert=False,
            when_not_matched_by_source_update={"value": "0"},
        )
        operation.run()
        return operation

    operation = begun()
    flights.update({"value": "7"}, "client = 'b'")
    with pytest.raises(lakehouse.errors.WriteConflict):
        operation.commit()
    operation = begun()
    flights.append(arrow([(DAY, "d", 4)]))
    operation.commit()
    assert [row[1:] for row in visible(flights)] == [("a", 1), ("b", 0), ("d", 4), ("c", 0)]

"""A view is made, replaced or dropped as a whole, whoever else does the same and wherever the process dies."""

from __future__ import annotations

from typing import Any

import pytest

OLD = "CREATE VIEW late AS SELECT value FROM flights"
NEW = "CREATE OR REPLACE VIEW late AS SELECT value * 10 AS tenfold FROM flights"
DROP = "DROP VIEW late"


def views(lake: Any) -> list[str]:
    return (
        lake.sql("SELECT view_definition FROM information_schema.views", engine="duckdb")
        .to_arrow_table()[0]
        .to_pylist()
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("point", "text"),
    [("commit.head", NEW), ("commit.recorded", NEW), ("commit.after", NEW), ("commit.recorded", DROP)],
    ids=["make at the head", "make when recorded", "make after", "drop when recorded"],
)
def test_a_kill_leaves_the_view_before_or_the_one_after(lake: Any, table: Any, start, connect, point, text) -> None:
    lake.sql(OLD, engine="duckdb")
    head = lake.head
    child = start("state", text=text, point=point)
    assert child.ask() == {"ready": True}
    assert child.hear() == {}
    assert child.end() == -9
    again = connect()
    is_done = point == "commit.after"
    assert views(again) == [(NEW if is_done else OLD).split(" AS ", 1)[1]]
    assert again.head == head + is_done
    assert again.check().is_sound
    assert again.sql(f"SELECT * FROM late VERSION AS OF {head}", engine="duckdb").columns == ["value"]
    again.sql(text, engine="duckdb")
    assert views(again) == ([] if text == DROP else [NEW.split(" AS ", 1)[1]])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "texts",
    [
        [OLD, OLD],
        [OLD, "CREATE TABLE Late (at TIMESTAMP) PARTITIONED BY (days(at))"],
    ],
    ids=["the same view", "a table"],
)
def test_of_two_processes_one_gets_the_name(lake: Any, table: Any, start, texts) -> None:
    children = [start("state", text=text) for text in texts]
    assert [child.hear() for child in children] == [{"ready": True}] * 2
    for child in children:
        child.signal()
    heard = sorted((child.hear() for child in children), key=len)
    assert heard[0] == {"done": True}
    assert heard[1]["error"] == "AlreadyExists"
    named = [one for one in (*lake.views(), *lake.tables()) if one.casefold() == "late"]
    assert len(named) == 1
    assert lake.check().is_sound

"""MERGE with what only queries take: rows of source and table are joined by a query, at one version."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import lakehouse
from lakehouse.errors import DuplicateKey, InvalidInput
from lakehouse.testing.faults import armed
from tests.unit.sql.conftest import rows_of
from tests.unit.sql.merge_oracle import expected, planned, run


def compared(lake: lakehouse.Lake, seed: int, engine: str | None) -> str:
    """Run a statement that a number makes, and say what came of it as the loop says."""
    plan = planned(random.Random(seed))
    wanted = expected(plan)
    if wanted is None:
        with pytest.raises(DuplicateKey):
            run(lake, plan, engine)
        return "refused"
    assert Counter(run(lake, plan, engine)) == Counter(wanted), plan.text
    return "changed" if Counter(wanted) != Counter(plan.target) else "same"


def test_random_merges_come_to_what_a_loop_over_rows_comes_to(lake: lakehouse.Lake) -> None:
    outcomes = Counter(compared(lake, seed, None) for seed in range(60))
    assert min(outcomes[one] for one in ("changed", "same", "refused")) > 0, outcomes


SCORES = "MERGE INTO trips t USING clients c ON t.client = c.name "
FEW = "FROM range(40) AS r(n)"
JOINED = [
    (SCORES + "WHEN MATCHED THEN UPDATE SET client = upper(concat(t.client, c.name))", {1: "UAUA", 4: "UAUA"}),
    # a sub-query in a value, and one that looks at both sides
    (SCORES + "WHEN MATCHED THEN UPDATE SET client = (SELECT max(name) FROM clients)", {1: "UA", 4: "UA"}),
    (
        SCORES + "WHEN MATCHED AND EXISTS (SELECT 1 FROM trips o WHERE o.id > t.id AND o.id < c.score) THEN DELETE",
        {1: None},
    ),
    # a query of WITH that is called as the table is
    (
        """WITH trips AS (SELECT name AS n FROM clients) MERGE INTO trips t USING trips AS s ON upper(t.client) = s.n
        WHEN MATCHED THEN UPDATE SET client = lower(s.n)""",
        {1: "ua", 4: "ua"},
    ),
    # sides under each other's names, names in another case, and without an alias
    (
        """MERGE INTO trips AS source USING clients AS target ON upper(source.CLIENT) = target.name
        WHEN MATCHED THEN UPDATE SET Client = concat(TARGET.name, CAST(source.ID AS STRING))""",
        {1: "UA1", 4: "UA4"},
    ),
    ("MERGE INTO trips USING (SELECT 4 AS n) ON id = sqrt(n * n) WHEN MATCHED THEN DELETE", {4: None}),
    # several rows that delete one, each of its own
    ("MERGE INTO trips t USING range(3) AS r ON upper(t.client) = 'UA' WHEN MATCHED THEN DELETE", {1: None, 4: None}),
    # a value that only rows without the clause's condition have none of
    (
        SCORES + "WHEN MATCHED AND upper(t.client) = 'B6' THEN UPDATE SET id = CAST(upper(t.client) AS BIGINT) "
        "WHEN MATCHED THEN UPDATE SET client = lower(t.client)",
        {1: "ua", 4: "ua"},
    ),
]


@pytest.mark.parametrize(("text", "changed"), JOINED)
def test_merge_takes_what_queries_take(lake: lakehouse.Lake, text: str, changed: dict[int, str | None]) -> None:
    before = dict(rows_of(lake, "SELECT id, client FROM trips"))
    commit = lake.sql(text)
    after = {**before, **changed}
    assert rows_of(lake, "SELECT id, client FROM trips ORDER BY id") == [
        row for row in sorted(after.items()) if row[0] not in changed or row[1] is not None
    ]
    assert commit.rows_deleted == len(changed)


def test_the_source_is_read_at_the_version_asked_for_and_the_table_at_the_newest(lake: lakehouse.Lake) -> None:
    before = lake.head
    lake.sql("DELETE FROM clients")
    lake.sql("UPDATE trips SET client = 'ua' WHERE id = 4")
    text = SCORES.replace("t.client", "upper(t.client)") + "WHEN MATCHED THEN UPDATE SET client = concat(c.name, '!')"
    assert lake.sql(text).rows_added == 0
    assert lake.sql(text, as_of=before).rows_added == 2


def test_an_insert_gives_defaults_and_no_key_twice(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE codes (n BIGINT, code STRING DEFAULT 'new')")
    lake.sql("ALTER TABLE codes ADD PRIMARY KEY (n)")
    lake.sql("MERGE INTO codes USING clients ON n = score % 7 WHEN NOT MATCHED THEN INSERT (n) VALUES (score + 1)")
    assert rows_of(lake, "SELECT n, code FROM codes ORDER BY n") == [(11, "new"), (21, "new")]
    insert = "WHEN NOT MATCHED THEN INSERT (n) VALUES (CAST(sqrt(score * score) / 100 AS BIGINT))"
    with pytest.raises(DuplicateKey, match="one key twice"):
        lake.sql(f"MERGE INTO codes USING clients ON n = score {insert}")


def test_sub_queries_of_clauses_about_one_side_name_its_columns_without_a_prefix(lake: lakehouse.Lake) -> None:
    before = lake.head
    lake.sql("ALTER TABLE trips ADD COLUMN tax BIGINT")
    text = (
        SCORES + f"WHEN NOT MATCHED AND EXISTS (SELECT 1 {FEW} WHERE n = score) THEN INSERT (at, id, client, tax) "
        f"VALUES (since, (SELECT max(n) {FEW} WHERE n < score), name, 1) "
        f"WHEN NOT MATCHED BY SOURCE AND EXISTS (SELECT 1 {FEW} WHERE n = id AND tax IS NULL) THEN DELETE"
    )
    lake.sql(text, as_of=before)
    assert rows_of(lake, "SELECT id, client, tax FROM trips ORDER BY id") == [
        (1, "UA", None), (4, "UA", None), (19, "B6", 1),
    ]  # fmt: skip


def test_a_merge_that_loses_its_row_to_another_looks_again(lake: lakehouse.Lake) -> None:
    others = ["UPDATE trips SET client = 'B6' WHERE id = 1"]

    def other() -> None:
        if others:
            lake.sql(others.pop())

    with armed({"commit.before": other}):
        lake.sql(SCORES + "WHEN MATCHED THEN UPDATE SET id = CAST(sqrt(c.score * c.score) AS BIGINT)")
    assert rows_of(lake, "SELECT id, client FROM trips WHERE id > 4 ORDER BY id") == [(10, "UA"), (20, "B6")]


def test_a_transaction_holds_such_a_merge(lake: lakehouse.Lake) -> None:
    lake.sql(f"BEGIN; {SCORES} WHEN MATCHED THEN UPDATE SET client = lower(c.name); DELETE FROM clients; COMMIT")
    assert rows_of(lake, "SELECT count(*) FROM trips WHERE client = 'ua'") == [(2,)]


@pytest.mark.parametrize(
    "text",
    [
        SCORES + "WHEN MATCHED THEN UPDATE SET client = max(upper(c.name))",
        SCORES + "WHEN MATCHED AND row_number() OVER (ORDER BY t.id) = 1 THEN DELETE",
        SCORES + "WHEN MATCHED THEN UPDATE SET client = concat(score)",
        SCORES + "WHEN MATCHED THEN UPDATE SET client = sqrt(score)",
        SCORES + "WHEN MATCHED THEN UPDATE SET client = reflect('a', 'b')",
        SCORES + "WHEN MATCHED AND rand() < 0.5 THEN DELETE",
        SCORES + "WHEN MATCHED AND upper(name) THEN DELETE",
        SCORES + "WHEN MATCHED THEN UPDATE SET id = (SELECT _row_id FROM trips)",
        SCORES + "WHEN NOT MATCHED THEN INSERT (at, client) VALUES (since, upper(t.client))",
        SCORES + "WHEN NOT MATCHED THEN INSERT (at, client) VALUES (since, upper(client))",
        SCORES + "WHEN NOT MATCHED THEN INSERT (at, id) VALUES (since, (SELECT max(score) + t.id FROM clients))",
        SCORES + "WHEN NOT MATCHED THEN INSERT (client) VALUES (upper(name))",
        SCORES + "WHEN NOT MATCHED BY SOURCE AND upper(c.name) = 'x' THEN DELETE",
        SCORES + "WHEN NOT MATCHED BY SOURCE AND id = (SELECT max(score) + c.score FROM clients) THEN DELETE",
        # a column of the side that is not there, without a prefix
        SCORES + f"WHEN NOT MATCHED THEN INSERT (at, id) VALUES (since, (SELECT max(n) {FEW} WHERE n < id))",
        SCORES + f"WHEN NOT MATCHED AND NOT EXISTS (SELECT 1 {FEW} WHERE n = price) THEN INSERT (at) VALUES (since)",
        SCORES + f"WHEN NOT MATCHED BY SOURCE AND EXISTS (SELECT 1 {FEW} WHERE n = score) THEN DELETE",
        SCORES + f"WHEN NOT MATCHED BY SOURCE THEN UPDATE SET id = (SELECT max(n) {FEW} WHERE score IS NULL)",
        "MERGE INTO trips USING clients ON client IN (SELECT name FROM clients) WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING clients ON upper(nothing) = name WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING trips AS s ON upper(client) = 'UA' WHEN MATCHED THEN DELETE",
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises(InvalidInput):
        still_lake.sql(text)
    assert (still_lake.head, still_lake.operations()) == (head, [])

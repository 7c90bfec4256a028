"""Whatever the text: rows, or an error of ours."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakehouse
from tests.unit.sql.conftest import ROWS, TRIPS

STATEMENTS = (
    "SELECT id FROM trips ORDER BY client DESC NULLS LAST, id LIMIT 2 OFFSET 1",
    "SELECT * EXCEPT (at) FROM trips t LEFT JOIN trips c ON t.client = c.client AND c.id > 5 WHERE t.at >= '2013'",
    "WITH a AS (SELECT id, max(at) AS n FROM trips GROUP BY id), b(x) AS (SELECT 1) SELECT a.n FROM a JOIN b USING (x)",
    "SELECT a.id FROM trips VERSION AS OF 2 a FULL JOIN trips TIMESTAMP AS OF '2013-01-01' b ON a.id = b.id",
    "SELECT CASE WHEN price < 0 THEN 'x' END, CAST(price AS DECIMAL(5, 2)), at + INTERVAL '1' DAY FROM trips",
    "SELECT sum(price) OVER (PARTITION BY client ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM trips",
    "SELECT date_trunc('day', at), extract(year FROM at) FROM trips WHERE EXISTS (SELECT 1 FROM trips WHERE id = 1)",
    "INSERT INTO trips (at, id) VALUES ('2013-01-05', 1), (TIMESTAMP '2013-01-05', NULL)",
    "DELETE FROM trips AS t WHERE t.id = 1 AND client LIKE 'a%' ESCAPE '!'",
    "UPDATE trips t SET t.price = price * 2, client = 'x' WHERE id BETWEEN 1 AND 2",
    "MERGE INTO trips t USING (SELECT id FROM trips) AS s ON t.id = s.id WHEN MATCHED AND s.id > 1 THEN DELETE",
    "CREATE TABLE IF NOT EXISTS z (ts TIMESTAMP, k BIGINT, PRIMARY KEY (k)) USING lakehouse PARTITIONED BY (days(ts))",
    "DROP TABLE IF EXISTS z",
    "EXPLAIN SELECT id FROM trips WHERE at > '2013-01-01' -- all",
)
WORDS = [re.findall(r"'[^']*'|\w+|\S", text) for text in STATEMENTS]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A statement with some words taken out, put in or exchanged."""
    words = list(draw(st.sampled_from(WORDS)))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(words)))
        other = draw(st.sampled_from(WORDS))
        first = draw(st.integers(0, len(other) - 1))
        put = other[first : first + draw(st.integers(0, 4))]
        words[start : start + draw(st.integers(0, 2))] = put
    return " ".join(words)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder: Path = tmp_path_factory.mktemp("any")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        lake.sql(TRIPS)
        lake.sql(ROWS)
        yield lake


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=texts() | st.text(max_size=40))
def test_any_text_gives_a_result_or_an_error_of_ours(lake: lakehouse.Lake, text: str) -> None:
    try:
        found = lake.sql(text, engine="duckdb")
    except lakehouse.InternalError:
        raise
    except lakehouse.LakehouseError:
        return
    if isinstance(found, duckdb.DuckDBPyRelation):
        assert found.columns

"""What the laser says of rows, against a list of rows in plain Python on which the same was done."""

from datetime import timedelta
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from tests.browser.conftest import START

SCHEMA = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("id", pa.int64()), ("word", pa.string())])
HOUR = timedelta(hours=1)


def row(hour: int, number: int, word: str) -> dict[str, Any]:
    return {"at": START + hour * HOUR, "id": number, "word": word}


@pytest.fixture
def oracle(lake: lakehouse.Lake) -> list[tuple[dict[str, Any], bool]]:
    """A table ``words`` under tombstones of every kind; every row that is stored, and whether it can be seen."""
    table = lake.create_table("words", SCHEMA, time="at", primary_key=["id"], cluster_by=["word"])
    first = [row(hour, hour, "ab"[hour % 2]) for hour in range(0, 12, 2)]
    second = [row(hour, 100 + hour, "ab"[hour // 2 % 2]) for hour in range(0, 12, 2)]
    for rows in (first, second):
        table.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    upserted = [row(4, 6, "c")]
    table.upsert(pa.Table.from_pylist(upserted, schema=SCHEMA))
    table.delete("id = 102")
    replaced = [START + 8 * HOUR, START + 9 * HOUR]
    table.replace(None, tuple(replaced), keys={"word": "a"})

    def is_hidden(held: dict[str, Any]) -> bool:
        is_replaced = replaced[0] <= held["at"] < replaced[1] and held["word"] == "a"
        return held["id"] in (6, 102) or is_replaced

    return [*((held, not is_hidden(held)) for held in first + second), *((held, True) for held in upserted)]


def test_the_laser_counts_rows_as_they_are(lake: lakehouse.Lake, oracle: list[tuple[dict[str, Any], bool]]) -> None:
    from queries.laser import read_laser  # noqa: PLC0415 - with the pages' folder on the path

    table = lake.table("words")
    assert table.scan().count() == sum(is_seen for _, is_seen in oracle)
    asked: list[dict[str, Any] | None] = [None, {"id": (6,)}, {"id": (102, 2)}, {"word": ("a",)}, {"word": ("z",)}]
    for hour in range(-1, 13):
        at = START + hour * HOUR
        for keys in asked:
            here = [
                is_seen
                for held, is_seen in oracle
                if held["at"] == at and all(held[column] in values for column, values in (keys or {}).items())
            ]
            found = read_laser(lake, "words", table.version, at, keys)
            probed = found.probed
            stored = int(pd.to_numeric(probed["rows here"]).sum()) if len(probed) else 0
            seen = int(pd.to_numeric(probed["seen here"]).sum()) if len(probed) else 0
            # What is wholly replaced is dropped, and stored no more.
            assert (stored <= len(here), seen) == (True, sum(here))
            if not sum(here) and len(probed):
                assert not {"visible", "some rows are hidden"} & set(probed["verdict"])
            if sum(here):
                assert f"{sum(here)} visible" in found.sentence


def test_a_wrong_column_is_named_as_wrong() -> None:
    from queries.laser import read_keys  # noqa: PLC0415 - with the pages' folder on the path

    with pytest.raises(InvalidInput, match="no such column") as refused:
        read_keys("carier=UA", SCHEMA)
    assert refused.value.facts["column"] == "carier"

"""What create_table accepts, and key values as columns hold them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.errors import InvalidInput
from lakehouse.schema import define_table, typed_scope, typed_value

DDL = "ts TIMESTAMP, client BIGINT, carrier STRING, value DOUBLE, tags ARRAY<STRING>"


def test_a_definition_keeps_what_it_was_given() -> None:
    spec = define_table(
        "flights",
        DDL,
        time="ts",
        grain="week",
        primary_key=["client", "carrier"],
        cluster_by={"client": 16},
        write_order="start",
        properties={"target_rows": 1000, "ragged": True, "owner": "ops"},
    )
    assert spec.grain.value == "week"
    assert spec.primary_key == ("client", "carrier")
    assert not spec.schema.field("client").nullable
    assert spec.cluster_by == {"client": 16}
    assert (spec.target_rows, spec.ragged, spec.write_order) == (1000, True, "start")
    assert spec.properties["owner"] == "ops"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"name": "a-b"}, "a-b"),
        ({"name": ""}, "table name"),
        ({"name": "x" * 129}, "table name"),
        ({"name": None}, "table name"),
        ({"time": "when"}, "when"),
        ({"time": 7}, "time"),
        ({"time": None, "grain": "day"}, "grain divides time"),
        ({"grain": "minute"}, "minute"),
        ({"primary_key": ["nobody"]}, "nobody"),
        ({"primary_key": ["client", "client"]}, "twice"),
        ({"primary_key": "value"}, "value"),
        ({"primary_key": "tags"}, "tags"),
        ({"cluster_by": "nobody"}, "nobody"),
        ({"cluster_by": ["tags"]}, "tags"),
        ({"cluster_by": {"client": -1}}, "buckets=-1"),
        ({"cluster_by": {"client": "many"}}, "many"),
        ({"cluster_by": {"client": True}}, "True"),
        ({"write_order": "random"}, "random"),
        ({"properties": {"target_rows": 0}}, "target_rows"),
        ({"properties": {"target_rows": "many"}}, "target_rows"),
        ({"properties": {"target_row": 5}}, "did you mean target_rows"),
        ({"properties": {"ragged": "perhaps"}}, "ragged"),
        ({"properties": {"owner": ["a"]}}, "owner"),
        ({"properties": {1: "a"}}, "text to text"),
    ],
)
def test_a_wrong_argument_is_named(wrong: dict[str, Any], named: str) -> None:
    arguments: dict[str, Any] = {"name": "flights", "schema": DDL, "time": "ts", **wrong}
    with pytest.raises(InvalidInput, match=named):
        define_table(arguments.pop("name"), arguments.pop("schema"), **arguments)


@pytest.mark.parametrize(
    ("value", "kind", "held"),
    [
        (1, pa.int8(), 1),
        (1.0, pa.int64(), 1),
        (1, pa.float64(), 1.0),
        (True, pa.bool_(), True),
        ("x", pa.string(), "x"),
        (b"x", pa.binary(), b"x"),
        (None, pa.int64(), None),
        ("2013-01-05", pa.date32(), dt.date(2013, 1, 5)),
        (dt.date(2013, 1, 5), pa.timestamp("us", "UTC"), dt.datetime(2013, 1, 5, tzinfo=dt.UTC)),
        ("2013-01-05T02:00:00+02:00", pa.timestamp("us", "UTC"), dt.datetime(2013, 1, 5, tzinfo=dt.UTC)),
        ("1.5", pa.decimal128(5, 2), Decimal("1.50")),
        (3, pa.decimal128(5, 2), Decimal("3.00")),
    ],
)
def test_a_key_value_takes_the_columns_type(value: Any, kind: pa.DataType, held: Any) -> None:
    found = typed_value(value, pa.field("key", kind))
    assert found == held
    assert type(found) is type(held)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (300, pa.int8()),
        ("1", pa.int64()),
        (1, pa.string()),
        (1.5, pa.int64()),
        (float("nan"), pa.int64()),
        (True, pa.int64()),
        (1, pa.bool_()),
        ("x", pa.binary()),
        (b"x", pa.string()),
        (Decimal("1.555"), pa.decimal128(5, 2)),
        (True, pa.decimal128(5, 2)),
        ("x", pa.decimal128(5, 2)),
        ("2013-13-01", pa.date32()),
        (5, pa.date32()),
        (5, pa.timestamp("us", "UTC")),
        (dt.datetime(2013, 1, 1, tzinfo=dt.UTC), pa.timestamp("us")),
        (10**30, pa.int64()),
        (object(), pa.int64()),
        ([1], pa.int64()),
    ],
)
def test_a_key_value_that_the_column_cannot_hold_is_refused(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="column=key"):
        typed_value(value, pa.field("key", kind))


def test_keys_take_cluster_columns_only() -> None:
    spec = define_table("flights", DDL, time="ts", cluster_by=["client"])
    assert typed_scope({"client": [77, 12.0, None]}, spec) == {"client": (77, 12, None)}
    assert typed_scope(None, spec) is None
    with pytest.raises(InvalidInput, match=r"column=carrier cluster_by=client"):
        typed_scope({"carrier": "UA"}, spec)
    with pytest.raises(InvalidInput, match="column=client"):
        typed_scope({"client": "UA"}, spec)

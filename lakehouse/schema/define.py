"""A table's definition from the arguments of `create_table`, and key scopes over its cluster columns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from lakehouse.arguments import read_text, unknown_column
from lakehouse.core.chunk import Grain
from lakehouse.core.codec import Codecs
from lakehouse.core.keys import KeyScope, key_scope
from lakehouse.core.policy import NAMES, Policy
from lakehouse.core.serving.rules import rules_from_json
from lakehouse.core.spec import VERIFY, TableId, TableSpec, WriteOrder
from lakehouse.errors import InvalidArgument, InvalidKeys, InvalidProperty, InvalidSchema
from lakehouse.schema.names import check_table_name
from lakehouse.schema.values import typed_value

_MAX_BUCKETS = 1 << 20
_LAYOUT = {
    "cluster_by": "set_cluster_by or ALTER TABLE ... CLUSTER BY",
    "primary_key": "set_primary_key or ALTER TABLE ... ADD PRIMARY KEY",
    "grain": "set_grain or ALTER TABLE ... PARTITIONED BY",
}
_KNOWN = (*NAMES, "ragged", "compression", "verify", "load_rules")


def define_table(
    name: str,
    schema: Any,
    *,
    time: str | None = None,
    grain: str | None = None,
    primary_key: Sequence[str] | str = (),
    cluster_by: Sequence[str] | Mapping[str, int] | str = (),
    write_order: str = "commit",
    properties: Mapping[str, Any] | None = None,
    id: int = 0,
    folder: str = "",
) -> TableSpec:
    """Check a new table's arguments and build its definition; the catalog fills in id and folder.

    Without ``time`` all rows lie in one chunk, which is all of time; with it a ``grain`` that is not given is a day.
    Raises `InvalidInput` naming the argument and the remedy.

    >>> spec = define_table("flights", "ts TIMESTAMP, client BIGINT", time="ts", cluster_by=["client"])
    >>> spec.grain.value, dict(spec.cluster_by), spec.target_rows
    ('day', {'client': 0}, 5000000)
    """
    from lakehouse.schema.read import read_columns  # noqa: PLC0415 - late

    check_table_name(name)
    if time is not None and not isinstance(time, str):
        raise InvalidSchema("name the time column, as in time='ts'", time=repr(time))
    if time is None and grain is not None:
        raise InvalidSchema("a grain divides time: name the time column, as in time='ts', or leave it out", grain=grain)
    columns, told = read_columns(schema, time)
    keys = read_key_columns(columns, primary_key)
    if write_order not in ("commit", "start"):
        raise InvalidArgument("no such write order; use commit or start", write_order=write_order)
    return TableSpec(
        id=TableId(id),
        name=name,
        folder=folder,
        schema=pa.schema([field.with_nullable(False) if field.name in keys else field for field in columns]),
        time=time or "",
        grain=Grain.ALL if time is None else Grain.of("day" if grain is None else grain),
        primary_key=keys,
        cluster_by=read_cluster_columns(columns, cluster_by),
        write_order=cast(WriteOrder, write_order),
        properties=read_table_properties(properties or {}, columns, has_time=time is not None),
        columns=told,
    )


def _listed(columns: pa.Schema, names: Sequence[str] | str, what: str) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        if name not in columns.names:
            raise unknown_column(f"{what} names an unknown column", name, columns.names)
        if pa.types.is_nested(columns.field(name).type):
            raise InvalidSchema(f"{what} cannot hold a nested column", column=name)
    if len(set(listed)) < len(listed):
        raise InvalidSchema(f"{what} names a column twice", columns=",".join(listed))
    return listed


def read_key_columns(columns: pa.Schema, names: Sequence[str] | str) -> tuple[str, ...]:
    """The columns of a primary key. Raises `UnknownColumn` and `InvalidSchema`."""
    listed = _listed(columns, names, "primary_key")
    for name in listed:
        if pa.types.is_floating(columns.field(name).type):
            raise InvalidSchema("a float cannot be part of a primary key; use an integer, decimal or text", column=name)
    return listed


def read_cluster_columns(columns: pa.Schema, given: Sequence[str] | Mapping[str, Any] | str) -> dict[str, int]:
    """Cluster columns with their numbers of hash buckets. Raises `UnknownColumn` and `InvalidSchema`."""
    names = tuple(given) if isinstance(given, Mapping) else given
    listed = _listed(columns, names, "cluster_by")
    if not isinstance(given, Mapping):
        return dict.fromkeys(listed, 0)
    for name, buckets in given.items():
        if isinstance(buckets, bool) or not isinstance(buckets, int) or not 0 <= buckets <= _MAX_BUCKETS:
            raise InvalidSchema(
                "cluster_by takes a number of hash buckets", column=name, buckets=buckets, most=_MAX_BUCKETS
            )
    return dict(given)


def read_table_properties(given: Mapping[Any, Any], columns: pa.Schema, *, has_time: bool = True) -> dict[str, str]:
    """Properties as text. Those that the library knows are checked; users' own ones are kept."""
    kept: dict[str, str] = {}
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool):
            raise InvalidProperty("properties map text to text", key=repr(key), value=repr(value))
        read_text(key, "a property's name")
        text = read_text(str(value).lower() if isinstance(value, bool) else str(value), f"property {key}")
        if key == "ragged" and text not in ("true", "false"):
            raise InvalidProperty("property ragged is true or false", ragged=text)
        if key == "ragged" and text == "true" and not has_time:
            raise InvalidProperty("ragged is about time chunks, and the table has no time; leave it out", ragged=text)
        if key == "compression":
            Codecs.of(text)
        if key == "verify" and text not in VERIFY:
            raise InvalidProperty(f"property verify is one of {', '.join(VERIFY)}", verify=text)
        if key == "load_rules":
            rules_from_json(text)
        if key in _LAYOUT:
            raise InvalidProperty(f"this is no property; change it with {_LAYOUT[key]}", property=key)
        if key not in _KNOWN and (close := difflib.get_close_matches(key, _KNOWN, 1, 0.8)):
            raise InvalidProperty(f"unknown property; did you mean {close[0]}", property=key)
        kept[key] = text
    policy = Policy.of(kept)
    for name in policy.index:
        if name not in columns.names or pa.types.is_nested(columns.field(name).type):
            raise InvalidProperty("property index names a column that is not there or is nested", column=name)
    return kept


def typed_scope(keys: Mapping[str, Any] | None, spec: TableSpec) -> KeyScope | None:
    """A key scope over a table's cluster columns, values as its columns hold them.

    Raises `InvalidInput` for other columns and for values that a column cannot hold.
    """
    scope = key_scope(keys)
    if scope is None:
        return None
    for column in scope:
        if column not in spec.cluster_by:
            raise InvalidKeys(
                "keys take cluster columns only; name one of cluster_by",
                column=column,
                cluster_by=",".join(spec.cluster_by) or "none",
            )
    return key_scope({name: [typed_value(one, spec.schema.field(name)) for one in scope[name]] for name in scope})

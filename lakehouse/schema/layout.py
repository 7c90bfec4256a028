"""What a definition becomes by changes of its layout: cluster columns, primary key, time chunks. No file is touched.

A segment says itself which hash buckets it has and where its rows lie, so that those which were written for another
layout stay right; they are only less well pruned until a compaction or `Table.rebuild` writes them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakehouse.core.chunk import Grain
from lakehouse.core.spec import TableSpec, field_id_of
from lakehouse.errors import InvalidSchema
from lakehouse.schema.changes import LayoutChange, SetClusterBy, SetGrain, SetPrimaryKey
from lakehouse.schema.define import read_cluster_columns, read_key_columns


def read_layout(given: LayoutChange) -> LayoutChange:
    """A change of the layout whose columns are listed. Raises `InvalidSchema` for what is no list of columns."""
    match given:
        case SetClusterBy(columns):
            if isinstance(columns, Mapping):
                return SetClusterBy(dict(columns))
            return SetClusterBy(dict.fromkeys(_listed(columns), 0))
        case SetPrimaryKey(columns):
            return SetPrimaryKey(_listed(columns))
        case SetGrain():
            return given


def _listed(columns: Any) -> tuple[str, ...]:
    listed = (columns,) if isinstance(columns, str) else columns
    if not isinstance(listed, tuple | list) or not all(isinstance(one, str) for one in listed):
        raise InvalidSchema("name columns of the table, such as ['client']", columns=repr(columns)[:100])
    return tuple(listed)


def laid_out(spec: TableSpec, change: LayoutChange) -> TableSpec:
    """A definition after a change of its layout. Raises `UnknownColumn` and `InvalidSchema`.

    >>> from lakehouse.schema import define_table
    >>> spec = define_table("flights", "ts TIMESTAMP, client BIGINT", time="ts", cluster_by=["client"])
    >>> after = laid_out(laid_out(spec, SetClusterBy({})), SetGrain("month"))
    >>> dict(after.cluster_by), after.declustered, after.grain.value, after.bin_grain.value
    ({}, ('client',), 'month', 'day')
    """
    match change:
        case SetClusterBy(columns):
            found = read_cluster_columns(spec.schema, columns)
            declustered = tuple(name for name in spec.scope_columns if name not in found)
            return replace(spec, cluster_by=found, declustered=declustered)
        case SetPrimaryKey(columns):
            keys = read_key_columns(spec.schema, columns)
            schema = spec.schema
            for name in keys:
                place = schema.get_field_index(name)
                schema = schema.set(place, schema.field(place).with_nullable(False))
            return replace(spec, schema=schema, primary_key=keys)
        case SetGrain(grain):
            if not spec.time:
                raise InvalidSchema("the table has no time, so that all of its rows are in one chunk", table=spec.name)
            return spec.with_grain(Grain.of(grain))


def key_fields(spec: TableSpec) -> tuple[int, ...]:
    """The columns of the primary key, by field id, which no renaming changes."""
    return tuple(field_id_of(spec.schema.field(name)) for name in spec.primary_key)

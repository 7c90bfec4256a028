"""Values of the catalog's JSON columns: statistics, key scopes and small maps, each with its type kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakehouse.core.keys import KeyScope, key_scope, renamed_scope
from lakehouse.errors import InvalidProperty
from lakehouse.schema.json_values import decode_value, encode_value


def encode_keys(keys: KeyScope | None, stored: Mapping[str, str]) -> str | None:
    """A key scope as JSON text; ``stored`` are other names of columns in the catalog (`TableSpec.stored_names`)."""
    found = renamed_scope(keys, stored)
    if found is None:
        return None
    return json.dumps({column: [encode_value(value) for value in values] for column, values in found.items()})


def decode_keys(text: str | None, current: Mapping[str, str]) -> KeyScope | None:
    """The inverse of `encode_keys`; ``current`` are names by those in the catalog (`TableSpec.current_names`)."""
    if text is None:
        return None
    held = {column: [decode_value(value) for value in values] for column, values in json.loads(text).items()}
    return renamed_scope(key_scope(held), current)


def encode_statistics(
    low: Mapping[str, Any], high: Mapping[str, Any], nulls: Mapping[str, int], buckets: Mapping[str, bytes]
) -> str:
    """Statistics by column as JSON text ``{column: [min, max, nulls]}``, and the hash buckets in hexadecimals."""
    columns = sorted({*low, *high, *nulls, *buckets})
    return json.dumps(
        {
            name: [encode_value(low.get(name)), encode_value(high.get(name)), nulls.get(name)]
            + ([buckets[name].hex()] if name in buckets else [])
            for name in columns
        }
    )


def decode_statistics(text: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, bytes]]:
    """Minimum and maximum values and hash buckets by column; the inverse of `encode_statistics`, except null counts."""
    held = {name: (*values, None)[:4] for name, values in json.loads(text).items()}
    low = {name: decode_value(one[0]) for name, one in held.items() if one[0] is not None}
    high = {name: decode_value(one[1]) for name, one in held.items() if one[1] is not None}
    return low, high, {name: bytes.fromhex(one[3]) for name, one in held.items() if one[3] is not None}


def encode_map(values: Mapping[str, str] | None) -> str | None:
    """A small map of strings as JSON text; none for an empty one."""
    if not values:
        return None
    for name, value in values.items():
        if {type(name), type(value)} != {str}:
            raise InvalidProperty("properties are a map of strings to strings", name=name, value=value)
    return json.dumps(dict(values), sort_keys=True)


def decode_map(text: str | None) -> dict[str, str]:
    """The inverse of `encode_map`."""
    if text is None:
        return {}
    loaded: dict[str, str] = json.loads(text)
    return loaded

"""Key scopes: which values of the cluster columns an operation or a tombstone is about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lakehouse.errors import InvalidKeys

KeyScope = Mapping[str, tuple[Any, ...]]
"""By column, the values that are meant; a row matches if every column's value is listed (a null if None is listed)."""


def key_scope(keys: Mapping[str, Any] | None) -> KeyScope | None:
    """Normalise ``{"client": 1}`` or ``{"client": [1, 2]}``: columns sorted, values in a tuple without repeats.

    >>> key_scope({"client": [77, 12, 77]})
    {'client': (77, 12)}
    """
    if keys is None:
        return None
    if not isinstance(keys, Mapping):
        raise InvalidKeys("keys are not a mapping; pass columns and values such as {'client': [1, 2]}", keys=keys)
    if not keys:
        raise InvalidKeys("keys name no column; leave keys out to mean every row")
    scope: dict[str, tuple[Any, ...]] = {}
    for column in sorted(keys, key=str):
        value = keys[column]
        values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
        if not values:
            raise InvalidKeys("keys list no value; leave the column out or list a value", column=column)
        try:
            scope[column] = tuple(dict.fromkeys(_same_nan(one) for one in values))
        except TypeError as error:
            raise InvalidKeys("a value of this kind cannot be a key", column=column, values=values) from error
    return scope


def scopes_overlap(one: KeyScope | None, other: KeyScope | None) -> bool:
    """Whether one row could match both; ``None`` means every row.

    >>> scopes_overlap({"client": (1, 2)}, {"client": (2,)}), scopes_overlap({"client": (1,)}, {"client": (2,)})
    (True, False)
    >>> scopes_overlap({"client": (1,)}, {"carrier": ("UA",)}), scopes_overlap(None, {"client": (1,)})
    (True, True)
    """
    if one is None or other is None:
        return True
    return all(set(one[column]) & set(other[column]) for column in one.keys() & other.keys())


def scope_matches(scope: KeyScope | None, row: Mapping[str, Any]) -> bool:
    """Whether a row's values lie in the scope.

    >>> scope_matches({"client": (1, 2)}, {"client": 2, "value": 0.5}), scope_matches(None, {})
    (True, True)
    """
    return scope is None or all(_same_nan(row[column]) in values for column, values in scope.items())


def renamed_scope(scope: KeyScope | None, names: Mapping[str, str]) -> KeyScope | None:
    """The scope with other names for its columns, where they have one.

    >>> renamed_scope({"client": (1,), "region": ("eu",)}, {"client": "customer"})
    {'customer': (1,), 'region': ('eu',)}
    """
    if scope is None or not names:
        return scope
    return {column: scope[held] for column, held in sorted((names.get(held, held), held) for held in scope)}


def _same_nan(value: Any) -> Any:
    """NaN is one key, as in both engines, though Python holds no two of them equal: let it be one object."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value

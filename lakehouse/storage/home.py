"""The mark of a warehouse: the name of the lake whose files lie there."""

from __future__ import annotations

import json

from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.exports import EXPORTS
from lakehouse.storage.warehouse import Warehouse

HOME = f"{EXPORTS}/lake.json"
"""Beside the exports, where nothing is taken for data."""
_MOST_BYTES = 4096


def read_home(warehouse: Warehouse) -> str | None:
    """The name of the lake whose warehouse it is; None for one without a mark. One request.

    Raises `SegmentUnreadable` for a mark that no release wrote, `StorageUnavailable`, `OSError`.
    """
    held = warehouse.read_small(HOME)
    return None if held is None else _name_in(held, warehouse)


def mark_home(warehouse: Warehouse, name: str) -> str:
    """Mark a warehouse, durably, unless another process has; the name that it has now."""
    made = json.dumps({"lake": name}).encode() + b"\n"
    return _name_in(warehouse.claim(HOME, made), warehouse)


def _name_in(content: bytes, warehouse: Warehouse) -> str:
    try:
        name = json.loads(content[:_MOST_BYTES])["lake"]
    except (ValueError, LookupError, TypeError):
        name = None
    if not isinstance(name, str):
        raise SegmentUnreadable(
            "the warehouse's mark is damaged; delete it, and it is written again", path=f"{warehouse.address}/{HOME}"
        )
    return name

"""Which warehouse is the lake's: a catalog that is opened with another one must not write there."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.catalog.catalog import Catalog
from lakehouse.errors import InvalidAddress
from lakehouse.storage.warehouse import Warehouse

ELSEWHERE = (
    "the lake's files are not in this warehouse, so nothing is written to it; name the warehouse that has them "
    "(LAKEHOUSE_WAREHOUSE, --warehouse)"
)


def require_home(catalog: Catalog, warehouse: Warehouse) -> bool:
    """Check that a warehouse is the one of the catalog's lake; whether that is settled, since the lake has segments.

    The catalog knows its location, which is all that is asked. At another location the warehouse is the lake's if one
    of the newest segments is there: it was moved, or goes by another name. A lake without segments is wherever it is
    written to next.

    Raises `InvalidAddress`, `StorageUnavailable`. Cost: some rows of the catalog, and elsewhere a look at one file.
    """
    recorded, newest = catalog.warehouse()
    if not is_home(recorded, newest, warehouse):
        known = {} if recorded is None else {"has_them": recorded}
        raise InvalidAddress(ELSEWHERE, warehouse=warehouse.location, missing=newest[0], **known)
    if recorded is None or (not newest and recorded != warehouse.location):
        catalog.record_warehouse(warehouse.location, recorded)
    return bool(newest)


def is_home(recorded: str | None, newest: Sequence[str], warehouse: Warehouse) -> bool:
    """Whether a warehouse is the lake's, of what the catalog says: its location, and paths of the newest segments."""
    return recorded == warehouse.location or not newest or any(_holds(warehouse, one) for one in newest)


def _holds(warehouse: Warehouse, stored: str) -> bool:
    try:
        warehouse.size(stored)
    except FileNotFoundError:
        return False
    return True

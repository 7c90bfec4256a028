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


def require_home(catalog: Catalog, warehouse: Warehouse, *, is_chosen: bool = False) -> None:
    """Check that a warehouse is the one of the catalog's lake; the first that is written to becomes it.

    The catalog knows its location, which is all that is asked. At another location the warehouse is the lake's if one
    of the newest segments is there: it was moved, or goes by another name. A lake without segments has no other sign,
    and is moved by ``is_chosen``.

    Raises `InvalidAddress`, `StorageUnavailable`. Cost: some rows of the catalog, and elsewhere a look at one file.
    """
    while True:
        recorded, newest = catalog.warehouse()
        if recorded == warehouse.location:
            return
        if not is_home(recorded, newest, warehouse) and not (is_chosen and not newest):
            raise InvalidAddress(
                ELSEWHERE,
                warehouse=warehouse.location,
                **({"has_them": recorded} if recorded else {}),
                **({"missing": newest[0]} if newest else {}),
            )
        if recorded is not None and newest:
            return  # the location stays, since both may be names of one place
        if catalog.record_warehouse(warehouse.location, recorded):
            return


def is_home(recorded: str | None, newest: Sequence[str], warehouse: Warehouse) -> bool:
    """Whether a warehouse is the lake's, of what the catalog says: its location, and paths of the newest segments."""
    if recorded == warehouse.location:
        return True
    return any(_holds(warehouse, one) for one in newest) if newest else recorded is None


def _holds(warehouse: Warehouse, stored: str) -> bool:
    try:
        warehouse.size(stored)
    except FileNotFoundError:
        return False
    return True

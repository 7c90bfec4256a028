"""Which warehouse is the lake's: a catalog that is opened with another one must not write there."""

from __future__ import annotations

from lakehouse.catalog.catalog import Catalog
from lakehouse.core.identity import Identity
from lakehouse.errors import InvalidAddress, writing_to
from lakehouse.storage.home import mark_home, read_home
from lakehouse.storage.warehouse import Warehouse

ANOTHER_LAKES = (
    "the warehouse holds the files of another catalog's lake; name the warehouse of this catalog, or a prefix of its "
    "own for a new lake"
)
ELSEWHERE = (
    "the lake's files are not in this warehouse, so nothing is written to it; name the warehouse that has them "
    "(LAKEHOUSE_WAREHOUSE, --warehouse), or move them with all that lies beside them"
)


def require_home(catalog: Catalog, warehouse: Warehouse) -> None:
    """Check that a warehouse is the one of the catalog's lake, and mark one that nobody has written to.

    The catalog knows the location that it first wrote to, which is all that is asked. At another location a mark tells:
    a small file with the lake's name, which moves with the warehouse. A warehouse of an earlier release, or one that
    has lost the mark, gets it if the newest live segment is there.

    Raises `InvalidAddress` for the warehouse of another lake and for one that is not this lake's,
    `StorageUnavailable`. Cost: a row of the catalog; elsewhere, and once for each lake, also one small file.
    """
    identity = catalog.identity()
    if identity.warehouse == warehouse.location:
        return
    with writing_to(warehouse.address, then="begin again"):
        found = read_home(warehouse)
        if found is None:
            _require_free(identity, warehouse)
            catalog.record_warehouse(warehouse.location)
            _require_free(catalog.identity(), warehouse)  # another process may have recorded another one
            found = mark_home(warehouse, identity.name)
        elif found == identity.name:
            catalog.record_warehouse(warehouse.location)
    if found != identity.name:
        raise InvalidAddress(
            ANOTHER_LAKES, warehouse=warehouse.address, catalog=catalog.url, **_first_written(identity)
        )


def is_elsewhere(identity: Identity, warehouse: Warehouse) -> bool:
    """Whether the lake has files, and they do not lie in a warehouse that has no mark."""
    if identity.live is not None:
        return not _holds(warehouse, identity.live.path)
    return identity.warehouse not in (None, warehouse.location)


def _require_free(identity: Identity, warehouse: Warehouse) -> None:
    if is_elsewhere(identity, warehouse):
        raise InvalidAddress(ELSEWHERE, warehouse=warehouse.address, **_first_written(identity))


def _first_written(identity: Identity) -> dict[str, str]:
    return {} if identity.warehouse is None else {"first_written_to": identity.warehouse}


def _holds(warehouse: Warehouse, stored: str) -> bool:
    try:
        warehouse.size(stored)
    except FileNotFoundError:
        return False
    return True

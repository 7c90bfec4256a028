"""Exports: the catalog's state beside the data files, from which a lost catalog can be recovered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lakehouse.catalog.catalog import Catalog
from lakehouse.catalog.recovery.export import Snapshot
from lakehouse.errors import InvalidArgument, writing_to
from lakehouse.storage.exports import EXPORTS, ExportWriter, discard_export, find_exports, prune_exports
from lakehouse.storage.warehouse import Warehouse

KEEP = 3
"""How many exports are kept by default."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An export: its version, its folder, and its size."""

    version: int
    path: str
    bytes: int
    tables: int
    segments: int


def write_export(catalog: Catalog, warehouse: Warehouse, *, keep: int = KEEP) -> Exported:
    """Write one state of a catalog below the warehouse, durably; then delete all but the newest ``keep`` exports.

    Raises `StorageUnavailable` if the warehouse cannot be written; nothing is deleted then. With others beside it, it
    may have been deleted for one that is newer before this returns.
    """
    if type(keep) is not int or keep < 1:
        raise InvalidArgument("keep is a number of exports of at least 1", keep=keep)
    with writing_to(warehouse.address, then="export again"):
        snapshot, path, size = _written(catalog, warehouse)
        while catalog.newest_erasure() > snapshot.version:
            discard_export(warehouse, path)  # it began before rows were erased, and holds values of them
            snapshot, path, size = _written(catalog, warehouse)
        prune_exports(warehouse, path, snapshot.folders, keep)
    stored = f"{warehouse.address}/{EXPORTS}/{path.name}"
    return Exported(snapshot.version, stored, size, len(snapshot.folders), snapshot.segments)


def _written(catalog: Catalog, warehouse: Warehouse) -> tuple[Snapshot, Path, int]:
    """A state, its export, and the export's bytes."""
    writer = ExportWriter(warehouse)
    try:
        snapshot = catalog.export(writer.write)
        path = writer.finish(snapshot.version, snapshot.folders, snapshot.segments)
        return snapshot, path, writer.bytes
    except BaseException:
        writer.abandon()
        raise


def renew_exports(catalog: Catalog, warehouse: Warehouse) -> Exported | None:
    """Replace all exports by a new one; None if there are none."""
    return write_export(catalog, warehouse, keep=1) if find_exports(warehouse) else None

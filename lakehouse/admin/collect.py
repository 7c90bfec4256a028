"""Deleting files that nothing can reach: the catalog says which, storage deletes them.

Any error ends a collection: nothing more is deleted. A file that was deleted but is still on the list is no error for
the next collection. Storage is never listed to find out what is garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lakehouse import progress
from lakehouse.catalog.forget.garbage import Batch, Collection
from lakehouse.core.expire import GRACE_SECONDS, Collected
from lakehouse.errors import StorageUnavailable, writing_to
from lakehouse.faults import reach
from lakehouse.session.session import Session
from lakehouse.storage.warehouse import Warehouse


def collect(session: Session, *, grace_seconds: float = GRACE_SECONDS, dry_run: bool = False) -> Collected:
    """Delete the folders of operations that will never commit, then the files of expired segments.

    What such operations were to put in the place of a table (CREATE OR REPLACE TABLE) is dropped. Uploads in parts that
    they began are aborted, which the catalog knows without asking the store.
    """
    collection, warehouse = session.catalog.collection(grace_seconds), session.warehouse
    if dry_run:
        return _foreseen(collection, warehouse)
    if not warehouse.exists():
        if collection.files_to_come(0):
            raise StorageUnavailable("the warehouse is not there; mount it, then collect again", path=warehouse.address)
        return Collected(0, 0, 0)  # nothing was ever written
    session.require_home()
    collection.end_late()
    session.catalog.drop_forsaken(grace_seconds)
    reach("collect.marked")
    while uploads := collection.uploads():  # before the folders: what a paused process completes now is deleted there
        warehouse.abort_uploads(uploads)
        collection.note_aborted(uploads)
    with progress.step("delete folders of ended operations", "folders") as step:
        folders = _deleted(collection.folders, _delete_folders(warehouse), collection.note_collected, warehouse, step)
    with progress.step("delete files", "files") as step:
        step.total = collection.count_files() if progress.listener() is not None else None
        files = _deleted(collection.files, _delete_files(warehouse), collection.note_deleted, warehouse, step)
    return Collected(folders.files + files.files, folders.bytes + files.bytes, folders.operations)


def _delete_folders(warehouse: Warehouse) -> Callable[[Batch], object]:
    def delete(batch: Batch) -> None:
        for path in batch.paths:
            warehouse.delete_operation(path)

    return delete


def _delete_files(warehouse: Warehouse) -> Callable[[Batch], object]:
    return lambda batch: warehouse.delete(batch.paths)


def _deleted(
    ask: Callable[[int], Batch],
    delete: Callable[[Batch], object],
    note: Callable[[Batch], None],
    warehouse: Warehouse,
    step: progress.Step,
) -> Collected:
    """Delete what the catalog names, batch by batch; ``operations`` counts the named ones."""
    found = Collected(0, 0, 0)
    for batch in _batches(ask):
        with writing_to(warehouse.address, then="collect again"):
            files, size = warehouse.measure(batch.paths)
            reach("collect.before_delete")
            delete(batch)
        reach("collect.after_delete")
        note(batch)
        step.advance(len(batch))
        found = Collected(found.files + files, found.bytes + size, found.operations + len(batch))
    return found


def _batches(ask: Callable[[int], Batch]) -> Iterator[Batch]:
    after = 0
    while batch := ask(after):
        yield batch
        after = batch.numbers[-1]


def _foreseen(collection: Collection, warehouse: Warehouse) -> Collected:
    folders = list(_batches(collection.folders_to_come))
    paths = [path for batch in (*folders, *_batches(collection.files_to_come)) for path in batch.paths]
    files, size = warehouse.measure(paths)
    return Collected(files, size, sum(len(batch) for batch in folders))

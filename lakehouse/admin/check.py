"""Checking a lake: the catalog against itself and against what is stored. Repairs only what it is asked to."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lakehouse import progress
from lakehouse.catalog.inspect.checking import Checks
from lakehouse.core.check import Checked, Finding, StoredFile
from lakehouse.core.listing import Listing
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.checksums import checksum_file
from lakehouse.storage.inspect import find_faults, list_files
from lakehouse.storage.warehouse import Warehouse

_DAY_SECONDS = 24 * 3600


def check(
    checks: Checks, warehouse: Warehouse, *, rebuild_key_frames: bool, delete_unknown: bool, content: bool = False
) -> Checked:
    """Check everything; with ``content`` also every byte of every file that has a checksum.

    Files are listed before the catalog is read, because it registers each before its first byte.
    """
    stored = list_files(warehouse)
    findings, counted = checks.findings()
    if rebuild_key_frames:
        checks.rebuild_key_frames()
        left, _ = checks.findings()
        findings = [replace(one, is_repaired=one not in left) for one in findings]
        findings += [one for one in left if one not in findings]
    files = checks.files()
    findings += _file_faults(checks, warehouse, files, content=content)
    findings += _unknown(checks, warehouse, stored, delete=delete_unknown)
    return Checked(
        segments=len(files),
        bytes=sum(one.bytes for one in files),
        deltas=counted.deltas,
        key_frames=counted.key_frames,
        findings=Listing(findings),
        forgotten=counted.forgotten,
        unsummed=sum(not one.checksum for one in files),
    )


def add_checksums(checks: Checks, warehouse: Warehouse, but: Iterable[str]) -> int:
    """Add checksums to files that have none, except some paths; return how many there were.

    Cost: every byte of these files, and writing every key frame again.
    """
    passed_over = set(but)
    made = {}
    wanted = [one for one in checks.files() if not one.checksum and one.path not in passed_over]
    with progress.step("add checksums", "files", len(wanted)) as step:
        for one in progress.counted(wanted, step):
            try:
                with warehouse.fresh(one) as path:
                    made[one.path] = checksum_file(path, one.bytes)
            except SegmentUnreadable:
                continue  # the next check reports it
    if made:
        checks.add_checksums(made)
        checks.rebuild_key_frames()
    return len(made)


def _file_faults(checks: Checks, warehouse: Warehouse, files: list[StoredFile], *, content: bool) -> Iterator[Finding]:
    with progress.step("check bytes of files" if content else "check files", "files", len(files)) as step:
        found = list(find_faults(warehouse, progress.counted(files, step), content=content))
    if found:
        still = {one.path for one in checks.files()}  # files collected meanwhile are not missing
        yield from (Finding(kind, path, problem) for path, kind, problem in found if path in still)


def _unknown(checks: Checks, warehouse: Warehouse, stored: dict[str, float], *, delete: bool) -> Iterator[Finding]:
    """Files that the catalog does not explain; those in tables' folders that are a day old are deleted on request."""
    files, folders = checks.explained()
    unknown = [path for path in sorted(stored) if path not in files and "/".join(path.split("/")[:2]) not in folders]
    old = [path for path in unknown if stored[path] < time.time() - _DAY_SECONDS]
    gone = checks.unexplained(old) if delete and old else []
    warehouse.delete(gone)
    for path in unknown:
        yield Finding("unknown", path, "no segment and no running operation has this file", path in set(gone))

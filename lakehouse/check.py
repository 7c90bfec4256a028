"""Checking a lake: the catalog against itself and against what is stored. Repairs only what it is told to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lakehouse.catalog.checking import Checks
from lakehouse.core.check import Checked, Finding
from lakehouse.core.listing import Listing
from lakehouse.storage.files import delete_files
from lakehouse.storage.inspect import find_faults, list_files

_DAY_SECONDS = 24 * 3600


def check(checks: Checks, warehouse: Path, *, rebuild_key_frames: bool, delete_unknown: bool) -> Checked:
    """Look at everything. Files are listed before the catalog is asked, which knows of each before its first byte."""
    stored = list_files(warehouse)
    findings, counted = checks.findings()
    if rebuild_key_frames:
        checks.rebuild_key_frames()
        left, _ = checks.findings()
        findings = [replace(one, is_repaired=one not in left) for one in findings]
        findings += [one for one in left if one not in findings]
    segments = checks.segments()
    findings += _file_faults(checks, warehouse, segments)
    findings += _unknown(checks, warehouse, stored, delete=delete_unknown)
    return Checked(
        segments=len(segments),
        bytes=sum(size for _, size in segments),
        deltas=counted.deltas,
        key_frames=counted.key_frames,
        findings=Listing(findings),
        forgotten=counted.forgotten,
    )


def _file_faults(checks: Checks, warehouse: Path, segments: list[tuple[str, int]]) -> Iterator[Finding]:
    found = list(find_faults(warehouse, segments))
    if found:
        still = {path for path, _ in checks.segments()}  # what was collected meanwhile is not missing
        yield from (Finding(kind, path, problem) for path, kind, problem in found if path in still)


def _unknown(checks: Checks, warehouse: Path, stored: dict[str, float], *, delete: bool) -> Iterator[Finding]:
    """Files that the catalog does not explain; those of its tables that are a day old are deleted if asked for."""
    files, folders = checks.explained()
    unknown = [path for path in sorted(stored) if path not in files and "/".join(path.split("/")[:2]) not in folders]
    old = [path for path in unknown if stored[path] < time.time() - _DAY_SECONDS]
    gone = checks.unexplained(old) if delete and old else []
    delete_files(warehouse, gone)
    for path in unknown:
        yield Finding("unknown", path, "no segment and no running operation has this file", path in set(gone))

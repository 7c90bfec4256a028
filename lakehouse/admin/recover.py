"""A new catalog for a warehouse whose catalog was lost: from the newest sound export, and from footers."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from lakehouse import progress
from lakehouse.catalog.recovery.contents import Contents
from lakehouse.catalog.recovery.recover import Rebuilding, address, require_empty
from lakehouse.core.segment import NewSegment, Segment
from lakehouse.core.spec import TableSpec
from lakehouse.errors import InvalidAddress, LakehouseError, SegmentUnreadable, coded
from lakehouse.schema import definition_from_json
from lakehouse.session.addresses import addresses
from lakehouse.storage.blocks import found_checksum
from lakehouse.storage.exports import EXPORTS, Manifest, find_exports, read_manifest, read_part
from lakehouse.storage.footer import DAMAGE, read_footers
from lakehouse.storage.holds import Holder
from lakehouse.storage.listing import DataFile, Origin, data_files, read_origin
from lakehouse.storage.opening import open_warehouse
from lakehouse.storage.verify import check_files
from lakehouse.storage.warehouse import Warehouse, fetch_all

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Data files of one operation that no export knows: it is unknown whether it was committed.

    ``start`` and ``end`` bound the rows' times. ``version`` is the one that adopted them, ``problem`` why they cannot
    be adopted.
    """

    table: str
    folder: str
    operation: str
    files: int
    bytes: int
    rows: int = 0
    start: datetime | None = None
    end: datetime | None = None
    version: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a recovery found and, unless it was a dry run, made.

    ``export`` is the folder of the export used and ``version`` its version. ``damaged`` names skipped exports,
    ``missing`` data files of the export that are absent or differ from what was committed. ``superseded`` counts files
    of known operations that no version in the export needs.
    """

    catalog: str
    warehouse: str
    export: str | None
    version: int | None
    head: int | None
    tables: tuple[str, ...]
    tags: dict[str, int]
    segments: int
    unknown: tuple[Unknown, ...] = ()
    missing: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    superseded: int = 0
    superseded_bytes: int = 0
    dry_run: bool = False


def recover(
    warehouse: str | os.PathLike[str],
    catalog: str | None = None,
    *,
    adopt: bool = False,
    dry_run: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Recovered:
    """Make a new catalog for a warehouse; nothing in the warehouse is changed.

    Parameters
    ----------
    warehouse
        The folder of the data files, and of the exports.
    catalog
        Where to make the catalog; default ``$LAKEHOUSE_CATALOG``, else SQLite in ``./.lakehouse/``.
    adopt
        Append the files that no export knows, each operation's as one commit. This may bring back rows that were
        replaced, dropped, compacted or never committed after the export.
    dry_run
        Only report what there is.
    storage_options
        Of an object store, as in `connect`.

    Raises
    ------
    InvalidInput
        The catalog is not empty, or the warehouse does not exist.

    Examples
    --------
    >>> import tempfile, lakehouse
    >>> folder = tempfile.mkdtemp()
    >>> with lakehouse.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
    ...     _ = lake.create_table("flights", "ts TIMESTAMP", time="ts")
    ...     _ = lake.export()
    >>> recover(f"{folder}/warehouse", f"sqlite:///{folder}/new.db").tables
    ('flights',)
    """
    root = open_warehouse(warehouse, storage_options)
    if not root.exists():
        raise InvalidAddress("there is no such warehouse; name the folder of the data files", warehouse=root.address)
    url, _ = addresses(catalog)
    require_empty(url)
    holder = Holder()
    export, manifest, damaged = _newest_export(root, holder)
    contents = Contents(None if export is None or manifest is None else partial(read_part, export, manifest))
    survey = _Survey(root, contents)
    survey.look()
    found = Recovered(
        catalog=address(url),
        warehouse=root.address,
        export=None if export is None else f"{root.address}/{EXPORTS}/{export.name}",
        version=None if manifest is None else manifest.version,
        head=None,
        tables=tuple(sorted(survey.names.values())),
        tags=contents.tags,
        segments=survey.segments,
        unknown=tuple(left.described for left in survey.left),
        missing=tuple(survey.missing),
        damaged=damaged,
        superseded=survey.superseded,
        superseded_bytes=survey.superseded_bytes,
        dry_run=dry_run,
    )
    return found if dry_run else _rebuild(found, url, contents, survey, adopt=adopt)


def _newest_export(warehouse: Warehouse, holder: object) -> tuple[Path | None, Manifest | None, tuple[str, ...]]:
    """The newest sound export, which can be read for as long as ``holder`` lives, and problems of newer ones."""
    damaged: list[str] = []
    for export in find_exports(warehouse):
        try:
            return export, read_manifest(warehouse, export, holder), tuple(damaged)
        except SegmentUnreadable as error:
            logger.warning("%s", coded(error))
            damaged.append(str(error))
    return None, None, tuple(damaged)


def _rebuild(found: Recovered, url: str, contents: Contents, survey: _Survey, *, adopt: bool) -> Recovered:
    rebuilding = Rebuilding(url, survey.warehouse.location)
    try:
        head = rebuilding.fill(contents)
        specs = dict(survey.known)
        for folder, spec in survey.new.items():
            specs[folder] = rebuilding.create(spec)
        unknown: list[Unknown] = []
        for left in survey.left:
            described = left.described
            if adopt and described.problem is None:
                message = f"adopted what operation {described.operation} left"
                head = rebuilding.adopt(specs[described.folder], described.operation, left.segments, message)
                described = replace(described, version=head)
            unknown.append(described)
        return replace(found, catalog=rebuilding.url, head=head, unknown=tuple(unknown))
    finally:
        rebuilding.close()


@dataclass(frozen=True, slots=True)
class _Left:
    """An operation that no export knows, and its segments if it can be adopted."""

    described: Unknown
    segments: Sequence[NewSegment] = ()


@dataclass(slots=True)
class _Survey:
    """Compares the files of an export with those in the warehouse."""

    warehouse: Warehouse
    contents: Contents
    known: dict[str, TableSpec] = field(default_factory=dict)
    """Tables of the export, by folder."""
    new: dict[str, TableSpec] = field(default_factory=dict)
    """Tables known only from footers, by folder."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of all of these, by folder."""
    left: list[_Left] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    segments: int = 0
    superseded: int = 0
    superseded_bytes: int = 0
    _dropped: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Examine everything. Cost: a listing, and the footers of files that no export knows."""
        for table in self.contents.tables:
            if table.dropped is None:
                self.known[table.spec.folder] = table.spec
                self.names[table.spec.folder] = table.spec.name
            else:
                self._dropped.add(table.spec.folder)
        with progress.step("list files", "files") as step:
            files = {file.path: file for file in progress.counted(data_files(self.warehouse), step)}
        self._take_known(files)
        left: defaultdict[tuple[str, str], list[DataFile]] = defaultdict(list)
        for file in files.values():
            if file.operation in self.contents.operations or file.path in self.contents.garbage:
                self.superseded += 1
                self.superseded_bytes += file.bytes
            else:
                left[file.operation, file.folder].append(file)
        origins = {key: self._origins(of) for key, of in sorted(left.items())}
        for (_, folder), (origin, _) in reversed(origins.items()):
            if origin is not None and folder not in self.known and folder not in self._dropped:
                self._define(folder, origin)
        with progress.step("examine unknown files", "files", sum(map(len, left.values()))) as step:
            for key, of in sorted(left.items()):
                self.left.append(self._examine(key[1], key[0], of, origins[key][1]))
                step.advance(len(of))

    def _take_known(self, files: dict[str, DataFile]) -> None:
        """Remove the export's files from those found; check those that do not match."""
        seen: set[str] = set()
        for _, state, _ in self.contents.pages():
            doubtful: list[Segment] = []
            sizes = state.segments.numbers("bytes").tolist()
            for place, (path, size) in enumerate(zip(state.segments.paths, sizes, strict=True)):
                if path in seen:
                    continue
                seen.add(path)
                file = files.pop(path, None)
                if file is None or file.bytes != size:
                    doubtful.append(state.segments[place])
            _, errors = check_files(self.warehouse, doubtful)
            self.missing.extend(str(error) for error in errors)
        self.segments = len(seen)

    def _origins(self, files: Iterable[DataFile]) -> tuple[Origin | None, str | None]:
        """The origin of an operation's files, or why it is unknown for one of them."""
        origin: Origin | None = None
        for file in files:
            try:
                origin = read_origin(self.warehouse, file)
            except SegmentUnreadable as error:
                return None, str(error)
        return origin, None

    def _define(self, folder: str, origin: Origin) -> None:
        """Define a table from its newest footer, under an unused name."""
        if folder in self.new:
            return
        try:
            spec = definition_from_json(origin.definition, origin.schema, folder=folder)
        except (LakehouseError, *DAMAGE) as error:
            logger.warning("a table cannot be made again from its footers: %s", coded(error))
            return
        if spec.name in self.names.values() or spec.name.casefold() in self.contents.views:
            spec = replace(spec, name=f"recovered_{folder[:8]}")
        self.new[folder], self.names[folder] = spec, spec.name

    def _examine(self, folder: str, operation: str, files: Sequence[DataFile], problem: str | None) -> _Left:
        described = Unknown(
            table=self.names.get(folder, ""),
            folder=folder,
            operation=operation,
            files=len(files),
            bytes=sum(file.bytes for file in files),
            problem=problem,
        )
        spec = self.known.get(folder) or self.new.get(folder)
        if spec is None and problem is None:
            dropped = folder in self._dropped
            described = replace(described, problem="its table was dropped" if dropped else "its table is not known")
        if described.problem is not None or spec is None:
            return _Left(described)
        holder = Holder()
        try:
            fetch_all(self.warehouse, files, holder=holder)
            found = read_footers(self.warehouse.root / folder / operation, [file.name for file in files], spec)
        except LakehouseError as error:
            return _Left(replace(described, problem=str(error)))
        if not found:
            return _Left(replace(described, problem="it has no rows"))
        described = replace(
            described,
            rows=sum(one.rows for one in found),
            start=min(one.start for one in found),
            end=max(one.end for one in found),
        )
        prefix = f"{folder}/{operation}"
        try:
            return _Left(described, [_segment(self.warehouse, prefix, one) for one in found])
        except SegmentUnreadable as error:
            return _Left(replace(described, problem=str(error)))


def _segment(warehouse: Warehouse, prefix: str, file: NewSegment) -> NewSegment:
    """A file to adopt, with the checksum of its current bytes. Raises `SegmentUnreadable` if it contradicts itself."""
    return replace(file, path=f"{prefix}/{file.path}", checksum=found_checksum(warehouse.root / prefix / file.path))

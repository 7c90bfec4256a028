"""The lake's tables as views of a DuckDB connection that is its caller's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.engine.duckdb import connection_with
from lakehouse.errors import InternalError, InvalidArgument, SegmentUnreadable
from lakehouse.reading.again import again_if_forgotten
from lakehouse.session.session import Session
from lakehouse.table.table import Table
from lakehouse.table.tables import table_names

if TYPE_CHECKING:
    from lakehouse.reading.scan import Scan


@dataclass(eq=False)
class _Shown:
    """What a connection shows; the versions that it needs are kept for as long as this is."""

    version: int
    scans: Mapping[str, Scan]

    def number(self) -> int:
        """The version of the lake."""
        return self.version


def open_views(session: Session, as_of: Any, tables: Sequence[str] | None) -> Any:
    """A DuckDB connection with a view for each table, or for those that are named; see `Lake.duckdb`."""
    if isinstance(tables, str) or not all(isinstance(one, str) for one in tables or ()):
        raise InvalidArgument("tables are names in a list", tables=repr(tables)[:200])

    def held() -> _Shown:
        shown = session.catalog.snapshot(lambda: _planned(session, as_of, tables))
        for scan in shown.scans.values():
            scan.hold()
        return shown

    shown = again_if_forgotten(held, as_of)
    texts = {name: scan.unfiltered_sql(is_joined=True) for name, scan in shown.scans.items()}
    try:
        return connection_with(texts, shown.number)
    except (SegmentUnreadable, InternalError):
        for scan in shown.scans.values():
            scan.check_readable()
        raise


def _planned(session: Session, as_of: Any, tables: Sequence[str] | None) -> _Shown:
    """Scans of the tables that exist at one version, from one state of the catalog."""
    version = session.catalog.resolve(as_of)
    names = table_names(session) if tables is None else list(dict.fromkeys(tables))
    _check_distinct(names)
    found = {name: session.catalog.table(name) for name in names}
    if tables is None:
        found = {name: one for name, one in found.items() if one[1] <= version}
    point = None if as_of is None else version
    scans = {name: Table(session, *one).unheld_scan(as_of=point) for name, one in found.items()}
    for scan in scans.values():
        scan.prepare()
    return _Shown(version, scans)


def _check_distinct(names: Sequence[str]) -> None:
    """Raise `InvalidArgument` for two names that DuckDB takes for one."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise InvalidArgument(
                "names of tables that differ only in case are one to DuckDB; say which you want by tables=[...]",
                tables=f"{other},{name}",
            )

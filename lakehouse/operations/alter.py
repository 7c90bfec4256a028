"""Changing a table's columns, keys and layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakehouse.core.contribution import AlterContribution
from lakehouse.core.operation import Begun, Kind
from lakehouse.core.spec import field_id_of
from lakehouse.engine.duckdb import literals as sql
from lakehouse.errors import DuplicateKey, InvalidRows, InvalidSchema
from lakehouse.operations.operation import Operation
from lakehouse.reading.scan import Scan
from lakehouse.schema import SchemaChange, altered, key_fields
from lakehouse.schema.changes import SetPrimaryKey
from lakehouse.session.session import Session


class Alter(Operation):
    """Changes the table's columns. It writes no file, takes no lock and waits for nobody.

    Its changes are made on the columns that the table has when it commits. Raises `UnknownColumn`, `InvalidName`,
    `InvalidSchema` and `InvalidRows` then, as `lakehouse.schema.alter.altered`. A new primary key is looked for in the
    rows when it begins; if others came until it commits, that raises `WriteConflict`.
    """

    kind = Kind.ALTER

    def __init__(self, session: Session, begun: Begun, *, changes: Sequence[SchemaChange], **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._changes = tuple(changes)
        self._rows_seen: int | None = None
        self._key_seen: tuple[int, ...] = ()
        if any(isinstance(one, SetPrimaryKey) and one.columns for one in changes):
            with self._ended_by_errors():
                self._check_rows()
            self._rows_seen = begun.base_version

    def _check_rows(self) -> None:
        """Refuse rows that share a primary key, or have nulls in one. Cost: the columns of the key are read."""
        spec = self._begun.table
        now = {field_id_of(column): column.name for column in spec.schema}
        wanted = key_fields(altered(spec, self._changes))
        if not now.keys() >= {*wanted}:
            raise InvalidSchema("a column that is added has one value; fill it before it is a key", table=spec.name)
        self._key_seen = wanted
        columns = tuple(now[one] for one in wanted)
        scan = Scan(
            self._session, spec, self.base_version, columns=columns, where=None, interval=None, best_effort=False,
            held_version=self.base_version,
        )  # fmt: skip
        names = [sql.name(name) for name in columns]
        counted = scan.relation().aggregate(f"{', '.join(names)}, count(*) AS _rows", ", ".join(names))
        found = counted.filter(" OR ".join(["_rows > 1", *(f"{name} IS NULL" for name in names)])).limit(1).fetchall()
        if not found:
            return
        values = dict(zip(columns, found[0], strict=False))
        if None in values.values():
            raise InvalidRows(
                "null in a column of the primary key; fill or drop such rows", table=spec.name, example=values
            )
        raise DuplicateKey(
            "rows have one key twice; drop all but one, or choose other columns", table=spec.name, example=values
        )

    def _contribution(self) -> AlterContribution:
        return AlterContribution(
            **self._written, changes=self._changes, rows_seen=self._rows_seen, key_seen=self._key_seen
        )

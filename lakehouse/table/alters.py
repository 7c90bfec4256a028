"""Changes of a table's columns. Each is one version; no file is written or read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakehouse.core.commit import Commit
from lakehouse.core.listing import Listing
from lakehouse.core.spec import TableSchema, TableSpec
from lakehouse.errors import InvalidProperty, InvalidSchema
from lakehouse.operations.alter import Alter
from lakehouse.schema import SchemaChange, altered, read_table_properties
from lakehouse.schema.alter import read_change
from lakehouse.schema.changes import (
    AddColumn,
    CommentColumn,
    DropColumn,
    MakeNullable,
    MoveColumn,
    Name,
    RenameColumn,
    SetDefault,
    WidenColumn,
)
from lakehouse.schema.difference import column_changes
from lakehouse.table.begins import as_altered, marks_of
from lakehouse.table.writes import Writes


class Alters(Writes):
    """Changes of one table's columns.

    ``name`` is a column, or the path of a part of one: ``("a", "b")`` is the field b of the struct a,
    ``("l", "element", "p")`` the field p of the structs in the list l; ``key`` and ``value`` are those of a map.

    Rows that are there, and operations that run, are not touched: files know under which schema they were written, and
    readers make the table's columns of theirs. A version keeps the columns that it had. Cost: one commit, whatever the
    table's size. All of them raise `UnknownColumn`, `InvalidName`, `InvalidSchema` and `TableNotFound`, and change
    nothing then.

    Examples
    --------
    >>> before = flights.version
    >>> added = flights.add_column("gate", "STRING", default="A1", after="carrier")
    >>> renamed = flights.rename_column("delay", "late")
    >>> flights.scan(where="late > 10").to_arrow().select(["gate", "late"]).to_pylist()
    [{'gate': 'A1', 'late': 30}]
    >>> flights.scan(as_of=before).to_arrow().column_names
    ['at', 'id', 'carrier', 'delay']
    """

    def set_properties(self, properties: Mapping[str, Any]) -> Commit:
        """Change properties; None removes one. Rows do not change. Raises `InvalidInput`.

        Appends through objects of this table that others opened before go by the old ones until `refresh`.
        """
        if not isinstance(properties, Mapping):
            raise InvalidProperty("properties map text to text", table=self.name, properties=repr(properties)[:100])

        def changed(spec: TableSpec) -> Mapping[str, str]:
            kept = {name: held for name, held in {**spec.properties, **properties}.items() if held is not None}
            return read_table_properties(kept, spec.schema)

        changed(self._spec)
        self._spec, commit = self._session.catalog.set_properties(self.name, changed)
        return commit

    def alter(
        self,
        changes: Sequence[SchemaChange],
        *,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Several changes as one version, all or none: values of `lakehouse.schema.changes`."""
        with self.begin_alter(changes, message=message, properties=properties) as op:
            commit = op.commit()
        self.refresh()
        return commit

    @as_altered
    def begin_alter(
        self,
        changes: Sequence[SchemaChange],
        *,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Alter:
        """Begin changes of columns, to `commit`."""
        if not isinstance(changes, Iterable):
            raise InvalidSchema("changes are a list of those of lakehouse.schema", changes=repr(changes)[:200])
        listed = [read_change(one) for one in changes]
        altered(self._spec, listed)  # what is wrong now is refused before anything begins
        text = "; ".join(map(str, listed))[:1000] if message is None else message
        return self._begin(Alter, marks_of(text, properties), changes=listed)

    def add_column(
        self,
        name: Name,
        type: Any,
        *,
        default: Any = None,
        default_for_new: Any = ...,
        after: str | None = None,
        first: bool = False,
        comment: str | None = None,
    ) -> Commit:
        """Add a column, last or in another place; ``type`` is Arrow's, Spark's or text in DDL.

        Rows that are there have the value ``default`` in it (None: null), rows that are written without it later
        ``default_for_new``, if it is given, else the same. Raises `InvalidRows` for a value that the type cannot hold.
        """
        for_new = default if default_for_new is ... else default_for_new
        return self.alter([AddColumn(name, type, default, for_new, after, first, "" if comment is None else comment)])

    def drop_column(self, name: Name) -> Commit:
        """Drop a column. Earlier versions still have it; a later column of its name is another one."""
        return self.alter([DropColumn(name)])

    def rename_column(self, name: Name, new: str) -> Commit:
        """Give a column another name."""
        return self.alter([RenameColumn(name, new)])

    def move_column(self, name: Name, *, after: str | None = None, first: bool = False) -> Commit:
        """Put a column first, or after another one; last if neither is given."""
        return self.alter([MoveColumn(name, after, first)])

    def widen_column(self, name: Name, type: Any) -> Commit:
        """Give a column a type that holds all of its values.

        A longer integer; DOUBLE of FLOAT; a decimal with as many digits before and after the point, also of an integer;
        a timestamp of a date (midnight, UTC). Of a primary key only a longer integer.
        """
        return self.alter([WidenColumn(name, type)])

    def make_nullable(self, name: Name) -> Commit:
        """Let a column take nulls."""
        return self.alter([MakeNullable(name)])

    def comment(self, text: str | None, column: Name | None = None) -> Commit:
        """What people read about a column, or without one about the table (its property ``comment``)."""
        if column is None:
            return self.set_properties({"comment": text})
        return self.alter([CommentColumn(column, "" if text is None else text)])

    def set_default(self, name: Name, value: Any) -> Commit:
        """What rows that are written without a column have in it from now on; None: it must be given."""
        return self.alter([SetDefault(name, value)])

    def schemas(self) -> Listing[TableSchema]:
        """The columns that the table had, oldest first, each with the version from which on, and what had changed."""
        found = self._session.catalog.definitions(self._spec, self._created_version)
        before = [None, *(spec for _, spec in found)]
        return Listing(
            TableSchema(version, spec.schema, () if old is None else tuple(map(str, column_changes(old, spec))))
            for old, (version, spec) in zip(before, found, strict=False)
        )

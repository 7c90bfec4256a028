"""Changes of a table's columns. Each is one version; no file is written or read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from lakehouse.arguments import TypeLike
from lakehouse.core.commit import Commit
from lakehouse.core.listing import Listing
from lakehouse.core.spec import TableSchema, TableSpec
from lakehouse.errors import InvalidProperty, InvalidSchema, WriteConflict
from lakehouse.operations.operation import Operation, commit_together
from lakehouse.schema.changes import (
    AddColumn,
    CommentColumn,
    DropColumn,
    MakeNullable,
    MoveColumn,
    Name,
    RenameColumn,
    SetClusterBy,
    SetDefault,
    SetGrain,
    SetPrimaryKey,
    WidenColumn,
)
from lakehouse.schema.difference import column_changes
from lakehouse.table.begins import as_altered, marks_of
from lakehouse.table.writes import Writes

if TYPE_CHECKING:
    from lakehouse.operations.alter import Alter
    from lakehouse.schema import SchemaChange


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

    def set_properties(self, properties: Mapping[str, str | float | None]) -> Commit:
        """Change properties; None removes one. Rows do not change. Raises `InvalidInput`.

        Appends through objects of this table that others opened before go by the old ones until `refresh`.
        """
        from lakehouse.schema import read_table_properties  # noqa: PLC0415 - late

        if not isinstance(properties, Mapping):
            raise InvalidProperty("properties map text to text", table=self.name, properties=repr(properties)[:100])

        def changed(spec: TableSpec) -> Mapping[str, str]:
            kept = {name: held for name, held in {**spec.properties, **properties}.items() if held is not None}
            return read_table_properties(kept, spec.schema, has_time=bool(spec.time))

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
        from lakehouse.operations.retry import retried  # noqa: PLC0415 - late

        def attempt() -> Commit:
            with self.begin_alter(changes, message=message, properties=properties) as op:
                return op.commit()

        commit = retried(attempt, on=WriteConflict, wait_seconds=self._session.wait_seconds)
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
        from lakehouse.operations.alter import Alter  # noqa: PLC0415 - late
        from lakehouse.schema import altered  # noqa: PLC0415 - late
        from lakehouse.schema.alter import read_change  # noqa: PLC0415 - late

        if not isinstance(changes, Iterable):
            raise InvalidSchema("changes are a list of those of lakehouse.schema", changes=repr(changes)[:200])
        listed = [read_change(one) for one in changes]
        altered(self._spec, listed)  # what is wrong now is refused before anything begins
        text = "; ".join(map(str, listed))[:1000] if message is None else message
        return self._begin(Alter, marks_of(text, properties), changes=listed)

    def add_column(
        self,
        name: Name,
        type: TypeLike,
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

    def widen_column(self, name: Name, type: TypeLike) -> Commit:
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

    def set_cluster_by(self, columns: Sequence[str] | Mapping[str, int] | str = ()) -> Commit:
        """Cluster what is written from now on by other columns (with numbers of hash buckets), or by none.

        Files that are there stay right, and are less well pruned by the new columns until `compact` or `rebuild` writes
        them again. Columns by which the table was clustered can no longer be renamed, widened or dropped: replaces may
        have named rows by their values.

        >>> commit = flights.set_cluster_by({"carrier": 64})
        >>> flights.cluster_by
        {'carrier': 64}
        """
        return self.alter([SetClusterBy(columns)])

    def set_primary_key(self, columns: Sequence[str] | str = ()) -> Commit:
        """Give the table another primary key, or none. The rows are looked at before it is accepted.

        Cost: the columns of the key are read; appends that come meanwhile make it look again. Raises `DuplicateKey` and
        `InvalidRows` for rows that share a key or have nulls in it, and `InvalidSchema` while tombstones name rows by
        the key that there is: call `resolve` first.

        >>> commit = flights.set_primary_key("id")
        >>> flights.primary_key
        ('id',)
        """
        return self.alter([SetPrimaryKey(columns)])

    def set_grain(self, grain: str) -> Commit:
        """Divide time otherwise: ``hour``, ``day``, ``week``, ``month`` or ``year``, for what is written from now on.

        Files that are there may then span time chunks, or share one; compactions bring them to the new ones.
        """
        return self.alter([SetGrain(grain)])

    def rebuild(
        self,
        *,
        cluster_by: Sequence[str] | Mapping[str, int] | str | None = None,
        primary_key: Sequence[str] | str | None = None,
        grain: str | None = None,
        engine: str | None = None,
        wait_seconds: float | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Write every file anew, for another layout if one is given, as one version.

        The rows, their ids, the table's name and its history stay; earlier versions read as they were. Appends,
        deletes, updates and upserts go on beside it; replaces wait for it, and it for them, up to ``wait_seconds``.
        Cost: all rows are read, sorted by chunk and written. Raises `LockTimeout`, and as `set_primary_key`.

        >>> commit = flights.rebuild(grain="month", cluster_by=["carrier"])
        >>> flights.grain, flights.count(), len(flights.segments())
        ('month', 3, 1)
        """
        from lakehouse.operations.retry import retried  # noqa: PLC0415 - late
        from lakehouse.schema.alter import read_change  # noqa: PLC0415 - late

        changes: list[SchemaChange] = []
        if cluster_by is not None:
            changes.append(SetClusterBy(cluster_by))
        if primary_key is not None:
            changes.append(SetPrimaryKey(primary_key))
        if grain is not None:
            changes.append(SetGrain(grain))
        text = "; ".join(map(str, map(read_change, changes))) or None
        marks = marks_of(text if message is None else message, properties)
        wait = self._wait(wait_seconds)
        commit = retried(lambda: self._rebuild(changes, engine, wait, marks), on=WriteConflict, wait_seconds=wait)
        self.refresh()
        return commit

    @as_altered
    def _rebuild(
        self, changes: Sequence[SchemaChange], engine: str | None, wait_seconds: float, marks: dict[str, Any]
    ) -> Commit:
        from lakehouse.schema import altered  # noqa: PLC0415 - late

        wanted = altered(self._spec, changes) if changes else self._spec
        with ExitStack() as stack:
            operations: list[Operation] = []
            if changes:
                operations.append(stack.enter_context(self.begin_alter(changes)))
            rewrite = stack.enter_context(self.begin_rewrite(wanted, engine, wait_seconds))
            rewrite.run()
            operations.append(rewrite)
            return commit_together(self._session, operations, marks["message"], marks["properties"])

    def schemas(self) -> Listing[TableSchema]:
        """The columns that the table had, oldest first, each with the version from which on, and what had changed."""
        found = self._session.catalog.definitions(self._spec, self._created_version)
        before = [None, *(spec for _, spec in found)]
        return Listing(
            TableSchema(version, spec.schema, () if old is None else tuple(map(str, column_changes(old, spec))))
            for old, (version, spec) in zip(before, found, strict=False)
        )

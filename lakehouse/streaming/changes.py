"""Changes of rows, applied in the order of their sequence however late, often or split they arrive.

Beside the table lies a timeless one that remembers, by key, what was applied last: without it a late insert would bring
back a key whose delete came first. Every batch rewrites the rows there of the keys that it changes, so that two batches
about one key conflict, and the later is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.arguments import Fit, Rows, Txn, read_fit, read_message, read_properties, read_txn
from lakehouse.core.beside import beside
from lakehouse.core.commit import Commit
from lakehouse.core.spec import TableSpec
from lakehouse.core.widening import is_wider
from lakehouse.engine.conform import Fills, check_there, conform
from lakehouse.engine.duckdb.connection import open_memory
from lakehouse.engine.duckdb.literals import listed, name
from lakehouse.engine.duckdb.source import tables
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidArgument, InvalidRows, InvalidSchema, WriteConflict
from lakehouse.operations.append import Append
from lakehouse.operations.clauses import When, Whens
from lakehouse.operations.retry import retried
from lakehouse.operations.row_change import require_columns
from lakehouse.operations.upsert import DeleteKeys, require_keys
from lakehouse.predicate import parse
from lakehouse.predicate.literals import is_one_of
from lakehouse.schema import from_spark_schema, merging
from lakehouse.schema.changes import WidenColumn
from lakehouse.table.remembered import keys_property, open_remembered
from lakehouse.table.table import Table
from lakehouse.table.tables import create_table, open_table
from lakehouse.table.transaction import Transaction, committed_once

START, END = "__START_AT", "__END_AT"
"""Of a table that keeps every state of a row: from which sequence on it was so, and up to which; null: still is."""
_SEQUENCE, _DELETED, _DIGEST, _DELETES = "lake_sequence", "lake_deleted", "lake_digest", "lake_deletes"
_MOST_LISTED = 2000
PART_ROWS = 1_000_000
"""About how many changes are in memory at a time. Those of one key are always together."""
_ALWAYS = Whens((When("TRUE", True),), (When(None, True),))
"""What is no upsert, so that two that insert one key conflict."""


def apply_changes(
    table: Table,
    rows: Rows,
    *,
    sequence_by: str,
    keys: Sequence[str] | str | None = None,
    deletes: str | None = None,
    scd: int = 1,
    schema: Fit = "strict",
    txn: Txn | None = None,
    message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Commit | None:
    """Apply changes of rows in the order of ``sequence_by``; None if all of them were known.

    Any split of the same changes into batches, in any order and with repetitions, gives the same table.

    Parameters
    ----------
    rows
        A row for each change: the new row, or for a delete its key and sequence. Those of Spark are read into memory
        in parts of about `PART_ROWS`, by key; of all keys together only what is remembered of each.
    sequence_by
        A column that says which change of a key is later; never null. Of two changes with one sequence a delete wins,
        else the row with the greater digest of its values: the same one, however they arrive.
    keys
        The columns that identify a row: the table's primary key, in ``scd=2`` without ``__START_AT``.
    deletes
        A SQL predicate over the rows: those that are deletes. Columns that the table lacks are left out.
    scd
        1: the table has the newest state of each key. 2: it has every state, each with the sequences at which it began
        and ended, in ``__START_AT`` and ``__END_AT``; its primary key ends with ``__START_AT``.
    schema
        What becomes of rows with other columns than the table's, as for `Table.append`. With ``merge`` columns are made
        in a version before that of the rows. ``sequence_by`` and columns that ``deletes`` names are none of them.

    Raises
    ------
    InvalidInput
        Arguments or rows that do not fit.
    WriteConflict
        Other batches kept changing the same keys until the lake's ``wait_seconds`` elapsed.

    Examples
    --------
    >>> from lakehouse.streaming import apply_changes
    >>> made = apply_changes(flights, late.append_column("n", [[5, 6]]), sequence_by="n")
    >>> flights.scan(where="id IN (1, 4)").to_arrow()["delay"].to_pylist()
    [42, 7]
    >>> apply_changes(flights, late.append_column("n", [[4, 6]]), sequence_by="n") is None
    True
    """
    said, more = read_message(message), read_properties(properties)
    mark = read_txn(txn)
    change = _Changes(table, keys, sequence_by, deletes, scd, schema)
    kept: Any = rows
    if is_spark_frame(kept):
        kept = kept.persist()  # it is counted, then read part by part
    try:
        parts = change.parts(kept)

        def attempt() -> Commit | None:
            return committed_once(
                table, mark, lambda transaction: change.write(transaction, parts), message=said, properties=more
            )

        return retried(attempt, on=WriteConflict, wait_seconds=table.session.wait_seconds)
    finally:
        if is_spark_frame(kept):
            kept.unpersist()


class _Changes:
    """How changes are applied to a table, and what beside it remembers them."""

    def __init__(self, table: Table, keys: Any, sequence_by: Any, deletes: str | None, scd: Any, fit: Fit) -> None:
        table.refresh()
        self._table, self._spec = table, table.spec
        _refuse_own(self._spec, self._spec.schema.names)
        self._keys, self._sequence, self._deletes, self._scd = (
            read_keys(self._spec, keys, sequence_by, scd),
            sequence_by,
            deletes,
            scd,
        )
        self._fit = read_fit(fit)

    @property
    def _columns(self) -> list[str]:
        hidden = (START, END) if self._scd == 2 else ()
        return [one for one in self._spec.schema.names if one not in hidden]

    def parts(self, rows: Any) -> Callable[[], Iterator[pa.Table]]:
        """What reads the changes, as often as it is called, in parts that have no key in common."""
        if not is_spark_frame(rows):
            given = pa.concat_tables(tables(rows, pa.schema([self._spec.schema.field(one) for one in self._columns])))
            self._make_columns(given.schema)
            held = self._read(given)
            return lambda: iter([held])
        self._make_columns(from_spark_schema(rows.schema))
        count = max(1, -(-rows.count() // PART_ROWS))
        if count == 1:
            held = self._read(pa.table(rows.toArrow()))
            return lambda: iter([held])
        from pyspark.sql import functions  # noqa: PLC0415 - the rows are its own, so that it is loaded

        check_there(self._keys, rows.columns)
        place = functions.pmod(functions.xxhash64(*map(functions.col, self._keys)), functions.lit(count))
        return lambda: (self._read(pa.table(rows.where(place == one).toArrow())) for one in range(count))

    def _make_columns(self, found: pa.Schema) -> None:
        """With ``merge``, the columns that the table lacks."""
        if self._fit != "merge":
            return
        # What only orders the changes is no column of the row.
        ours = set(self._columns) | set(found.names) - self._tolerated(found)
        wanted = pa.schema([one for one in found if one.name in ours])
        _refuse_own(self._spec, wanted.names)

        def attempt() -> None:
            self._table.refresh()
            if changes := merging(self._table.spec, wanted):
                self._table.alter(changes)

        retried(attempt, on=WriteConflict, wait_seconds=self._table.session.wait_seconds)
        self._table.refresh()
        self._spec = self._table.spec

    def _tolerated(self, found: pa.Schema) -> set[str]:
        """Columns that rows may have though the table has not."""
        return {self._sequence} | (set(parse(self._deletes, found).columns) if self._deletes else set())

    def _read(self, given: pa.Table) -> pa.Table:
        """The changes: the table's columns, `_SEQUENCE`, `_DELETED` and `_DIGEST`; of each key and sequence one."""
        check_there([*self._keys, self._sequence], given.column_names)
        if given.column(self._sequence).null_count:
            raise InvalidRows("a change without a sequence cannot be ordered; fill or drop it",
                              table=self._spec.name, column=self._sequence)  # fmt: skip
        if self._deletes is None:
            is_deleted = _flags(len(given), False)
        else:
            where = parse(self._deletes, given.schema).sql("duckdb")
            asked = _ask(f"SELECT coalesce({where}, FALSE) AS it FROM given", given=given)  # noqa: S608
            is_deleted = pa.concat_arrays([_flags(0, False), *asked.column("it").chunks])
        named = set(self._columns)
        tolerated = set(given.column_names) if self._fit == "ignore" else self._tolerated(given.schema)
        kept = given.select([one for one in given.column_names if one in named or one not in tolerated])
        sequence = given.column(self._sequence).cast(self._kind(given.schema))
        key_schema = pa.schema([self._spec.schema.field(one).remove_metadata() for one in self._keys])
        gone = require_keys(conform(given.filter(is_deleted).select(self._keys), key_schema), self._spec)
        schema = pa.schema([self._spec.schema.field(one) for one in self._columns])
        fills = Fills(
            {k: v for k, v in self._spec.defaults_for_new.items() if k in named}, is_lenient=self._fit != "strict"
        )
        there = conform(kept.filter(pc.invert(is_deleted)), schema, fills=fills)
        require_keys(there.select(self._keys), self._spec)
        there = there.append_column(_SEQUENCE, sequence.filter(pc.invert(is_deleted)))
        gone = gone.append_column(_SEQUENCE, sequence.filter(is_deleted))
        both = _plain(there).append_column(_DELETED, _flags(len(there), False))
        both = pa.concat_tables(
            [both, _plain(gone).append_column(_DELETED, _flags(len(gone), True))], promote_options="default"
        )
        return _ask(
            f"""SELECT *, {self._digest()} AS lake_digest FROM mixed
            QUALIFY row_number() OVER (
                PARTITION BY {self._listed}, lake_sequence ORDER BY lake_deleted DESC, lake_digest DESC) = 1""",  # noqa: S608
            mixed=both,
        )

    def write(self, transaction: Transaction, parts: Callable[[], Iterator[pa.Table]]) -> None:
        """Write what is newer than what is known, at one state of the lake."""
        written: tuple[DeleteKeys, Append] | None = None
        remembered: list[pa.Table] = []
        memory: Table | None = None
        version = 0
        for given in parts():
            if memory is None:
                memory = self._beside(given.schema.field(_SEQUENCE).type)
                version = self._table.session.catalog.head()
            known = self._of_keys(memory, given, version)
            gone, come, noted = (self._newest if self._scd == 1 else self._histories)(given, known, version)
            if not len(noted):
                continue
            if written is None:
                there = transaction.table(self._table.name)
                written = there.delete_keys(gone), there.append(come)
            else:
                written[0].write(gone)
                written[1].write(come)
            remembered.append(noted)
        if memory is None or not remembered:
            return
        merged = pa.concat_tables(remembered)
        noted = transaction.table(memory.name).merge_when(merged, list(self._keys), _ALWAYS)
        if memory.version_at(noted.base_version) != memory.version_at(version):
            raise WriteConflict("other changes were applied meanwhile; apply these again", table=self._table.name)

    def _newest(self, given: pa.Table, known: pa.Table, _: int) -> tuple[pa.Table, pa.Table, pa.Table]:
        mine, other = (f"({side}.lake_sequence, {side}.lake_deleted, {side}.lake_digest)" for side in "nk")
        won = _ask(
            f"""WITH n AS (
                SELECT * FROM given
                QUALIFY row_number() OVER (PARTITION BY {self._listed} ORDER BY lake_sequence DESC) = 1)
            SELECT n.* FROM n LEFT JOIN known k USING ({self._listed})
            WHERE k.lake_sequence IS NULL OR {mine} > {other}""",  # noqa: S608
            given=given,
            known=known,
        )
        come = won.filter(pc.invert(won.column(_DELETED))).select(self._columns)
        return won.select(self._keys), come, won.select([*self._keys, _SEQUENCE, _DELETED, _DIGEST])

    def _histories(self, given: pa.Table, known: pa.Table, version: int) -> tuple[pa.Table, pa.Table, pa.Table]:
        there = self._of_keys(self._table, given, version)
        by, columns, start, end = self._listed, listed(map(name, self._columns)), name(START), name(END)
        on = " AND ".join(f"s.{key} = t.{key}" for key in map(name, self._keys))
        events = f"""CREATE TABLE event AS SELECT * FROM (
                SELECT {columns}, lake_sequence, lake_deleted, lake_digest FROM given
                UNION ALL BY NAME
                SELECT {columns}, {start} AS lake_sequence, FALSE AS lake_deleted, lake_digest FROM held
                UNION ALL BY NAME
                SELECT {by}, unnest(lake_deletes) AS lake_sequence, TRUE AS lake_deleted, '' AS lake_digest
                FROM known SEMI JOIN given USING ({by}))
            QUALIFY row_number() OVER (
                PARTITION BY {by}, lake_sequence ORDER BY lake_deleted DESC, lake_digest DESC) = 1"""  # noqa: S608
        states = f"""CREATE TABLE state AS SELECT * EXCLUDE (lake_deleted) FROM (
                SELECT *, lead(lake_sequence) OVER (PARTITION BY {by} ORDER BY lake_sequence) AS {end} FROM event)
            WHERE NOT lake_deleted"""  # noqa: S608
        same = f"""{on} AND s.lake_sequence = t.{start} AND s.{end} IS NOT DISTINCT FROM t.{end}
            AND s.lake_digest = t.lake_digest"""
        connection = open_memory()
        try:
            for one, rows in {"given": given, "known": known, "there": there}.items():
                connection.register(one, rows)
            connection.execute(
                f"""CREATE TABLE held AS SELECT *, {self._digest()} AS lake_digest
                FROM there SEMI JOIN given USING ({by})"""  # noqa: S608
            )
            connection.execute(events)
            connection.execute(states)
            connection.execute(f"CREATE TABLE come AS SELECT * FROM state s ANTI JOIN held t ON {same}")  # noqa: S608
            come = connection.sql(
                f"SELECT * EXCLUDE (lake_digest, lake_sequence), lake_sequence AS {start} FROM come"  # noqa: S608
            ).to_arrow_table()
            connection.execute(
                f"""CREATE TABLE moved AS SELECT {by}, lake_sequence AS {start} FROM come
                UNION SELECT {by}, {start} FROM held t ANTI JOIN state s ON {same}"""  # noqa: S608
            )
            gone = connection.sql("SELECT * FROM moved").to_arrow_table()
            remembered = connection.sql(
                f"""SELECT s.* FROM (
                    SELECT {by}, coalesce(list(lake_sequence ORDER BY lake_sequence) FILTER (lake_deleted), [])
                        AS lake_deletes FROM event GROUP BY {by}) s
                WHERE EXISTS (SELECT 1 FROM moved t WHERE {on})
                    OR NOT EXISTS (SELECT 1 FROM known t WHERE {on} AND s.lake_deletes = t.lake_deletes)"""  # noqa: S608
            ).to_arrow_table()
        finally:
            connection.close()
        return gone, come, remembered

    def _of_keys(self, table: Table, given: pa.Table, version: int) -> pa.Table:
        """A table's rows with one of the keys, and few others."""
        where = self._where(given)
        scan = table.scan(where=where, as_of=version)
        if where is not None:
            return _plain(scan.to_arrow())
        reader = scan.to_reader()  # the table may be far larger than memory
        keys = _plain(given.select(self._keys))
        alike = f"SELECT * FROM found SEMI JOIN wanted USING ({self._listed})"  # noqa: S608
        found = [_plain(pa.Table.from_batches([], schema=reader.schema))]
        found += [_ask(alike, found=_plain(pa.Table.from_batches([one])), wanted=keys) for one in reader]
        return pa.concat_tables(found, promote_options="permissive")

    def _beside(self, kind: pa.DataType) -> Table:
        """The table that remembers, made with the first changes; its keys and sequence are as wide as those of now."""
        session, spec = self._table.session, self._spec
        held: Table | None = open_remembered(lambda one: open_table(session, one), spec)
        if held is None:
            keys = [pa.field(one, spec.schema.field(one).type, nullable=False) for one in self._keys]
            own = (
                [pa.field(_SEQUENCE, kind), pa.field(_DELETED, pa.bool_()), pa.field(_DIGEST, pa.string())]
                if self._scd == 1
                else [pa.field(_DELETES, pa.list_(kind))]
            )
            held = create_table(session, beside(spec.folder), pa.schema([*keys, *own]), primary_key=self._keys,
                                properties=keys_property(spec, self._keys), if_not_exists=True)  # fmt: skip
        if not {*self._keys, _SEQUENCE if self._scd == 1 else _DELETES} <= set(held.schema.names):
            raise InvalidArgument(
                "earlier changes of the table were applied with another scd or other keys; go on with those, or apply "
                "all changes to a new table",
                table=spec.name,
                scd=1 if _SEQUENCE in held.schema.names else 2,
                keys=held.primary_key,
            )
        known = self._known_kind(held)
        if is_wider(kind, known):
            held.alter([WidenColumn(_SEQUENCE if self._scd == 1 else (_DELETES, "element"), kind)])
        elif kind != known and not is_wider(known, kind):
            raise InvalidRows(
                "the sequence had another type in earlier changes, and cannot be compared with theirs; cast it to that "
                "type, or apply all changes to a new table",
                table=spec.name,
                column=self._sequence,
                type=kind,
                known=known,
            )
        return held

    def _known_kind(self, held: Table) -> pa.DataType:
        """The type of the sequences that are remembered."""
        kind = held.schema.field(_SEQUENCE if self._scd == 1 else _DELETES).type
        return kind if self._scd == 1 else kind.value_type

    def _kind(self, given: pa.Schema) -> pa.DataType:
        if self._scd == 2:
            return self._spec.schema.field(START).type
        held = self._spec.schema if self._sequence in self._spec.schema.names else given
        return held.field(self._sequence).type

    def _where(self, given: pa.Table) -> str | None:
        """A filter that every row with one of the keys passes."""
        parts = []
        for one in self._keys:
            kind = self._spec.schema.field(one).type
            values = given.column(one).unique()
            if len(values) <= _MOST_LISTED and (pa.types.is_integer(kind) or pa.types.is_string(kind)):
                parts.append(is_one_of(one, values.to_pylist()))
        return " AND ".join(parts) or None

    def _digest(self) -> str:
        """A text by which two rows with other values differ."""
        told = [one for column in map(name, self._columns) for one in (column, f"{column} IS NULL")]
        return f"md5(CAST(row({listed(told)}) AS VARCHAR))"

    @property
    def _listed(self) -> str:
        return listed(map(name, self._keys))


def _refuse_own(spec: TableSpec, names: Iterable[str]) -> None:
    """Raise `InvalidSchema` for columns with names that are used here beside the table's."""
    taken = sorted({_SEQUENCE, _DELETED, _DIGEST, _DELETES} & {one.lower() for one in names})
    if taken:
        raise InvalidSchema(
            "changes are kept in columns of such a name; give the table's another one, by rename_column",
            table=spec.name,
            columns=taken,
        )


def read_keys(spec: TableSpec, keys: Any, sequence_by: Any, scd: Any) -> list[str]:
    """The columns of the keys, once the arguments are found to fit the table."""
    if scd not in (1, 2) or isinstance(scd, bool):
        raise InvalidArgument("scd is 1, the newest state of each key, or 2, every state", scd=repr(scd)[:50])
    if not isinstance(sequence_by, str):
        raise InvalidArgument("sequence_by names the column that orders changes", sequence_by=repr(sequence_by)[:100])
    if scd == 2:
        require_columns((START, END), spec)
    wanted = [one for one in spec.primary_key if scd == 1 or one != START]
    given = wanted if keys is None else [keys] if isinstance(keys, str) else list(keys)
    needed = {*given, START} if scd == 2 else set(given)
    if not given or set(spec.primary_key) != needed:
        raise InvalidArgument(
            "changes go by the table's primary key: the keys, and in scd=2 also __START_AT; define it so",
            keys=given,
            primary_key=spec.primary_key,
        )
    return given


def _flags(count: int, value: bool) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)


def _plain(rows: pa.Table) -> pa.Table:
    return rows.replace_schema_metadata(None).cast(pa.schema([field.remove_metadata() for field in rows.schema]))


def _ask(statement: str, **given: pa.Table) -> pa.Table:
    connection: duckdb.DuckDBPyConnection = open_memory()
    try:
        for held, rows in given.items():
            connection.register(held, rows)
        return connection.sql(statement).to_arrow_table()
    finally:
        connection.close()

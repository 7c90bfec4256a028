"""A read plan as one DuckDB query over explicit lists of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.column import Held, Layout, holds_plainly, stored_name
from lakehouse.core.segment_columns import HIGH, LOW, NULLS
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import ROW_ID, TableSpec, field_id_of
from lakehouse.engine import ORDINAL, ROW_ID_FIELD, Query, require_held
from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.hidden import KeyMask, Part, columns_read
from lakehouse.predicate.literals import literal_term
from lakehouse.predicate.term import Term
from lakehouse.schema import default_of

_EXTRAS = {ROW_ID: pa.int64(), ORDINAL: pa.int64()}
_VIRTUAL = {"file_index", "file_row_number"}
"""Columns that DuckDB adds to every file, unless a column of the file has their name."""
_NOTHING = "0: {name: '_', type: 'BOOLEAN', default_value: NULL}"
"""A column that no file has, since DuckDB needs one: field ids begin at 1."""
_BITS_OF_SIZE = 3
"""Files differ by less than a factor of eight where they count as of like size."""
_WRONG_BY = 3
"""How wrong, as a factor, a guess of the rows in several files may be for them to stay in one list.

Where it was wrong by 2.6, a union of lists that are guessed well cost more: DuckDB joins a correlated sub-query on a
union without a filter from the other side (benchmarks/README.md)."""


def result_schema(query: Query) -> pa.Schema:
    """The columns of a query's rows: the table's own, exactly."""
    names = query.spec.schema.names if query.columns is None else query.columns
    fields = [query.spec.schema.field(name) for name in names]
    return pa.schema([*fields, *(pa.field(name, _EXTRAS[name], nullable=False) for name in _extras(query))])


def rows_query(
    query: Query, parts: Sequence[Part], files: Mapping[str, Path], among: str = "", *, is_joined: bool = False
) -> str:
    """The rows of some of the plan's parts that pass the filter.

    ``among``, a semi join's text, keeps those of relation ``f`` that a caller can use before anything is made of them.
    ``is_joined`` reads first what tells DuckDB best how many rows there are, and not what was written first.
    """
    wanted, names = result_schema(query).names, _names(query, columns_read(query, parts))
    visible = _Visible(query, files, names, among, is_joined).of(parts)
    if not query.where and wanted == [*names, *_extras(query)]:
        return visible
    columns = sql.listed(map(sql.name, wanted))
    return f"SELECT {columns} FROM ({visible}){_where(query)}"  # noqa: S608 - quoted by `literals`


def count_query(query: Query, parts: Sequence[Part], files: Mapping[str, Path]) -> str:
    """The number of those rows."""
    names = _names(query, columns_read(query, parts, counting=True))
    return f"SELECT count(*) FROM ({_Visible(query, files, names).of(parts)}){_where(query)}"  # noqa: S608 - as above


def _names(query: Query, needed: Set[str] | None) -> list[str]:
    """Columns of the table that are read, in its order: all, or those that are needed, but one at least."""
    names: list[str] = query.spec.schema.names
    return names if needed is None else [one for one in names if one in needed] or [query.spec.lean_column]


def _extras(query: Query) -> list[str]:
    return [name for name, is_wanted in ((ROW_ID, query.row_ids), (ORDINAL, query.ordinals)) if is_wanted]


def _where(query: Query) -> str:
    return f" WHERE {query.where}" if query.where else ""


def _nothing(query: Query, names: Sequence[str]) -> str:
    fields = [
        *(query.spec.schema.field(name) for name in names),
        *(pa.field(name, _EXTRAS[name]) for name in _extras(query)),
    ]
    columns = sql.listed(f"{sql.null(field.type)} AS {sql.name(field.name)}" for field in fields)
    return f"SELECT {columns} WHERE FALSE"


@dataclass(frozen=True, slots=True)
class _Visible:
    """Writes what can be seen of a plan: a scan a part and form of file, without the rows that are hidden."""

    query: Query
    files: Mapping[str, Path]
    names: Sequence[str]
    among: str = ""
    is_joined: bool = False

    def of(self, parts: Sequence[Part]) -> str:
        """The rows of some parts, with the columns that are named and those that the query wants besides."""
        return " UNION ALL ".join(self._part(part) for part in parts) or _nothing(self.query, self.names)

    def _part(self, part: Part) -> str:
        wanted = _extras(self.query)
        needed = set(wanted)
        if part.places or any(ROW_ID in mask.columns for mask in part.masks):
            needed.add(ROW_ID)
        if any(mask.is_ordered for mask in part.masks):
            needed.add(ORDINAL)
        scans = self._scans(part, [name for name in _EXTRAS if name in needed])
        if not part.places and not part.masks:
            return scans
        joins, tests = [], []
        for number, mask in enumerate(part.masks):
            if mask.is_ordered or not self.is_joined:
                joins.append(_anti_join(mask, f"m{number}"))
            else:
                tests.append(_not_in(mask.columns, mask.table))
        if part.places:
            ids, row_id = f"unnest({sql.numbers(part.hidden_ids)})", f"r.{sql.name(ROW_ID)}"
            if self.is_joined:
                tests.append(f"{row_id} NOT IN (SELECT {ids})")
            else:
                joins.append(f"ANTI JOIN (SELECT {ids} AS id) AS h ON {row_id} = h.id")
        columns = sql.listed(f"r.{sql.name(name)}" for name in (*self.names, *wanted))
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f"SELECT {columns} FROM ({scans}) AS r {' '.join(joins)}{where}"  # noqa: S608 - quoted by `literals`

    def _scans(self, part: Part, extras: Sequence[str]) -> str:
        """One scan; where row ids are wanted, one for files that store them and one for those that do not."""
        segments = Segments.of(part.segments)
        forms = [segments]
        if ROW_ID in extras:
            stored = segments.flags("has_row_ids")
            forms = [form for form in (segments.where(~stored), segments.where(stored)) if len(form)]
        if self.is_joined:
            forms = [alike for form in forms for alike in _of_like_size(form)]
        return " UNION ALL ".join(self._scan(form, part.condition, extras) for form in forms)

    def _scan(self, segments: Segments, condition: Term | None, extras: Sequence[str]) -> str:
        layout = self._layout(segments)
        spec = self.query.spec
        taken = {one for one in spec.names_in_files if one.lower() in _VIRTUAL} if extras else set()
        renamed = {one.stored for one in layout if one.type is not None} & taken
        stored = ROW_ID in extras and bool(segments.flags("has_row_ids")[0])
        columns = [_column(one, renamed) for one in layout]
        if ROW_ID in extras:
            columns.append(f"{_row_id(segments, stored=stored)} AS {sql.name(ROW_ID)}")
        if ORDINAL in extras:
            columns.append(f"{_by_file(segments.ordinals)} AS {sql.name(ORDINAL)}")
        paths = sql.listed(sql.file(str(self.files[path])) for path in segments.paths)
        known = _known(segments, layout) if self.is_joined and len(segments) > 1 else ""
        source = f"read_parquet([{paths}], hive_partitioning=false{known})"
        if taken:
            # At least one column, whether it is asked for or not.
            held = [one for one in layout if one.type is not None] or [
                one for one in spec.layout(_number(segments, spec)) if one.type is not None
            ][:1]
            schema = _file_schema(spec.schema, held, renamed, stored=stored)
            source = f"read_parquet([{paths}], schema={schema}, hive_partitioning=false)"
        if not all(one.is_plain and one.stored not in renamed for one in layout):
            source = f"(SELECT {sql.listed(columns)} FROM {source})"  # noqa: S608 - quoted by `literals`
            columns = [sql.name(name) for name in (*self.names, *extras)]
        where = "" if condition is None else f" WHERE {condition.duckdb}"
        return f"SELECT {sql.listed(columns)} FROM {source} AS f {self.among}{where}"  # noqa: S608 - quoted by `literals`

    def _layout(self, segments: Segments) -> Layout:
        """The columns that are read, as the files of a part hold them."""
        spec = self.query.spec
        return spec.layout(_number(segments, spec), set(self.names))


def _number(segments: Segments, spec: TableSpec) -> int:
    """The schema number of segments that hold columns in one way."""
    return int(segments.numbers("schema_number")[0]) if spec.columns else 0


def _column(held: Held, renamed: Set[str]) -> str:
    """A column of the table of what a file has."""
    if held.type is None:
        return f"{_default(held)} AS {sql.name(held.name)}"
    there = sql.name(f"_{held.stored}" if held.stored in renamed else held.stored)
    if not holds_plainly(held.type, held.wanted):
        require_held(held.name, held.type, held.wanted)
        return f"{_made(there, held.type, held.wanted)} AS {sql.name(held.name)}"
    return there if there == sql.name(held.name) else f"{there} AS {sql.name(held.name)}"


def _made(there: str, held: pa.DataType, wanted: pa.DataType, depth: int = 0) -> str:
    """An expression of a type in files as one of a table's type."""
    if holds_plainly(held, wanted):
        return there
    part = f"p{depth}"
    if pa.types.is_struct(wanted):
        kinds = {one.name: one.type for one in held}
        fields = [f"{sql.name(one.name)} := {_field(there, kinds, one, depth)}" for one in wanted]
        return f"CASE WHEN {there} IS NULL THEN NULL ELSE struct_pack({sql.listed(fields)}) END"
    if pa.types.is_map(wanted):
        key = _made(f"{part}.key", held.key_type, wanted.key_type, depth + 1)
        value = _made(f"{part}.value", held.item_type, wanted.item_type, depth + 1)
        entries = f"list_transform(map_entries({there}), lambda {part}: struct_pack(k := {key}, v := {value}))"
        return f"map_from_entries({entries})"
    if pa.types.is_list(wanted):
        return f"list_transform({there}, lambda {part}: {_made(part, held.value_type, wanted.value_type, depth + 1)})"
    return f"CAST({there} AS {sql.type_name(wanted)})"


def _field(struct: str, kinds: Mapping[str, pa.DataType], wanted: pa.Field, depth: int) -> str:
    """A field of a struct of a table, of what a file's struct has."""
    stored = stored_name(wanted)
    if stored in kinds:
        return _made(f"{struct}.{sql.name(stored)}", kinds[stored], wanted.type, depth)
    value = default_of(wanted)
    return sql.null(wanted.type) if value is None else _literal(value, wanted.type)


def _literal(value: object, kind: pa.DataType) -> str:
    return f"CAST({literal_term(value, kind).duckdb} AS {sql.type_name(kind)})"


def _default(held: Held) -> str:
    if held.default is None:
        return sql.null(held.wanted)
    return _literal(held.default, held.wanted)


def _of_like_size(segments: Segments) -> Iterable[Segments]:
    """Segments as lists of which DuckDB, to which all files of a list are as long as its first, guesses the rows well.

    All in one list, unless its guess would be too wrong: then those of like size together.
    """
    rows = segments.numbers("rows")
    typical = _typical(rows)
    if rows.sum() <= _WRONG_BY * len(rows) * rows[typical] <= _WRONG_BY**2 * rows.sum():
        return [_first(segments, typical)]
    sizes = np.log2(np.maximum(rows, 1)).astype(np.int64) // _BITS_OF_SIZE
    alike = [segments.where(sizes == size) for size in np.unique(sizes)]
    return [_first(one, _typical(one.numbers("rows"))) for one in alike]


def _typical(rows: IntArray) -> int:
    """The place of the number that is, as a ratio, nearest to the mean."""
    counted = np.maximum(rows, 1).astype(np.float64)
    return int(np.abs(np.log(counted / counted.mean())).argmin())


def _first(segments: Segments, place: int) -> Segments:
    """Segments in their order, but for one, which comes first."""
    return segments.take(np.concatenate([[place], np.delete(np.arange(len(segments)), place)]))


_GUESSED_VALUES = 5
"""DuckDB expects a fifth of the rows to pass a condition of which it knows nothing."""


def _known(segments: Segments, layout: Layout) -> str:
    """What the catalog knows of whole numbers, decimals and dates in several files, as an argument of `read_parquet`.

    Of one file DuckDB reads it in the footer. Of several it would guess how many values a column has, and from that
    how many rows a join has, by the number of rows; and it would try conditions that no value there can meet.

    Of a text it is told how few values there are, where many files have one alone: files that a condition leaves are
    often such, and DuckDB would expect a fifth of their rows to pass it.
    """
    rows, columns = segments.numbers("rows"), []
    for one in layout:
        if one.is_plain and pa.types.is_string(one.wanted):
            count = _values(rows, segments.statistics(LOW + one.name), segments.statistics(HIGH + one.name))
            if count is not None:
                columns.append(f"{sql.text(one.name)}: MAP {{'distinct_count': '{count}'}}")
        if one.is_plain and _is_exact(one.wanted):
            low, high, nulls = (segments.statistics(prefix + one.name) for prefix in (LOW, HIGH, NULLS))
            if low is None or high is None or nulls is None or nulls.null_count:
                continue
            is_bounded = np.logical_and(low.is_valid(), high.is_valid()) | (nulls.to_numpy() == rows)
            if is_bounded.all() and low.null_count < len(rows):
                found = {"min": pc.min(low), "max": pc.max(high), "null_count": pc.sum(nulls)}
                listed = sql.listed(f"'{name}': '{value}'" for name, value in found.items())
                columns.append(f"{sql.text(one.name)}: MAP {{{listed}}}")
    return f", column_statistics=MAP {{{sql.listed(columns)}}}" if columns else ""


def _is_exact(kind: pa.DataType) -> bool:
    """Whether the bounds of a column are values of it: those of texts are cut, and a NaN is beyond those of floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_date32(kind))


def _values(rows: IntArray, low: pa.Array | None, high: pa.Array | None) -> int | None:
    """Of how many values a column is, to one of which a share of the rows is equal: all of files that have it alone.

    Of the other rows it is DuckDB's own guess. None where that is its guess of all, or files have different values.
    """
    if low is None or high is None:
        return None
    is_one = pc.fill_null(pc.equal(low, high), fill_value=False)
    if not is_one.true_count or pc.count_distinct(low.filter(is_one)).as_py() > 1:
        return None
    alone = int(rows[is_one.to_numpy(zero_copy_only=False)].sum())
    total = int(rows.sum())
    count = round(total / max(alone + (total - alone) / _GUESSED_VALUES, 1))
    return max(count, 2) if count < _GUESSED_VALUES else None  # a count of one says nothing to it


def _by_file(values: IntArray) -> str:
    """A number for each file, as a column."""
    if (values == values[0]).all():
        return f"CAST({values[0]} AS BIGINT)"
    return f"{sql.numbers(values)}[CAST(file_index AS BIGINT) + 1]"


def _row_id(segments: Segments, *, stored: bool) -> str:
    """The stored row id, else the segment's first one and the row's place in the file."""
    by_place = f"{_by_file(segments.numbers('first_row_id'))} + file_row_number"
    return f"coalesce({sql.name(ROW_ID)}, {by_place})" if stored else by_place


def _not_in(columns: Sequence[str], hidden: pa.Table) -> str:
    """Whether rows of relation ``r`` have none of some values. No value is null, on either side.

    An anti join does the same, and is faster by a twentieth. But those take part in DuckDB's search for an order of a
    statement's joins, as a relation each, and beyond a dozen of them it guesses: orders with cross products came of
    that. So this is for rows that are joined with others.
    """
    names = [f"r.{sql.name(name)}" for name in columns]
    row = names[0] if len(names) == 1 else f"({sql.listed(names)})"
    return f"{row} NOT IN (SELECT {sql.listed(_unnested(columns, hidden))})"


def _anti_join(mask: KeyMask, alias: str) -> str:
    """What is left of relation ``r`` by a mask."""
    conditions = [f"r.{sql.name(name)} = {alias}.{sql.name(name)}" for name in mask.columns]
    if mask.is_ordered:
        conditions.append(f"{alias}.{sql.name(ORDINAL)} > r.{sql.name(ORDINAL)}")
    lists = sql.listed(_unnested([*mask.columns, *([ORDINAL] if mask.is_ordered else [])], mask.table))
    return f"ANTI JOIN (SELECT {lists}) AS {alias} ON {' AND '.join(conditions)}"


def _unnested(columns: Sequence[str], hidden: pa.Table) -> list[str]:
    return [f"unnest({sql.values(hidden.column(name))}) AS {sql.name(name)}" for name in columns]


def _file_schema(schema: pa.Schema, layout: Sequence[Held], renamed: Set[str], *, stored: bool) -> str:
    """Columns by Parquet field id, under other names where those are taken. DuckDB does not count such rows."""
    fields = [
        (schema.field(one.name), f"_{one.stored}" if one.stored in renamed else one.stored, one.type)
        for one in layout
        if one.type is not None
    ]
    if stored:
        fields.append((ROW_ID_FIELD, ROW_ID, ROW_ID_FIELD.type))
    entries = [
        f"{field_id_of(field)}: {{name: {sql.text(name)}, type: {sql.text(sql.type_name(kind))}, default_value: NULL}}"
        for field, name, kind in fields
    ] or [_NOTHING]
    return f"MAP {{{sql.listed(entries)}}}"

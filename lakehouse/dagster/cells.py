"""What partitions cover: as few cells of time and key as possible."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import pyarrow as pa

from lakehouse.core.interval import ALL_TIME, Interval
from lakehouse.core.spec import TableSpec
from lakehouse.dagster.partitions import require_partitions
from lakehouse.errors import InvalidPartitions


@dataclass(frozen=True, slots=True)
class Cell:
    """Rows of an interval with these values of key columns (None: all values)."""

    interval: Interval
    keys: Mapping[str, tuple[Any, ...]] | None = None

    def typed(self, spec: TableSpec) -> "Cell":
        """The cell with its keys, which Dagster has as text, in the types of a table's columns.

        Raises `InvalidInput` for a key that its column cannot hold, and for an unknown column.
        """
        if self.keys is None:
            return self
        typed = {name: tuple(_typed(spec, name, one) for one in held) for name, held in self.keys.items()}
        return Cell(self.interval, typed)

    def predicate(self, time: str) -> str:
        """The cell as a SQL condition.

        >>> Cell(Interval(None, None), {"client": (77, 1234)}).predicate("at")
        '(`client` IN (77, 1234))'
        """
        parts = []
        if self.interval != ALL_TIME:
            start, end = self.interval.start.isoformat(), self.interval.end.isoformat()
            parts.append(f"`{time}` >= TIMESTAMP '{start}' AND `{time}` < TIMESTAMP '{end}'")
        for name, values in (self.keys or {}).items():
            parts.append(f"`{name}` IN ({', '.join(map(_literal, values))})")
        return f"({' AND '.join(parts) or 'TRUE'})"


ALL = Cell(ALL_TIME)
"""Every row: the cell of an asset without partitions."""


def run_cells(context: dg.AssetExecutionContext) -> tuple[Cell, ...]:
    """The cells that a run materializes: the times, and the keys if partitions have keys.

    Raises `InvalidInput` for an asset without partitions and for a reversed range.

    >>> @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2013-01-01"))
    ... def trips(context: dg.AssetExecutionContext) -> None:
    ...     for cell in run_cells(context):
    ...         print(cell.interval, cell.keys)
    >>> trips(dg.build_asset_context(partition_key="2013-01-05"))
    2013-01-05/2013-01-06 None
    """
    partitions = require_partitions(context)
    columns: dict[str, str] = {}
    for key in context.selected_asset_keys:
        expression = context.assets_def.metadata_by_key[key].get("partition_expr") or {}
        columns |= {"": expression} if isinstance(expression, str) else expression
    return cells_of(partitions, context.partition_keys, columns)


def cells_of(
    partitions: dg.PartitionsDefinition[Any], keys: Iterable[str], columns: Mapping[str, str] | None = None
) -> tuple[Cell, ...]:
    """The cells that partitions cover, in order of time: adjacent times joined, keys of the same times grouped.

    ``columns`` maps a dimension to its column if their names differ; ``""`` stands for the only dimension of partitions
    that are not time windows.

    Raises
    ------
    InvalidInput
        For a key that is not one of the partitions, and for two dimensions of the same kind.

    Examples
    --------
    >>> from lakehouse.dagster import chunk_partitions
    >>> days = chunk_partitions("day", "2013-01-01", "2014-01-01", keys={"client": [77, 1234]})
    >>> keys = ["77|2013-01-01", "1234|2013-01-01", "77|2013-01-02", "1234|2013-01-02", "77|2013-01-09"]
    >>> for cell in cells_of(days, keys):
    ...     print(cell.interval, cell.keys)
    2013-01-01/2013-01-03 {'client': ('77', '1234')}
    2013-01-09/2013-01-10 {'client': ('77',)}
    """
    meaning = _Meaning(partitions, columns or {})
    windows: dict[str | None, list[Interval]] = defaultdict(list)
    for key in keys:
        window, value = meaning.of(key)
        windows[value].append(window)
    values: dict[Interval, list[str | None]] = defaultdict(list)
    for value, found in windows.items():
        for interval in _joined(found):
            values[interval].append(value)
    cells = [
        Cell(interval, {meaning.column: tuple(str(one) for one in held)} if meaning.column else None)
        for interval, held in values.items()
    ]
    return tuple(sorted(cells, key=lambda cell: cell.interval))


class _Meaning:
    """The meaning of each key of a partitions definition."""

    def __init__(self, partitions: dg.PartitionsDefinition[Any], columns: Mapping[str, str]) -> None:
        self._partitions = partitions
        self._times: dg.TimeWindowPartitionsDefinition | None = None
        self._time_dimension = self._key_dimension = self._column = ""
        self._known: dict[str, Interval] = {}
        dimensions = (
            [(one.name, one.partitions_def) for one in partitions.partitions_defs]
            if isinstance(partitions, dg.MultiPartitionsDefinition)
            else [("", partitions)]
        )
        for name, definition in dimensions:
            if isinstance(definition, dg.TimeWindowPartitionsDefinition) and self._times is None:
                self._times, self._time_dimension = definition, name
            elif self._column or not columns.get(name, name):
                raise InvalidPartitions(
                    "partitions are not time chunks and keys; use chunk_partitions, or name the column of the keys in "
                    "the metadata partition_expr",
                    partitions=repr(partitions),
                )
            else:
                self._key_dimension, self._column = name, columns.get(name, name)

    def of(self, key: str) -> tuple[Interval, str | None]:
        """The interval of a key, and its value in the key column if partitions have one."""
        if not isinstance(self._partitions, dg.MultiPartitionsDefinition):
            return (self._window(key), None) if self._times else (ALL_TIME, key)
        parts = self._partitions.get_partition_key_from_str(key).keys_by_dimension
        window = self._window(parts[self._time_dimension]) if self._times else ALL_TIME
        return window, parts[self._key_dimension] if self._column else None

    @property
    def column(self) -> str:
        """The key column; empty if there is none."""
        return self._column

    def _window(self, key: str) -> Interval:
        assert self._times is not None
        if key not in self._known:
            window = self._times.time_window_for_partition_key(key)
            self._known[key] = Interval(window.start, window.end)
        return self._known[key]


def _joined(intervals: Sequence[Interval]) -> list[Interval]:
    """Intervals in order, adjacent ones joined.

    >>> [str(one) for one in _joined([Interval.of(day) for day in ("2013-01-02", "2013-01-01", "2013-01-05")])]
    ['2013-01-01/2013-01-03', '2013-01-05/2013-01-06']
    """
    found: list[Interval] = []
    for one in sorted(intervals):
        if found and one.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(one.end, found[-1].end))
        else:
            found.append(one)
    return found


def _typed(spec: TableSpec, name: str, value: Any) -> Any:
    if name not in spec.schema.names:
        raise InvalidPartitions(
            "partitions are of a column that the table does not have; name it in the metadata partition_expr",
            column=name,
            columns=",".join(spec.schema.names),
        )
    try:
        return pa.scalar(value).cast(spec.schema.field(name).type).as_py()
    except (pa.ArrowException, NotImplementedError) as error:
        raise InvalidPartitions("a partition's key is not a value of its column", column=name, key=value) from error


def _literal(value: Any) -> str:
    """A value as SQL.

    >>> _literal("O'Hare"), _literal(77)
    ("'O''Hare'", '77')
    """
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else f"'{_quoted(str(value))}'"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")

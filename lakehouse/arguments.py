"""Arguments that many calls take, checked before any work begins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, get_args
from uuid import UUID

from lakehouse.errors import InvalidArgument, InvalidProperty, UnknownColumn

if TYPE_CHECKING:
    import pyspark.sql
    import pyspark.sql.connect.session

Txn = tuple[str, int]
Fit = Literal["strict", "merge", "ignore"]
"""What becomes of rows with other columns than the table's."""


class ArrowStream(Protocol):
    """Tables that hand over Arrow batches: of pyarrow, pandas, polars, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream as a capsule of Arrow's C interface."""


class SparkRows(Protocol):
    """A Spark DataFrame, classic or Connect."""

    def toArrow(self) -> object:  # noqa: N802 - Spark's word
        """The rows in memory."""


class LazyRows(Protocol):
    """A lazy frame of polars."""

    def collect_schema(self) -> object:
        """The columns that it will have."""


class DataclassRow(Protocol):
    """A row that is a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ArrowSchema(Protocol):
    """A schema or a type of pyarrow."""

    def __arrow_c_schema__(self) -> object:
        """It as a capsule of Arrow's C interface."""


class SparkType(Protocol):
    """A type of Spark's, of one column or of all."""

    def jsonValue(self) -> object:  # noqa: N802 - Spark's word
        """It as values of JSON."""


class PolarsExpression(Protocol):
    """An expression of polars."""

    @property
    def meta(self) -> object:
        """What it says of itself."""


Row: TypeAlias = Mapping[str, Any] | Sequence[Any] | DataclassRow
"""A dict, a dataclass, or a tuple with a value for each of the table's columns in their order."""
Rows: TypeAlias = ArrowStream | SparkRows | LazyRows | Mapping[str, Sequence[Any]] | Iterable[Row]
"""What is taken wherever rows are: a frame, an Arrow table or stream, columns by name, or rows of Python."""
Where: TypeAlias = str | PolarsExpression
"""A condition in SQL, or as an expression of pyarrow (which has no types) or polars."""
SchemaLike: TypeAlias = str | ArrowSchema | SparkType
"""Columns: text in DDL, a schema of pyarrow, or a ``StructType`` of Spark."""
TypeLike: TypeAlias = str | ArrowSchema | SparkType
"""The type of a column: text in DDL, or one of pyarrow or Spark."""
Value: TypeAlias = bool | int | float | Decimal | str | bytes | date | UUID | None
"""A value beside a statement; a datetime is a date."""
Args: TypeAlias = Sequence[Value] | Mapping[str, Value]
"""Values for each ``?`` of a statement in order, or by name for each ``:name``."""
Age: TypeAlias = timedelta | float | str | date
"""An age as a timedelta, seconds or text such as ``30d``; or a time."""
Spark: TypeAlias = "pyspark.sql.SparkSession | pyspark.sql.connect.session.SparkSession"
"""A session of Spark's, classic or Connect."""
_MOST_TEXT = 1_000_000
_MOST_LETTERS = 200
"""Of a name that a user gives to something that the catalog keeps."""
_MOST_TABLES = 10
_MOST_COLUMNS = 100
"""Those that an error lists."""
_MOST_NAMED = 200
"""Letters of what an error says was asked for."""
_MOST_APP_BYTES = 1024
"""Longest text of a mark by which commits are found: PostgreSQL cannot index longer ones."""
_MOST_SECONDS = 1e9
"""31 years: longer than anybody waits, and within what timers and databases can hold."""
_MOST_WHOLE = 2**63 - 2
"""The greatest number whose successor still fits every database and engine."""


def read_txn(txn: Any) -> Txn | None:
    """An ``(app, sequence)`` pair.

    >>> read_txn(("loader", 17))
    ('loader', 17)
    """
    match txn:
        case None:
            return None
        case (str(app), int(sequence)) if app and not isinstance(sequence, bool) and -(2**63) <= sequence < 2**63:
            if len(read_text(app, "txn").encode()) > _MOST_APP_BYTES:
                raise InvalidArgument("txn has too long a name", bytes=len(app.encode()), most=_MOST_APP_BYTES)
            return app, sequence
        case _:
            raise InvalidArgument('txn is a pair of text and a number, as in ("app", 17)', txn=repr(txn))


def read_fit(schema: Any) -> Fit:
    """What is to become of rows with other columns than the table's, checked.

    >>> read_fit("merge")
    'merge'
    """
    if schema not in get_args(Fit):
        raise InvalidArgument("schema is strict, merge or ignore", schema=repr(schema)[:100])
    fit: Fit = schema
    return fit


def read_text(text: Any, what: str) -> str:
    """Text that every database can hold."""
    if not isinstance(text, str):
        raise InvalidArgument(f"{what} must be text", found=type(text).__name__)
    if len(text) > _MOST_TEXT:
        raise InvalidArgument(f"{what} is too long", length=len(text), most=_MOST_TEXT)
    if "\0" in text or has_surrogate(text):
        raise InvalidArgument(f"{what} holds a character that cannot be stored; leave out null and surrogates")
    return text


def has_surrogate(text: str) -> bool:
    r"""Whether text contains a surrogate, as text decoded from invalid UTF-8 does: no file can store it.

    >>> has_surrogate("Zürich"), has_surrogate(b"Z\xfcrich".decode(errors="surrogateescape"))
    (False, True)
    """
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def refuse_surrogates(text: str, what: str) -> None:
    """Raise `InvalidInput` for text that no file can store, and so no row can equal."""
    if has_surrogate(text):
        raise InvalidArgument(
            f"{what} holds half a character (a surrogate); decode it from UTF-8", text=repr(text)[:200]
        )


def read_message(message: Any) -> str | None:
    """A commit's message."""
    return None if message is None else read_text(message, "message")


def read_properties(properties: Any) -> dict[str, str] | None:
    """A commit's properties, a small map of strings."""
    if properties is None:
        return None
    if not isinstance(properties, Mapping):
        raise InvalidProperty("properties are a map of strings to strings", found=type(properties).__name__)
    return {read_text(name, "a property's name"): read_text(held, "a property") for name, held in properties.items()}


def read_wait(wait_seconds: Any) -> float:
    """Seconds to wait, at least 0."""
    if isinstance(wait_seconds, bool) or not isinstance(wait_seconds, int | float):
        raise InvalidArgument("wait_seconds is a number", wait_seconds=repr(wait_seconds))
    if math.isnan(wait_seconds) or wait_seconds < 0:
        raise InvalidArgument("wait_seconds is at least 0", wait_seconds=wait_seconds)
    return float(min(wait_seconds, _MOST_SECONDS))


def read_seconds(seconds: Any, what: str) -> float:
    """A length of time in seconds, at least 0."""
    if isinstance(seconds, timedelta):
        seconds = seconds.total_seconds()
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _MOST_SECONDS:
        raise InvalidArgument(
            f"{what} is a number of seconds, at least 0", found=repr(seconds)[:100], most=_MOST_SECONDS
        )
    return float(seconds)


def read_consumer(name: Any) -> str | None:
    """The name of a consumer, or None.

    >>> read_consumer("ledger")
    'ledger'
    """
    return None if name is None else read_called(name, "consumer")


def read_called(name: Any, what: str) -> str:
    """The name that a user gives to something that the catalog keeps; ``what`` says what it is.

    >>> read_called("dashboards", "group")
    'dashboards'
    """
    if isinstance(name, str) and name.strip() and len(name) <= _MOST_LETTERS and name.isprintable():
        return name
    raise InvalidArgument(
        f"a {what} has a name of 1 to {_MOST_LETTERS} printable characters", **{what: repr(name)[:100]}
    )


def require_within(value: Any, what: str, least: float, most: float) -> None:
    """Raise `InvalidArgument` for a number that lies outside its bounds, or is none; whole if the bounds are whole.

    >>> require_within(30.0, "seconds", 0.001, 86_400.0)
    """
    kinds = int if isinstance(least, int) else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        kind = "whole number" if isinstance(least, int) else "number"
        raise InvalidArgument(f"{what} is a {kind} from {least} to {most}; give another", found=repr(value)[:100])


def read_task_id(task_id: Any) -> int:
    """The number of a task."""
    if isinstance(task_id, bool) or not isinstance(task_id, int) or not 0 < task_id <= _MOST_WHOLE:
        raise InvalidArgument("a task has a whole number; lake.tasks() lists them", task=repr(task_id)[:50])
    return int(task_id)


def is_of(value: object, package: str, name: str) -> bool:
    """Whether a value is of a class of a package, by its name there; the package is not imported for it.

    >>> from datetime import date
    >>> is_of(date(2013, 1, 5), "datetime", "date"), is_of("2013-01-05", "datetime", "date")
    (True, False)
    """
    return any(
        one.__name__ == name and (one.__module__ == package or one.__module__.startswith(f"{package}."))
        for one in type(value).__mro__
    )


def nearest(name: object, known: Iterable[str]) -> dict[str, str]:
    """The most similar of the names that there are, as a fact of an error; nothing if none is similar.

    >>> nearest("cariier", ["at", "carrier"]), nearest("z", ["at", "carrier"])
    ({'nearest': 'carrier'}, {})
    """
    folded = {one.casefold(): one for one in known}
    found = get_close_matches(str(name)[:_MOST_LETTERS].casefold(), list(folded), n=1)
    return {"nearest": folded[found[0]]} if found else {}


def nearest_table(name: object, known: Iterable[str], others: Iterable[str] = ()) -> dict[str, str]:
    """The facts of an error about a table that is not there; ``others`` are what its name may mean besides.

    >>> nearest_table("trps", ["people", "trips"])
    {'nearest': 'trips', 'known': 'people, trips'}
    """
    known = list(known)
    listed = ", ".join(known[:_MOST_TABLES]) + (", ..." if len(known) > _MOST_TABLES else "")
    return {**nearest(name, [*known, *others]), "known": listed or "none"}


def unknown_column(said: str, names: str | Sequence[str], known: Iterable[str], **facts: Any) -> UnknownColumn:
    """The error for names that no column has: with the nearest to the first of them, and those that there are.

    >>> str(unknown_column("no such column", "cariier", ["at", "carrier"], table="trips"))
    'no such column (column=cariier nearest=carrier table=trips columns=at,carrier)'
    """
    names = [names] if isinstance(names, str) else [str(one) for one in names]
    known = list(known)
    listed = ",".join(known[:_MOST_COLUMNS]) + (",..." if len(known) > _MOST_COLUMNS else "")
    named = ",".join(names)[:_MOST_NAMED]
    first = names[0] if names else ""
    close = nearest(first, known) or nearest(first.rpartition(".")[2], known)  # without the name of its table
    return UnknownColumn(said, column=named, **close, **facts, **({"columns": listed} if listed else {}))


def read_limit(limit: Any, what: str = "limit") -> int | None:
    """The most to return, or None for all; ``what`` is the argument's name."""
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and 0 <= limit <= _MOST_WHOLE):
        return None if limit is None else int(limit)
    is_long = isinstance(limit, int) and abs(limit) > _MOST_WHOLE  # Python writes no number of too many digits
    found = type(limit).__name__ if is_long else repr(limit)[:100]
    raise InvalidArgument(f"{what} is a whole number, at least 0, or None for all", found=found, most=_MOST_WHOLE)

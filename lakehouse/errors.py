"""Errors: one class for each failure, under one base class for each way a caller can react.

Every message says what happened, then what to do, then the facts (``expected=7 found=8``). The facts are attributes
too, so programs need not parse the message. ``code`` names the class for programs in other languages; docs/errors.md
lists the codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar


class LakehouseError(Exception):
    """Root of every error that the library raises on purpose.

    ``code`` is stable across releases: the class's name as `snake_case`. ``kind`` names the reaction, and is that of
    the nearest base class with one. ``facts`` holds the values named at the end of the message.

    >>> error = RowsOutside("row outside the interval; widen the interval or filter the rows", rows=3)
    >>> error.said
    'row outside the interval; widen the interval or filter the rows'
    >>> str(error), error.code, error.kind, error.rows
    ('row outside the interval; widen the interval or filter the rows (rows=3)', 'rows_outside', 'invalid_input', 3)
    """

    kind: ClassVar[str] = "error"
    code: ClassVar[str] = "lakehouse_error"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str, **facts: Any) -> None:
        self.facts = facts
        super().__init__(f"{message}{_listed(facts)}")

    @property
    def said(self) -> str:
        """The message without the facts that it ends with: what happened and, after "; ", what to do about it."""
        return str(self.args[0]).removesuffix(_listed(self.facts))

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args[0], self.facts)


def _listed(facts: Mapping[str, Any]) -> str:
    listed = " ".join(f"{name}={value}" for name, value in facts.items())
    return f" ({listed})" if listed else ""


def coded(error: BaseException) -> str:
    """An error as logs show it: its code and message; a foreign error has the name of its class instead of a code.

    >>> coded(TableNotFound("no such table", table="trips")), coded(OSError("disk full"))
    ('table_not_found: no such table (table=trips)', 'OSError: disk full')
    """
    return f"{getattr(error, 'code', None) or type(error).__name__}: {error}"


def _rebuild(cls: type[LakehouseError], text: str, facts: dict[str, Any]) -> LakehouseError:
    error = cls.__new__(cls)
    Exception.__init__(error, text)
    error.facts = facts
    return error


class WriteConflict(LakehouseError):
    """Rows were changed by another operation after this one read them: run the operation again."""

    kind = "write_conflict"


class CommitUnknown(LakehouseError):
    """The answer to a commit was lost: read it back by operation id, never guess."""

    kind = "commit_unknown"


class LockTimeout(LakehouseError):
    """Another operation holds the chunk: wait longer or choose another time."""

    kind = "lock_timeout"


class LockLost(LakehouseError):
    """The operation was fenced: its chunk was taken by another one. Stop; nothing was committed."""

    kind = "lock_lost"


class CatalogUnavailable(LakehouseError):
    """The catalog's database does not answer: back off and try again."""

    kind = "catalog_unavailable"


class CatalogHeld(CatalogUnavailable):
    """Another program holds the catalog's database: end it, or try again when it is done."""

    kind = "catalog_held"


class TableNotFound(LakehouseError, KeyError):
    """No table of that name is in the lake."""

    kind = "table_not_found"
    __str__ = Exception.__str__


class ViewNotFound(TableNotFound):
    """No view of that name is in the lake."""


class TopicNotFound(LakehouseError, KeyError):
    """No topic of that name is known to the lake."""

    kind = "topic_not_found"
    __str__ = Exception.__str__


class VersionNotFound(LakehouseError, KeyError):
    """No such version, tag or time."""

    kind = "version_not_found"
    __str__ = Exception.__str__


class VersionNotServed(LakehouseError):
    """A query node does not answer at this version, or not yet: ask for another, wait, or ask the lake itself."""

    kind = "version_not_served"


class OtherLake(LakehouseError):
    """A query node serves another catalog than the ones asked before: correct the list of addresses."""

    kind = "other_lake"


class NodeUnavailable(LakehouseError):
    """No query node answers: start one, or correct the addresses. ``causes`` says what each did."""

    kind = "node_unavailable"


class ConsumerNotFound(LakehouseError, KeyError):
    """No consumer has this name: `Lake.consumers` lists those that there are."""

    kind = "consumer_not_found"
    __str__ = Exception.__str__


class ConsumerExpired(VersionNotFound):
    """What a consumer has yet to read has expired, its lease before: begin again by ``since``, or drop the consumer."""


class ConsumerLost(LockLost):
    """Another reader has taken over the consumer, or it was dropped: stop. Nothing is skipped: it goes on there."""


class AlreadyExists(LakehouseError):
    """A table, tag or query node of that name exists."""

    kind = "already_exists"


class InvalidInput(LakehouseError, ValueError):
    """The caller's value cannot be used: interval, predicate, schema, name, or rows."""

    kind = "invalid_input"


class InvalidArgument(InvalidInput):
    """An argument has an invalid value: the message names it and says what it takes."""


class InvalidTime(InvalidInput):
    """A value is not a time, or lies outside the years 1 to 9999: pass a datetime or ISO 8601 text."""


class InvalidInterval(InvalidInput):
    """An interval or period is empty, reversed or not in the calendar: its start must come before its end."""


class InvalidVersion(InvalidInput):
    """A value cannot name a version: pass a number, a tag or a time."""


class InvalidName(InvalidInput):
    """A table, column or tag cannot have this name: use only characters that the message lists."""


class InvalidAddress(InvalidInput):
    """A catalog or warehouse cannot be at this address: correct it."""


class InvalidSchema(InvalidInput):
    """A table cannot be defined like this: correct its columns, types, keys or grain."""


class SchemaMismatch(InvalidInput):
    """A column does not hold what was written for it: begin again, or read the version with the columns it had."""


class InvalidProperty(InvalidInput):
    """A property is unknown or has an invalid value: the message says what it takes."""


class InvalidKeys(InvalidInput):
    """Keys do not name cluster columns with values of their types: correct them."""


class InvalidRows(InvalidInput):
    """Rows do not fit the table: add, drop, cast or correct what the message names. None was written."""


class RowsOutside(InvalidInput):
    """Rows lie outside the replaced interval or keys: filter them, or widen the interval or keys. None was written."""


class DuplicateKey(InvalidInput):
    """Two rows of one write have the same key: make the keys unique. None was written."""


class NoPrimaryKey(InvalidInput):
    """The table has no primary key, which this needs: create it with one, or use another operation."""


class UnknownColumn(InvalidInput):
    """No column has this name: use one that the message lists."""


class UnknownEngine(InvalidInput):
    """No engine has this name: use ``duckdb`` or ``spark``."""


class UnknownOperation(InvalidInput):
    """No running operation has this id: list the locks to see those that run."""


class UnknownTask(InvalidInput):
    """No task with this number exists or can be run: see the list of tasks."""


class InvalidPredicate(InvalidInput):
    """A filter or expression is not allowed, or fails on some row: correct it. No row was changed."""

    is_beyond: bool = False
    """Whether filters leave out what it has, and a query may have it."""


class InvalidStatement(InvalidInput):
    """A SQL statement is not allowed, or the engine refuses it: correct it. Nothing was changed."""


class NotWholeFiles(InvalidInput):
    """A scan leaves out some rows of its files, so they cannot stand for it: read it as a stream."""


class BrokenView(InvalidInput):
    """A view cannot be read any more: what it names is gone or has changed. Make that, or the view, again."""


class OnlySpark(InvalidStatement):
    """In process nothing calculates this as Spark does: run the statement with ``engine="spark"``."""


class InvalidMerge(InvalidInput):
    """The clauses of a merge contradict each other or do nothing: correct them."""


class InvalidPartitions(InvalidInput):
    """Dagster partitions do not match time chunks or keys of the table: use `chunk_partitions`."""


class InvalidCandidate(InvalidInput):
    """A maintenance strategy returned an impossible task: correct the strategy."""


class CheckpointMismatch(InvalidInput):
    """A stream's checkpoint and its table do not agree: do as the message says. No row was written."""


class InvalidTopics(InvalidInput):
    """A file of topics cannot be used: correct the key that the message names. No topic was started."""


class InvalidRoles(InvalidInput):
    """The file of roles or secrets cannot be used: correct it."""


class OperationEnded(InvalidInput):
    """The operation or transaction has ended already: begin another."""


class LakeClosed(InvalidInput):
    """The lake was closed: connect again."""


class TooManyChunks(InvalidInput):
    """One operation touches more time chunks, or makes more segments, than one commit can hold: split it."""


class QueryLimitExceeded(InvalidInput):
    """A query reached one of its limits and was stopped: ask for less, or allow more.

    ``limit`` names it: ``seconds``, ``memory``, ``rows``, ``bytes``, ``waiting``, ``steps`` (of a recursion).
    """

    kind = "query_limit_exceeded"


class StatementCancelled(LakehouseError):
    """Another thread cancelled the statement by `Lake.cancel`: run it again if it is wanted. Nothing was changed."""

    kind = "cancelled"


class Forbidden(LakehouseError):
    """The caller's role does not allow this: ask somebody with the role. Nothing was changed."""

    kind = "forbidden"


class SegmentUnreadable(LakehouseError):
    """A data file is missing, short or malformed: restore the file. ``path`` names it."""

    kind = "segment_unreadable"


class StorageUnavailable(LakehouseError):
    """The warehouse cannot be written: free space or repair it, then run the operation again. Nothing was committed."""

    kind = "storage_unavailable"


@contextmanager
def writing_to(path: object, *, then: str) -> Iterator[None]:
    """Turn a disk's errors into `StorageUnavailable`; ``then`` says what to do once it is repaired.

    >>> with writing_to("warehouse/events", then="append again"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    ...
    lakehouse.errors.StorageUnavailable: the warehouse cannot be written; check its disk, path and permissions, \
then append again (path=warehouse/events cause=No space left on device)
    """
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(
            f"the warehouse cannot be written; check its disk, path and permissions, then {then}",
            path=error.filename or str(path),
            cause=error.strerror,
        ) from error


class EngineUnavailable(LakehouseError):
    """Java, Spark or the parser of SQL is missing, does not start or is another: do what the message names."""

    kind = "engine_unavailable"


class ExtraMissing(EngineUnavailable, ModuleNotFoundError):
    """A package that this use needs is not installed: install the extra that the message names."""

    __str__ = Exception.__str__


class InternalError(LakehouseError):
    """A bug of this library."""

    kind = "internal"


class PartialRead(UserWarning):
    """A ``best_effort`` read left out files that are missing or short; `Scan.missing` lists them."""

"""Errors, one class per reaction that a caller can have.

Every message says what happened, then what to do, then the facts (``expected=7 found=8``). The facts are attributes
too, so that a program need not read the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar


class LakehouseError(Exception):
    """Root of every error that the library raises on purpose.

    ``kind`` is stable across releases; ``facts`` holds the values named at the end of the message.

    >>> error = InvalidInput("row outside the interval; widen the interval or filter the rows", rows=3)
    >>> str(error), error.kind, error.rows
    ('row outside the interval; widen the interval or filter the rows (rows=3)', 'invalid_input', 3)
    """

    kind: ClassVar[str] = "error"

    def __init__(self, message: str, **facts: Any) -> None:
        self.facts = facts
        listed = " ".join(f"{name}={value}" for name, value in facts.items())
        super().__init__(f"{message} ({listed})" if listed else message)

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args[0], self.facts)


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


class VersionNotFound(LakehouseError, KeyError):
    """No such version, tag or time."""

    kind = "version_not_found"
    __str__ = Exception.__str__


class AlreadyExists(LakehouseError):
    """A table or tag of that name exists."""

    kind = "already_exists"


class InvalidInput(LakehouseError, ValueError):
    """The caller's value cannot be used: interval, predicate, schema, name, or rows."""

    kind = "invalid_input"


class QueryLimitExceeded(InvalidInput):
    """A query came to one of its limits and was ended: ask for less, or allow more.

    ``limit`` names it: ``seconds``, ``memory``, ``bytes``, ``waiting``.
    """

    kind = "query_limit_exceeded"


class Forbidden(LakehouseError):
    """Whoever asks may not do this: ask somebody whose role it takes. Nothing was changed."""

    kind = "forbidden"


class SegmentUnreadable(LakehouseError):
    """A data file is missing, short or malformed: restore the file. ``path`` names it."""

    kind = "segment_unreadable"


class StorageUnavailable(LakehouseError):
    """The warehouse cannot be written: make room or mend it, then run the operation again. Nothing was committed."""

    kind = "storage_unavailable"


@contextmanager
def writing_to(path: object, *, then: str) -> Iterator[None]:
    """Turns what a disk refuses into `StorageUnavailable`; ``then`` is what to do when it is mended.

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
    """Java or Spark is missing or does not start: install what the message names."""

    kind = "engine_unavailable"


class InternalError(LakehouseError):
    """A bug of this library."""

    kind = "internal"


class PartialRead(UserWarning):
    """A ``best_effort`` read left out files that are missing or short; `Scan.missing` lists them."""

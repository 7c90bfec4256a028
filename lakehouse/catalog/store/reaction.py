"""Classifies errors of the catalog's database, by code and never by text, and says how often to retry."""

from __future__ import annotations

import time
from enum import Enum, auto

from sqlalchemy import URL
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, ProgrammingError

from lakehouse.errors import CatalogHeld, CatalogUnavailable, InternalError

WAIT_SECONDS = _MOST_SECONDS = 30.0
"""How long in all a transaction waits for another program that holds a SQLite database."""
_RECONNECT_SECONDS = (0.1, 0.4, 1.0, 2.0)
_BUSY_PAUSE_SECONDS = 0.01
_SQLITE_BUSY, _SQLITE_LOCKED = 5, 6
_SQLITE_IO = 10


class Refused(InternalError):
    """A statement would have violated a constraint; its transaction was rolled back."""

    code = InternalError.code


class Reaction(Enum):
    """What a transaction does about an error."""

    RUN_AGAIN = auto()
    RECONNECT = auto()
    WAIT = auto()
    DISTRUST = auto()
    """The disk refused a write; the outcome of a commit is unknown."""
    RAISE = auto()


def wait_at_most(seconds: float) -> None:
    """Set how long this process waits for another program that holds a catalog, unless a call says otherwise."""
    global WAIT_SECONDS  # noqa: PLW0603 - of a process that does one thing at a time
    WAIT_SECONDS = min(_MOST_SECONDS, seconds)


class Tries:
    """When to retry a transaction: a few times after a failure, and for a while if others hold the database."""

    def __init__(self, wait_seconds: float | None = None) -> None:
        self._until = time.monotonic() + (WAIT_SECONDS if wait_seconds is None else wait_seconds)
        self._pauses = iter(_RECONNECT_SECONDS)

    def again(self, reaction: Reaction) -> bool:
        """Pause and return True, or return False to stop. There is no event to wait for."""
        if reaction in (Reaction.RAISE, Reaction.DISTRUST):
            return False
        if reaction is Reaction.WAIT:
            if time.monotonic() >= self._until:
                return False
            time.sleep(_BUSY_PAUSE_SECONDS)  # SQLite itself waited for a while
            return True
        pause_seconds = next(self._pauses, None)
        if pause_seconds is not None:
            time.sleep(pause_seconds)
        return pause_seconds is not None


def reaction_of(error: DBAPIError) -> Reaction:
    """What to do about a database error, by its SQLSTATE or SQLite code."""
    if isinstance(error, IntegrityError):
        return Reaction.RAISE
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        if code & 0xFF == _SQLITE_IO:
            return Reaction.DISTRUST
        return Reaction.WAIT if code & 0xFF in (_SQLITE_BUSY, _SQLITE_LOCKED) else Reaction.RAISE
    if not hasattr(error.orig, "sqlstate"):
        return Reaction.RAISE
    state = getattr(error.orig, "sqlstate", None)
    if state in ("40001", "40P01", "55P03"):
        return Reaction.RUN_AGAIN
    if state is None or state[:2] == "08" or state in ("25P03", "40003", "57P01", "57P02", "57P03"):
        return Reaction.RECONNECT
    return Reaction.RAISE


def damaged(url: URL, cause: object) -> CatalogUnavailable:
    """The error for a catalog with values that no release writes."""
    return CatalogUnavailable(
        "the catalog is damaged; restore it from a copy, or make a new one from an export by `lakehouse recover`",
        catalog=url.render_as_string(hide_password=True),
        cause=repr(cause)[:500],
    )


def translated(error: DBAPIError, url: URL, reaction: Reaction) -> Exception:
    """The library's error for an error of the database."""
    if isinstance(error, IntegrityError):
        return Refused("the catalog refused a statement", cause=str(error.orig).strip())
    if isinstance(error, ProgrammingError | DataError | InterfaceError):
        return InternalError("the catalog refused a statement", cause=str(error.orig).strip())
    shown = url.render_as_string(hide_password=True)
    if reaction is Reaction.WAIT:
        return CatalogHeld(
            "another program holds the catalog's database; end it, or try again when it is done",
            catalog=shown,
            cause=str(error.orig).strip(),
        )
    return CatalogUnavailable(
        "the catalog's database does not answer as it should; check that it runs and may be written",
        catalog=shown,
        cause=str(error.orig).strip(),
    )

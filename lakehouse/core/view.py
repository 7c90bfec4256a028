"""A view: a query with a name, which stands for its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """One form of a view, in the versions from ``created`` until just before ``dropped`` (None: up to the head).

    ``id`` names the form; a view that is replaced gets another one. ``text`` is the query as it was written.
    ``columns`` are what the view calls its columns, each with the column of the query that it is; None where it is the
    one in that place.
    """

    id: str
    name: str
    text: str
    columns: tuple[tuple[str, str | None], ...]
    comment: str | None = None
    created: int = 0
    dropped: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the view calls its columns."""
        return tuple(name for name, _ in self.columns)

    def is_there(self, version: int | None) -> bool:
        """Whether the view has this form at a version; None: at the head.

        >>> view = View("f", "late", "SELECT 1 AS one", (("one", "one"),), created=3, dropped=7)
        >>> view.is_there(3), view.is_there(7), view.is_there(None)
        (True, False, False)
        """
        if version is None:
            return self.dropped is None
        return self.created <= version and (self.dropped is None or version < self.dropped)


def view_named(views: Sequence[View], name: str, version: int | None = None) -> View | None:
    """The view that a name means at a version; case does not count, and no two views have one name at a time."""
    return next((one for one in views if one.name.casefold() == name.casefold() and one.is_there(version)), None)

"""Work on segments one by one, in process or in Spark tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol, Self, TypeVar

from lakehouse.core.segment import Segment
from lakehouse.storage.warehouse import Warehouse

Made = TypeVar("Made")


class SegmentWork(Protocol[Made]):
    """A work that can be pickled. It writes files below ``folder``, a stored path in the ``warehouse``."""

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse."""

    @property
    def folder(self) -> str:
        """The folder of its files."""

    def below(self, name: str) -> Self:
        """The same with its files in a folder below its own."""

    def __call__(self, segment: Segment, attempt: str = "") -> Made:
        """The result for a segment. ``attempt`` distinguishes the files of one try from those of another.

        Raises `SegmentUnreadable`, and `OSError` if a file cannot be written.
        """

    def sync(self, made: Iterable[Made]) -> None:
        """Make the files of results durable, many at once. Raises `OSError`."""

    def files(self, made: Made) -> list[str]:
        """Stored paths of the files of a segment's result."""


def delete_others(warehouse: Warehouse, folder: str, kept: Collection[str], *, is_repeated: bool) -> None:
    """Delete what tasks left in their job's own stored folder that is not ``kept``: files of attempts that did not win.

    A store is listed for it only if a task was repeated, which the reports of those that won say. What an attempt puts
    that still runs then stays, unused, until `check` names it.
    """
    if is_repeated or warehouse.cache is None:
        warehouse.delete({one.path for one in warehouse.listed(folder)}.difference(kept))

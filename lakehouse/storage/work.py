"""What is done to segments one by one, in process or in tasks of Spark's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, Self, TypeVar

from lakehouse.core.segment import Segment

Made = TypeVar("Made")


class SegmentWork(Protocol[Made]):
    """A work that can be pickled. Its files are below ``folder``, a stored path in the ``warehouse``."""

    @property
    def warehouse(self) -> Path:
        """The warehouse."""

    @property
    def folder(self) -> str:
        """The folder of its files."""

    def below(self, name: str) -> Self:
        """The same with its files in a folder below its own."""

    def __call__(self, segment: Segment, attempt: str = "") -> Made:
        """What comes of a segment. ``attempt`` sets the files of one try apart from those of another.

        Raises `SegmentUnreadable`, and `OSError` where a file cannot be written.
        """

    def sync(self, made: Iterable[Made]) -> None:
        """Make the files of what was made durable: many at once, as a disk takes them. Raises `OSError`."""

    def files(self, made: Made) -> list[str]:
        """Stored paths of the files of what was made of a segment."""

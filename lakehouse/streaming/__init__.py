"""Streams of Spark from and into tables: `read`, `write`, `apply_changes`. Names load Spark on first use.

>>> import lakehouse
>>> lakehouse.streaming.read.__name__
'read'
"""

from typing import TYPE_CHECKING

from lakehouse.late import names_of

if TYPE_CHECKING:
    from lakehouse.streaming.changes import apply_changes as apply_changes
    from lakehouse.streaming.sink import write as write
    from lakehouse.streaming.source import read as read

_HOME = {"apply_changes": "changes", "read": "source", "write": "sink"}
__all__ = sorted(_HOME)  # noqa: PLE0605
__getattr__ = names_of(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

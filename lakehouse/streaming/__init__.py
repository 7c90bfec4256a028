"""Streams of Spark from and into tables: `read`, `write`, `apply_changes`. Names load Spark on first use.

>>> import lakehouse
>>> lakehouse.streaming.read.__name__
'read'
"""

from typing import TYPE_CHECKING, Any

from lakehouse.extras import load

if TYPE_CHECKING:
    from lakehouse.streaming.changes import apply_changes as apply_changes
    from lakehouse.streaming.sink import write as write
    from lakehouse.streaming.source import read as read

_HOME = {"apply_changes": "changes", "read": "source", "write": "sink"}
__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lakehouse.streaming' has no attribute {name!r}")
    value = getattr(load(f"lakehouse.streaming.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

"""A lakehouse on PySpark: immutable segments under tombstones, versions as deltas per time chunk.

>>> import lakehouse
>>> lakehouse.Interval.of("2013-W02")
Interval('2013-01-07', '2013-01-14')
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakehouse.late import names_of

if TYPE_CHECKING:
    from lakehouse import streaming as streaming
    from lakehouse.actions.actions import Actions as Actions
    from lakehouse.actions.roles import Action as Action
    from lakehouse.actions.roles import Role as Role
    from lakehouse.admin.export import Exported as Exported
    from lakehouse.admin.recover import Recovered as Recovered
    from lakehouse.admin.recover import recover as recover
    from lakehouse.arguments import Age as Age
    from lakehouse.arguments import Args as Args
    from lakehouse.arguments import Rows as Rows
    from lakehouse.arguments import SchemaLike as SchemaLike
    from lakehouse.arguments import TypeLike as TypeLike
    from lakehouse.arguments import Where as Where
    from lakehouse.core.chunk import Grain as Grain
    from lakehouse.core.commit import Commit as Commit
    from lakehouse.core.interval import AsOf as AsOf
    from lakehouse.core.interval import Interval as Interval
    from lakehouse.core.interval import IntervalLike as IntervalLike
    from lakehouse.core.segment import Segment as Segment
    from lakehouse.core.tombstone import Tombstone as Tombstone
    from lakehouse.errors import (
        AlreadyExists as AlreadyExists,
    )
    from lakehouse.errors import (
        CatalogUnavailable as CatalogUnavailable,
    )
    from lakehouse.errors import (
        CommitUnknown as CommitUnknown,
    )
    from lakehouse.errors import (
        EngineUnavailable as EngineUnavailable,
    )
    from lakehouse.errors import (
        Forbidden as Forbidden,
    )
    from lakehouse.errors import (
        InternalError as InternalError,
    )
    from lakehouse.errors import (
        InvalidInput as InvalidInput,
    )
    from lakehouse.errors import (
        LakehouseError as LakehouseError,
    )
    from lakehouse.errors import (
        LockLost as LockLost,
    )
    from lakehouse.errors import (
        LockTimeout as LockTimeout,
    )
    from lakehouse.errors import (
        NodeUnavailable as NodeUnavailable,
    )
    from lakehouse.errors import (
        OtherLake as OtherLake,
    )
    from lakehouse.errors import (
        PartialRead as PartialRead,
    )
    from lakehouse.errors import (
        QueryLimitExceeded as QueryLimitExceeded,
    )
    from lakehouse.errors import (
        SegmentUnreadable as SegmentUnreadable,
    )
    from lakehouse.errors import (
        StorageUnavailable as StorageUnavailable,
    )
    from lakehouse.errors import (
        TableNotFound as TableNotFound,
    )
    from lakehouse.errors import (
        VersionNotFound as VersionNotFound,
    )
    from lakehouse.errors import (
        VersionNotServed as VersionNotServed,
    )
    from lakehouse.errors import (
        WriteConflict as WriteConflict,
    )
    from lakehouse.lake import Lake as Lake
    from lakehouse.lake import connect as connect
    from lakehouse.operations.operation import Operation as Operation
    from lakehouse.reading.scan import Plan as Plan
    from lakehouse.reading.scan import Scan as Scan
    from lakehouse.serving.client import ServedAnswer as ServedAnswer
    from lakehouse.serving.client import ServingClient as ServingClient
    from lakehouse.serving.client import connect_serving as connect_serving
    from lakehouse.spark_source import register as register
    from lakehouse.table.table import Table as Table

__version__ = "0.1.0"

# Loaded on first use: importing the package costs neither Arrow nor SQLAlchemy nor Spark.
_HOME = {
    "Action": "actions.roles",
    "Actions": "actions.actions",
    "Age": "arguments",
    "AlreadyExists": "errors",
    "Args": "arguments",
    "AsOf": "core.interval",
    "CatalogUnavailable": "errors",
    "Commit": "core.commit",
    "CommitUnknown": "errors",
    "EngineUnavailable": "errors",
    "Exported": "admin.export",
    "Forbidden": "errors",
    "Grain": "core.chunk",
    "InternalError": "errors",
    "Interval": "core.interval",
    "IntervalLike": "core.interval",
    "InvalidInput": "errors",
    "Lake": "lake",
    "LakehouseError": "errors",
    "LockLost": "errors",
    "LockTimeout": "errors",
    "Operation": "operations.operation",
    "PartialRead": "errors",
    "Plan": "reading.scan",
    "Recovered": "admin.recover",
    "Role": "actions.roles",
    "Rows": "arguments",
    "SchemaLike": "arguments",
    "Scan": "reading.scan",
    "Segment": "core.segment",
    "QueryLimitExceeded": "errors",
    "SegmentUnreadable": "errors",
    "ServedAnswer": "serving.client",
    "ServingClient": "serving.client",
    "StorageUnavailable": "errors",
    "Table": "table.table",
    "TableNotFound": "errors",
    "TypeLike": "arguments",
    "Tombstone": "core.tombstone",
    "VersionNotFound": "errors",
    "NodeUnavailable": "errors",
    "OtherLake": "errors",
    "VersionNotServed": "errors",
    "Where": "arguments",
    "WriteConflict": "errors",
    "connect": "lake",
    "connect_serving": "serving.client",
    "recover": "admin.recover",
    "register": "spark_source",
}
__all__ = sorted(_HOME)  # noqa: PLE0605
_find = names_of(__name__, _HOME)


def __getattr__(name: str) -> Any:
    return import_module("lakehouse.streaming") if name == "streaming" else _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, "streaming"})

"""A session: what one process keeps open of a lake, shared by everything that works on it."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from lakehouse.apart import QueryProcesses
from lakehouse.cancelling import Works
from lakehouse.catalog.catalog import Catalog
from lakehouse.engine import Engine
from lakehouse.engine.duckdb import DuckDBEngine, StatementDatabase, most_in_process
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import UnknownEngine
from lakehouse.remembered import Remembered
from lakehouse.session.heartbeat import Heartbeat
from lakehouse.session.home import require_home
from lakehouse.session.index_cache import IndexCache
from lakehouse.session.pins import Pins
from lakehouse.session.plan_counts import PlanCounter
from lakehouse.storage.warehouse import Warehouse

_TRANSLATED_LETTERS = 4_000_000
"""Of all statements whose translation is cached, including the texts for the engines."""


class Session:
    """A catalog, a warehouse and the engines, with the leases and pins of this process. Thread-safe.

    Parameters
    ----------
    catalog, warehouse
        Both belong to the session from now on: `close` closes the catalog.
    spark
        A SparkSession; without one, a local session starts when `spark_engine` is first asked for.
    wait_seconds
        How long replaces and restores wait for locks, and updates, erasures and compactions retry.
    pin_seconds
        How long a lazy result protects its version from expiry.
    """

    def __init__(
        self,
        catalog: Catalog,
        warehouse: Warehouse,
        *,
        spark: Any = None,
        wait_seconds: float = 30.0,
        pin_seconds: float = 3600.0,
    ) -> None:
        self.catalog = catalog
        self.warehouse = warehouse.noting(catalog.uploads())
        self.wait_seconds = wait_seconds
        self.heartbeat = Heartbeat(catalog)
        self.pins = Pins(catalog, pin_seconds, self.heartbeat.start)
        self.plan_counts = PlanCounter(catalog)
        self.heartbeat.also = self._beat
        self.index_cache = IndexCache(catalog.summaries, warehouse)
        self.local_engine = DuckDBEngine()
        self.statements = StatementDatabase(warehouse.root)
        self.works = Works()
        self.most_in_process = most_in_process()
        """Bytes of files from which on a query is run by Spark, unless its caller chooses."""
        self.translations: Remembered[tuple[str | None, str], Any] = Remembered(_TRANSLATED_LETTERS)
        self.query_processes = QueryProcesses(
            {
                "catalog": catalog.address,
                "warehouse": warehouse.address,
                **warehouse.settings,
                "lease_seconds": catalog.lease_seconds,
            },
            catalog.unpin,
        )
        self._is_at_home = False
        self._spark = spark
        self._spark_engine: Engine | None = None

    def require_home(self) -> None:
        """Check before a write, until it is settled, that the warehouse is the lake's; see `session.home`."""
        if not self._is_at_home:
            self._is_at_home = require_home(self.catalog, self.warehouse)

    def writing(self) -> Catalog:
        """The catalog, for operations that write to the warehouse, if that is the lake's. Raises `InvalidAddress`."""
        self.require_home()
        return self.catalog

    def drop_erased(self) -> int | None:
        """Drop copies of files that an erasure has replaced since this machine last looked; return that erasure.

        Free for a warehouse in a folder, where it is None; else a small read of the catalog, one in a snapshot, and
        after an erasure one of all files.
        """
        cache = self.warehouse.cache
        if cache is None:
            return None
        newest = self.catalog.newest_erasure()
        if cache.erasure < newest:
            cache.drop_replaced(newest, lambda: [one.path for one in self.catalog.checks().files()])
        return newest

    def planning_warehouse(self) -> Warehouse:
        """The warehouse for what is planned from now on; what erasures have replaced is dropped first."""
        erasure = self.drop_erased()
        return self.warehouse if erasure is None else self.warehouse.as_of_erasure(erasure)

    def _beat(self) -> None:
        self.pins.beat()
        self.plan_counts.flush()

    def engine(self, name: str | None) -> Engine:
        """An engine by name, ``duckdb`` (the default: in process) or ``spark``. Raises `InvalidInput`."""
        if name in (None, "duckdb"):
            return self.local_engine
        if name == "spark":
            return self.spark_engine
        raise UnknownEngine("no such engine; choose duckdb (in process) or spark", engine=name)

    def engine_for(self, rows: Any) -> Engine:
        """The engine that writes given rows: Spark for its own frames, else in process."""
        return self.spark_engine if is_spark_frame(rows) else self.local_engine

    @property
    def spark(self) -> Any:
        """The Spark session; a local one starts now if none was given. Raises `EngineUnavailable`."""
        return self.spark_engine.session  # type: ignore[attr-defined]

    @property
    def spark_engine(self) -> Engine:
        """Spark as an engine; loaded, and if need be started, on first use."""
        if self._spark_engine is None:
            # PySpark takes seconds to import, and work in process does not need it.
            open_engine = import_module("lakehouse.engine.spark").open_engine
            self._spark_engine = open_engine(self._spark, reads=self.warehouse.address)
        engine: Engine = self._spark_engine
        return engine

    def use_spark(self, spark: Any) -> None:
        """Use a SparkSession from now on, unless one is in use already."""
        if self._spark_engine is None:
            self._spark = spark

    def cancel(self, thread: threading.Thread | None) -> None:
        """Cancel the statements of a thread, or of all; see `Lake.cancel`."""
        self.works.cancel(thread)
        self.statements.interrupt(thread)

    def close(self) -> None:
        """Close the catalog's connections. The Spark session keeps running."""
        self.query_processes.close()
        self.heartbeat.close()
        self.plan_counts.flush()
        self.pins.close()
        self.local_engine.close()
        self.statements.close()
        self.catalog.close()

    def __repr__(self) -> str:
        return f"<session {self.catalog.url} in {self.warehouse.address}>"

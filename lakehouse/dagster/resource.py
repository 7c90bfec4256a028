"""The lake as a Dagster resource."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from pydantic import Field

import lakehouse
from lakehouse.dagster.progress import EVERY_SECONDS, logging_progress
from lakehouse.dagster.spark import SparkSettings


class LakeSettings(SparkSettings):
    """The address of a lake, and how to open it."""

    catalog: str | None = Field(
        default=None,
        description="The catalog, as sqlite:///path or postgresql+psycopg://user@host/name (default: "
        "$LAKEHOUSE_CATALOG).",
    )
    warehouse: str | None = Field(
        default=None,
        description="The folder of the data files, or s3://bucket/prefix, gs:// or az:// (default: "
        "$LAKEHOUSE_WAREHOUSE).",
    )
    storage_options: dict[str, str] = Field(
        default_factory=dict,
        description="Settings of an object store, as in lakehouse.connect, with secrets from the environment.",
    )
    cache_dir: str | None = Field(
        default=None,
        description="The folder for copies of an object store's files (default: $LAKEHOUSE_CACHE_DIR).",
    )
    cache_bytes: int | None = Field(
        default=None,
        ge=0,
        description="How many bytes these copies may take (default: $LAKEHOUSE_CACHE_BYTES, else 20 GiB).",
    )
    console_url: str | None = Field(
        default=None,
        description="The console's address, for links (default: $LAKEHOUSE_CONSOLE_URL, else port 8501 of this "
        "machine).",
    )
    wait_seconds: float = Field(
        default=30.0, ge=0, description="How many seconds a replace waits for another one of its chunks."
    )
    progress_seconds: float = Field(
        default=EVERY_SECONDS,
        ge=0,
        description="How many seconds pass between two lines of progress in a step's log (0: none are logged).",
    )

    def open(self, *, spark: bool = True) -> "lakehouse.Lake":
        """The open lake; the caller closes it. ``spark=False`` starts no session.

        The lake is opened first, so that a wrong address is refused before Spark starts.
        """
        lake = lakehouse.connect(
            self.catalog,
            self.warehouse,
            wait_seconds=self.wait_seconds,
            storage_options=self.storage_options or None,
            cache_dir=self.cache_dir,
            cache_bytes=self.cache_bytes,
        )
        if spark:
            try:
                lake.session.use_spark(self.get_spark())
            except BaseException:
                lake.close()
                raise
        return lake


class LakehouseResource(LakeSettings, dg.ConfigurableResource[Any]):
    """A lake, and the Spark session that writes to it."""

    @contextmanager
    def get_lake(self, *, spark: bool = True) -> Iterator["lakehouse.Lake"]:
        """The open lake, closed at the end of the block.

        Nothing is opened, and Spark does not start, before this is called in a run. Any text of the resource may be
        ``dg.EnvVar(...)``, which is read when a run starts and shown nowhere: use it for a catalog address with a
        password, and for the credentials in ``storage_options``. Spark's settings and end are those of `SparkResource`.

        ``spark=False`` starts no session, for work that stays in process (Arrow, pandas, polars); an operation that
        needs Spark anyway then starts one without the settings of this resource. What takes long in the block logs its
        progress (`logging_progress`).

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> resource = LakehouseResource(catalog=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
        >>> with resource.get_lake(spark=False) as lake:
        ...     lake.tables()
        []
        """
        with self.open(spark=spark) as lake, logging_progress(every_seconds=self.progress_seconds):
            yield lake

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Leave the Spark session at the end of a run."""
        self._use.leave()


def console_address(given: str | None = None) -> str:
    """The console's address: as given, else from the environment, else on this machine.

    >>> console_address("https://lake.example/")
    'https://lake.example'
    """
    port = os.environ.get("LAKEHOUSE_CONSOLE_PORT", "8501")
    found = given or os.environ.get("LAKEHOUSE_CONSOLE_URL") or f"http://127.0.0.1:{port}"
    return found.rstrip("/")

"""The lake as a Dagster resource."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from pydantic import Field

import lakehouse
from lakehouse.dagster.spark import SparkSettings


class LakeSettings(SparkSettings):
    """The address of a lake, and how to open it."""

    catalog: str | None = Field(
        default=None, description="sqlite:///path or postgresql+psycopg://...; default $LAKEHOUSE_CATALOG"
    )
    warehouse: str | None = Field(
        default=None, description="Path, file:// URI, s3://bucket/prefix, gs:// or az://; default $LAKEHOUSE_WAREHOUSE"
    )
    storage_options: dict[str, str] = Field(
        default_factory=dict,
        description="Of an object store, as in lakehouse.connect; secrets as dg.EnvVar, or in the environment",
    )
    cache_dir: str | None = Field(
        default=None, description="Where copies of a store's files lie; default $LAKEHOUSE_CACHE_DIR"
    )
    cache_bytes: int | None = Field(
        default=None, description="What these may take; default $LAKEHOUSE_CACHE_BYTES, else 20 GiB"
    )
    console_url: str | None = Field(
        default=None,
        description="Where the console is, for links; default $LAKEHOUSE_CONSOLE_URL, else port 8501 here",
    )
    wait_seconds: float = Field(default=30.0, description="How long a replace waits for another one of its chunks")

    def open(self, *, spark: bool = True) -> "lakehouse.Lake":
        """The open lake; the caller closes it. ``spark=False`` starts no session."""
        session = self.get_spark() if spark else None
        return lakehouse.connect(
            self.catalog,
            self.warehouse,
            spark=session,
            wait_seconds=self.wait_seconds,
            storage_options=self.storage_options or None,
            cache_dir=self.cache_dir,
            cache_bytes=self.cache_bytes,
        )


class LakehouseResource(LakeSettings, dg.ConfigurableResource[Any]):
    """A lake, and the Spark session that writes to it.

    Nothing is opened, and Spark does not start, before `get_lake` is called in a run. Any text may be
    ``dg.EnvVar(...)``, which is read when a run starts and shown nowhere: use it for a catalog address with a password,
    and for the credentials in ``storage_options``.
    Spark's settings and end are those of `SparkResource`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> resource = LakehouseResource(catalog=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    >>> with resource.get_lake(spark=False) as lake:
    ...     lake.tables()
    []
    """

    @contextmanager
    def get_lake(self, *, spark: bool = True) -> Iterator["lakehouse.Lake"]:
        """The open lake, closed at the end of the block.

        ``spark=False`` starts no session, for work that stays in process (Arrow, pandas, polars); an operation that
        needs Spark anyway then starts one without the settings of this resource.
        """
        with self.open(spark=spark) as lake:
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

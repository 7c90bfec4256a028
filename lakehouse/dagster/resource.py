"""The lake as a Dagster resource."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from dagster_spark.utils import flatten_dict
from pydantic import Field
from pyspark.sql import SparkSession

import lakehouse
from lakehouse.engine.spark.session import start_session


class LakehouseResource(dg.ConfigurableResource[Any]):
    """A lake, and the Spark session that writes to it.

    Nothing is opened, and no Spark starts, before `get_lake` is called in a run.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> resource = LakehouseResource(catalog=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    >>> with resource.get_lake(spark=False) as lake:
    ...     lake.tables()
    []
    """

    catalog: str | None = Field(
        default=None, description="sqlite:///path or postgresql+psycopg://...; default $LAKEHOUSE_CATALOG"
    )
    warehouse: str | None = Field(default=None, description="Path or file:// URI; default $LAKEHOUSE_WAREHOUSE")
    spark_config: dict[str, Any] = Field(
        default_factory=dict,
        description="Spark's settings, flat or nested as dagster-pyspark takes them: spark.master, spark.remote, ...",
    )

    @contextmanager
    def get_lake(self, *, spark: bool = True) -> Iterator["lakehouse.Lake"]:
        """The open lake, closed at the end of the block.

        ``spark=False`` starts no session for work that stays in process (Arrow, pandas, polars); an operation that
        needs Spark after all then starts one without the settings of this resource.
        """
        session = self.get_spark() if spark else None
        with lakehouse.connect(self.catalog, self.warehouse, spark=session) as lake:
            yield lake

    def get_spark(self) -> SparkSession:
        """The process's session, started with these settings if there is none.

        Spark has one session a process: where it runs already, settings that are fixed at its start stay as they are,
        and a warning names those that differ.
        """
        settings = {key: _as_text(value) for key, value in flatten_dict(self.spark_config)}  # type: ignore[no-untyped-call]
        session = start_session(settings)
        ignored = sorted(key for key, value in settings.items() if session.conf.get(key, None) != value)
        if ignored:
            dg.get_dagster_logger().warning("Spark runs already, without these settings of the lake: %s", ignored)
        return session


def _as_text(value: Any) -> str:
    """A setting as Spark reads it.

    >>> _as_text(False), _as_text(4)
    ('false', '4')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)

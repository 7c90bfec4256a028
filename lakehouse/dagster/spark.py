"""Spark as a Dagster resource: one session a process, compared with the settings that were requested."""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field, PrivateAttr

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Started:
    """The session that a resource of this process started, and its number of users: the last one stops it."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.session: Any = None
        self.users = 0


_started = _Started()


class SparkUse:
    """One user of the process's Spark session, from the first `session` to `leave`."""

    def __init__(self) -> None:
        self._is_counted = False

    def session(self, settings: Mapping[str, str]) -> "SparkSession":
        """The process's session, started with these settings if there is none; logs how its settings differ.

        Raises `EngineUnavailable` if Spark does not start.
        """
        # PySpark takes half a second to import, for which loading a code location need not wait.
        from lakehouse.engine.spark.session import start_session  # noqa: PLC0415

        with _started.guard:
            ran = _running()
            session = start_session(settings)
            if not ran:
                _started.session, _started.users, self._is_counted = session, 0, False
            if session is _started.session and not self._is_counted:
                _started.users += 1
                self._is_counted = True
        # A Connect session does not say where its server is.
        wanted = {key: value for key, value in settings.items() if key != "spark.remote"}
        ignored = sorted(key for key, value in wanted.items() if session.conf.get(key, None) != value)
        if ran and ignored:
            dg.get_dagster_logger().warning("Spark runs already, without these settings: %s", ignored)
        return session

    def leave(self) -> None:
        """Stop using the session; it is stopped if a resource started it and no other one uses it."""
        with _started.guard:
            if not self._is_counted:
                return
            self._is_counted = False
            _started.users -= 1
            if _started.users == 0 and _started.session is not None:
                _started.session.stop()
                _started.session = None


class SparkSettings(dg.Config):
    """How Spark is started."""

    spark_master: str | None = Field(
        default=None,
        description="Spark's master, as local[2], spark://host:7077, yarn, or sc://host:15002 for Spark Connect "
        "(default: $SPARK_REMOTE, else $LAKEHOUSE_SPARK_MASTER, else all local cores).",
    )
    spark_config: dict[str, Any] = Field(
        default_factory=dict, description="Spark's settings, flat or nested as dagster-pyspark takes them."
    )
    _use: SparkUse = PrivateAttr(default_factory=SparkUse)

    def spark_settings(self) -> Mapping[str, str]:
        """The settings as Spark reads them, including the master.

        Examples
        --------
        >>> local = SparkResource(spark_master="local[2]", spark_config={"spark": {"sql": {"shuffle.partitions": 4}}})
        >>> local.spark_settings()
        {'spark.sql.shuffle.partitions': '4', 'spark.master': 'local[2]'}
        >>> SparkResource(spark_master="sc://spark.example:15002").spark_settings()
        {'spark.remote': 'sc://spark.example:15002'}
        """
        flat = {key: _as_text(value) for key, value in _flat(self.spark_config)}
        if self.spark_master is not None:
            is_remote = self.spark_master.startswith("sc://")
            flat["spark.remote" if is_remote else "spark.master"] = self.spark_master
        return flat

    def get_spark(self) -> "SparkSession":
        """The process's session, started with these settings if there is none.

        Spark has one session a process: if it already runs, settings fixed at its start stay as they are, and a warning
        names those that differ. Raises `EngineUnavailable` if Spark does not start.
        """
        return self._use.session(self.spark_settings())


class SparkResource(SparkSettings, dg.ConfigurableResource[Any]):
    """A Spark session that starts when it is first needed: local, on a cluster, or behind Spark Connect."""

    @property
    def spark_session(self) -> "SparkSession":
        """The session.

        ``spark_config``, ``spark_session`` and ``spark_context`` are those of dagster-pyspark's resources, so this one
        can replace them. Unlike those, it reports settings that a running session does not have, and stops the session
        that it started when the last run in this process that uses it ends. A session that existed before stays.
        """
        return self.get_spark()

    @property
    def spark_context(self) -> Any:
        """The context of a session that is not behind Spark Connect."""
        return self.get_spark().sparkContext

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Leave the session at the end of a run."""
        self._use.leave()


def _running() -> bool:
    """Whether a session runs in this process, whichever thread started it."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as above
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        SparkSession.active()
    except PySparkException:
        return False
    return True


def _flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested settings as dotted names.

    >>> _flat({"spark": {"sql": {"ansi.enabled": True}}, "spark.ui.enabled": False})
    [('spark.sql.ansi.enabled', True), ('spark.ui.enabled', False)]
    """
    found: list[tuple[str, Any]] = []
    for name, value in settings.items():
        found.extend(_flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)])
    return found


def _as_text(value: Any) -> str:
    """A setting as Spark reads it.

    >>> _as_text(False), _as_text(4)
    ('false', '4')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)

"""A Spark session of our own, where the user gives none."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse.engine.spark.interrupting import keeping_handler
from lakehouse.engine.spark.stores import FILE_SYSTEMS, is_on_one_machine, scheme_of
from lakehouse.errors import EngineUnavailable

logger = logging.getLogger(__name__)
_JAVA_NEEDED = 17
_INSTALL = "install OpenJDK 17 or newer (Debian: apt-get install openjdk-17-jre-headless) and set JAVA_HOME if need be"
_SETTINGS = {
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_ON_ONE_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def start_session(settings: Mapping[str, str] | None = None, *, reads: str = "") -> SparkSession:
    """The active session if there is one, else a new one: where ``SPARK_REMOTE`` says, or on all local cores.

    Takes some seconds. ``settings`` go before our own; an active session stays as it is. One whose tasks run on other
    machines gets the jars with which they read the store whose address is in ``reads``. Raises `EngineUnavailable`,
    saying what to install, if Java is missing or too old or Spark does not start.
    """
    active: SparkSession | None = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run whatever python3 is first in PATH
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    chosen = dict(settings or {})
    builder = SparkSession.builder.appName("lakehouse")
    if "SPARK_REMOTE" not in os.environ and "spark.remote" not in chosen:
        check_java()
        if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has chosen the master
            master = os.environ.get("LAKEHOUSE_SPARK_MASTER", "local[*]")
            builder = builder.master(master)
            is_alone = is_on_one_machine(chosen.get("spark.master", master))
            others = _ON_ONE_MACHINE if is_alone else _jars(reads)
            for key, value in {**_SETTINGS, **others}.items():
                builder = builder.config(key, value)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        with keeping_handler():
            return builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise EngineUnavailable(
            "Spark does not start; run `lakehouse doctor`, or use in-process data such as Arrow tables",
            cause=str(error).splitlines()[0] if str(error) else type(error).__name__,
        ) from error


def _jars(address: str) -> dict[str, str]:
    scheme = scheme_of(address)
    return FILE_SYSTEMS[scheme].settings if scheme else {}


def check_java() -> str:
    """The version of the Java that Spark would use. Raises `EngineUnavailable` if there is none, or a too old one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise EngineUnavailable(f"Java is missing, and Spark needs it; {_INSTALL}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineUnavailable(f"Java does not run, and Spark needs it; {_INSTALL}", java=java, cause=error) from error
    version = java_version(said)
    if version is None or int(version.split(".")[0]) < _JAVA_NEEDED:
        raise EngineUnavailable(f"Java is too old for Spark; {_INSTALL}", java=java, found=version, needed=_JAVA_NEEDED)
    return version


def java_version(said: str) -> str | None:
    """The version in what ``java -version`` says; old numbering (1.8) gives the second number first.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_412"')
    ('17.0.15', '8.0_412')
    """
    found = re.search(r'version "(?:1\.)?(\d+[^"]*)"', said)
    return found[1] if found else None


def stop_session(spark: SparkSession) -> None:
    """Stop a session that may have crashed: what is said of that is said by who noticed."""
    try:
        spark.stop()
    except (Py4JError, OSError) as error:
        logger.info("Spark had ended already: %s", error)

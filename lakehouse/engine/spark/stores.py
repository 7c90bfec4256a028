"""How Spark on a cluster reads an object store: by its Hadoop's own file system, with the warehouse's options.

They go with each frame, not into the session, and are never shown. On one machine Spark reads local copies instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from lakehouse.core.segment import Segment
from lakehouse.errors import EngineUnavailable
from lakehouse.storage.warehouse import Warehouse

HADOOP = "3.5.0"
_SDK = "2.35.4"
PACKAGES = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    *(f"software.amazon.awssdk:{one}:{_SDK}" for one in ("s3", "s3-transfer-manager", "sts", "url-connection-client")),
)
"""What reads ``s3a://``, 11 MB of jars with what they need: the parts of the SDK, not its bundle of half a gigabyte."""
EXCLUDES = (
    "software.amazon.awssdk:bundle",
    "org.wildfly.openssl:wildfly-openssl",
    "org.slf4j:slf4j-api",
    "commons-codec:commons-codec",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
    *(
        f"io.netty:netty-{one}"
        for one in (
            "buffer", "codec", "codec-http", "codec-http2", "common", "handler", "resolver", "transport",
            "transport-classes-epoll",
        )
    ),
)  # fmt: skip
"""What Spark brings itself, and that bundle."""
_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_LOCAL = ("local", "local[")


@dataclass(frozen=True, slots=True)
class Files:
    """Where Spark finds files, by stored path, and the options by which it reaches them."""

    locations: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __getitem__(self, stored: str) -> str:
        return self.locations[stored]

    def __len__(self) -> int:
        return len(self.locations)


def jar_settings() -> dict[str, str]:
    """The settings of a session that reads stores."""
    return {"spark.jars.packages": ",".join(PACKAGES), "spark.jars.excludes": ",".join(EXCLUDES)}


def is_on_one_machine(master: str) -> bool:
    """Whether all tasks run where the driver does.

    >>> is_on_one_machine("local[*]"), is_on_one_machine("spark://head:7077")
    (True, False)
    """
    return master == _LOCAL[0] or master.startswith(_LOCAL[1])


def reads_store(session: SparkSession, warehouse: Warehouse) -> bool:
    """Whether tasks run where the copies of this machine are not."""
    return warehouse.cache is not None and not is_on_one_machine(session.conf.get("spark.master", None) or "local")


def files_in_store(session: SparkSession, warehouse: Warehouse, segments: Iterable[Segment]) -> Files:
    """Segments' files where the store has them. Raises `EngineUnavailable` if the session lacks jars."""
    parts = urlsplit(warehouse.address)
    if parts.scheme != "s3":
        raise EngineUnavailable(
            "Spark on a cluster reads s3:// alone; run it on one machine (master local[*]), or read in process",
            warehouse=warehouse.address,
        )
    require_jars(session)
    root = f"s3a://{parts.netloc}{unquote(parts.path)}"
    options = s3a_options(parts.netloc, warehouse.settings.get("storage_options", {}))
    return Files({one.path: f"{root}/{one.path}" for one in segments}, options)


def require_jars(session: SparkSession) -> None:
    """Raise `EngineUnavailable` if a session cannot read ``s3a://``. Spark Connect tells only when it reads."""
    if hasattr(session, "_jsc") and session._jsc.hadoopConfiguration().getClassByNameOrNull(_CLASS) is None:
        raise no_jars()


def no_jars() -> EngineUnavailable:
    """The error for a session that lacks jars."""
    return EngineUnavailable(
        "Spark lacks the jars that read s3a://; start its session with these settings, or let the library start it",
        **{name.replace(".", "_"): value for name, value in jar_settings().items()},
    )


def s3a_options(bucket: str, given: Mapping[str, Any]) -> dict[str, str]:
    """A warehouse's options as those of Hadoop's ``s3a`` for one bucket; what is left out each machine finds itself.

    >>> s3a_options("lake", {"aws_region": "eu-west-1", "endpoint": "http://host:9000"})["fs.s3a.bucket.lake.endpoint"]
    'http://host:9000'
    """
    held = {name.lower().removeprefix("aws_"): str(value) for name, value in given.items()}
    found = {_NAMES[name]: value for name, value in held.items() if name in _NAMES}
    endpoint = found.get("endpoint", "")
    if endpoint:
        is_virtual = held.get("virtual_hosted_style_request", "false").lower() == "true"
        found["path.style.access"] = str(not is_virtual).lower()
        found["connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
        found.setdefault("endpoint.region", "us-east-1")
    if held.get("skip_signature", "").lower() == "true":
        found["aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in {**_PATIENCE, **found}.items()}


_PATIENCE = {"attempts.maximum": "5", "retry.limit": "3", "connection.establish.timeout": "5s"}
"""Some seconds for a store that does not answer, not minutes."""
_NAMES = {
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "region": "endpoint.region",
    "default_region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "token": "session.token",
}

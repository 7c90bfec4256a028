"""How Spark on a cluster reads an object store: by its Hadoop's own file system, with the warehouse's options.

They go with each frame, not into the session, and are never shown. On one machine Spark reads local copies instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from lakehouse.core.segment import Segment
from lakehouse.engine.spark.store_options import abfs_options, abfs_root, gs_options, s3a_options
from lakehouse.errors import EngineUnavailable
from lakehouse.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from lakehouse.storage.remote import Remote

HADOOP = "3.5.0"
_SDK = "2.35.4"
_LOCAL = ("local", "local[")
_OF_SPARK = (
    "org.slf4j:slf4j-api",
    "commons-codec:commons-codec",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
)
"""What Spark brings itself."""
_VARIABLES = {
    # Not the credentials: each machine has its own, which its file system reads.
    "s3": ("AWS_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST"),
    # Application credentials may be no key, so that they are left to each machine.
    "gs": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_BASE_URL", "GOOGLE_BEARER_TOKEN", "GOOGLE_SKIP_SIGNATURE"),
    "az": ("AZURE_",),
}
"""The first letters of variables, by the scheme of an address."""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """One of Hadoop's file systems: its class, and the jars that it needs by coordinates, without ``excludes``."""

    scheme: str
    name: str
    packages: tuple[str, ...]
    excludes: tuple[str, ...]

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a session that reads by it."""
        found = {"spark.jars.packages": ",".join(self.packages), "spark.jars.excludes": ",".join(self.excludes)}
        return {name: value for name, value in found.items() if value}


FILE_SYSTEMS = {
    # 11 MB: the parts of the SDK, not its bundle of half a gigabyte.
    "s3": FileSystem(
        "s3a",
        "org.apache.hadoop.fs.s3a.S3AFileSystem",
        (
            f"org.apache.hadoop:hadoop-aws:{HADOOP}",
            *(
                f"software.amazon.awssdk:{one}:{_SDK}"
                for one in ("s3", "s3-transfer-manager", "sts", "url-connection-client")
            ),
        ),
        (
            "software.amazon.awssdk:bundle",
            "org.wildfly.openssl:wildfly-openssl",
            *_OF_SPARK,
            *(
                f"io.netty:netty-{one}"
                for one in (
                    "buffer", "codec", "codec-http", "codec-http2", "common", "handler", "resolver", "transport",
                    "transport-classes-epoll",
                )
            ),
        ),
    ),
    "az": FileSystem(
        "abfss",
        "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
        (f"org.apache.hadoop:hadoop-azure:{HADOOP}",),
        ("com.microsoft.azure:azure-storage", "org.wildfly.openssl:wildfly-openssl", *_OF_SPARK),
    ),
    "gs": FileSystem(
        "gs",
        "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",
        (f"org.apache.hadoop:hadoop-gcp:{HADOOP}",),
        (*_OF_SPARK,),
    ),
}  # fmt: skip
"""By the scheme of a warehouse's address."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where Spark finds files, by stored path, and the options by which it reaches them."""

    locations: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __getitem__(self, stored: str) -> str:
        return self.locations[stored]

    def __len__(self) -> int:
        return len(self.locations)


def scheme_of(address: str) -> str:
    """The scheme of a warehouse's address if Spark on a cluster reads it by a file system of Hadoop, else nothing.

    >>> scheme_of("s3://lake/warehouse"), scheme_of("/data/warehouse")
    ('s3', '')
    """
    scheme = address.partition("://")[0] if "://" in address else ""
    return scheme if scheme in FILE_SYSTEMS else ""


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
    require_jars(session, parts.scheme)
    options = options_of(warehouse)
    is_azure = parts.scheme == "az"
    root = (
        abfs_root(parts.netloc, _given(warehouse))
        if is_azure
        else f"{FILE_SYSTEMS[parts.scheme].scheme}://{parts.netloc}"
    )
    root += unquote(parts.path)
    return Files({one.path: f"{root}/{one.path}" for one in segments}, options)


def options_of(warehouse: Warehouse) -> dict[str, str]:
    """The options of the file system that reads a warehouse. Raises `EngineUnavailable` for what it does not take."""
    parts, given = urlsplit(warehouse.address), _given(warehouse)
    match parts.scheme:
        case "s3":
            return s3a_options(parts.netloc, given)
        case "az":
            return abfs_options(given)
        case _:
            return gs_options(given)


def _given(warehouse: Warehouse) -> dict[str, Any]:
    """A warehouse's options with the credentials of now, and what the environment says beside."""
    scheme = urlsplit(warehouse.address).scheme
    return {**_of_environment(scheme), **cast("Remote", warehouse).objects.credentials.current}


def _of_environment(scheme: str) -> dict[str, str]:
    """What this process knows of the store by its usual variables, which file systems do not read, or elsewhere."""
    return {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES[scheme])}


def require_jars(session: SparkSession, scheme: str) -> None:
    """Raise `EngineUnavailable` if a session cannot read a scheme. Spark Connect tells only when it reads."""
    if not hasattr(session, "_jsc"):
        return
    if session._jsc.hadoopConfiguration().getClassByNameOrNull(FILE_SYSTEMS[scheme].name) is None:
        raise no_jars(FILE_SYSTEMS[scheme])


def no_jars(system: FileSystem) -> EngineUnavailable:
    """The error for a session that lacks jars."""
    return EngineUnavailable(
        f"Spark lacks the jars that read {system.scheme}://; start its session with these settings, or let the library "
        "start it",
        **{name.replace(".", "_"): value for name, value in system.settings.items()},
    )


def lacking(text: str) -> EngineUnavailable | None:
    """What an error of Spark means, if it is that a file system lacks its jars."""
    for system in FILE_SYSTEMS.values():
        if f"{system.name} not found" in text or f'No FileSystem for scheme "{system.scheme}"' in text:
            return no_jars(system)
    return None

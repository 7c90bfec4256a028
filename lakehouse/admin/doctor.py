"""Checks whether this machine has what the library needs, and says what to do. Changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from lakehouse.admin.doctor_store import try_store
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.migration import REVISION, current_revision
from lakehouse.catalog.store.opening import WAL_IS_SAFE_FROM, is_missing, sqlite
from lakehouse.catalog.versions.warehouse import read_warehouse
from lakehouse.errors import ExtraMissing, LakehouseError
from lakehouse.extras import install, load
from lakehouse.session.addresses import addresses
from lakehouse.session.home import ELSEWHERE, is_home
from lakehouse.storage.opening import open_warehouse

Status = Literal["ok", "warn", "fail"]
PYTHON_AT_LEAST = (3, 11)
JAVA_AT_LEAST = 17
INSTALL_JAVA = (
    "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless); JAVA_HOME, if set, must name it"
)
FREE_BYTES_WARN = 5 << 30
FREE_BYTES_FAIL = 256 << 20
NETWORK_FILESYSTEMS = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "nfs", "nfs4", "smb3"}
)
_PROBE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: what was checked, its status, what was found, and the remedy if something is wrong."""

    subject: str
    status: Status
    found: str
    remedy: str = ""


def examine(catalog: str | None = None, warehouse: str | None = None, *, start_spark: bool = False) -> list[Finding]:
    """Check everything an operation can need. With ``start_spark`` this takes as long as Spark takes to start."""
    return list(_findings(catalog, warehouse, start_spark))


def _findings(catalog: str | None, warehouse: str | None, start_spark: bool) -> Iterator[Finding]:
    yield check_python()
    yield check_java()
    yield check_package("pyspark", "spark")
    yield check_workers()
    if start_spark:
        yield check_spark_start(warehouse)
    yield check_package("dagster", "dagster")
    yield check_package("streamlit", "console")
    yield check_sqlite()
    yield check_catalog(catalog)
    yield from check_warehouse(warehouse)
    yield from check_home(catalog, warehouse)


def check_python() -> Finding:
    """The running Python."""
    found = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] < PYTHON_AT_LEAST:
        return Finding("python", "fail", found, "use Python 3.11 or newer")
    return Finding("python", "ok", found)


def check_java() -> Finding:
    """The Java that Spark will use: JAVA_HOME's, else the first on PATH."""
    try:
        return Finding("java", "ok", _spark_session_module().check_java())
    except ExtraMissing:
        return Finding("java", "ok", "not needed: pyspark is not installed")
    except LakehouseError as error:
        return _failed("java", error)


def check_package(name: str, subject: str) -> Finding:
    """Whether an optional Python package is installed."""
    try:
        return Finding(subject, "ok", f"{name} {version(name)}")
    except PackageNotFoundError:
        return Finding(subject, "warn", f"{name} is not installed", f"if you need it: {install(subject)}")


def check_workers() -> Finding:
    """Spark's Python workers must run this Python."""
    command = os.environ.get("PYSPARK_PYTHON")
    if command is None:
        return Finding("workers' python", "ok", f"{sys.executable} (sessions made here set it)")
    printed = _output(command, "-c", "import sys; print(sys.version_info[:2])").strip()
    if printed != str(tuple(sys.version_info[:2])):
        return Finding("workers' python", "fail", f"PYSPARK_PYTHON={command}: {printed}", f"set it to {sys.executable}")
    return Finding("workers' python", "ok", f"PYSPARK_PYTHON={command}")


def check_spark_start(warehouse: str | None = None) -> Finding:
    """Start Spark as the library does for a warehouse, and stop it; on a cluster it needs jars to read a store."""
    address = warehouse or os.environ.get("LAKEHOUSE_WAREHOUSE", "")
    try:
        session = _spark_session_module().start_session(reads=address)
    except LakehouseError as error:
        return _failed("spark start", error)
    try:
        counted = session.range(1000).count()
        stores = import_module("lakehouse.engine.spark.stores")
        scheme = stores.scheme_of(address)
        if scheme and not stores.is_on_one_machine(session.conf.get("spark.master", None) or "local"):
            stores.require_jars(session, scheme)
    except LakehouseError as error:
        return _failed("spark start", error)
    finally:
        session.stop()
    return Finding("spark start", "ok", f"counted {counted} rows")


def check_sqlite() -> Finding:
    """The SQLite that catalogs use, which may be newer than Python's own."""
    needed = ".".join(str(part) for part in WAL_IS_SAFE_FROM)
    found = f"{sqlite.sqlite_version} from {sqlite.__name__.split('.')[0]}"
    if sqlite.sqlite_version_info < WAL_IS_SAFE_FROM:
        remedy = f"install pysqlite3 (SQLite {needed} or newer): until then catalogs use the slower rollback journal"
        return Finding("sqlite", "warn", found, remedy)
    return Finding("sqlite", "ok", found)


def check_catalog(catalog: str | None) -> Finding:
    """Whether the catalog's database answers, with the tables of this release."""
    url, _ = addresses(catalog)
    try:
        if is_missing(url):
            return Finding("catalog", "warn", f"none yet at {url}", "make it: lakehouse init")
        database = Database(url)
        try:
            shown = database.url.render_as_string(hide_password=True)
            revision = current_revision(database)
        finally:
            database.close()
    except LakehouseError as error:
        return _failed("catalog", error)
    if revision is None:
        return Finding("catalog", "warn", f"{shown} is empty", "make the tables: lakehouse init")
    if revision > REVISION:
        return Finding(
            "catalog", "fail", f"{shown} at {revision}, this release knows {REVISION}", "upgrade the package"
        )
    if revision < REVISION:
        return Finding("catalog", "warn", f"{shown} at {revision}, not {REVISION}", "upgrade it: lakehouse migrate")
    return Finding("catalog", "ok", f"{shown} at {revision}")


def check_warehouse(warehouse: str | None) -> Iterator[Finding]:
    """Whether data files can be written, to which file system, and the free space; of a store also its cache."""
    try:
        opened = open_warehouse(addresses(warehouse=warehouse)[1])
    except LakehouseError as error:
        yield _failed("warehouse", error)
        return
    if opened.cache is None:
        remedy = "make it writable, or name another folder"
        of_network = "a catalog in SQLite needs a local disk: use PostgreSQL, or move .lakehouse"
        yield from _folder("warehouse", opened.root, str(opened.root), remedy, of_network)
        return
    try:
        took = try_store(opened)
    except LakehouseError as error:
        yield _failed("warehouse", error)
    else:
        steps = ", ".join(f"{step} {seconds * 1000:.0f} ms" for step, seconds in took.items())
        yield Finding("warehouse", "ok", f"{opened.address}: {steps}")
    held, limit = opened.cache.usage().bytes, opened.cache.limit_bytes
    found = f"{opened.root}: {_gib(held)} of at most {_gib(limit)}"
    remedy = "give another LAKEHOUSE_CACHE_DIR"
    yield from _folder("cache", opened.root, found, remedy, f"{remedy}, on a local disk")
    free = shutil.disk_usage(_existing(opened.root)).free
    if free + held < limit:
        remedy = "lower LAKEHOUSE_CACHE_BYTES, or give another LAKEHOUSE_CACHE_DIR"
        yield Finding("cache limit", "warn", f"{_gib(limit)}, more than its disk has room for", remedy)


def check_home(catalog: str | None, warehouse: str | None) -> Iterator[Finding]:
    """Whether the warehouse is that of the catalog's lake; nothing where one of them is not there yet."""
    url, place = addresses(catalog, warehouse)
    try:
        if is_missing(url):
            return
        database = Database(url)
        try:
            if current_revision(database) != REVISION:
                return
            recorded, newest = database.read(read_warehouse)
        finally:
            database.close()
        opened = open_warehouse(place)
        if is_home(recorded, newest, opened):
            yield Finding("lake", "ok", "the catalog's files are in the warehouse" if newest else "no rows yet")
        else:
            happened, _, remedy = ELSEWHERE.partition("; ")
            yield Finding("lake", "fail", f"{happened} (has_them={recorded} missing={newest[0]})", remedy)
    except (LakehouseError, OSError):
        return  # what does not answer has been found before


def _folder(subject: str, folder: Path, found: str, remedy: str, of_network: str) -> Iterator[Finding]:
    """Whether a folder can be written, on which file system it is, and the space there."""
    there = _existing(folder)
    try:
        with tempfile.TemporaryFile(dir=there) as probe:
            probe.write(b"\0")
            os.fsync(probe.fileno())
    except OSError as error:
        yield Finding(subject, "fail", f"{there}: {error.strerror}", remedy)
    else:
        yield Finding(subject, "ok", found if there == folder else f"{found} (will be made)")
    kind = filesystem(there, Path("/proc/mounts"))
    if kind in NETWORK_FILESYSTEMS:
        yield Finding("disk", "warn", f"{kind}, over the network", of_network)
    else:
        yield Finding("disk", "ok", kind)
    yield check_space(shutil.disk_usage(there).free)


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def check_space(free_bytes: int) -> Finding:
    """Free space for data files.

    >>> check_space(10 << 30)
    Finding(subject='free space', status='ok', found='10.0 GiB', remedy='')
    """
    status: Status = "ok"
    if free_bytes < FREE_BYTES_WARN:
        status = "fail" if free_bytes < FREE_BYTES_FAIL else "warn"
    return Finding("free space", status, _gib(free_bytes), "" if status == "ok" else "make room")


def filesystem(folder: Path, mounts: Path) -> str:
    """The kind of file system that holds a folder, "unknown" where the system does not say."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return "unknown"
    kinds = {}
    for line in lines:
        _, mounted, kind, *_ = line.split(" ")
        kinds[Path(mounted.encode().decode("unicode_escape"))] = kind
    return next((kinds[one] for one in (folder, *folder.parents) if one in kinds), "unknown")


def _spark_session_module() -> Any:
    """PySpark may be missing, which is a finding and must not keep this module from loading."""
    return load("lakehouse.engine.spark.session")


def _failed(subject: str, error: LakehouseError) -> Finding:
    """An error as a finding: its message says what happened, then what to do, then the facts."""
    facts = " ".join(f"{name}={value}" for name, value in error.facts.items())
    happened, _, remedy = error.said.partition("; ")
    return Finding(subject, "fail", f"{happened} ({facts})" if facts else happened, remedy or "see the README")


def _output(*command: str) -> str:
    """The output of a command, or why there is none."""
    try:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout + done.stderr

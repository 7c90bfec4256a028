"""Errors of Spark's jobs, read as errors of ours where they say what a user can mend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from lakehouse.engine.spark.columns import REFUSED
from lakehouse.engine.spark.stores import no_jars
from lakehouse.errors import EngineUnavailable, InvalidRows, LakehouseError, SegmentUnreadable, StorageUnavailable

_REFUSED = re.compile(re.escape(REFUSED) + r": column=(.*?) type=(.*?);")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(lakehouse[\w.]*|pyarrow|numpy)'")
_UNREADABLE = (
    re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.+?\.parquet)"),
    re.compile(r"\[FAILED_READ_FILE\.\w+\] .*? file (.+?\.parquet)"),
)
_IN_STORE = re.compile(r"s3a://([^\s:,;`'\"]+)")
_REFUSALS = (
    "NoSuchBucket", "bucket does not exist", "RequestTimeTooSkewed", "ExpiredToken", "InvalidAccessKeyId",
    "SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "PermanentRedirect", "AccessDenied", "SlowDown",
    "Connection refused",
)  # fmt: skip
"""Names in texts of ``s3a``, whose stack traces hold numbers that are no answers of the store."""


@contextmanager
def explaining_jobs() -> Iterator[None]:
    """Raise what a job's error means, if it is one of these: a refused value, a missing package, a lost data file."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _explained(str(error)) or error from error


def _explained(text: str) -> LakehouseError | None:
    if found := _REFUSED.search(text):
        return InvalidRows(
            "the column cannot hold a value; correct it or cast the column first", column=found[1], type=found[2]
        )
    if found := _MISSING.search(text):
        return EngineUnavailable(
            "Spark's Python workers lack a package; install lakehouse, in the same version, wherever they run",
            module=found[1],
        )
    if "S3AFileSystem not found" in text:
        return no_jars()
    if (place := _IN_STORE.search(text)) and (said := next((one for one in _REFUSALS if one in text), None)):
        # It loads what opens stores, which work in folders does without.
        meaning_of = import_module("lakehouse.storage.objects").meaning_of
        return StorageUnavailable(meaning_of(said), path=f"s3://{place[1]}", asked="read by Spark", cause=said)
    for pattern in _UNREADABLE:
        found = pattern.search(text)
        if found is None:
            continue
        parts = urlsplit(found[1])
        path = unquote(parts.path)
        if parts.scheme == "s3a":
            path = f"s3://{parts.netloc}{path}"
        return SegmentUnreadable("data file is missing or malformed; restore it from a copy", path=path)
    return None

"""Errors of Spark's jobs, read as errors of ours where they say what a user can mend."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from lakehouse.engine.spark.columns import REFUSED
from lakehouse.engine.spark.store_options import stored_address
from lakehouse.engine.spark.stores import lacking
from lakehouse.errors import EngineUnavailable, InvalidRows, LakehouseError, SegmentUnreadable, StorageUnavailable
from lakehouse.storage.refusals import meaning_of

_REFUSED = re.compile(re.escape(REFUSED) + r": column=(.*?) type=(.*?);")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '(lakehouse[\w.]*|pyarrow|numpy)'")
_UNREADABLE = (
    re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.+?\.parquet)"),
    re.compile(r"\[FAILED_READ_FILE\.\w+\] .*? file (.+?\.parquet)"),
)
_IN_STORE = re.compile(r"(?:s3a|abfss?|gs)://[^\s:,;`'\"]+")
_AT_AZURE = re.compile(r"(?:HEAD|GET), (https?://[^\s?,]+)")
"""How Azure's file system names what it asked for."""
_REFUSALS = (
    "Server failed to authenticate the request",
    "NoSuchBucket", "bucket does not exist", "RequestTimeTooSkewed", "ExpiredToken", "InvalidAccessKeyId",
    "SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "PermanentRedirect", "AccessDenied", "SlowDown",
    "Connection refused", "AuthenticationFailed", "ContainerNotFound",
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
            "Spark's Python workers lack a package; set PYSPARK_PYTHON, before the session starts, to a Python with "
            "lakehouse in the same version",
            module=found[1],
            this_python=sys.executable,
        )
    if without := lacking(text):
        return without
    place = _AT_AZURE.search(text) or _IN_STORE.search(text)
    if place and (said := next((one for one in _REFUSALS if one in text), None)):
        return StorageUnavailable(
            meaning_of(said), path=stored_address(place[place.lastindex or 0]), asked="read by Spark", cause=said
        )
    for pattern in _UNREADABLE:
        found = pattern.search(text)
        if found is None:
            continue
        path = stored_address(found[1]) if _IN_STORE.match(found[1]) else unquote(urlsplit(found[1]).path)
        return SegmentUnreadable("data file is missing or malformed; restore it from a copy", path=path)
    return None

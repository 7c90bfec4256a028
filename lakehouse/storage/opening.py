"""Opens warehouses by their addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import xxhash

from lakehouse.errors import InvalidAddress, InvalidArgument
from lakehouse.extras import load
from lakehouse.storage.cache import cache_folder
from lakehouse.storage.credentials import without_login
from lakehouse.storage.files import Folder
from lakehouse.storage.options import endpoints_of_environment, unlisted
from lakehouse.storage.paths import warehouse_path
from lakehouse.storage.uploads import MULTIPART_BYTES, OPTION, read_multipart_bytes
from lakehouse.storage.warehouse import Warehouse

SCHEMES = {"s3": "s3", "gs": "gcs", "az": "azure"}
"""Of object stores, with the extra of this package that brings their client."""
_OPTIONS = "LAKEHOUSE_STORAGE_"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""In an address these are a mistake, as of a file that was read with its end of line; URLs leave some out."""


def open_warehouse(
    location: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
) -> Warehouse:
    """The warehouse at a path, ``file://`` URI or an object store's URL; nothing is created, and no store asked.

    Options, and the cache, are as `connect` takes them; a folder has none. Raises `InvalidAddress`, `InvalidArgument`.

    >>> open_warehouse("/data/my lake").address
    '/data/my lake'
    >>> open_warehouse("s3://bucket/a/lake/", {"region": "eu-west-1"}).address
    's3://bucket/a/lake'
    """
    text = os.fspath(location)
    scheme = text.partition("://")[0].lower() if "://" in text else ""
    if scheme not in SCHEMES:
        if storage_options:
            raise InvalidArgument("storage_options are for object stores, as in s3://bucket/prefix", warehouse=text)
        return Folder(warehouse_path(location))
    url = _store_url(text)
    options = {**_from_environment(), **_read_options(storage_options)}
    read_multipart_bytes(options.get(OPTION, MULTIPART_BYTES))
    # It loads obstore, which lakes in folders do without.
    remote = load("lakehouse.storage.remote", SCHEMES[scheme])
    credentials = remote.Credentials(options)
    objects = remote.Objects(url, credentials)
    if unlisted(scheme, options):
        objects.require_options()
    endpoints = credentials.endpoints or [without_login(value) for _, value in endpoints_of_environment(scheme)]
    place = xxhash.xxh3_64_hexdigest(" ".join([url, *endpoints]).encode())
    opened: Warehouse = remote.Remote(
        objects,
        cache_folder(cache_dir) / place,
        _read_limit(cache_bytes),
        is_placed=cache_dir is not None,
    )
    return opened


def open_copies(
    warehouse: Warehouse, cache_dir: str | os.PathLike[str] | None, cache_bytes: int | None = None
) -> Warehouse:
    """A warehouse whose files are read as copies below a folder of this machine; a store's own as it is.

    Without a ``cache_dir`` files in a folder are read where they lie. Raises `InvalidArgument` for a size without one.
    """
    if warehouse.cache is not None:
        return warehouse
    if cache_dir is None:
        if cache_bytes is not None:
            raise InvalidArgument("files in a folder are read where they lie; give a cache_dir to have copies of them")
        return warehouse
    remote = load("lakehouse.storage.remote")
    place = xxhash.xxh3_64_hexdigest(warehouse.address.encode())
    copies: Warehouse = remote.Remote(
        remote.Objects(warehouse.root.as_uri()),
        cache_folder(cache_dir) / place,
        _read_limit(cache_bytes),
        is_placed=True,
    )
    return copies


def _store_url(text: str) -> str:
    parts = urlsplit(text)
    names = [unquote(one) for one in parts.path.split("/") if one]
    is_odd = any(one in (".", "..") or "/" in one for one in names) or _CONTROL.search(text + "".join(names))
    if not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc or is_odd:
        raise InvalidAddress(
            "an object store is named by bucket and prefix, as in s3://bucket/prefix; credentials go into the "
            "environment or storage_options",
            warehouse=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
        )
    return "/".join([f"{parts.scheme.lower()}://{parts.netloc}", *(quote(one, safe="=+,~*'()!@:$&;") for one in names)])


def _read_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    if options is None:
        return {}
    if not all(type(name) is str for name in options):
        raise InvalidArgument('storage_options are names and values, as in {"region": "eu-west-1"}')
    return dict(options)


def _from_environment() -> dict[str, str]:
    """Options from ``LAKEHOUSE_STORAGE_*``, by their names in lower case."""
    return {
        name.removeprefix(_OPTIONS).lower(): value for name, value in os.environ.items() if name.startswith(_OPTIONS)
    }


def variables_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """The environment in which a child process finds a warehouse's settings."""
    options = settings.get("storage_options", {})
    cache = {name: value for name, value in settings.items() if name.startswith("cache_") and value is not None}
    return {f"{_OPTIONS}{name.upper()}": str(value) for name, value in options.items()} | {
        f"LAKEHOUSE_{name.upper()}": str(value) for name, value in cache.items()
    }


def _read_limit(given: int | None) -> int | None:
    found = os.environ.get("LAKEHOUSE_CACHE_BYTES") if given is None else given
    if found is None:
        return None
    try:
        limit = int(found)
    except (TypeError, ValueError):
        limit = -1
    if limit < 0 or isinstance(found, bool):
        raise InvalidArgument("cache_bytes is a number of bytes, 0 to keep nothing", cache_bytes=found)
    return limit

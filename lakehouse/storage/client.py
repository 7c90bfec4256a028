"""Opens clients of `obstore` by a store's options, and refuses options that are none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from obstore import exceptions
from obstore.store import from_url

from lakehouse.errors import InvalidAddress
from lakehouse.storage.credentials import PROVIDER, Credentials
from lakehouse.storage.options import (
    ALLOW_HTTP,
    OF_CLIENT,
    endpoints_of_environment,
    no_option,
    plain,
    require_bucket,
    require_scheme,
)
from lakehouse.storage.refusals import first_line
from lakehouse.storage.uploads import OPTION

CONNECT_SECONDS = 3.0
"""As long nobody may answer at all: an address is more often wrong than a store is away."""
_WHOLE_SECONDS = 300.0
"""How long a request may take, with what is sent and what comes."""
_NO_OPTION = re.compile(r"Configuration key: '(.*?)' is not valid")


def open_client(url: str, credentials: Credentials, read_seconds: float) -> Any:
    """A client of a store, which waits as long for an answer, or for the next of its bytes, once all is sent.

    What is sent counts. Raises `InvalidAddress` for options that are none, or that cannot be used.
    """
    scheme = url.partition("://")[0]
    options = dict(credentials.options)
    provider: Any = credentials.provider
    options.pop(PROVIDER, None)
    options.pop(OPTION, None)
    require_scheme(url, options)
    require_bucket(options, urlsplit(url).netloc)
    allows_http = str(options.pop(ALLOW_HTTP, "")).lower() in ("true", "1")
    given = {name: options.pop(name) for name in OF_CLIENT & options.keys()}
    client: Any = {
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        "timeout": timedelta(seconds=_WHOLE_SECONDS),
        "allow_http": allows_http or any(one.startswith("http://") for one in _addresses(scheme, options)),
        **given,
    }
    if "timeout" not in given:
        client.setdefault("read_timeout", timedelta(seconds=read_seconds))
    retry: Any = {"max_retries": 0}  # it repeats neither 429 nor a body that breaks off
    try:
        return from_url(
            url,
            config=_of_store(scheme, options),
            client_options=client,
            retry_config=retry,
            credential_provider=provider,
        )
    except BaseException as error:
        # A value that it cannot convert is a PanicException, of no class that can be imported.
        if not isinstance(error, exceptions.BaseError | ValueError | TypeError) and "Panic" not in type(error).__name__:
            raise
        if named := _NO_OPTION.search(str(error)):
            raise no_option(url, named[1]) from error
        if "Account must be specified" in str(error):
            raise InvalidAddress(
                "the account is not named; give AZURE_STORAGE_ACCOUNT_NAME, or account_name in storage_options",
                warehouse=url,
            ) from error
        raise InvalidAddress(
            "the store cannot be opened with these options; see docs/deployment.md for their names",
            warehouse=url,
            options=sorted(credentials.options),
            cause=first_line(error),
        ) from error


def _of_store(scheme: str, options: Mapping[str, Any]) -> Any:
    """Options of the store alone, by the names that `obstore` gives them."""
    found = dict(options)
    if scheme == "s3" and not {"checksum_algorithm", "aws_checksum_algorithm"} & found.keys():
        found["checksum_algorithm"] = "CRC64NVME"
    if scheme == "gs":  # the one store whose endpoint has another name
        found = {"base_url" if plain(scheme, name) == "endpoint" else name: value for name, value in found.items()}
    return found


def _addresses(scheme: str, options: Mapping[str, Any]) -> list[str]:
    """What may be a store's address, as given, and as the environment names it."""
    return [*map(str, options.values()), *(value for _, value in endpoints_of_environment(scheme))]

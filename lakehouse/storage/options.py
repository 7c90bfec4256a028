"""Names of a store's options: which there are, and of which store. Text alone; `obstore` decides where this does not.

A name may have its store's prefix (``aws_region``), and any case, as variables of the environment have.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lakehouse.arguments import nearest
from lakehouse.errors import InvalidAddress
from lakehouse.storage.credentials import PROVIDER, is_endpoint, without_login
from lakehouse.storage.uploads import OPTION

OF_CLIENT = frozenset({
    "allow_invalid_certificates", "connect_timeout", "default_content_type", "http1_only", "http2_keep_alive_interval",
    "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_max_frame_size", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url",
    "randomize_addresses", "read_timeout", "root_certificate", "timeout", "user_agent",
})  # fmt: skip
"""Options of the HTTP client, which `obstore` takes apart from those of the store."""
ALLOW_HTTP = "allow_http"
_OWN = frozenset({PROVIDER, OPTION, ALLOW_HTTP})
OF_STORE: Mapping[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "s3": (
        ("aws_",),
        frozenset({
            "access_key_id", "bucket", "bucket_name", "checksum_algorithm", "conditional_put",
            "container_authorization_token_file", "container_credentials_full_uri",
            "container_credentials_relative_uri", "copy_if_not_exists", "default_region", "disable_bulk_delete",
            "disable_tagging", "endpoint", "endpoint_url", "imdsv1_fallback", "metadata_endpoint", "region",
            "request_payer", "role_arn", "role_session_name", "secret_access_key", "server_side_encryption",
            "session_token", "skip_signature", "sse_bucket_key_enabled", "sse_kms_key_id", "token", "unsigned_payload",
            "virtual_hosted_style_request", "web_identity_token_file",
        }),
    ),
    "gs": (
        ("google_",),
        frozenset({
            "application_credentials", "base_url", "bearer_token", "bucket", "bucket_name", "endpoint",
            "service_account", "service_account_key", "service_account_path", "skip_signature",
        }),
    ),
    "az": (
        ("azure_storage_", "azure_"),
        frozenset({
            "access_key", "account_key", "account_name", "authority_host", "authority_id", "bearer_token", "client_id",
            "client_secret", "container_name", "disable_tagging", "endpoint", "federated_token_file", "msi_endpoint",
            "msi_resource_id", "object_id", "sas_key", "sas_token", "skip_signature", "tenant_id", "token",
            "use_azure_cli", "use_emulator", "use_fabric_endpoint",
        }),
    ),
}  # fmt: skip
"""By the scheme of an address: the prefixes of its options, and their names without one."""
_ENDPOINTS = {"s3": ("AWS_ENDPOINT",), "gs": ("GOOGLE_BASE_URL",), "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")}
"""The first letters of variables that say where a store is, by the scheme of an address."""
_BUCKET = re.compile(r"(aws_|google_)?bucket(_name)?|(azure_)?container(_name)?")


def plain(scheme: str, name: str) -> str:
    """An option's name in lower case and without the prefix of its store.

    >>> plain("az", "AZURE_STORAGE_ACCOUNT_KEY"), plain("s3", "aws_region"), plain("gs", "endpoint")
    ('account_key', 'region', 'endpoint')
    """
    found = name.lower()
    prefix = next((one for one in OF_STORE[scheme][0] if found.startswith(one)), "") if scheme in OF_STORE else ""
    return found.removeprefix(prefix)


def unlisted(scheme: str, options: Iterable[str]) -> list[str]:
    """Names among a store's options that are not listed here.

    >>> unlisted("s3", ["REGION", "aws_session_token", "timeout", "regoin"])
    ['regoin']
    """
    known = OF_STORE[scheme][1] if scheme in OF_STORE else frozenset()
    listed = OF_CLIENT | _OWN
    return [one for one in options if one.lower() not in listed and plain(scheme, one) not in known]


def no_option(url: str, name: str) -> InvalidAddress:
    """The error for a name that no option of a store has, with the most similar one that there is."""
    scheme = url.partition("://")[0]
    known = {one for one in OF_STORE[scheme][1] | OF_CLIENT | _OWN if not _BUCKET.fullmatch(one)}
    return InvalidAddress(
        "the store has no such option; correct its name, docs/deployment.md lists them",
        option=name,
        **nearest(plain(scheme, name), known),
        warehouse=url,
    )


def endpoints_of_environment(scheme: str) -> Iterator[tuple[str, str]]:
    """Variables that say where a store is, and their values, by name."""
    for name in sorted(os.environ):
        if name.startswith(_ENDPOINTS.get(scheme, ())):
            yield name, os.environ[name]


def require_scheme(url: str, options: Mapping[str, Any]) -> None:
    """Raise `InvalidAddress` for an endpoint that is no URL, with which obstore would panic."""
    given = {name: str(value) for name, value in options.items() if is_endpoint(name)}
    given |= dict(endpoints_of_environment(url.partition("://")[0]))
    for name, value in given.items():
        if not re.match(r"https?://[^/]", value):
            raise InvalidAddress(
                "an endpoint is a URL, as in https://store.example.org:9000",
                option=name,
                endpoint=without_login(value),
            )


def require_bucket(options: Mapping[str, Any], bucket: str) -> None:
    """Raise `InvalidAddress` for options that name another bucket than the address, which obstore would prefer."""
    for name, value in options.items():
        if _BUCKET.fullmatch(name.lower()) and value != bucket:
            raise InvalidAddress(
                "an option names another bucket than the address; name it in the address", option=name, bucket=value
            )

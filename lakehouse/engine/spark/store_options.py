"""A warehouse's options as those of Hadoop's file systems: ``s3a``, ``abfss`` and ``gs``. Pure: text in, text out.

What is left out each machine finds by itself, as instance roles and workload identities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from lakehouse.errors import EngineUnavailable

_PATIENCE = {"attempts.maximum": "5", "retry.limit": "3", "connection.establish.timeout": "5s"}
"""Some seconds for a store that does not answer, not minutes."""
_S3 = {
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "region": "endpoint.region",
    "default_region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "token": "session.token",
}
_AZURE = {
    "account_name": "account_name",
    "account_key": "account_key",
    "access_key": "account_key",
    "master_key": "account_key",
    "sas_key": "sas_key",
    "sas_token": "sas_key",
    "client_id": "client_id",
    "client_secret": "client_secret",
    "tenant_id": "tenant_id",
    "authority_id": "tenant_id",
    "federated_token_file": "federated_token_file",
    "authority_host": "authority_host",
    "token": "token",
    "bearer_token": "token",
    "endpoint": "endpoint",
}
_LOGIN = "https://login.microsoftonline.com"
_OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"
_AZURE_PATIENCE = {"fs.azure.io.retry.max.retries": "5", "fs.azure.io.retry.max.backoff.interval": "3000"}


def s3a_options(bucket: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Options of ``s3a`` for one bucket.

    >>> s3a_options("lake", {"aws_region": "eu-west-1", "endpoint": "http://host:9000"})["fs.s3a.bucket.lake.endpoint"]
    'http://host:9000'
    """
    held = {name.lower().removeprefix("aws_"): str(value) for name, value in given.items()}
    found = {_S3[name]: value for name, value in held.items() if name in _S3}
    endpoint = found.get("endpoint", "")
    if endpoint:
        is_virtual = held.get("virtual_hosted_style_request", "false").lower() == "true"
        found["path.style.access"] = str(not is_virtual).lower()
        found["connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
        found.setdefault("endpoint.region", "us-east-1")
    if _is_true(held.get("skip_signature")):
        found["aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in {**_PATIENCE, **found}.items()}


def abfs_options(given: Mapping[str, Any]) -> dict[str, str]:
    """Options of ``abfss`` for one account. Raises `EngineUnavailable` if it is not named.

    >>> found = abfs_options({"account_name": "lake", "azure_storage_account_key": "a2V5"})
    >>> found["fs.azure.account.key.lake.dfs.core.windows.net"]
    'a2V5'
    """
    held = _azure(given)
    host = abfs_host(given)
    found = {**_AZURE_PATIENCE, **_azure_login(held)}
    options = {name if name in _AZURE_PATIENCE else f"{name}.{host}": value for name, value in found.items()}
    endpoint = urlsplit(held.get("endpoint", ""))
    if endpoint.port is not None:  # a server that stands for Azure: it knows blobs alone, and its host names no account
        options |= {
            "fs.azure.abfs.endpoint": endpoint.netloc,
            "fs.azure.always.use.https": str(endpoint.scheme != "http").lower(),
            "fs.azure.account.hns.enabled": "false",
            "fs.azure.fns.account.service.type": "BLOB",
            "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        }
    return options


def _azure_login(held: Mapping[str, str]) -> dict[str, str]:
    """The options of the login alone, without the account's host. Raises `EngineUnavailable` for a token."""
    if "account_key" in held:
        return {"fs.azure.account.auth.type": "SharedKey", "fs.azure.account.key": held["account_key"]}
    if "sas_key" in held:
        return {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.fixed.token": held["sas_key"].lstrip("?")}
    if "token" in held:
        raise EngineUnavailable(
            "Spark takes no bearer token for Azure; give account_key, sas_key or client_secret, or read in process"
        )
    client, tenant = held.get("client_id"), held.get("tenant_id")
    authority = held.get("authority_host", "").rstrip("/")
    if "client_secret" in held:
        return _azure_oauth(
            "ClientCreds",
            client_id=client or "",
            client_secret=held["client_secret"],
            client_endpoint=f"{authority or _LOGIN}/{tenant or ''}/oauth2/token",
        )
    kind = "WorkloadIdentity" if "federated_token_file" in held else "Msi"
    return _azure_oauth(
        kind,
        client_id=client,
        msi_tenant=tenant,
        msi_authority=f"{authority}/" if authority else None,
        token_file=held.get("federated_token_file"),
    )


def _azure_oauth(provider: str, **more: str | None) -> dict[str, str]:
    return {
        "fs.azure.account.auth.type": "OAuth",
        "fs.azure.account.oauth.provider.type": f"{_OAUTH}.{provider}TokenProvider",
        **{
            f"fs.azure.account.oauth2.{name.replace('_', '.')}": value
            for name, value in more.items()
            if value is not None
        },
    }


def abfs_host(given: Mapping[str, Any]) -> str:
    """The host of an account, which is a part of each ``abfss://`` address."""
    account = _azure(given).get("account_name")
    if not account:
        raise EngineUnavailable(
            "Spark needs the name of the Azure account to read it; give account_name in storage_options, or "
            "AZURE_STORAGE_ACCOUNT_NAME"
        )
    return f"{account}.dfs.core.windows.net"


def abfs_root(container: str, given: Mapping[str, Any]) -> str:
    """The address of a container; without TLS, as a server that stands for Azure may be, it has a scheme of its own.

    >>> abfs_root("lake", {"account_name": "account"})
    'abfss://lake@account.dfs.core.windows.net'
    """
    scheme = "abfs" if _azure(given).get("endpoint", "").startswith("http://") else "abfss"
    return f"{scheme}://{container}@{abfs_host(given)}"


def gs_options(given: Mapping[str, Any]) -> dict[str, str]:
    """Options of ``gs``. Raises `EngineUnavailable` for what it does not take: an endpoint, a key that is no file's.

    >>> gs_options({"google_service_account": "/etc/lake.json"})["fs.gs.auth.type"]
    'SERVICE_ACCOUNT_JSON_KEYFILE'
    """
    held = {name.lower().removeprefix("google_"): str(value) for name, value in given.items()}
    if "base_url" in held or "endpoint" in held:
        raise EngineUnavailable("Spark reads gs:// at Google's own endpoint alone; read in process")
    if _is_true(held.get("skip_signature")):
        return {"fs.gs.auth.type": "UNAUTHENTICATED"}
    if held.keys() & {"service_account_key", "bearer_token", "token"}:
        raise EngineUnavailable(
            "Spark takes a key of Google from a file alone, at the same path on each machine; give service_account, or "
            "read in process"
        )
    names = ("service_account", "service_account_path", "application_credentials")
    file = next((held[name] for name in names if name in held), None)
    if file is None:
        return {"fs.gs.auth.type": "APPLICATION_DEFAULT"}
    return {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "fs.gs.auth.service.account.json.keyfile": file}


def stored_address(address: str) -> str:
    """A Hadoop address as the warehouse names it, for messages.

    >>> stored_address("abfss://lake@account.dfs.core.windows.net/a/b.parquet"), stored_address("s3a://lake/a%20b")
    ('az://lake/a/b.parquet', 's3://lake/a b')
    """
    parts = urlsplit(address)
    schemes = {"s3a": "s3", "abfss": "az", "abfs": "az"}
    return f"{schemes.get(parts.scheme, parts.scheme)}://{parts.netloc.partition('@')[0]}{unquote(parts.path)}"


def _azure(given: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in given.items():
        plain = name.lower().removeprefix("azure_").removeprefix("storage_")
        if plain in _AZURE:
            found[_AZURE[plain]] = str(value) if isinstance(value, str) else urlencode(value)  # a SAS may be pairs
    return found


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() == "true"

"""Spark's tasks as on other machines: their copies are not the driver's, and nothing but the store is shared.

On a whole cluster `python -m lakehouse.testing.cluster` does more of this, with Spark reading the store itself.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

import lakehouse
from lakehouse.engine.spark.failures import explaining_jobs
from lakehouse.engine.spark.store_options import abfs_options, gs_options, s3a_options
from lakehouse.engine.spark.stores import files_in_store, options_of
from lakehouse.errors import EngineUnavailable, RowsOutside, StorageUnavailable
from lakehouse.storage.opening import open_warehouse
from lakehouse.storage.work import delete_others
from lakehouse.testing.object_stores import moto_server
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind

COLUMNS = "at TIMESTAMP, id BIGINT, v STRING"
DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def rows_of(ids, *values):
    """Rows of some ids, their days and values in turn."""
    return {one: (DAY + dt.timedelta(days=one % 2, seconds=one), values[one // 2 % len(values)]) for one in ids}


@pytest.fixture
def place(spark: Any, sqlite_url: str, tmp_path: Path) -> Iterator[tuple[Any, Any, StoreProxy]]:
    """A lake whose copies lie elsewhere than those of Spark's workers, a table, and what counts its requests."""
    with moto_server() as store, StoreProxy(store.port) as proxy:
        options = dict(store.through(proxy.port).options)
        with lakehouse.connect(
            sqlite_url, store.url, spark=spark, storage_options=options, cache_dir=tmp_path / "copies"
        ) as lake:
            yield lake, lake.create_table("events", COLUMNS, time="at", cluster_by="v"), proxy


def held(table: Any) -> dict[int, tuple[dt.datetime, str]]:
    return {row["id"]: (row["at"], row["v"]) for row in table.scan().to_arrow().to_pylist()}


def test_what_tasks_write_needs_nothing_of_their_machine(place: Any, spark: Any) -> None:
    lake, table, proxy = place

    def frame(rows):
        return spark.createDataFrame([(at, one, v) for one, (at, v) in rows.items()], COLUMNS).repartition(2)

    rows = rows_of(range(100), "a", "b", "c")
    proxy.forget()
    table.append(frame(rows))
    written = len(table.segments())
    assert proxy.counts() == {Kind.PUT: written}
    assert not list((lake.cache.root / table.spec.folder).rglob("*.parquet"))
    # Bounds of these files do not say whether they hold other values: they are fetched, and read.
    new = rows_of(range(200, 220), "a", "c")
    with pytest.raises(RowsOutside):
        table.replace(frame(new | rows_of(range(300, 302), "b")), "2024-01", keys={"v": ["a", "c"]})
    table.replace(frame(new), "2024-01", keys={"v": ["a", "c"]})
    rows = {one: row for one, row in rows.items() if row[1] == "b"} | new
    assert held(table) == rows
    table.delete("id % 5 = 0", engine="spark")
    table.erase("id = 8", engine="spark")
    rows = {one: row for one, row in rows.items() if one % 5 and one != 8}
    assert held(table) == rows
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert lake.check(deep=True).findings == []


def test_what_others_put_is_looked_for_only_after_a_repetition(place: Any) -> None:
    lake, table, proxy = place
    # What attempts put that did not win goes if one was repeated; else a store is not asked what it has.
    folder = f"{table.spec.folder}/{'0' * 32}"
    warehouse = lake.session.warehouse
    for name in ("won", "lost"):
        path = warehouse.root / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        warehouse.publish([path])
    proxy.forget()
    delete_others(warehouse, folder, {f"{folder}/won"}, is_repeated=False)
    assert proxy.counts() == {}
    delete_others(warehouse, folder, {f"{folder}/won"}, is_repeated=True)
    assert [one.path for one in warehouse.listed(folder)] == [f"{folder}/won"]


def test_a_session_without_the_jars_names_them(place: Any, spark: Any) -> None:
    lake, table, _ = place
    with pytest.raises(EngineUnavailable, match=r"hadoop-aws:3\.5\.0"):
        files_in_store(spark, lake.session.warehouse, table.segments())
    with pytest.raises(EngineUnavailable, match=r"spark_jars_packages"), explaining_jobs():
        spark.read.schema("id BIGINT").parquet("s3a://lake/absent.parquet")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({"region": "eu-west-1"}, {"endpoint.region": "eu-west-1"}),
        (
            {"aws_endpoint": "http://host:1", "AWS_ACCESS_KEY_ID": "k", "aws_secret_access_key": "s", "token": "t"},
            {
                "endpoint": "http://host:1",
                "endpoint.region": "us-east-1",
                "path.style.access": "true",
                "connection.ssl.enabled": "false",
                "access.key": "k",
                "secret.key": "s",
                "session.token": "t",
            },
        ),
        (
            {"endpoint": "https://host", "virtual_hosted_style_request": True, "skip_signature": "true"},
            {
                "endpoint": "https://host",
                "endpoint.region": "us-east-1",
                "path.style.access": "false",
                "connection.ssl.enabled": "true",
                "aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
            },
        ),
    ],
)
def test_options_of_a_warehouse_are_those_of_its_bucket(given: Any, wanted: Any) -> None:
    patience = s3a_options("lake", {})
    found = s3a_options("lake", given)
    assert patience.items() <= found.items()
    assert {name: value for name, value in found.items() if name not in patience} == {
        f"fs.s3a.bucket.lake.{name}": value for name, value in wanted.items()
    }


_OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"
_HOST = "acc.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            {"azure_storage_account_name": "acc", "azure_storage_account_key": "a2V5"},
            {f"fs.azure.account.auth.type.{_HOST}": "SharedKey", f"fs.azure.account.key.{_HOST}": "a2V5"},
        ),
        (
            {"account_name": "acc", "sas_key": "?sv=1&sig=x"},
            {f"fs.azure.account.auth.type.{_HOST}": "SAS", f"fs.azure.sas.fixed.token.{_HOST}": "sv=1&sig=x"},
        ),
        (
            {"account_name": "acc"},
            {
                f"fs.azure.account.auth.type.{_HOST}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{_HOST}": f"{_OAUTH}.MsiTokenProvider",
            },
        ),
        (
            {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "client_id": "i", "client_secret": "s", "tenant_id": "t"},
            {
                f"fs.azure.account.auth.type.{_HOST}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{_HOST}": (f"{_OAUTH}.ClientCredsTokenProvider"),
                f"fs.azure.account.oauth2.client.id.{_HOST}": "i",
                f"fs.azure.account.oauth2.client.secret.{_HOST}": "s",
                f"fs.azure.account.oauth2.client.endpoint.{_HOST}": "https://login.microsoftonline.com/t/oauth2/token",
            },
        ),
        (
            {
                "account_name": "acc",
                "azure_client_id": "i",
                "azure_tenant_id": "t",
                "azure_federated_token_file": "/token",
                "azure_authority_host": "https://login.example.org/",
            },
            {
                f"fs.azure.account.auth.type.{_HOST}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{_HOST}": (f"{_OAUTH}.WorkloadIdentityTokenProvider"),
                f"fs.azure.account.oauth2.client.id.{_HOST}": "i",
                f"fs.azure.account.oauth2.msi.tenant.{_HOST}": "t",
                f"fs.azure.account.oauth2.msi.authority.{_HOST}": "https://login.example.org/",
                f"fs.azure.account.oauth2.token.file.{_HOST}": "/token",
            },
        ),
        (
            {"account_name": "acc", "client_id": "i"},
            {
                f"fs.azure.account.auth.type.{_HOST}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{_HOST}": (f"{_OAUTH}.MsiTokenProvider"),
                f"fs.azure.account.oauth2.client.id.{_HOST}": "i",
            },
        ),
        (
            {"account_name": "acc", "sas_token": [("sv", "2024"), ("sig", "a+b=")]},
            {
                f"fs.azure.account.auth.type.{_HOST}": "SAS",
                f"fs.azure.sas.fixed.token.{_HOST}": "sv=2024&sig=a%2Bb%3D",
            },
        ),
    ],
)
def test_options_of_an_account_are_those_of_its_host(given: Any, wanted: Any) -> None:
    found = abfs_options(given)
    assert {name: value for name, value in found.items() if ".retry." not in name} == wanted


def test_options_of_google_name_a_file_or_what_a_machine_is() -> None:
    assert gs_options({}) == {"fs.gs.auth.type": "APPLICATION_DEFAULT"}
    assert gs_options({"skip_signature": "true"}) == {"fs.gs.auth.type": "UNAUTHENTICATED"}
    assert gs_options({"service_account": "/a.json"})["fs.gs.auth.service.account.json.keyfile"] == "/a.json"


def test_what_spark_cannot_reach_is_told() -> None:
    with pytest.raises(EngineUnavailable, match="Google's own endpoint"):
        gs_options({"google_base_url": "http://host"})
    with pytest.raises(EngineUnavailable, match="AZURE_STORAGE_ACCOUNT_NAME"):
        abfs_options({"account_key": "a2V5"})
    with pytest.raises(EngineUnavailable, match="no bearer token"):
        abfs_options({"account_name": "acc", "token": "secret"})
    for secret in ("service_account_key", "bearer_token", "token"):  # the last is what a provider returns
        with pytest.raises(EngineUnavailable, match="from a file alone") as found:
            gs_options({secret: "Xs3cret"})
        assert "Xs3cret" not in str(found.value)


def test_what_the_environment_says_of_a_store_reaches_its_file_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (
        ("AWS_ENDPOINT_URL", "http://store:9000"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_SECRET_ACCESS_KEY", "Xs3cret"),
        ("GOOGLE_SERVICE_ACCOUNT", "/key.json"),
    ):
        monkeypatch.setenv(name, value)
    assert options_of(open_warehouse("s3://lake/x", {}, tmp_path)).items() >= {
        ("fs.s3a.bucket.lake.endpoint", "http://store:9000"),
        ("fs.s3a.bucket.lake.endpoint.region", "eu-west-1"),
        ("fs.s3a.bucket.lake.path.style.access", "true"),
    }
    own = open_warehouse("s3://lake/x", {"endpoint": "https://own", "region": "eu-west-2"}, tmp_path)
    assert options_of(own)["fs.s3a.bucket.lake.endpoint"] == "https://own"
    assert options_of(own)["fs.s3a.bucket.lake.endpoint.region"] == "eu-west-2"
    assert "Xs3cret" not in str(options_of(own))
    found = options_of(open_warehouse("gs://lake/x", {}, tmp_path))
    assert found["fs.gs.auth.service.account.json.keyfile"] == "/key.json"


@pytest.mark.parametrize(("scheme", "package"), [("az", "hadoop-azure"), ("gs", "hadoop-gcp")])
def test_the_jars_of_each_store_are_named(spark: Any, tmp_path: Path, scheme: str, package: str) -> None:
    warehouse = open_warehouse(f"{scheme}://lake/warehouse", {}, tmp_path)
    with pytest.raises(EngineUnavailable, match=rf"{package}:3\.5\.0"):
        files_in_store(spark, warehouse, [])
    read = {"az": "abfss://lake@acc.dfs.core.windows.net/a.parquet", "gs": "gs://lake/a.parquet"}[scheme]
    with pytest.raises(EngineUnavailable, match=package), explaining_jobs():
        spark.read.schema("id BIGINT").parquet(read)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("java.net.ConnectException: Connection refused", "does not answer"),
        ("AccessDeniedException: s3a://lake/a: (Service: S3, Status Code: 403)", "do not allow it"),
        ("UnknownStoreException: The bucket does not exist: NoSuchBucket", "no such bucket"),
        ("The provided token has expired. (ExpiredToken)", "have expired"),
    ],
)
def test_what_a_store_answers_spark_is_explained(said: str, meant: str) -> None:
    with pytest.raises(StorageUnavailable, match=meant) as raised, explaining_jobs():
        raise PySparkException(f"getFileStatus on s3a://lake/warehouse/a.parquet: {said}\n at Some.scala:503")
    assert raised.value.facts["path"] == "s3://lake/warehouse/a.parquet"


def test_what_azure_answers_spark_is_explained() -> None:
    said = (
        'java.nio.file.AccessDeniedException: Operation failed: "Server failed to authenticate the request. Make sure '
        'the value of the Authorization header is formed correctly.", 403, HEAD, https://acc.blob.core.windows.net/lake/'
        "a.parquet?upn=false&timeout=90, rId: 1"
    )
    with pytest.raises(StorageUnavailable, match="does not know these credentials") as raised, explaining_jobs():
        raise PySparkException(said)
    assert raised.value.facts["path"] == "https://acc.blob.core.windows.net/lake/a.parquet"

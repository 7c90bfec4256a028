"""Commands on a lake in an object store: named by the environment alone, and each says where things are."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.admin import doctor
from lakehouse.testing.faults import Gate, armed
from lakehouse.testing.object_stores import Store
from lakehouse.testing.store_faults import Fault, Rule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind

SCHEMA = "at timestamp, client bigint, name string"
ROWS = "at,client,name\n2013-01-05T07:00:00,1,Ada\n2013-01-05T08:00:00,77,Zacharias\n"


@pytest.fixture
def ran(run: Callable[..., Any], store: Store) -> Callable[..., tuple[int, str]]:
    """Run ``lakehouse ...``: its exit code, and what it printed, in which no secret may be."""

    def ran(*arguments: str) -> tuple[int, str]:
        code, out, err = run(*arguments)
        printed = f"{out}{err}"
        assert store.options["aws_secret_access_key"] not in printed
        return code, printed

    return ran


@pytest.fixture
def trips(ran: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text(ROWS)
    assert ran("init", "trips", "--schema", SCHEMA, "--time", "at", "--cluster-by", "client")[0] == 0
    assert ran("append", "trips", "trips.csv")[0] == 0


@pytest.mark.usefixtures("trips")
def test_the_cache_is_shown_and_emptied_and_filled_again_by_a_read(
    ran: Callable[..., tuple[int, str]], store: Store, tmp_path: Path
) -> None:
    shown = json.loads(ran("cache", "--json")[1])
    assert shown["warehouse"] == store.url
    copies = list((tmp_path / "cache").rglob("*.parquet"))
    assert (shown["cache"]["files"], shown["cache"]["bytes"]) == (1, sum(one.stat().st_size for one in copies))
    assert shown["cache"]["limit_bytes"] == 20 << 30
    assert all(one.is_relative_to(shown["cache"]["folder"]) for one in copies)
    cleared = json.loads(ran("cache", "--clear", "--json")[1])
    assert (cleared["deleted"]["files"], cleared["cache"]["files"], cleared["cache"]["bytes"]) == (1, 0, 0)
    assert not list((tmp_path / "cache").rglob("*.parquet"))
    code, printed = ran("cache")
    assert (code, "0 copies" in printed, store.url in printed) == (0, True, True)
    assert "77" in ran("sql", "SELECT client FROM trips WHERE name = 'Zacharias'")[1]
    assert "1 copies (" in ran("cache", "--clear")[1]


@pytest.mark.usefixtures("trips")
def test_what_ended_operations_left_is_cleared_and_what_others_write_stays(
    ran: Callable[..., tuple[int, str]], store: Store
) -> None:
    def written(lake: lakehouse.Lake, operation: str) -> Path:
        """A file as an operation leaves it that is killed before it has put it."""
        file = lake.session.warehouse.root / lake.table("trips").spec.folder / operation / "00000-0.parquet"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"half")
        return file

    with lakehouse.connect() as lake:
        table = lake.table("trips")
        writing, ended = table.begin_append(), table.begin_append()
        ended.abort()
        kept, left = written(lake, writing.id), written(lake, ended.id)
        assert json.loads(ran("cache", "--json")[1])["cache"]["files"] == 3
        cleared = json.loads(ran("cache", "--clear", "--json")[1])
        assert (cleared["deleted"]["files"], kept.exists(), left.exists()) == (2, True, False)
        # An append of one call is in no list of operations yet.
        gate = Gate()
        with armed({"write.before": gate.hold}), ThreadPoolExecutor(1) as pool:
            appending = pool.submit(table.append, table.scan().to_arrow())
            gate.wait_reached()
            living = lake.catalog.living_operations()
            gate.open()
            commit = appending.result()
        own = {one.path.split("/")[1] for one in lake.table("trips").diff(commit.version - 1, commit.version).added}
        assert own <= living
        writing.abort()


def test_a_lake_in_a_folder_has_no_cache(
    ran: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = str(tmp_path / "warehouse")
    for arguments in ([], ["--clear"]):
        code, printed = ran("cache", "--warehouse", folder, *arguments)
        assert (code, folder in printed, "without copies" in printed) == (0, True, True)
    assert json.loads(ran("cache", "--json", "--warehouse", folder)[1]) == {"warehouse": folder, "cache": None}


@pytest.mark.usefixtures("trips")
def test_every_command_takes_the_address_of_a_store(ran: Callable[..., tuple[int, str]], store: Store) -> None:
    for command in ("tables", "log trips", "show trips --segments", "timeline trips", "locks", "tasks",
                    "check --deep", "compact trips", "maintain --once", "collect --grace 0"):  # fmt: skip
        code, printed = ran(*command.split(), "--warehouse", store.url)
        assert code == 0, printed
    assert f"{store.url}/_catalog/" in ran("export")[1]
    code, printed = ran("recover", store.url, "--catalog", "sqlite:///new.db")
    assert (code, f"{store.url}/_catalog/" in printed) == (0, True), printed
    assert "Zacharias" in ran("sql", "SELECT name FROM trips", "--catalog", "sqlite:///new.db")[1]


@pytest.mark.usefixtures("trips")
def test_erased_values_are_looked_for_in_the_store_and_in_the_copies_of_this_machine(
    ran: Callable[..., tuple[int, str]], store: Store, tmp_path: Path
) -> None:
    where = "name = 'Zacharias'"
    (old,) = (tmp_path / "cache").rglob("*.parquet")
    held = old.read_bytes()
    ran("cache", "--clear")
    code, printed = ran("erase", "trips", where, "--verify")
    assert (code, f"{store.url}/" in printed) == (1, True)
    assert not list((tmp_path / "cache").rglob("*.parquet")), "a search leaves no copy"
    assert ran("erase", "trips", where, "--yes")[0] == 0
    assert ran("collect", "--grace", "0")[0] == 0
    # As another machine has it, which did not collect.
    old.parent.mkdir(parents=True, exist_ok=True)
    old.write_bytes(held)
    old.chmod(0o444)
    code, printed = ran("erase", "trips", where, "--verify", "--json")
    found = json.loads(printed)["verified"]
    assert code == 1, printed
    assert {one["where"].partition(",")[0] for one in found["findings"]} == {str(old)}
    assert all("cache --clear" in one["remedy"] for one in found["findings"])
    assert any("other machines" in one for one in found["unread"])
    assert ran("cache", "--clear")[0] == 0
    code, printed = ran("erase", "trips", where, "--verify", "--vacuum")
    assert code == 0, printed


def test_the_doctor_tries_the_store_and_looks_at_the_cache(store: Store, tmp_path: Path) -> None:
    findings = {one.subject: one for one in doctor.check_warehouse(None)}
    assert findings["warehouse"].status == "ok"
    assert re.findall(r"(\w+) \d+ ms", findings["warehouse"].found) == ["put", "upload", "get", "list", "delete"]
    assert str(tmp_path / "cache") in findings["cache"].found
    assert {"disk", "free space"} <= set(findings)
    assert not (tmp_path / "cache").exists(), "looking makes nothing"


@pytest.mark.parametrize(
    ("kinds", "fault", "said"),
    [
        ([Kind.PUT], Fault.FORBIDDEN, "grant"),
        ([Kind.DELETE, Kind.DELETE_MANY], Fault.FORBIDDEN, "grant"),
        ([Kind.GET], Fault.EXPIRED, "get new ones"),
    ],
)
def test_the_doctor_says_what_a_store_refuses(
    object_store: Store, store: Store, monkeypatch: pytest.MonkeyPatch, kinds: list[Kind], fault: Fault, said: str
) -> None:
    with StoreProxy(object_store.port) as proxy:
        monkeypatch.setenv("LAKEHOUSE_STORAGE_AWS_ENDPOINT", f"http://127.0.0.1:{proxy.port}")
        proxy.add(Rule(fault, kinds=kinds, times=None))
        finding = next(iter(doctor.check_warehouse(None)))
    assert (finding.subject, finding.status) == ("warehouse", "fail")
    assert said in finding.remedy
    assert store.options["aws_secret_access_key"] not in str(finding)


def test_the_doctor_names_a_bucket_that_is_not_there(store: Store) -> None:
    finding = next(iter(doctor.check_warehouse("s3://no-such-bucket/lake")))
    assert (finding.status, finding.remedy) == ("fail", "make it, or correct the address")

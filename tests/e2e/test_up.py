"""`make up` as a user runs it: every service answers on loopback, and Ctrl-C stops them all."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from assets.nycflights.flights import flights_table

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 150
BACKFILL_SECONDS = 240


@pytest.fixture
def ports() -> list[int]:
    with socket.socket() as first, socket.socket() as second:
        for probe in (first, second):
            probe.bind(("127.0.0.1", 0))
        return [first.getsockname()[1], second.getsockname()[1]]


def environment(folder: Path, ports: list[int]) -> dict[str, str]:
    return {
        **os.environ,
        "DAGSTER_HOME": str(folder / "dagster"),
        "LAKEHOUSE_CATALOG": f"sqlite:///{folder}/catalog.db",
        "LAKEHOUSE_WAREHOUSE": str(folder / "warehouse"),
        "LAKEHOUSE_DAGSTER_PORT": str(ports[0]),
        "LAKEHOUSE_CONSOLE_PORT": str(ports[1]),
    }


@pytest.fixture
def up(tmp_path: Path, ports: list[int]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, ROOT / "tools/up"],
        env=environment(tmp_path, ports),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.terminate()
    process.communicate(timeout=60)


def lines_until(process: subprocess.Popen[str], last: str) -> list[str]:
    """What it prints up to a line; fails if that does not come in time."""
    assert process.stdout is not None
    stream, queue = process.stdout, Queue[str]()

    def pump() -> None:
        for line in stream:
            queue.put(line.strip())
            if last in line:
                return
        queue.put("(it ended)")

    threading.Thread(target=pump, daemon=True).start()
    lines: list[str] = []
    while not lines or (last not in lines[-1] and lines[-1] != "(it ended)"):
        lines.append(queue.get(timeout=START_SECONDS))
    return lines


def ask(url: str, query: str | None = None) -> bytes:
    body = None if query is None else json.dumps({"query": query}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: bytes = answer.read()
        return found


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def graphql(url: str, query: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(ask(f"{url}/graphql", query))
    assert "errors" not in answer, answer
    return answer["data"]


BACKFILL = """mutation { launchPartitionBackfill(backfillParams: {
    assetSelection: [{path: ["departures"]}], partitionNames: ["2013-01-01", "2013-01-02", "2013-01-03"]
}) { __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
BACKFILL_STATUS = (
    """{ partitionBackfillOrError(backfillId: "%s") { ... on PartitionBackfill { status runs { id } } } }"""
)
DEPARTURES = """{ assetNodeOrError(assetKey: {path: ["departures"]}) { ... on AssetNode {
    partitionStats { numMaterialized numPartitions }
    assetPartitionStatuses { ... on TimePartitionStatuses { ranges { startKey endKey status } } }
    assetMaterializations(limit: 9) { partition runId tags { key value } metadataEntries {
        label
        ... on IntMetadataEntry { intValue }
        ... on UrlMetadataEntry { url }
        ... on MarkdownMetadataEntry { mdStr }
    } }
} } }"""


def backfill_from_the_ui(dagster: str) -> dict[str, Any]:
    """Launch a backfill as the browser does; what Dagster knows of it when it is over."""
    launched = graphql(dagster, BACKFILL)["launchPartitionBackfill"]
    status = BACKFILL_STATUS % launched["backfillId"]
    again = threading.Event()
    for _ in range(BACKFILL_SECONDS):
        found: dict[str, Any] = graphql(dagster, status)["partitionBackfillOrError"]
        if found["status"] not in ("REQUESTED", "CANCELING", "FAILING"):
            return found
        again.wait(1)
    raise AssertionError(f"the backfill did not end: {found}")


def require_backfilled(dagster: str, run: str, version: int) -> None:
    """Every partition of the backfill is there, of one version, and no other."""
    node = graphql(dagster, DEPARTURES)["assetNodeOrError"]
    assert node["partitionStats"] == {"numMaterialized": 3, "numPartitions": 366}
    assert node["assetPartitionStatuses"]["ranges"] == [
        {"startKey": "2013-01-01", "endKey": "2013-01-03", "status": "MATERIALIZED"}
    ]
    events = node["assetMaterializations"]
    assert sorted(one["partition"] for one in events) == ["2013-01-01", "2013-01-02", "2013-01-03"]
    for event in events:
        entries = {one["label"]: one for one in event["metadataEntries"]}
        assert event["runId"] == run
        assert entries["version"]["intValue"] == version
        assert entries["console"]["url"].endswith(f"/timeline?table=departures&version={version}")
        assert entries["timeline"]["mdStr"].startswith("![timeline")
        assert {"key": "dagster/data_version", "value": str(version)} in event["tags"]


def fill_flights(folder: Path) -> None:
    """A flight a day for five days, one of them cancelled, put there without Dagster and Spark."""
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        table = flights_table(lake)
        names = table.schema.names
        rows = [
            {
                "scheduled_at": datetime(2013, 1, day, 12, tzinfo=UTC),
                "carrier": "UA",
                "dep_time": None if day == 2 else 700,
            }
            for day in range(1, 6)
        ]
        table.append(pa.Table.from_pylist([dict.fromkeys(names) | row for row in rows], table.schema))


def test_every_service_answers_backfills_run_and_one_signal_stops_them_all(
    ports: list[int], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fill_flights(tmp_path)
    up: subprocess.Popen[str] = request.getfixturevalue("up")
    printed = lines_until(up, "Ctrl-C")
    assert printed[-1] == "Ctrl-C stops them all.", printed
    dagster, console = (f"http://127.0.0.1:{port}" for port in ports)
    assert {f"dagster  {dagster}", f"console  {console}"} <= set(printed)

    query = "{ repositoriesOrError { ... on RepositoryConnection { nodes { assetNodes { assetKey { path } } } } } }"
    answer = json.loads(ask(f"{dagster}/graphql", query))
    (repository,) = answer["data"]["repositoriesOrError"]["nodes"]
    assert {"flights", "weather"} <= {node["assetKey"]["path"][-1] for node in repository["assetNodes"]}
    assert b"<title>" in ask(console)
    assert (tmp_path / "dagster/dagster.yaml").read_text() == (ROOT / "dagster.yaml").read_text()

    backfill = backfill_from_the_ui(dagster)
    assert backfill["status"] == "COMPLETED_SUCCESS"
    (run,) = backfill["runs"]
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        departures = lake.table("departures")
        assert departures.scan(columns=["scheduled_at"]).count() == 2
        require_backfilled(dagster, run["id"], departures.log()[0].version)

    up.send_signal(signal.SIGINT)
    assert up.wait(timeout=60) == 0
    assert [is_free(port) for port in ports] == [True, True]


def test_a_port_that_is_taken_is_named_with_the_variable_that_changes_it(tmp_path: Path, ports: list[int]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[1]))
        taken.listen()
        done = subprocess.run(
            [sys.executable, ROOT / "tools/up"], env=environment(tmp_path, ports), capture_output=True, text=True
        )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert str(ports[1]) in done.stderr
    assert "LAKEHOUSE_CONSOLE_PORT" in done.stderr
    assert not (tmp_path / "dagster").exists()


def refused(folder: Path, ports: list[int], **more: str) -> str:
    """What it says when it does not start, after it has stopped what it had started."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools/up"],
        env=environment(folder, ports) | more,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert [is_free(port) for port in ports] == [True, True]
    return done.stderr


def test_assets_that_cannot_be_loaded_end_it_with_their_error(tmp_path: Path, ports: list[int]) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['assets'] = None\n")
    said = refused(tmp_path, ports, PYTHONPATH=str(tmp_path))
    assert said.startswith("up: Dagster cannot load the assets of lakehouse:\n")
    assert said.splitlines()[-1].startswith("ModuleNotFoundError: No module named 'assets")


def test_a_storage_of_dagster_that_cannot_be_opened_is_reported_before_anything_starts(
    tmp_path: Path, ports: list[int]
) -> None:
    (tmp_path / "dagster").mkdir()
    (tmp_path / "dagster/dagster.yaml").write_text("storage: {sqlite: {base_dir: /dev/null/storage}}\n")
    said = refused(tmp_path, ports)
    assert said.startswith(f"up: Dagster cannot open its storage in {tmp_path}/dagster:\n")
    assert "/dev/null/storage" in said
    assert not list(tmp_path.glob("dagster/*.log"))

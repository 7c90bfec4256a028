"""Topics of a file, run side by side: one that fails leaves the others alone, and what they wrote is there once."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.core.topic import Progress, Topic
from lakehouse.streaming.topics.backoff import Backoff
from lakehouse.streaming.topics.config import TopicsFile, check_tables, read_topics
from lakehouse.streaming.topics.process import process_name
from lakehouse.streaming.topics.sources import connector, session_settings
from lakehouse.streaming.topics.supervisor import Supervisor

pytestmark = pytest.mark.usefixtures("spark")
SCHEMA = "at TIMESTAMP, id BIGINT"
SOON = 90.0


@pytest.fixture
def home(tmp_path: Path, spark: Any) -> Iterator[lakehouse.Lake]:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse", spark=spark) as lake:
        for name in ("first", "second"):
            lake.create_table(name, SCHEMA, time="at")
        yield lake


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of files of rows 0 to 9."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(10):
        put(folder, number)
    return folder


def put(folder: Path, number: int) -> None:
    """A file of one row, which is there at once or not at all."""
    hidden = folder / f".{number}.json"
    hidden.write_text(json.dumps({"at": f"2026-01-01T00:00:{number % 60:02}Z", "id": number}))
    hidden.rename(folder / f"{number}.json")


def read(tmp_path: Path, text: str) -> TopicsFile:
    file = tmp_path / "topics.toml"
    file.write_text(text)
    return read_topics(file)


def ids(lake: lakehouse.Lake, name: str) -> list[int]:
    found: list[int] = lake.table(name).scan(columns=["id"]).to_arrow()["id"].to_pylist()
    return sorted(found)


def files(source: Path, limit: int = 3) -> str:
    return f'{{format = "json", path = "{source}", columns = "{SCHEMA}", maxFilesPerTrigger = {limit}}}'


class Seen:
    """What a supervisor said, and whether something that is waited for was said."""

    def __init__(self) -> None:
        self.states: dict[str, list[str]] = {}
        self._wanted: Callable[[dict[str, Topic]], bool] = lambda _: False
        self._there = threading.Event()
        self._last: dict[str, Progress] = {}

    def change(self, one: Topic) -> None:
        self.states.setdefault(one.name, []).append(one.state.value)

    def look(self, topics: Any) -> None:
        self._last = {one.name: one.progress for one in topics}
        if self._wanted({one.name: one for one in topics}):
            self._there.set()

    def wait(self, wanted: Callable[[dict[str, Topic]], bool]) -> None:
        self._there.clear()
        self._wanted = wanted
        assert self._there.wait(SOON), self._last


@contextmanager
def running(lake: lakehouse.Lake, found: TopicsFile, **options: Any) -> Iterator[Seen]:
    """A supervisor in a thread, which is asked to end with the block."""
    seen = Seen()
    options = {
        "backoff": lambda: Backoff(0.05, 0.1, chance=random.Random(1)),
        "on_look": seen.look,
        "on_change": seen.change,
        **options,
    }
    supervisor = Supervisor(lake, found, **options)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        yield seen
    finally:
        supervisor.stop.set()
        thread.join(SOON)
    assert not thread.is_alive()


def test_topics_run_side_by_side_and_one_that_fails_is_started_again_alone(
    home: lakehouse.Lake, tmp_path: Path, source: Path
) -> None:
    found = read(
        tmp_path,
        f"""
        [topics.good]
        source = {files(source)}
        transform = "SELECT at, id FROM source WHERE id % 2 = 0"
        table = "first"
        [topics.bad]
        source = {files(source)}
        transform = "SELECT at, id, 1 AS extra FROM source"
        table = "first"
        """,
    )
    check_tables(found, home)
    with running(home, found) as seen:
        seen.wait(lambda now: now["bad"].progress.restarts >= 2 and now["good"].progress.rows >= 10)
        put(source, 10)
        put(source, 12)
        seen.wait(lambda now: now["good"].progress.rows >= 12)
        topics = {one.name: one for one in home.topics()}
        assert topics["good"].state == "running"
        bad = topics["bad"].progress
        assert "unknown column" in (bad.error or "")
        assert (bad.rows, bad.batch, bad.version) == (0, None, None)
    assert ids(home, "first") == [0, 2, 4, 6, 8, 10, 12]
    assert seen.states["bad"][:4] == ["running", "waiting", "running", "waiting"]
    assert seen.states["good"] == ["running", "stopped"]
    after = {one.name: one for one in home.topics()}
    assert {one.state for one in after.values()} == {"stopped"}
    assert after["good"].progress.version in {one.version for one in home.table("first").log()}
    with running(home, found.chosen(["good"])) as seen:  # it goes on where it was
        put(source, 14)
        seen.wait(lambda now: now["good"].progress.rows >= 1)
    assert ids(home, "first") == [0, 2, 4, 6, 8, 10, 12, 14]


def test_a_run_of_what_there_is_ends_and_says_whether_all_went_well(
    home: lakehouse.Lake, tmp_path: Path, source: Path
) -> None:
    text = f"[topics.good]\nsource = {files(source)}\ntable = 'first'\n"
    copy = "[topics.copy]\nsource = {table = 'first'}\ntable = 'second'\n"
    assert Supervisor(home, read(tmp_path, text).at_once(), is_once=True).run()
    assert ids(home, "first") == list(range(10))
    (topic,) = home.topics()
    assert (topic.state, topic.progress.rows, topic.progress.batches) == ("done", 10, 4)
    bad = f"[topics.bad]\nsource = {files(source)}\ntransform = 'SELECT nothing FROM source'\ntable = 'first'\n"
    assert not Supervisor(home, read(tmp_path, text + bad).at_once(), is_once=True).run()
    topics = {one.name: one for one in home.topics()}
    assert {name: one.state.value for name, one in topics.items()} == {"good": "done", "bad": "failed"}
    assert "nothing" in (topics["bad"].progress.error or "")
    assert ids(home, "first") == list(range(10))
    assert Supervisor(home, read(tmp_path, copy).at_once(), is_once=True).run()
    assert ids(home, "second") == list(range(10))


def test_a_topic_waits_for_the_process_that_has_it_and_leaves_it_to_the_one_that_takes_it(
    home: lakehouse.Lake, tmp_path: Path, source: Path
) -> None:
    found = read(tmp_path, f"[topics.good]\nsource = {files(source)}\ntable = 'first'\n")
    home.catalog.claim_topic("good", "elsewhere:1:1", Progress("first", "json"))
    with running(home, found) as seen:
        seen.wait(lambda now: "elsewhere:1:1 runs it" in (now["good"].progress.error or ""))
        assert [one.process for one in home.topics()] == ["elsewhere:1:1"]
    host, number, _ = process_name().rsplit(":", 2)
    gone = f"{host}:{number}:1"  # a process that had this one's number before
    home.forget_topic("good")
    home.catalog.claim_topic("good", gone, Progress("first", "json"))
    with running(home, found) as seen:
        seen.wait(lambda now: now["good"].progress.rows >= 10)
        home.catalog.claim_topic("good", "elsewhere:1:1", Progress("first", "json"), dead=(process_name(),))
        seen.wait(lambda now: now["good"].state == "stopped")
    assert [one.process for one in home.topics()] == ["elsewhere:1:1"]
    assert ids(home, "first") == list(range(10))


def test_a_session_gets_what_its_topics_need(tmp_path: Path) -> None:
    text = "[topics.a]\ntable = 'a'\nsource = {format = 'kafka', subscribe = 'a', 'kafka.bootstrap.servers' = 'b'}\n"
    assert session_settings(read(tmp_path, text))["spark.jars.packages"] == connector()
    own = 'spark.jars.packages = "some:other:1"\nspark.sql.shuffle.partitions = 7\n'
    settings = session_settings(read(tmp_path, f"[spark]\n{own}{text}"))
    assert settings["spark.jars.packages"] == f"some:other:1,{connector()}"
    assert settings["spark.sql.shuffle.partitions"] == "7"
    mine = 'spark.jars.packages = "org.apache.spark:spark-sql-kafka-0-10_2.13:9.9.9"\n'
    assert "9.9.9" in session_settings(read(tmp_path, f"[spark]\n{mine}{text}"))["spark.jars.packages"]
    plain = read(tmp_path, "[topics.a]\ntable = 'a'\nsource = {format = 'rate'}\n")
    assert "spark.jars.packages" not in session_settings(plain)

"""Files of topics: what is wrong is told by file, topic and key, before Spark starts."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest

import lakehouse
from lakehouse.errors import InvalidTopics
from lakehouse.streaming.topics.config import TopicConfig, TopicsFile, check_tables, read_topics

Write = Callable[[str], Path]
TOPIC = '[topics.orders]\ntable = "orders"\n'
PLACE = "checkpoint = 'c'\n"
RATE = 'source = {format = "rate"}\n'
KAFKA = 'source = {format = "kafka", "kafka.bootstrap.servers" = "localhost:9092", subscribe = "orders"}\n'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        path = tmp_path / "topics.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def test_a_file_says_all_of_a_topic(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "a b")
    found = read_topics(
        write(
            """
            [spark]
            spark.sql.shuffle.partitions = 2
            [defaults]
            trigger = "2 seconds"
            [topics.orders]
            table = "orders"
            mode = "apply_changes"
            keys = ["id", "ü"]
            sequence_by = "seq"
            deletes = "op = 'd'"
            scd = 2
            transform = "SELECT * FROM source"
            checkpoint = "here"
            schema = "merge"
            resume = "table"
            stream_id = "old orders"
            [topics.orders.source]
            format = "kafka"
            kafka.bootstrap.servers = "localhost:9092"
            kafka.password = {env = "SECRET"}
            subscribe = "orders"
            maxOffsetsPerTrigger = 100
            includeHeaders = true
            [topics.copy]
            source = {table = "orders", changes = true, since = 7, consumer = "copy"}
            table = "copies"
            trigger = "available now"
            """
        )
    )
    orders, copy = found.topics
    assert found.spark == {"spark.sql.shuffle.partitions": "2"}
    assert orders.source.options == {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.password": "a b",
        "subscribe": "orders",
        "maxOffsetsPerTrigger": "100",
        "includeHeaders": "true",
    }
    assert "a b" not in repr(orders)
    assert (orders.keys, orders.sequence_by, orders.deletes, orders.scd) == (("id", "ü"), "seq", "op = 'd'", 2)
    assert (orders.spark_trigger, copy.spark_trigger) == ({"processingTime": "2 seconds"}, {"availableNow": True})
    assert (orders.stream, copy.stream, orders.source.described(), copy.source.described()) == (
        "old orders", "copy", "kafka orders", "table orders",
    )  # fmt: skip
    assert copy.source.options == {"changes": True, "since": 7, "consumer": "copy"}
    assert replace(orders, trigger="200ms").spark_trigger == {"processingTime": "200 milliseconds"}
    assert {one.trigger for one in found.at_once().topics} == {"available now"}
    assert [one.name for one in found.chosen(["copy"]).topics] == ["copy"]


@pytest.mark.parametrize(
    ("text", "topic", "key", "said"),
    [
        ("topics = 3", None, "", "a table of keys"),
        ("[topics]", None, None, "no topic"),
        ("x = ", None, None, "not TOML"),
        ("[topic.a]", None, "topic", "write topics"),
        (TOPIC, "orders", "source", "missing"),
        ("[topics.a]\n" + RATE, "a", "table", "missing"),
        (TOPIC + RATE + "tabel = 'a'", "orders", "tabel", "write table"),
        (TOPIC + RATE + "mode = 'upsrt'", "orders", "mode", "upsert"),
        (TOPIC + RATE + "mode = 3", "orders", "mode", "a text"),
        (TOPIC + RATE + "trigger = 'often'", "orders", "trigger", "1 second"),
        (TOPIC + RATE + "mode = 'apply_changes'", "orders", "keys", "needs this key"),
        (TOPIC + RATE + "mode = 'apply_changes'\nkeys = 'id'", "orders", "keys", "a list"),
        (TOPIC + RATE + "mode = 'apply_changes'\nkeys = ['id']", "orders", "sequence_by", "needs this key"),
        (TOPIC + RATE + "keys = ['id']", "orders", "keys", "does not take"),
        (TOPIC + RATE + "scd = 2", "orders", "scd", "does not take"),
        (TOPIC + RATE + "schema = 'loose'", "orders", "schema", "strict"),
        (TOPIC + RATE + "resume = 'always'", "orders", "resume", "table"),
        (TOPIC + "source = {}", "orders", "source.format", "name a format"),
        (TOPIC + "source = 'rate'", "orders", "source.", "a table of keys"),
        (TOPIC + "source = {table = 'a', format = 'rate'}", "orders", "source.format", "not both"),
        (TOPIC + "source = {table = 'a', sinc = 1}", "orders", "source.sinc", "write since"),
        (TOPIC + "source = {table = 'a', changes = 'no'}", "orders", "source.changes", "no bool"),
        (TOPIC + "source = {format = 'json'}", "orders", "source.path", "missing"),
        (TOPIC + "source = {format = 'kafka', subscribe = 'a'}", "orders", "source.kafka.bootstrap.servers", "missing"),
        (TOPIC + KAFKA.replace("subscribe", "subscrib"), "orders", "source.subscribe", "name Kafka's topics"),
        (TOPIC + "source = {format = 'rate', x = [1]}", "orders", "source.x", "a text, a number"),
        (TOPIC + "source = {format = 'rate', x = {env = 'NOT_SET'}}", "orders", "source.x", "no such variable"),
        (TOPIC + RATE + "[defaults]\ntrigr = '1 second'", None, "defaults.trigr", "write trigger"),
        ('[topics."a/b"]\ntable = "t"\n' + RATE, "a/b", "", "letters"),
        (TOPIC + PLACE + RATE + "[topics.b]\ntable = 'b'\n" + PLACE + RATE, "b", "checkpoint", "its own folder"),
        (TOPIC + RATE + "[topics.b]\ntable = 'orders'\n" + RATE + "stream_id = 'orders'", "b", "stream_id", "same"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_file_topic_and_key(
    write: Write, text: str, topic: str | None, key: str | None, said: str
) -> None:
    path = write(text)
    with pytest.raises(InvalidTopics, match=said) as error:
        read_topics(path)
    facts = error.value.facts
    assert (facts["file"], facts.get("topic"), facts.get("key")) == (str(path), topic, key)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InvalidTopics, match="cannot be read"):
            read_topics(path)


def test_an_unknown_topic_is_told_with_those_that_there_are(write: Write) -> None:
    with pytest.raises(InvalidTopics, match=r"no such topic.*known=orders"):
        read_topics(write(TOPIC + RATE)).chosen(["order"])


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("table = 'none'\n" + RATE, "table", "no such table"),
        ("table = 'none; DROP'\n" + RATE, "table", "create it first"),
        ("table = 'plain'\nmode = 'upsert'\n" + RATE, "mode", "no primary key"),
        ("table = 'plain'\nmode = 'replace'\nkeys = ['nix']\n" + RATE, "keys", "no such column"),
        ("table = 'plain'\nsource = {table = 'none'}", "source.table", "no such table"),
    ],
)  # fmt: skip
def test_topics_are_compared_with_the_tables_of_a_lake(
    write: Write, tmp_path: Path, text: str, key: str, said: str
) -> None:
    found: TopicsFile = read_topics(write("[topics.a]\n" + text))
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        lake.create_table("plain", "at TIMESTAMP, id BIGINT", time="at")
        with pytest.raises(InvalidTopics, match=said) as error:
            check_tables(found, lake)
    assert (error.value.topic, error.value.key) == ("a", key)


def test_the_files_that_the_documentation_shows_can_be_read(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_JAAS", "secret")
    page = (Path(__file__).parents[3] / "docs/topics.md").read_text(encoding="utf-8")
    shown = [read_topics(write(text)) for text in re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
    assert [[one.name for one in found.topics] for found in shown] == [["ticks", "files", "copied"], ["orders"]]
    keys = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    named = {one.name for one in fields(TopicConfig)} - {"name", "keys", "sequence_by", "deletes", "scd"}
    assert keys == named

"""A file of topics: read and checked, so that what is wrong is told by file, topic and key before Spark starts."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from lakehouse.arguments import Fit
from lakehouse.core.stream import MODES, TAKEN_BY, Mode
from lakehouse.errors import InvalidInput, InvalidTopics, LakehouseError, TableNotFound
from lakehouse.lake import Lake

VIEW = "source"
"""What a topic's SQL calls the rows of its source."""
ALL_AT_ONCE = "available now"
_FILE_FORMATS = frozenset({"json", "csv", "parquet", "orc", "text", "avro", "xml"})
_KAFKA_TOPICS = ("subscribe", "subscribePattern", "assign")
_TABLE_OPTIONS = {
    "since": (int, str), "changes": (bool,), "consumer": (str,), "max_rows": (int,), "max_bytes": (int,),
    "max_versions": (int,),
}  # fmt: skip
_TRIGGER = re.compile(r"(\d{1,9}) *(ms|milliseconds?|seconds?|minutes?|hours?)")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a topic's rows come from: a table of the lake, or any format of Spark's with its options."""

    format: str | None = None
    table: str | None = None
    columns: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Not shown: they may hold credentials."""

    def described(self) -> str:
        """The source in some words, without its options but the one that names what is read.

        >>> Source("kafka", options={"subscribe": "orders", "kafka.password": "secret"}).described()
        'kafka orders'
        """
        if self.table is not None:
            return f"table {self.table}"
        named = next((self.options[one] for one in (*_KAFKA_TOPICS, "path") if one in self.options), None)
        return f"{self.format}" if named is None else f"{self.format} {named}"


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One stream: from a source, through SQL, into a table."""

    name: str
    source: Source
    table: str
    mode: Mode = "append"
    keys: tuple[str, ...] | None = None
    sequence_by: str | None = None
    deletes: str | None = None
    scd: int = 1
    transform: str | None = None
    trigger: str | None = None
    checkpoint: str | None = None
    schema: Fit = "strict"
    resume: Literal["table"] | None = None
    stream_id: str | None = None

    @property
    def stream(self) -> str:
        """The name under which the table knows its batches."""
        return self.stream_id or self.name

    @property
    def spark_trigger(self) -> dict[str, Any] | None:
        """The trigger as ``DataStreamWriter.trigger`` takes it; None: a batch after the other."""
        if self.trigger is None:
            return None
        if self.trigger == ALL_AT_ONCE:
            return {"availableNow": True}
        return {"processingTime": re.sub(r" *ms$", " milliseconds", self.trigger)}  # a unit that Spark does not know


@dataclass(frozen=True, slots=True)
class TopicsFile:
    """The topics of a file, and settings of the Spark session that they share."""

    file: str
    topics: tuple[TopicConfig, ...]
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)

    def chosen(self, names: Collection[str]) -> TopicsFile:
        """Only some of the topics; all without a name. Raises `InvalidTopics`."""
        known = [one.name for one in self.topics]
        for name in names:
            if name not in known:
                raise InvalidTopics("the file has no such topic", file=self.file, topic=name, known=", ".join(known))
        return replace(self, topics=tuple(one for one in self.topics if not names or one.name in names))

    def at_once(self) -> TopicsFile:
        """The same topics, each to end when it has read all that there is."""
        return replace(self, topics=tuple(replace(one, trigger=ALL_AT_ONCE) for one in self.topics))


def read_topics(path: str | os.PathLike[str]) -> TopicsFile:
    """Read a file of topics. Raises `InvalidTopics`, which names the file, the topic and the key.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "topics.toml")
    >>> written = file.write_text('topics.ticks = {source = {format = "rate"}, table = "ticks", trigger = "1 second"}')
    >>> [(one.name, one.table, one.mode) for one in read_topics(file).topics]
    [('ticks', 'ticks', 'append')]
    """
    file = str(path)
    try:
        held = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidTopics("the file of topics cannot be read", file=file, cause=error.strerror) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidTopics("the file of topics is not TOML", file=file, cause=str(error)) from error
    at = _Place(file)
    at.only(held, ("spark", "defaults", "topics"))
    spark = at.under("spark").table(held.get("spark", {}))
    defaults = at.under("defaults").table(held.get("defaults", {}))
    topics = at.table(held.get("topics", {}))
    if not topics:
        raise InvalidTopics("the file has no topic; add one, as in [topics.orders]", file=file)
    found = TopicsFile(
        file,
        tuple(_topic(_Place(file, name), name, given, defaults) for name, given in topics.items()),
        {name: _text(at.under("spark"), name, value) for name, value in _flat(spark)},
    )
    _check_apart(found)
    return found


def check_tables(found: TopicsFile, lake: Lake) -> None:
    """Compare topics with the tables of a lake. Raises `InvalidTopics` for what no batch could be written to."""
    for one in found.topics:
        at = _Place(found.file, one.name)
        for key, name in (("table", one.table), ("source.table", one.source.table)):
            if name is None:
                continue
            try:
                held = lake.table(name)
            except (TableNotFound, InvalidInput) as error:
                raise at.wrong(key, f"{_words(error)}; create it first", found=name) from error
            if key != "table":
                continue
            if one.mode == "upsert" and not held.primary_key:
                raise at.wrong("mode", "the table has no primary key, which an upsert needs", table=name)
            unknown = [key for key in one.keys or () if key not in held.schema.names]
            if unknown:
                raise at.wrong("keys", "the table has no such column", column=unknown[0], table=name)


def _words(error: LakehouseError) -> str:
    return str(error).split(" (", 1)[0].split(";", 1)[0]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a file something stands."""

    file: str
    topic: str | None = None
    prefix: str = ""

    def under(self, key: str) -> _Place:
        return replace(self, prefix=f"{self.prefix}{key}.")

    def wrong(self, key: str, message: str, **facts: Any) -> InvalidTopics:
        named = {} if self.topic is None else {"topic": self.topic}
        return InvalidTopics(message, file=self.file, **named, key=f"{self.prefix}{key}", **facts)

    def table(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise self.wrong("", "write a table of keys and values here", found=type(given).__name__)
        return given

    def only(self, given: Mapping[str, Any], known: Collection[str]) -> None:
        for key in given:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"write {near[0]}" if near else f"use one of {', '.join(known)}"
                raise self.wrong(key, f"unknown key; {hint}")

    def text(self, given: Mapping[str, Any], key: str) -> str | None:
        value = given.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, "write a text here", found=repr(value)[:100])
        return value.strip()

    def needed(self, given: Mapping[str, Any], key: str) -> str:
        value = self.text(given, key)
        if value is None:
            raise self.wrong(key, "the key is missing")
        return value

    def one_of(self, given: Mapping[str, Any], key: str, known: Collection[str], default: str) -> str:
        value = self.text(given, key) or default
        if value not in known:
            raise self.wrong(key, f"use one of {', '.join(known)}", found=value)
        return value


_KEYS = (
    "source", "table", "mode", "keys", "sequence_by", "deletes", "scd", "transform", "trigger", "checkpoint", "schema",
    "resume", "stream_id",
)  # fmt: skip


def _topic(at: _Place, name: str, given: Any, defaults: Mapping[str, Any]) -> TopicConfig:
    if not _NAME.fullmatch(name):
        raise at.wrong("", "a topic's name has letters, digits, _, - and . only, at most 100")
    own = at.table(given)
    at.only(own, _KEYS)
    _Place(at.file, None, "defaults.").only(defaults, [key for key in _KEYS if key not in ("checkpoint", "stream_id")])
    held = {**defaults, **own}
    if "source" not in held:
        raise at.wrong("source", "the key is missing")
    mode = at.one_of(held, "mode", MODES, "append")
    keys = held.get("keys")
    if keys is not None and (not isinstance(keys, list) or not keys or not all(isinstance(one, str) for one in keys)):
        raise at.wrong("keys", 'write a list of column names here, as in ["id"]', found=repr(keys)[:100])
    found = TopicConfig(
        name,
        _source(at.under("source"), held["source"]),
        at.needed(held, "table"),
        mode,  # type: ignore[arg-type]
        None if keys is None else tuple(keys),
        at.text(held, "sequence_by"),
        at.text(held, "deletes"),
        held.get("scd", 1),
        at.text(held, "transform"),
        _trigger(at, held),
        at.text(held, "checkpoint"),
        at.one_of(held, "schema", get_args(Fit), "strict"),  # type: ignore[arg-type]
        at.text(held, "resume"),  # type: ignore[arg-type]
        at.text(held, "stream_id"),
    )
    _check_mode(at, found, held)
    return found


def _check_mode(at: _Place, found: TopicConfig, held: Mapping[str, Any]) -> None:
    """Some keys go with some modes only."""
    if found.scd not in (1, 2) or isinstance(found.scd, bool):
        raise at.wrong("scd", "use 1 (the newest row of each key) or 2 (every one, from when to when)", found=found.scd)
    if found.resume not in (None, "table"):
        raise at.wrong("resume", "use table, or leave the key out", found=found.resume)
    if found.mode == "apply_changes":
        for key in ("keys", "sequence_by"):
            if getattr(found, key) is None:
                raise at.wrong(key, "mode apply_changes needs this key")
        return
    for key in TAKEN_BY["apply_changes"]:
        if held.get(key) is not None and key not in TAKEN_BY[found.mode]:
            raise at.wrong(key, "this mode does not take the key; leave it out", mode=found.mode)


def _trigger(at: _Place, held: Mapping[str, Any]) -> str | None:
    given = at.text(held, "trigger")
    if given is None or given == ALL_AT_ONCE or _TRIGGER.fullmatch(given):
        return given
    raise at.wrong("trigger", f'write how often, as in "1 second" or "500 ms", or "{ALL_AT_ONCE}"', found=given)


def _source(at: _Place, given: Any) -> Source:
    held = dict(at.table(given))
    if ("format" in held) == ("table" in held):
        raise at.wrong("format", "name a format of Spark's (rate, kafka, json, ...) or a table of the lake, not both")
    kind, table, columns = (at.text(held, key) for key in ("format", "table", "columns"))
    options = {key: value for key, value in held.items() if key not in ("format", "table", "columns")}
    if table is not None:
        if columns is not None:
            raise at.wrong("columns", "a table knows its columns; choose some in transform")
        at.only(options, tuple(_TABLE_OPTIONS))
        for key, value in options.items():
            if not isinstance(value, _TABLE_OPTIONS[key]):
                wanted = " or ".join(one.__name__ for one in _TABLE_OPTIONS[key])
                raise at.wrong(key, f"this is no {wanted}", found=repr(value)[:100])
        return Source(None, table, None, options)
    texts = {key: _text(at, key, value) for key, value in _flat(options)}
    if kind == "kafka":
        if "kafka.bootstrap.servers" not in texts:
            raise at.wrong("kafka.bootstrap.servers", "the key is missing: name Kafka's servers")
        if sum(one in texts for one in _KAFKA_TOPICS) != 1:
            raise at.wrong("subscribe", f"name Kafka's topics by one of {', '.join(_KAFKA_TOPICS)}")
    if kind in _FILE_FORMATS and "path" not in texts:
        raise at.wrong("path", "the key is missing: name the folder whose files are read")
    return Source(kind, None, columns, texts)


def _flat(held: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Keys with dots, which TOML reads as tables, as one name; ``{env = "NAME"}`` stays.

    >>> _flat({"kafka": {"bootstrap": {"servers": "localhost:9092"}, "password": {"env": "SECRET"}}})
    [('kafka.bootstrap.servers', 'localhost:9092'), ('kafka.password', {'env': 'SECRET'})]
    """
    found: list[tuple[str, Any]] = []
    for name, value in held.items():
        if isinstance(value, Mapping) and set(value) != {"env"}:
            found.extend(_flat(value, f"{prefix}{name}."))
        else:
            found.append((f"{prefix}{name}", value))
    return found


def _text(at: _Place, key: str, value: Any) -> str:
    """An option as Spark takes it; ``{env = "NAME"}`` is read from the environment, for what no file should hold."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float() | str():
            return str(value)
        case {"env": str(name)}:
            if name not in os.environ:
                raise at.wrong(key, "the environment has no such variable", variable=name)
            return os.environ[name]
        case _:
            raise at.wrong(key, 'write a text, a number or {env = "NAME"} here', found=type(value).__name__)


_OWN = {"checkpoint": "folder", "stream": "name in its table"}


def _check_apart(found: TopicsFile) -> None:
    """Two topics share neither a checkpoint nor the name by which a table knows their batches."""
    for key in ("checkpoint", "stream"):
        taken: dict[tuple[str, str], str] = {}
        for one in found.topics:
            value = getattr(one, key)
            if value is None:
                continue
            held = (one.table if key == "stream" else "", value)
            if held in taken:
                shown = "stream_id" if key == "stream" else key
                raise _Place(found.file, one.name).wrong(
                    shown, f"another topic has the same; give each its own {_OWN[key]}", found=value, other=taken[held]
                )
            taken[held] = one.name

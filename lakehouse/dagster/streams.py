"""Streams in Dagster: topics that others run, as observed assets; stalled ones; and bounded runs of a topic."""

import json
import os
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.core.topic import STALLED_SECONDS, Topic
from lakehouse.dagster.automation import cron_of
from lakehouse.dagster.metadata import commit_metadata
from lakehouse.errors import TopicNotFound

if TYPE_CHECKING:
    from lakehouse.lake import Lake

TOPIC_TAG = "lakehouse/topic"
_MOST_TAG = 255


def observe_topic(
    topic: str,
    *,
    key: dg.AssetKey | None = None,
    every: timedelta | None = None,
    after_seconds: float = STALLED_SECONDS,
    lakehouse_key: str = "lakehouse",
    **arguments: Any,
) -> dg.SourceAsset:
    """A topic that ``lakehouse stream run`` keeps running elsewhere, as an observable source asset.

    An observation has `topic_metadata`: health, lag, last version and batch, rows, restarts, last error. Its data
    version is the last version that the topic committed, so assets downstream are out of date when it has written.
    ``every``: how often Dagster's daemon observes it by itself. Cost: one small read of the catalog. It fails with
    `TopicNotFound` for a topic that no process has run yet.

    Examples
    --------
    >>> observe_topic("orders", every=timedelta(minutes=5)).key.to_user_string()
    'orders'
    """

    def observed(context: Any) -> dg.ObserveResult:
        with getattr(context.resources, lakehouse_key).get_lake(spark=False) as lake:
            found = find_topic(lake, topic)
            version = found.progress.version
            known = None if version is None else dg.DataVersion(str(version))
            return dg.ObserveResult(data_version=known, metadata=topic_metadata(found, after_seconds))

    if every is not None:
        arguments["automation_condition"] = dg.AutomationCondition.on_cron(cron_of(every))
    with warnings.catch_warnings():
        # Dagster marks it as beta; users of this factory need no warning each time their code is loaded.
        warnings.filterwarnings("ignore", "Function `observable_source_asset`", dg.BetaWarning)
        source: dg.SourceAsset = dg.observable_source_asset(
            name=None if key is not None else topic, key=key, required_resource_keys={lakehouse_key}, **arguments
        )(observed)
        return source


def find_topic(lake: "Lake", name: str) -> Topic:
    """A topic by name. Raises `TopicNotFound`."""
    topics = lake.topics()
    for one in topics:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in topics[:20])
    raise TopicNotFound("no process has run such a topic; start it by `lakehouse stream run`", topic=name, known=known)


def topic_metadata(topic: Topic, after_seconds: float = STALLED_SECONDS) -> Mapping[str, Any]:
    """What a topic's process reported last, as metadata: what is not known is left out."""
    told = topic.progress
    facts: dict[str, Any] = {
        "health": topic.health(after_seconds).value,
        "why": topic.stall(after_seconds),
        "state": topic.state.value,
        "dagster/table_name": told.table,
        "source": told.source,
        "lag": told.lag,
        "lag_unit": told.lag_unit,
        "version": told.version,
        "batch": told.batch,
        "rows": told.rows,
        "rows_per_second": told.rows_per_second,
        "batch_seconds": told.batch_seconds,
        "restarts": told.restarts,
        "error": told.error,
        "process": topic.process,
        "silent_seconds": round(topic.silent_seconds, 3),
    }
    if (ended := topic.at(told.batch_ago)) is not None:
        facts["last_batch"] = dg.MetadataValue.timestamp(ended.timestamp())
    return {name: value for name, value in facts.items() if value is not None}


def build_stalled_sensor(
    *,
    name: str = "lakehouse_stalled_topics",
    topics: Collection[str] | None = None,
    job: Any = None,
    after_seconds: float = STALLED_SECONDS,
    lakehouse_key: str = "lakehouse",
    minimum_interval_seconds: int = 60,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED,
) -> dg.SensorDefinition:
    """A sensor that tells of each topic that stalls or fails, and of its recovery, once: see `Topic.stall`.

    It observes the asset of the topic's name; with a ``job``, a run of it is requested too, which tells people or
    starts the process again: its tag ``lakehouse/topic`` names the topic. A topic of ``topics`` that no process has
    run counts as stalled. Cost of a tick: one small read of the catalog.
    """

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with getattr(context.resources, lakehouse_key).get_lake(spark=False) as lake:
            known = {one.name: one for one in lake.topics() if topics is None or one.name in topics}
        before: dict[str, float] = json.loads(context.cursor) if context.cursor else {}
        stalls = dict(_stalls(known, topics or (), after_seconds))
        now = {topic: before.get(topic, time.time()) for topic in sorted(stalls)}
        changed = sorted(set(now) ^ set(before))
        events = [
            dg.AssetObservation(
                dg.AssetKey(one),
                description=stalls.get(one, "the topic makes progress again, or has ended"),
                metadata=dict(topic_metadata(known[one], after_seconds)) if one in known else {"health": "stalled"},
            )
            for one in changed
        ]
        requests = [
            dg.RunRequest(run_key=f"{one}/{now[one]:.0f}", tags={TOPIC_TAG: one[:_MOST_TAG]})
            for one in changed
            if job is not None and one in now
        ]
        reason = None if requests or events else f"{len(known)} topics, {len(stalls)} of them stalled as before"
        return dg.SensorResult(
            asset_events=events, run_requests=requests, skip_reason=None if requests else reason, cursor=json.dumps(now)
        )

    return dg.SensorDefinition(
        name=name,
        evaluation_fn=look,
        job=job,
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        required_resource_keys={lakehouse_key},
        description="Tells of topics that stall, once each.",
    )


def _stalls(known: Mapping[str, Topic], wanted: Collection[str], after_seconds: float) -> Iterator[tuple[str, str]]:
    for topic in known.values():
        if (why := topic.stall(after_seconds)) is not None:
            yield topic.name, why
    for name in wanted:
        if name not in known:
            yield name, "no process has run it; start it by `lakehouse stream run`"


def topic_asset(
    file: str | os.PathLike[str],
    topic: str,
    *,
    key: dg.AssetKey | None = None,
    lakehouse_key: str = "lakehouse",
    **arguments: Any,
) -> dg.AssetsDefinition:
    """A topic of a file as an ordinary asset: a materialization reads what there is, then ends.

    The asset is named like the topic's table, unless ``key`` names it. Each run goes on where the last one stopped: the
    checkpoint and the table say where, so a run that failed, or is repeated, writes no row twice. It fails while
    another process runs the topic. Each run reads the file anew. Other ``arguments`` are those of `dagster.asset`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "topics.toml")
    >>> written = file.write_text('topics.ticks = {source = {format = "rate"}, table = "ticks"}')
    >>> topic_asset(file, "ticks").key.to_user_string()
    'ticks'
    """
    read_topics = import_module("lakehouse.streaming.topics.config").read_topics
    (config,) = read_topics(file).chosen([topic]).topics
    if key is None:
        arguments.setdefault("name", config.table)
    if config.source.table is not None:
        arguments.setdefault("deps", [config.source.table])

    def materialized(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with getattr(context.resources, lakehouse_key).get_lake() as lake:
            return materialize_topic(lake, file, topic)

    made: dg.AssetsDefinition = dg.asset(key=key, required_resource_keys={lakehouse_key}, **arguments)(materialized)
    return made


def materialize_topic(
    lake: "Lake", file: str | os.PathLike[str], topic: str, *, console_url: str | None = None
) -> dg.MaterializeResult[None]:
    """Read all that a topic's source has now into its table, and describe the last commit to Dagster.

    Raises `InvalidTopics` for a file that cannot be used, `dagster.Failure` with the topic's error.
    """
    # These load Spark.
    config, supervisor = (import_module(f"lakehouse.streaming.topics.{one}") for one in ("config", "supervisor"))
    found = config.read_topics(file).chosen([topic]).at_once()
    config.check_tables(found, lake)
    started = time.monotonic()
    run = supervisor.Supervisor(lake, found, is_once=True)
    is_well = run.run()
    (ended,) = run.topics()
    told = ended.progress
    metadata = {
        name: value for name, value in topic_metadata(ended).items() if name not in ("health", "silent_seconds")
    }
    if not is_well:
        raise dg.Failure(f"topic {topic} failed: {told.error}", metadata=metadata)
    metadata = {**metadata, "batches": told.batches, "rows_read": told.rows}
    table = lake.table(told.table)
    commit = next((one for one in table.log(limit=_LOOK_BACK) if one.version == told.version), None)
    if commit is not None:
        seconds = time.monotonic() - started
        metadata |= commit_metadata(table, commit, duration_seconds=seconds, console_url=console_url)
    version = told.version or table.version
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(str(version)))


_LOOK_BACK = 50

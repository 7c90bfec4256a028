"""Maintenance as Dagster runs: jobs that run one task of the table service, and a sensor that starts them by score."""

import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.storage.tags import PRIORITY_TAG
from pydantic import Field

from lakehouse.core.interval import Interval
from lakehouse.core.policy import longest_retention
from lakehouse.core.task import COLLECT_SECONDS, Task, TaskKind, TaskState
from lakehouse.errors import InvalidInput

if TYPE_CHECKING:
    from lakehouse.lake import Lake

POOL = "lakehouse_maintenance"
"""The concurrency pool of all maintenance, unless another is named; limit it to the runs that may rewrite at once."""
KINDS = tuple(kind for kind in TaskKind if kind is not TaskKind.PLAN)
TASK_TAG, TABLE_TAG, CHUNK_TAG, KIND_TAG, SCORE_TAG = (
    f"lakehouse/{name}" for name in ("task", "table", "chunk", "kind", "score")
)
_PLAN_SECONDS = 3600
"""Unchanged tables are planned again after this long, because thresholds grow stricter with age."""
_MOST_TEXT = 255


class TaskConfig(dg.Config):
    """Which task of the table service a run does."""

    task: int = Field(ge=1, description="The number of the waiting task, as `lakehouse tasks` lists it.")


def build_maintenance_jobs(
    *,
    kinds: Collection[str] = KINDS,
    lakehouse_key: str = "lakehouse",
    pool: str = POOL,
    engine: str | None = None,
) -> list[dg.JobDefinition]:
    """A job for each kind of task (compact, resolve, clean, collect, stats, index); a run names its task.

    All of them share a concurrency pool, whose limit says how many run at once. ``engine``: ``spark`` compacts with
    Spark, otherwise in process. A task that was done elsewhere meanwhile is skipped.

    Examples
    --------
    >>> [job.name for job in build_maintenance_jobs(kinds=["compact", "collect"])]
    ['lakehouse_compact', 'lakehouse_collect']
    """
    return [_job(TaskKind(kind), lakehouse_key, pool, engine) for kind in kinds]


def _job(kind: TaskKind, lakehouse_key: str, pool: str, engine: str | None) -> dg.JobDefinition:
    @dg.op(name=f"run_{kind}", pool=pool, required_resource_keys={lakehouse_key})
    def run_task(context: dg.OpExecutionContext, config: TaskConfig) -> None:
        resource = getattr(context.resources, lakehouse_key)
        with resource.get_lake(spark=False) as lake:
            lake.catalog.tasks().task(config.task)  # an unknown one is refused before Spark starts
            if engine == "spark":
                lake.session.use_spark(resource.get_spark())
            try:
                done = lake.run_task(config.task, engine=engine)
            except InvalidInput as refused:
                context.log.info("Left alone: %s", refused)
                return
        context.add_output_metadata(_facts(done))
        if done.table is not None:
            context.log_event(dg.AssetObservation(dg.AssetKey(done.table), metadata=_facts(done)))
        if done.state is TaskState.FAILED:
            raise dg.Failure(f"the task failed: {done.error}", metadata=_facts(done), allow_retries=False)

    @dg.job(name=f"lakehouse_{kind}", description=f"Do one task of the table service: {kind}.")
    def maintenance() -> None:
        run_task()

    return maintenance


def build_compaction_sensor(
    jobs: Sequence[dg.JobDefinition],
    *,
    name: str = "lakehouse_maintenance",
    tables: Collection[str] | None = None,
    least_score: float = 0.0,
    most_runs: int = 3,
    lakehouse_key: str = "lakehouse",
    minimum_interval_seconds: int = 60,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED,
) -> dg.SensorDefinition:
    """A sensor that plans maintenance and starts a run for each task that is worth it, best score first.

    ``jobs`` are those of `build_maintenance_jobs`; tasks of other kinds wait for other workers. At most ``most_runs``
    run at once, and none on an interval that a lock or another run covers, so they never compete for a chunk. Tags of a
    run name table, chunk, kind, score and task.

    Its cursor stores the version up to which it planned and the tasks it requested, so a restart plans and requests
    nothing twice; a task whose run did not do it is requested again. A tick without new versions costs two small
    queries.
    """
    by_kind = {job.name.removeprefix("lakehouse_"): job for job in jobs}

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with getattr(context.resources, lakehouse_key).get_lake(spark=False) as lake:
            cursor = _Cursor.read(context.cursor)
            waiting = _waiting(lake, cursor)
            chosen = [one for one in waiting if one.kind.value in by_kind and one.score >= least_score]
            if tables is not None:
                chosen = [one for one in chosen if one.table in tables]
            requests = list(_requests(context.instance, lake, chosen, cursor, by_kind, most_runs))
        cursor.forget_all_but({one.id for one in waiting})
        reason = None if requests else f"nothing to do: {len(waiting)} tasks wait, {len(chosen)} of them for these jobs"
        return dg.SensorResult(run_requests=requests, skip_reason=reason, cursor=cursor.write())

    return _Sensor(
        name=name,
        evaluation_fn=look,
        jobs=list(jobs),
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        required_resource_keys={lakehouse_key},
        description="Starts maintenance of tables by score, under concurrency pools.",
    )


class _Sensor(dg.SensorDefinition):
    """A sensor whose copy, which Dagster makes to bind its jobs to resources, does not warn about unset options."""

    def with_attributes(self, **attributes: Any) -> dg.SensorDefinition:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Parameter `owners`", dg.BetaWarning)
            return super().with_attributes(**attributes)


@dataclass(slots=True)
class _Cursor:
    """A sensor's cursor: the version planned last, and how often each task was requested."""

    head: int = -1
    planned_seconds: float = 0.0
    requested: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str | None) -> "_Cursor":
        """A cursor from its text; a new one without a text."""
        if not text:
            return cls()
        held: Mapping[str, Any] = json.loads(text)
        requested = {int(task): count for task, count in held["requested"].items()}
        return cls(held["head"], held["planned_seconds"], requested)

    def forget_all_but(self, tasks: Collection[int]) -> None:
        """Forget tasks that no longer wait."""
        self.requested = {task: count for task, count in self.requested.items() if task in tasks}

    def write(self) -> str:
        """The cursor as text."""
        return json.dumps({"head": self.head, "planned_seconds": self.planned_seconds, "requested": self.requested})


def _waiting(lake: "Lake", cursor: _Cursor) -> Sequence[Task]:
    """Tasks that may run now, best first; tables written since the cursor are planned again."""
    head = lake.head
    if head != cursor.head or lake.catalog.now().timestamp() - cursor.planned_seconds > _PLAN_SECONDS:
        lake.plan_tasks()
        if _has_garbage(lake):
            lake.catalog.tasks().ask_for_collection(COLLECT_SECONDS)
        cursor.head, cursor.planned_seconds = head, lake.catalog.now().timestamp()
    now = lake.catalog.now()
    ready = [one for one in lake.tasks(state=TaskState.WAITING.value) if one.not_before <= now]
    quiet = {name: lake.table(name).policy.quiet_hours for name in {one.table for one in ready if one.table}}
    return [one for one in ready if not ((hours := quiet.get(one.table or "")) and hours.holds(now))]


def _has_garbage(lake: "Lake") -> bool:
    """Whether a collection now, with the retention of all tables, would expire or delete anything."""
    gone = lake.collect(dry_run=True)
    if gone.files or gone.operations:
        return True
    lets_go = longest_retention(lake.table(name).policy for name in lake.tables())
    return bool(lets_go and lake.expire(older_than=lets_go[0], keep_last=lets_go[1], dry_run=True).versions)


def _requests(
    instance: dg.DagsterInstance,
    lake: "Lake",
    tasks: Sequence[Task],
    cursor: _Cursor,
    jobs: Mapping[str, dg.JobDefinition],
    most_runs: int,
) -> Iterator[dg.RunRequest]:
    under_way = {one.tags[TASK_TAG]: one for one in _runs_under_way(instance, jobs)}
    taken = {(one.tags.get(TABLE_TAG), one.tags.get(CHUNK_TAG)) for one in under_way.values()}
    spans = [(table, Interval.of(chunk)) for table, chunk in taken if chunk]
    names = {one.table for one in tasks if one.table is not None}
    spans.extend((name, lock.chunk) for name in names for lock in lake.table(name).locks())
    room = most_runs - len(under_way)
    for task in tasks:
        if room <= 0:
            return
        span = task.interval
        if str(task.id) in under_way or any(
            table == task.table and (span is None or span.overlaps(held)) for table, held in spans
        ):
            continue
        if span is not None:
            spans.append((task.table, span))
        room -= 1
        # A run that ended although its task still waits did not do it; its key is spent.
        count = cursor.requested[task.id] = cursor.requested.get(task.id, 0) + 1
        job = jobs[task.kind.value]
        yield dg.RunRequest(
            run_key=f"{task.id}/{count}",
            job_name=job.name,
            run_config={"ops": {f"run_{task.kind}": {"config": {"task": task.id}}}},
            tags=_tags(task),
        )


def _runs_under_way(instance: dg.DagsterInstance, jobs: Mapping[str, dg.JobDefinition]) -> list[dg.DagsterRun]:
    statuses = [one for one in dg.DagsterRunStatus if one not in _ENDED]
    found = [
        run for job in jobs.values() for run in instance.get_runs(dg.RunsFilter(job_name=job.name, statuses=statuses))
    ]
    return [run for run in found if TASK_TAG in run.tags]


_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


def _tags(task: Task) -> dict[str, str]:
    facts = {
        PRIORITY_TAG: "-1",  # runs started by people go first
        TASK_TAG: str(task.id),
        KIND_TAG: task.kind.value,
        TABLE_TAG: task.table,
        CHUNK_TAG: None if task.interval is None else str(task.interval),
        SCORE_TAG: f"{task.score:.3g}",
    }
    return {name: value[:_MOST_TEXT] for name, value in facts.items() if value is not None}


def _facts(task: Task) -> dict[str, Any]:
    """The result of a task, as metadata."""
    facts: dict[str, Any] = {
        "task": task.id,
        "kind": task.kind.value,
        "state": task.state.value,
        "cause": task.cause,
        "score": task.score,
        "segments": task.segments,
        "bytes_read": task.budget_bytes,
        "predicted_ms": round(task.predicted.cost_ms, 3),
        "actual_ms": None if task.actual is None else round(task.actual.cost_ms, 3),
        "version": task.version,
        "interval": None if task.interval is None else str(task.interval),
        "error": task.error,
    }
    return {name: value for name, value in facts.items() if value is not None}

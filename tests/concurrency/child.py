"""Another process on a lake: says what it did at each stage through a pipe, and goes on at a signal.

Run by the fixture `start`, in a process of its own.
"""

from __future__ import annotations

import threading
from multiprocessing.connection import Connection
from typing import Any

import lakehouse
from lakehouse.catalog.locks import waiting
from lakehouse.errors import LakehouseError
from lakehouse.serving.node import NodeSettings, ServingNode
from lakehouse.serving.wire import Question
from lakehouse.testing import faults
from lakehouse.testing.rows import arrow
from tests.concurrency.calls import CALLS

Task = dict[str, Any]


def append(lake: Any, task: Task, pipe: Connection) -> None:
    """Append ``count`` rows, a commit each, valued from ``value``."""
    table = lake.table(task["table"])
    pipe.send({"ready": True})
    pipe.recv()
    rows = [arrow([(task["time"], "a", task["value"] + turn)]) for turn in range(task["count"])]
    pipe.send({"versions": [table.append(one).version for one in rows]})


def operate(lake: Any, task: Task, pipe: Connection) -> None:
    """Begin, write and commit, waiting for a signal before each of the last two."""
    table = lake.table(task["table"])
    match task["kind"]:
        case "append":
            operation = table.begin_append()
        case "replace":
            operation = table.begin_replace(task["time"] if table.time else None, wait_seconds=0)
        case "compact":
            operation = table.begin_compaction()
    pipe.send({"id": operation.id})
    pipe.recv()
    if task["kind"] == "compact":
        operation.run()
    else:
        operation.write(arrow([(task["time"], "a", task["value"])]))
    pipe.send({"written": True})
    pipe.recv()
    pipe.send({"version": operation.commit().version})


def crash(lake: Any, task: Task, pipe: Connection) -> None:
    """Do one thing in one call, dying at the fault point ``point`` the ``count``-th time that it is reached."""
    table = lake.table(task["table"])
    rows = arrow([(task["time"], "a", task["value"])])
    with faults.armed({task["point"]: faults.on_count(task.get("count", 1), faults.kill)}):
        match task["kind"]:
            case "append":
                table.append(rows, txn=("feed", task["value"]))
            case "replace":
                morning = (task["time"] + "T00:00", task["time"] + "T12:00")
                table.replace(rows, morning if table.time else None)
            case "compact":
                table.compact()
            case "exchange":
                lake.sql(f"CREATE OR REPLACE TABLE {task['table']} AS SELECT value FROM {task['table']}")
            case "renew":
                made = f"SELECT value * 10 AS value FROM {task['table']}"
                lake.sql(f"CREATE OR REPLACE TABLE {task['table']} TBLPROPERTIES ('owner' = 'new') AS {made}")
            case "clean":
                lake.expire(keep_last=2)
                lake.collect(grace_seconds=0)
            case "transaction":
                with lake.transaction() as tx:
                    for name in task["tables"]:
                        tx.table(name).append(rows)
    pipe.send({"survived": True})


def wait(lake: Any, task: Task, pipe: Connection) -> None:
    """Stand in the queue for a day's chunk; a place there is kept for ``place_seconds``."""
    waiting.PLACE_SECONDS = task["place_seconds"]
    table = lake.table(task["table"])
    pipe.send({"ready": True})
    pipe.recv()
    table.begin_replace(task["time"], wait_seconds=60)


def call(lake: Any, task: Task, pipe: Connection) -> None:
    """Do one of `CALLS` at a signal."""
    pipe.send({"ready": True})
    pipe.recv()
    CALLS[task["name"]][0](lake)
    pipe.send({"done": True})


def state(lake: Any, task: Task, pipe: Connection) -> None:
    """Run a statement that changes no row at a signal, dying at the fault point ``point`` if one is named."""
    pipe.send({"ready": True})
    pipe.recv()
    with faults.armed({task["point"]: faults.kill} if "point" in task else {}):
        lake.sql(task["text"], engine="duckdb")
    pipe.send({"done": True})


def serve(lake: Any, task: Task, pipe: Connection) -> None:
    """Be a query node that says what it answers once it is ready; then die at the fault point ``point``, if any."""
    settings = NodeSettings(cache_dir=task["cache_dir"], lease_seconds=0.5)

    def joined() -> ServingNode:
        return ServingNode(lake, "test", "two", "http://127.0.0.1:1", settings)

    if task["point"] == "handoff.joined":
        with faults.armed({"handoff.joined": faults.kill}):
            joined()
    node = joined()
    rows, said = node.ask(Question(task["text"]))
    while not node.is_ready:
        threading.Event().wait(0.01)
    pipe.send({"version": said.version, "rows": rows.to_pylist()})
    with faults.armed({task["point"]: faults.kill} if task["point"] else {}):
        pipe.send({"armed": True})
        pipe.recv()


def main(task: Task, pipe: Connection) -> None:
    """Do a task; a `LakehouseError` is an answer too."""
    tasks = {
        "append": append,
        "operate": operate,
        "crash": crash,
        "wait": wait,
        "call": call,
        "state": state,
        "serve": serve,
    }
    work = tasks[task["do"]]
    options = {"lease_seconds": task["lease_seconds"]} if "lease_seconds" in task else {}
    with lakehouse.connect(task["catalog"], task["warehouse"], **options) as lake:
        try:
            work(lake, task, pipe)
        except LakehouseError as error:
            pipe.send({"error": type(error).__name__, "message": str(error)})

"""Another process on a lake: reads a JSON line of arguments, prints one at each stage, and awaits one between.

Run as a program by the tests of this folder, never imported by them.
"""

from __future__ import annotations

import json
import sys

import lakehouse
from lakehouse.errors import LakehouseError
from lakehouse.testing import faults
from lakehouse.testing.rows import arrow


def say(**facts) -> None:
    print(json.dumps(facts), flush=True)


def listen() -> dict:
    return json.loads(sys.stdin.readline() or "{}")


def append(lake, task) -> None:
    """Append ``count`` rows, a commit each, valued from ``value``."""
    table = lake.table(task["table"])
    say(ready=True)
    listen()
    versions = [
        table.append(arrow([(task["time"], "a", task["value"] + turn)])).version for turn in range(task["count"])
    ]
    say(versions=versions)


def operate(lake, task) -> None:
    """Begin, write and commit, awaiting a line before each of the last two."""
    table = lake.table(task["table"])
    match task["kind"]:
        case "append":
            operation = table.begin_append()
        case "replace":
            operation = table.begin_replace(task["time"], wait_seconds=task.get("wait_seconds", 0))
        case "compact":
            operation = table.begin_compaction()
    say(id=operation.id)
    listen()
    if task["kind"] == "compact":
        operation.run()
    else:
        operation.write(arrow([(task["time"], "a", task["value"])]))
    say(written=True)
    listen()
    say(version=operation.commit().version)


def crash(lake, task) -> None:
    """Do one thing in one call, dying at the fault point ``point`` the ``count``-th time that it is reached."""
    table = lake.table(task["table"])
    rows = arrow([(task["time"], "a", task["value"])])
    with faults.armed({task["point"]: faults.on_count(task.get("count", 1), faults.kill)}):
        match task["kind"]:
            case "append":
                table.append(rows, txn=("feed", task["value"]))
            case "replace":
                table.replace(rows, (task["time"] + "T00:00", task["time"] + "T12:00"))
            case "compact":
                table.compact()
            case "transaction":
                with lake.transaction() as tx:
                    for name in task["tables"]:
                        tx.table(name).append(rows)
    say(survived=True)


def main() -> None:
    task = listen()
    options = {"lease_seconds": task["lease_seconds"]} if "lease_seconds" in task else {}
    with lakehouse.connect(task["catalog"], task["warehouse"], **options) as lake:
        try:
            {"append": append, "operate": operate, "crash": crash}[task["do"]](lake, task)
        except LakehouseError as error:
            say(error=type(error).__name__, message=str(error))


if __name__ == "__main__":
    main()

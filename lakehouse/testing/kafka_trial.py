"""From a broker into a table, exactly once, although the process that runs the topic is killed: ``python -m`` this.

Records are sent to a real broker while ``lakehouse stream run`` reads them; it is killed with -9 as it works, and
started again. Then every record is in the table, once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import lakehouse
from lakehouse.testing.kafka import Broker, kafka_server
from lakehouse.testing.processes import dies_with_parent
from lakehouse.testing.store_programs import Unavailable, kept_folder

UNAVAILABLE = 69
"""The exit status where no broker can be had."""
_PATIENCE_SECONDS = 180.0
_TOPICS = """\
[spark]
spark.jars.ivy = "{ivy}"
spark.driver.memory = "512m"
spark.master = "local[2]"

[topics.orders]
table = "orders"
trigger = "200 ms"
transform = '''
    SELECT o.at, o.id, CAST(key AS STRING) AS key, partition
    FROM (SELECT *, from_json(CAST(value AS STRING), 'at TIMESTAMP, id BIGINT') AS o FROM source)
'''
[topics.orders.source]
format = "kafka"
kafka.bootstrap.servers = "{servers}"
subscribe = "orders"
startingOffsets = "earliest"
maxOffsetsPerTrigger = 100
"""


def trial(home: Path) -> str:
    """Take all steps; a line that says what was seen. Raises `Unavailable`."""
    place = {"LAKEHOUSE_CATALOG": f"sqlite:///{home}/catalog.db", "LAKEHOUSE_WAREHOUSE": str(home / "warehouse")}
    with (
        kafka_server(home / "kafka") as broker,
        lakehouse.connect(place["LAKEHOUSE_CATALOG"], place["LAKEHOUSE_WAREHOUSE"]) as lake,
    ):
        table = lake.create_table("orders", "at TIMESTAMP, id BIGINT, key STRING, partition INT", time="at")
        file = home / "topics.toml"
        file.write_text(_TOPICS.format(servers=broker.servers, ivy=kept_folder("spark-jars")))
        broker.create_topic("orders", partitions=3)
        send(broker, range(200))
        with running(file, place, home / "first.log") as first:
            wait_for(first, home / "first.log", lambda: table.count() or 0)
            sender = threading.Thread(target=send, args=(broker, range(200, 500)))
            sender.start()
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
            sender.join()
        seen = table.count() or 0
        with running(file, place, home / "second.log") as second:
            send(broker, range(500, 600))
            wait_for(second, home / "second.log", lambda: (table.count() or 0) >= 600)
            second.terminate()
            code = second.wait(_PATIENCE_SECONDS)
        found = sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())
        (topic,) = lake.topics()
    if found != list(range(600)):
        raise AssertionError(f"{len(found)} rows of {len(set(found))} records, of 600 that were sent")
    told = topic.progress
    if (code, topic.state, told.error, told.lag, told.lag_unit) != (0, "stopped", None, 0, "records"):
        raise AssertionError(f"the topic ended with {code} as {topic.state}: {told}")
    return f"600 records, each once; {seen} of them were there when its process was killed"


def send(broker: Broker, numbers: range) -> None:
    """Send a record for each number."""
    broker.send("orders", [(f"k{one % 7}", json.dumps({"at": "2026-01-01T00:00:00Z", "id": one})) for one in numbers])


@contextmanager
def running(file: Path, place: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``lakehouse stream run`` as a process, with all that it starts; none of it outlives the block."""
    command = [sys.executable, "-c", "from lakehouse.command import main; main()", "stream", "run", str(file), "--json"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*dies_with_parent(), *command],
            env={**os.environ, **place},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(process: subprocess.Popen[bytes], log: Path, holds: Callable[[], object]) -> None:
    """Wait until something holds, while a process runs. Raises `Unavailable` if it lacks the connector."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while not holds():
        if process.poll() is not None or time.monotonic() > give_up:
            said = log.read_text(errors="replace")
            if "unresolved dependency" in said or "Spark does not start" in said:
                raise Unavailable("Spark's connector to Kafka cannot be had")
            raise AssertionError(f"the topic's process came to {process.poll()}: {said[-3000:]}")
        threading.Event().wait(0.1)


def main() -> int:
    """Take all steps in a temporary folder."""
    try:
        with tempfile.TemporaryDirectory(prefix="lakehouse-kafka-") as home:
            sys.stdout.write(f"{trial(Path(home))}\n")
    except Unavailable as reason:
        sys.stdout.write(f"skipped: {reason}\n")
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())

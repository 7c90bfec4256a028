"""``lakehouse stream run`` as a process: how it ends when Spark does."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import lakehouse
from lakehouse.testing.kafka_trial import running, wait_for

TOPICS = """\
[spark]
spark.master = "local[1]"
spark.driver.memory = "512m"

[topics.ticks]
source = {format = "rate", rowsPerSecond = 10}
transform = "SELECT timestamp AS at, value AS id FROM source"
table = "ticks"
trigger = "100 ms"
"""


def children(process: int) -> list[int]:
    """Processes that a process has started."""
    return [
        int(one)
        for thread in Path(f"/proc/{process}/task").iterdir()
        for one in (thread / "children").read_text().split()
    ]


def test_the_command_ends_with_1_when_spark_has_crashed(tmp_path: Path) -> None:
    place = {
        "LAKEHOUSE_CATALOG": f"sqlite:///{tmp_path}/catalog.db",
        "LAKEHOUSE_WAREHOUSE": str(tmp_path / "warehouse"),
    }
    file, log = tmp_path / "topics.toml", tmp_path / "run.log"
    file.write_text(TOPICS)
    with lakehouse.connect(place["LAKEHOUSE_CATALOG"], place["LAKEHOUSE_WAREHOUSE"]) as lake:
        table = lake.create_table("ticks", "at TIMESTAMP, id BIGINT", time="at")
        with running(file, place, log) as process:
            wait_for(process, log, table.count)
            (spark,) = [one for one in children(process.pid) if "java" in str(Path(f"/proc/{one}/exe").readlink())]
            os.kill(spark, signal.SIGKILL)
            assert process.wait(90) == 1, log.read_text()[-3000:]
        said = json.loads(log.read_text().splitlines()[-1])
        assert said["message"].startswith("Spark has ended"), said
        (topic,) = lake.topics()
        assert topic.state != "running"
        ids = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
        assert sorted(ids) == list(range(len(ids)))

"""A Python worker of Spark is killed between two parts of its file: the task is tried again, and nothing is left."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from botocore.session import Session

import lakehouse
from lakehouse.testing.object_stores import moto_server
from lakehouse.testing.processes import dies_with_parent
from lakehouse.testing.store_faults import Fault, Rule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind

ROWS = 1_000_000
JOB = """
import pickle, sys
import lakehouse
from pyspark.sql import SparkSession
settings, rows = pickle.loads(bytes.fromhex(sys.argv[1]))
session = SparkSession.builder.master("local[1, 2]").config("spark.ui.enabled", "false") \\
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1") \\
    .config("spark.driver.memory", "512m").config("spark.sql.session.timeZone", "UTC").getOrCreate()
with lakehouse.connect(**settings, spark=session) as lake:
    lake.table("events").append(session.read.parquet(rows))
session.stop()
"""


def workers_of(process: int) -> list[int]:
    """Python workers below a process: children of Spark's daemon, which forks them."""
    parents, commands = {}, {}
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                parents[int(one.name)] = int((one / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(one.name)] = (one / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile

    def is_below(one: int) -> bool:
        return one == process or (one in parents and is_below(parents[one]))

    daemons = {one for one, command in commands.items() if b"pyspark.daemon" in command and is_below(one)}
    return [one for one in daemons if parents[one] in daemons]


def test_a_task_that_is_killed_between_parts_is_tried_again_and_leaves_no_upload(
    sqlite_url: str, tmp_path: Path
) -> None:
    ids = np.arange(ROWS)
    payload = np.random.default_rng(7).integers(0, 1 << 62, ROWS)
    day = pa.array(1_704_067_200_000_000 + ids, pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": day, "id": ids, "v": payload}), tmp_path / "rows.parquet")
    with moto_server() as store, StoreProxy(store.port) as proxy:
        options = {**store.through(proxy.port).options, "multipart_bytes": 1}  # parts of 5 MiB, the least of S3
        settings = {"catalog": sqlite_url, "warehouse": store.url, "storage_options": options}
        with lakehouse.connect(**settings, cache_dir=tmp_path / "copies") as lake:
            table = lake.create_table("events", "at TIMESTAMP, id BIGINT, v BIGINT", time="at")
            proxy.forget()
            given = pickle.dumps((settings, str(tmp_path / "rows.parquet"))).hex()
            own = {"LAKEHOUSE_CACHE_DIR": str(tmp_path / "theirs"), "PYSPARK_PYTHON": sys.executable}
            with proxy.following(Rule(Fault.HANG, kinds=[Kind.PUT_PART], first=2, times=1)):
                job = subprocess.Popen(
                    [*dies_with_parent(), sys.executable, "-c", JOB, given],
                    env=os.environ | own,
                    stderr=subprocess.DEVNULL,
                )
                until = time.monotonic() + 300
                while Fault.HANG not in proxy.faults():
                    assert job.poll() is None
                    assert time.monotonic() < until
                    time.sleep(0.01)
                killed = workers_of(job.pid)
                assert killed
                for one in killed:
                    os.kill(one, signal.SIGKILL)
                assert job.wait(300) == 0
            counts = proxy.counts()
            assert (counts[Kind.CREATE_UPLOAD], counts[Kind.COMPLETE_UPLOAD], counts[Kind.ABORT_UPLOAD]) == (2, 1, 1)
            assert counts[Kind.LIST] == 1  # since a task was repeated, the driver looks for what its first attempt left
            proxy.forget()
            lake.collect(grace_seconds=0)
            assert Kind.LIST not in proxy.counts()
            found = table.scan().to_arrow().sort_by("id")
            assert (found["id"].to_numpy() == ids).all()
            assert (found["v"].to_numpy() == payload).all()
            assert [one.path for one in lake.session.warehouse.listed(table.spec.folder)] == [
                one.path for one in table.segments()
            ]
        client = Session().create_client(
            "s3",
            endpoint_url=store.options["aws_endpoint"],
            region_name=store.options["aws_region"],
            aws_access_key_id=store.options["aws_access_key_id"],
            aws_secret_access_key=store.options["aws_secret_access_key"],
        )
        assert client.list_multipart_uploads(Bucket="lake").get("Uploads", []) == []

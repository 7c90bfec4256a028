"""The thread that keeps leases alive: when it ends."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lakehouse

PROGRAM = """
import sys, datetime, lakehouse, pyarrow
lake = lakehouse.connect(f"sqlite:///{sys.argv[1]}/catalog.db", f"{sys.argv[1]}/warehouse")
table = lake.create_table("t", "at TIMESTAMP, value BIGINT", time="at")
table.append(pyarrow.table({"at": [datetime.datetime(2013, 1, 5)], "value": [1]}))
print(table.scan().to_arrow().num_rows)
"""


def test_a_program_that_leaves_its_lake_open_ends_without_a_complaint(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


@pytest.mark.parametrize("is_closed", [True, False])
def test_the_thread_ends_with_its_lake(tmp_path: Path, is_closed: bool) -> None:
    lake = lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse", lease_seconds=0.3)
    before = set(threading.enumerate())
    lake.session.heartbeat.start()
    [thread] = set(threading.enumerate()) - before
    if is_closed:
        lake.close()
    del lake
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()

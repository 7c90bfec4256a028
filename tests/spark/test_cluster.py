"""A cluster whose machines share nothing but the checkout; the command takes all steps, this test the shortest way."""

from __future__ import annotations

import subprocess
import sys

from lakehouse.testing import cluster


def test_an_ingest_survives_the_loss_of_a_worker() -> None:
    # In a process of its own: this one may have a session already, on one machine.
    command = [sys.executable, "-m", cluster.__name__, "lose_worker"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if done.returncode == cluster.UNAVAILABLE:
        assert "org.apache.hadoop:hadoop-aws" in done.stdout
        return
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "lose_worker: 400 rows as they should be\n"

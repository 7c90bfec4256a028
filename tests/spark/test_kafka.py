"""A real broker, a topic that is killed as it works, and every record in the table once."""

import subprocess
import sys

from lakehouse.testing import kafka_trial


def test_records_of_a_broker_are_there_once_after_a_kill() -> None:
    # In a process of its own: it starts sessions with other jars than this one's.
    done = subprocess.run([sys.executable, "-m", kafka_trial.__name__], check=False, capture_output=True, text=True)
    if done.returncode == kafka_trial.UNAVAILABLE:
        assert done.stdout.startswith("skipped: ")
        return
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("600 records, each once")

"""Ctrl-C and SIGTERM while Spark is asked something: what is asked next, such as by a clean-up, gets its own answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHILD = """
import os, signal, sys, threading
from lakehouse.engine.spark.session import start_session
from lakehouse.interrupts import Interrupted, listening

number = int(sys.argv[1])
with listening():
    session = start_session({"spark.master": "local[1]", "lakehouse.test": "kept"})
    assert session.conf.get("lakehouse.test") == "kept"
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    try:
        session._jvm.java.lang.Thread.sleep(60_000)
    except Interrupted:
        none = session.conf.get("lakehouse.none", "-")
        print([session.conf.get("lakehouse.test"), none, session.range(3).count()], flush=True)
        raise
"""


@pytest.mark.parametrize("number", [2, 15], ids=["SIGINT", "SIGTERM"])
def test_what_is_asked_after_an_interrupt_gets_its_own_answer(number):
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(number)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.stdout.splitlines()[-1:] == ["['kept', '-', 3]"], ended.stderr
    assert ended.returncode == 128 + number
    assert ended.stderr.splitlines()[-1] == "lakehouse: interrupted: nothing was written"

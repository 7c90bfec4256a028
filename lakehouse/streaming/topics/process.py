"""The name of a process that runs topics, by which others on its machine can tell whether it is still there."""

from __future__ import annotations

import os
import socket
from pathlib import Path

_STARTED = 19
"""The place of the start time among what the kernel says of a process, after its name."""


def process_name() -> str:
    """The machine, the process's number, and when it began: a number is used again, the three together are not."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"


def is_dead(name: str) -> bool:
    """Whether a process of this machine is gone; False where nobody here can tell.

    >>> is_dead(process_name()), is_dead("another-machine:1:1"), is_dead("not a process")
    (False, False, False)
    """
    host, _, rest = name.rpartition(":")
    host, _, number = host.rpartition(":")
    if host != socket.gethostname() or not number.isdecimal() or not rest.isdecimal():
        return False
    started = _started(int(number))
    return started is not None and started != rest


def _started(number: int) -> str | None:
    """When a process of this machine began, "0" for one that is gone; None where the kernel does not say."""
    if not Path("/proc/self/stat").exists():
        return None
    try:
        told = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return "0"
    state, *rest = told.rpartition(")")[2].split()
    return "0" if state in ("Z", "X") else rest[_STARTED - 1]

"""What servers that tests start have in common: a port, an end with their parent, and waiting until they answer."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import closing

_START_SECONDS = 60.0


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def dies_with_parent(signal: str = "KILL") -> list[str]:
    """A prefix for a command that makes it end with this process, even if that is killed."""
    program = shutil.which("setpriv")  # part of util-linux
    return [] if program is None else [program, "--pdeathsig", signal, "--"]


def wait_until_it_listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a process accepts connections on a loopback port; False if it ended, or takes too long."""
    give_up = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < give_up:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=2).close()
        except OSError:
            pause(process)
        else:
            return process.poll() is None  # a port that was free a moment ago may be another's now
    return False


def pause(process: subprocess.Popen[bytes], seconds: float = 0.05) -> None:
    """Wait a moment for a process that has to be polled; at once if it ends."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return

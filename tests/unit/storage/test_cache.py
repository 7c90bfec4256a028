"""Copies on disk: whole or absent, below a limit, held by whoever reads them, in several processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lakehouse.errors import StorageUnavailable
from lakehouse.storage.cache import Cache

HOLDING = """
import sys
from pathlib import Path
from lakehouse.storage.cache import Cache
cache, holder = Cache(Path(sys.argv[1])), type("Holder", (), {})()
cache.hold(["t/a"], holder)
print("held", flush=True)
sys.stdin.read()
"""
ADDING = """
import os, signal, sys
from pathlib import Path
from lakehouse.storage.cache import Cache
def write(file):
    file.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
Cache(Path(sys.argv[1])).add("t/a", write)
"""


RESTING = """
import sys
from pathlib import Path
from lakehouse.storage.cache import Cache
Cache(Path(sys.argv[1])).linger(["t/a"], 0.1)
print("held", flush=True)
sys.stdin.read()
"""
CLEARING = """
import sys
from pathlib import Path
from lakehouse.storage.cache import Cache
sys.stdin.read()
Cache(Path(sys.argv[1])).clear()
"""


class Holder:
    """What lives as long as a test wants."""


def add(cache: Cache, name: str, size: int = 1000) -> None:
    cache.add(name, lambda file: file.write_bytes(bytes([len(name)]) * size))


def used(cache: Cache, name: str, seconds: int) -> None:
    """As if a copy had last been used then."""
    os.utime(cache.path(name), (seconds, seconds))


def names(cache: Cache) -> set[str]:
    return {one.relative_to(cache.root).as_posix() for one in cache.root.rglob("?") if one.is_file()}


def test_copies_used_longest_ago_go_first_and_those_held_stay(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 3500)
    for place, name in enumerate(("t/a", "t/b", "t/c")):
        add(cache, name)
        used(cache, name, place + 1)
    holder = Holder()
    cache.hold(["t/a"], holder)
    add(cache, "t/d")
    assert names(cache) == {"t/a", "t/c", "t/d"}
    used(cache, "t/c", 2)
    assert cache.has("t/c")  # which uses it
    used(cache, "t/d", 3)
    del holder
    used(cache, "t/a", 1)
    add(cache, "t/e")
    assert names(cache) == {"t/c", "t/d", "t/e"}
    assert cache.bytes == 3000
    cache.clear()
    assert names(cache) == set()
    assert not list((tmp_path / "t").iterdir())


def test_what_an_operation_writes_is_no_copy_until_it_is_published(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 0)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "w").write_bytes(b"rows")
    assert not cache.has("t/w")
    cache.clear()
    assert names(cache) == {"t/w"}
    cache.keep("t/w")
    assert names(cache) == set()


def test_a_file_is_flushed_while_it_is_published_and_a_copy_once_both_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = threading.Event()
    monkeypatch.setattr("lakehouse.storage.cache.sync", lambda _: flushed.set())
    cache = Cache(tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "w").write_bytes(b"rows")
    with pytest.raises(StorageUnavailable), cache.keeping("t/w"):
        raise StorageUnavailable("the store does not answer")
    assert not cache.has("t/w")
    flushed.clear()
    with cache.keeping("t/w"):
        assert flushed.wait(60)
        assert not cache.has("t/w")
    assert cache.has("t/w")


def test_a_file_that_the_disk_does_not_take_is_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr("lakehouse.storage.cache.sync", refuse)
    cache = Cache(tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "w").write_bytes(b"rows")
    with pytest.raises(OSError, match="broken"), cache.keeping("t/w"):
        pass
    assert not cache.has("t/w")


def test_a_copy_has_its_length_and_is_a_plain_file(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    add(cache, "t/a", 10)
    assert (cache.has("t/a", 10), cache.has("t/a", 9), cache.has("t/b", 10)) == (True, False, False)
    cache.path("t/l").symlink_to(cache.path("t/a"))
    assert not cache.has("t/l")


def test_a_copy_that_another_process_reads_stays_until_that_ends_however_it_does(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    add(cache, "t/a")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        cache.clear()
        assert names(cache) == {"t/a"}
        other.send_signal(signal.SIGKILL)
        other.wait()
        cache.clear()
        assert names(cache) == set()


def test_a_process_killed_while_it_makes_a_copy_leaves_none(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", ADDING, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    cache = Cache(tmp_path)
    assert not cache.has("t/a")
    assert cache.bytes == 0
    assert list((tmp_path / ".aside").iterdir()) == []
    add(cache, "t/a", 7)
    assert cache.path("t/a").read_bytes() == bytes([3]) * 7


def test_what_a_process_is_writing_is_not_taken_for_what_a_dead_one_left(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def write(file: Path) -> None:
        file.write_bytes(b"whole")
        cache.shrink()
        subprocess.run([sys.executable, "-c", CLEARING, str(tmp_path)], stdin=subprocess.DEVNULL, check=True)

    cache.add("t/a", write)
    assert cache.path("t/a").read_bytes() == b"whole"


def test_a_process_that_does_nothing_any_more_lets_go_of_what_it_held_for_a_time(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    add(cache, "t/a")
    with subprocess.Popen(
        [sys.executable, "-c", RESTING, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        give_up = time.monotonic() + 60
        while names(cache) and time.monotonic() < give_up:
            with pytest.raises(subprocess.TimeoutExpired):
                other.wait(0.1)
            cache.clear()
        other.kill()
    assert names(cache) == set()


def test_who_waits_for_the_records_keeps_nobody_from_a_copy(tmp_path: Path) -> None:
    """Or the kernel refuses a lock: the other one waits for this process, and this one for the other."""
    cache = Cache(tmp_path)
    add(cache, "t/a")
    holder = Holder()
    with subprocess.Popen([sys.executable, "-c", CLEARING, str(tmp_path)], stdin=subprocess.PIPE) as other:
        assert other.stdin is not None
        with cache.recording():
            other.stdin.close()  # it begins
            give_up = time.monotonic() + 60
            while f" {other.pid} " not in waiting() and time.monotonic() < give_up:
                with pytest.raises(subprocess.TimeoutExpired):
                    other.wait(0.02)
            cache.hold(["t/a"], holder)
    assert other.returncode == 0
    assert names(cache) == {"t/a"}


def waiting() -> str:
    """The lines of locks that somebody waits for."""
    return "\n".join(one for one in Path("/proc/locks").read_text().splitlines() if "->" in one)


def test_copies_in_use_beyond_the_limit_are_not_looked_at_for_each_that_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, holder, looks = Cache(tmp_path, 100_000), Holder(), []
    shrink = Cache.shrink
    monkeypatch.setattr(Cache, "shrink", lambda self, *more: looks.append(1) or shrink(self, *more))
    for number in range(200):
        cache.hold([f"t/{number}"], holder)
        add(cache, f"t/{number}")
    assert len(looks) < 40
    del holder
    monkeypatch.setattr("lakehouse.storage.cache.LOOK_SECONDS", 0.0)
    cache.look_again()
    assert sum(cache.path(one).stat().st_size for one in cache.copies()) <= 100_000
    looks.clear()
    cache.look_again()
    assert looks == []


def test_a_copy_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StorageUnavailable, match="cache_dir"):
        add(Cache(tmp_path / "file"), "t/a")


def test_what_lazy_results_read_stays_for_their_time(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    add(cache, "t/a")
    cache.linger(["t/a"], 3600)
    cache.linger(["t/a"], 3600)
    cache.clear()
    assert names(cache) == {"t/a"}
    cache.glance(["t/b"])
    add(cache, "t/b")
    cache.shrink(0)
    assert names(cache) == {"t/a", "t/b"}
    cache.clear()
    assert names(cache) == {"t/a"}


def test_a_forked_child_holds_nothing_of_its_parents(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    add(cache, "t/a")
    holder = Holder()
    cache.hold(["t/a"], holder)
    child = os.fork()
    if not child:
        cache.clear()
        os._exit(0 if names(cache) == {"t/a"} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    cache.clear()
    assert names(cache) == {"t/a"}


def test_the_last_erasure_is_known_to_all_processes_of_a_machine(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.erasure == 0
    add(cache, "t/a")
    add(cache, "t/b")
    cache.drop_replaced(7, lambda: ["t/b"])
    assert (names(Cache(tmp_path)), Cache(tmp_path).erasure) == ({"t/b"}, 7)

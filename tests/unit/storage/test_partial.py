"""Copies with holes while another reader of the same folder drops them, makes them again, or fetches beside."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.storage.cache import Cache
from lakehouse.storage.objects import Objects
from lakehouse.storage.partial import bring_parts
from lakehouse.storage.warehouse import Committed

ROWS = 400_000
COLUMNS = ("id", "other", "third")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Committed]:
    """A folder with a segment so large that its columns are fetched one by one, uncompressed: a hole would be zeros."""
    folder = tmp_path_factory.mktemp("warehouse")
    random = np.random.default_rng(7)
    columns = {name: pa.array(random.integers(1, 1 << 62, ROWS)) for name in COLUMNS}
    with lakehouse.connect(f"sqlite:///{folder}/c.db", folder / "w") as lake:
        definition = ", ".join(f"{name} BIGINT" for name in COLUMNS)
        table = lake.create_table("wide", definition, properties={"compression": "none"})
        table.append(pa.table(columns))
        (segment,) = table.segments()
    return folder / "w", segment


class Interrupted(Objects):
    """A store before whose answer to some request something happens."""

    before: Callable[[int], None] = staticmethod(lambda _: None)
    requests = 0

    def get_ranges(self, stored: str, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """The bytes, after what happens before."""
        object.__setattr__(self, "requests", self.requests + 1)
        self.before(self.requests)
        return super().get_ranges(stored, ranges)


class Shared(Cache):
    """A cache where something happens whenever its lock has been left."""

    left = 0
    after: Callable[[int], None] = staticmethod(lambda _: None)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """The lock, and what happens after it."""
        with super().recording():
            yield
        self.left += 1
        self.after(self.left)


def interrupted(folder: Path, before: Callable[[int], None]) -> Interrupted:
    objects = Interrupted(folder.as_uri())
    object.__setattr__(objects, "before", before)
    return objects


def require_right(folder: Path, cache: Cache, file: Committed, columns: Sequence[str]) -> None:
    held, whole = (pq.read_table(one / file.path, columns=list(columns)) for one in (cache.root, folder))
    assert held.equals(whole)


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("others", [[], ["other"], [*COLUMNS]], ids=["gone", "other parts", "whole"])
def test_parts_of_a_copy_that_is_dropped_meanwhile_are_fetched_into_the_next(file, tmp_path, nth, others):
    folder, segment = file
    cache, plain = Cache(tmp_path), Objects(folder.as_uri())

    def drop(request: int) -> None:
        if request == nth:
            cache.drop([segment.path])
            if others:
                bring_parts(Cache(tmp_path), plain, segment, others)

    bring_parts(cache, interrupted(folder, drop), segment, ["id"])
    require_right(folder, cache, segment, ["id"])
    assert bring_parts(cache, plain, segment, ["id"])
    bring_parts(cache, plain, segment, COLUMNS)
    require_right(folder, cache, segment, COLUMNS)


@pytest.mark.parametrize("nth", [1, 2])
def test_after_a_copy_that_was_distrusted_comes_a_whole_one_for_all_who_ask_for_other_parts(file, tmp_path, nth):
    folder, segment = file
    cache, plain = Cache(tmp_path), Objects(folder.as_uri())
    bring_parts(cache, plain, segment, ["id"])

    def distrust(request: int) -> None:
        if request == nth:
            cache.distrust(segment.path)

    assert bring_parts(Cache(tmp_path), interrupted(folder, distrust), segment, ["other"]) is (
        None if nth == 1 else False
    )
    if nth == 2:  # it asked once, for what was missing
        cache.distrust(segment.path)
    assert bring_parts(Cache(tmp_path), plain, segment, ["other"]) is None
    assert cache.copies() == []
    cache.add(segment.path, lambda aside: aside.write_bytes((folder / segment.path).read_bytes()))
    assert bring_parts(Cache(tmp_path), plain, segment, ["other"])
    cache.clear()
    assert bring_parts(Cache(tmp_path), plain, segment, ["other"]) is False


@pytest.mark.parametrize("nth", range(1, 5))
def test_no_copy_is_called_whole_that_another_one_has_just_begun(file, tmp_path, nth):
    folder, segment = file
    cache, plain = Shared(tmp_path), Objects(folder.as_uri())

    def begin_again(left: int) -> None:
        if left == nth:
            other = Cache(tmp_path)
            other.drop([segment.path])
            bring_parts(other, plain, segment, ["other"])

    cache.after = begin_again
    bring_parts(cache, plain, segment, COLUMNS)
    again = Cache(tmp_path)
    if not again.has(segment.path, segment.bytes):
        bring_parts(again, plain, segment, COLUMNS)
    assert again.path(segment.path).read_bytes() == (folder / segment.path).read_bytes()


def test_what_two_readers_fetch_at_once_is_there_for_both(file, tmp_path):
    folder, segment = file
    plain = interrupted(folder, lambda _: None)

    def beside(request: int) -> None:
        if request == 2:
            bring_parts(Cache(tmp_path), plain, segment, ["other"])

    bring_parts(Cache(tmp_path), interrupted(folder, beside), segment, ["id"])
    asked = plain.requests
    assert bring_parts(Cache(tmp_path), plain, segment, ["id", "other"])
    assert plain.requests == asked
    require_right(folder, Cache(tmp_path), segment, ["id", "other"])
    bring_parts(Cache(tmp_path), interrupted(folder, lambda _: None), segment, ["third"])
    assert Cache(tmp_path).has(segment.path, segment.bytes)
    assert not [one for one in (tmp_path / ".parts").rglob("*") if one.is_file()]


def test_parts_in_use_go_after_those_that_nobody_has_asked_for(file, tmp_path):
    folder, segment = file
    cache, plain = Cache(tmp_path), Objects(folder.as_uri())
    bring_parts(cache, plain, segment, ["id"])
    cache.add("t/a", lambda aside: aside.write_bytes(bytes(1 << 20)))
    os.utime(cache.path(segment.path), (1, 1))
    os.utime(cache.path("t/a"), (2, 2))
    bring_parts(cache, plain, segment, ["id"])
    cache.shrink(cache.bytes - 1)
    assert cache.copies() == [segment.path]


def test_nothing_is_left_of_a_copy_that_has_gone(file, tmp_path):
    folder, segment = file
    cache = Cache(tmp_path)
    bring_parts(cache, Objects(folder.as_uri()), segment, ["id"])
    cache.clear()
    assert {one.name for one in tmp_path.rglob("*")} <= {".held", ".aside", ".parts", Path(segment.path).parts[0]}

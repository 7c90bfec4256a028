"""Whatever bit of a segment's file flips: no read gives other rows silently, and nothing is made of it."""

from __future__ import annotations

import os

import pytest

from lakehouse.errors import SegmentUnreadable
from lakehouse.testing.campaign import flips
from lakehouse.testing.campaign.flips import Flipped, Found


def test_no_flip_is_silent_or_taken_over():
    found = flips.run(24, seed=20130105)
    assert found.wrong == []
    assert found.refused > 24 * 5


@pytest.fixture
def flipped(tmp_path):
    import random  # noqa: PLC0415 - seeded

    made = Flipped.make(tmp_path, "zstd", random.Random(5))
    yield made
    made.lake.close()


@pytest.mark.parametrize("harm", ["cut", "longer", "zeros", "empty", "text", "other"])
def test_a_file_that_is_another_is_named_in_every_way(flipped, harm):
    one, other = flipped.table.segments()[:2]
    path = flipped.lake.warehouse / one.path
    content = path.read_bytes()
    path.write_bytes(
        {
            "cut": content[:-9],
            "longer": content + b"\x00",
            "zeros": bytes(len(content)),
            "empty": b"",
            "text": b"x" * len(content),
            "other": (flipped.lake.warehouse / other.path).read_bytes(),
        }[harm]
    )
    found = flipped.look(one.path)
    assert found.wrong == []
    assert found == Found(refused=8)


def test_what_content_remembers_is_forgotten_when_a_file_is_written_to(flipped):
    flipped.table.set_properties({"verify": "content"})
    segment = flipped.table.segments()[0]
    path = flipped.lake.warehouse / segment.path
    assert flipped.table.scan().to_arrow().num_rows == len(flipped.rows)
    before = path.stat()
    with flips.changed(path, {50: 1}):
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(SegmentUnreadable, match="not what was written"):
            flipped.table.scan().to_arrow()
    assert flipped.table.scan().to_arrow().num_rows == len(flipped.rows)


def test_best_effort_leaves_out_what_a_read_is_not_sure_of(flipped):
    segment = flipped.table.segments()[0]
    with flips.changed(flipped.lake.warehouse / segment.path, {50: 1}):
        scan = flipped.table.scan(best_effort=True)
        with pytest.warns(match="were left out"):
            rows = scan.to_arrow().num_rows
        assert scan.missing == [segment.path]
        assert rows < len(flipped.rows)

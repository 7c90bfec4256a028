"""A checkpoint whose own files are damaged, or lost with what only they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.core.stream import BOUND, OFFSETS, Batch
from lakehouse.errors import CheckpointMismatch
from lakehouse.schema import define_table
from lakehouse.streaming.checkpoint import Checkpoint
from lakehouse.streaming.places import LocalPlace

SPEC = define_table("t", "id BIGINT", folder="f" * 32)


@pytest.mark.parametrize("name", ["metadata", "lakehouse.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\x00"])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    kept = Checkpoint(LocalPlace(tmp_path))
    with pytest.raises(CheckpointMismatch, match=rf'delete the checkpoint and start with resume="table".*file={name}'):
        assert (kept.query_id, kept.owner) is None


def test_a_lost_list_of_read_files_is_not_offered_to_be_made_again(tmp_path: Path) -> None:
    kept = Checkpoint(LocalPlace(tmp_path))
    last = Batch("s", 3, 9, {OFFSETS: "v1", BOUND: "the list of the files that its source has read"})
    for resume in (False, True):
        with pytest.raises(CheckpointMismatch, match="cannot go on without its checkpoint") as found:
            kept.agree(SPEC, "s", last, resume=resume)
        assert "resume=" not in str(found.value)
    with pytest.raises(CheckpointMismatch, match='resume="table" makes it again'):
        kept.agree(SPEC, "s", Batch("s", 3, 9, {OFFSETS: "v1"}), resume=False)


def test_files_that_another_run_of_the_stream_has_read_otherwise_are_not_taken_for_read(tmp_path: Path) -> None:
    """A copy of a checkpoint has gone on: of what its last batch read this one has no list, or that of other files."""
    kept = Checkpoint(LocalPlace(tmp_path))
    kept.claim(SPEC, "s")
    last = Batch("s", 3, 9, {OFFSETS: _offsets(3, "theirs"), BOUND: "the list of the files that its source has read"})
    kept.place.write("offsets/2", _offsets(2))
    kept.place.write("sources/0/2", "v1")
    with pytest.raises(CheckpointMismatch, match="other files"):
        kept.agree(SPEC, "s", last, resume=False)
    assert kept.offsets(3) is None
    kept.place.write("offsets/3", _offsets(3, "ours"))
    kept.place.write("sources/0/3", "v1")
    with pytest.raises(CheckpointMismatch, match="other files"):
        kept.agree(SPEC, "s", last, resume=False)
    kept.place.delete("offsets/3")  # a power cut took it back, and the list is there
    kept.agree(SPEC, "s", last, resume=False)
    assert kept.offsets(3) == last.offsets
    kept.agree(SPEC, "s", last, resume=False)


def _offsets(number: int, by: str = "") -> str:
    return f'v1\n{{"by":"{by}"}}\n{{"logOffset":{number}}}'

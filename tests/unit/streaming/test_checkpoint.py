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

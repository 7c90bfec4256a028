"""Streams: what becomes of their rows, and what the commit of a batch says, in its properties, of where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Mode = Literal["append", "upsert", "replace", "apply_changes"]
MODES: tuple[Mode, ...] = get_args(Mode)
TAKEN_BY: Mapping[str, tuple[str, ...]] = {
    "append": (),
    "upsert": ("keys", "sequence_by"),
    "replace": ("keys",),
    "apply_changes": ("keys", "sequence_by", "deletes", "scd"),
}
"""What each mode takes besides the rows."""
OFFSETS = "stream.offsets"
"""How far the batch read its sources, as Spark's checkpoint says it."""
CHECKPOINT = "stream.checkpoint"
"""Where the stream had its checkpoint."""
LOGS = "stream.logs"
"""Small files that the sources keep in the checkpoint, as JSON: text by name."""
BOUND = "stream.bound"
"""What the stream keeps in its checkpoint and nowhere else; absent where the table has all that it needs."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The newest batch of a stream on a table: its number, and the version that committed it."""

    stream: str
    number: int
    version: int
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def offsets(self) -> str | None:
        """How far it read its sources; None where it was not written by `lakehouse.streaming.write`."""
        return self.properties.get(OFFSETS)

"""What a check of a lake finds."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from lakehouse.core.checksum import Checksum
from lakehouse.core.listing import Listing


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that the catalog names, as it was committed."""

    path: str
    bytes: int
    checksum: Checksum


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    ``kind``: *missing*, *short*, *long* or *unreadable* of a file; *content* of one whose bytes are not those that were
    written; *unknown* of a file that the catalog does not explain; *shared* of a file that two segments have; *key
    frame*, *delta*, *bin*, *log* or *view* of the catalog; *order* of an entry's place in the write order, or of row
    ids that were given out twice; *rows* of a file whose rows are not those that were committed;
    *statistics* and *summary* of what the catalog says of rows, and is not so; *maintenance* of a commit that changed
    rows and may not.
    """

    kind: str
    subject: str
    problem: str
    is_repaired: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Checked:
    """How much was looked at, and what was found.

    ``forgotten`` counts what nobody can reach and the next expiry takes out: segments, tombstones, views and rows of
    the log. An expiry that was cut short leaves such, and so does a tag that goes. They are in nobody's way.
    ``unsummed`` files were written before there were checksums: only their sizes are known.
    """

    segments: int
    bytes: int
    deltas: int
    key_frames: int
    findings: Listing[Finding] = field(default_factory=Listing)
    forgotten: int = 0
    unsummed: int = 0

    @property
    def is_sound(self) -> bool:
        """Whether everything is as it should be, now that what was asked for is repaired."""
        return all(one.is_repaired for one in self.findings)

    def to_arrow(self) -> pa.Table:
        """A row for every finding."""
        return self.findings.to_arrow()

    def __repr__(self) -> str:
        looked = f"{self.segments} segments, {self.deltas} deltas and {self.key_frames} key frames"
        left = f"; {self.forgotten} entries are left for the next expiry" if self.forgotten else ""
        return f"<{looked} checked: {len(self.findings)} findings{left}>"

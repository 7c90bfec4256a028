"""A stream's checkpoint, and how it is made to agree with the table: the table is the truth, the checkpoint a cache.

Spark keeps in it the stream's id (``metadata``), what each batch reads (``offsets/N``, written before the batch runs)
and which batches are done (``commits/N``). A commit in the table says the same of its batch, in one transaction with
its rows, so whatever of a checkpoint is lost, older or newer than the table is put right from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from lakehouse.core.spec import TableSpec
from lakehouse.core.stream import BOUND, LOGS, Batch
from lakehouse.errors import CheckpointMismatch
from lakehouse.streaming.places import Place

_OWNER = "lakehouse.json"
"""Says whose checkpoint it is."""
_DONE = 'v1\n{"nextBatchWatermarkMs":0}'
_MOST_LOGS = 16_384
"""Letters of the sources' own files that are kept with a commit."""
_LOGGED = re.compile(r'"logOffset"\s*:\s*(-?\d*)')
_REMEDY = (
    'resume="table" makes it again from the table, and the stream goes on after that batch; to read the sources from '
    "their beginning, take another stream_id and another checkpoint"
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of one stream, at a place."""

    place: Place

    # Looking

    @property
    def query_id(self) -> str | None:
        """The id of Spark's query; None before it was first started."""
        held = self._json("metadata")
        return None if held is None else str(held["id"])

    @property
    def owner(self) -> Mapping[str, str]:
        """Which stream of which table it belongs to; empty if nobody said."""
        return self._json(_OWNER) or {}

    def _json(self, name: str) -> dict[str, Any] | None:
        """What a file of the checkpoint says. Raises `CheckpointMismatch` if it is damaged."""
        try:
            text = self.place.read(name)
            found = None if text is None else json.loads(text)
            if found is None or (isinstance(found, dict) and (name != "metadata" or "id" in found)):
                return found
            cause: object = "no such object"
        except ValueError as error:
            cause = error
        raise CheckpointMismatch(
            "a file of the checkpoint is damaged; restore it from a copy, or delete the checkpoint and start with "
            'resume="table"',
            checkpoint=self.place.address,
            file=name,
            cause=cause,
        )

    def numbers(self, folder: str) -> list[int]:
        """Numbers of the batches that have a file in ``offsets`` or ``commits``, in order."""
        return sorted(int(name) for name in self.place.names(folder) if name.isdecimal())

    def offsets(self, batch: int) -> str | None:
        """What a batch reads."""
        return self.place.read(f"offsets/{batch}")

    def bound(self, offsets: str) -> str | None:
        """What the stream keeps in its checkpoint alone, so that a lost one cannot be made again; None if nothing."""
        if self.place.names("state"):
            return "the state of its aggregations, joins or deduplication"
        if _LOGGED.search(offsets):
            return "the list of the files that its source has read"
        if self.logs() is None:
            return "large logs of its sources"
        return None

    def logs(self) -> dict[str, str] | None:
        """Files that sources keep for themselves, text by name; None if they are too large to be kept elsewhere."""
        found: dict[str, str] = {}
        for source in self.place.names("sources"):
            for name in self.place.names(f"sources/{source}"):
                if name.startswith("."):
                    continue
                path = f"sources/{source}/{name}"
                found[path] = self.place.read(path) or ""
                if sum(map(len, found.values())) > _MOST_LOGS:
                    return None
        return found

    # Putting right

    def claim(self, spec: TableSpec, stream: str) -> None:
        """Say whose checkpoint it is, and give a new one its id."""
        owner = {"table": spec.folder, "stream": stream}
        if self.owner != owner:
            self.place.write(_OWNER, json.dumps(owner))
        if self.query_id is None:
            self.place.write("metadata", json.dumps({"id": stream if _is_uuid(stream) else str(uuid4())}))

    def agree(self, spec: TableSpec, stream: str, last: Batch | None, *, resume: bool) -> None:
        """Make it agree with the last batch that the table has of the stream.

        Raises `CheckpointMismatch` if it is that of another stream or table, or lost without ``resume``.
        """
        owner, planned, done = self.owner, self.numbers("offsets"), self.numbers("commits")
        facts = {"checkpoint": self.place.address, "stream": stream, "table": spec.name}
        if owner and owner != {"table": spec.folder, "stream": stream}:
            raise CheckpointMismatch("the checkpoint is that of another stream or table; give each its own", **facts)
        if last is None:
            if done or (planned and not owner):
                raise CheckpointMismatch(
                    "the checkpoint is another sink's, or the table has lost the stream's batches; take a new one",
                    done=done[-1] if done else None,
                    **facts,
                )
        elif last.offsets is None:
            raise CheckpointMismatch(
                "the table has batches of this stream_id without their offsets, from another kind of writer; take "
                "another stream_id",
                **facts,
            )
        elif not planned or planned[-1] < last.number - 1:
            if not resume and BOUND not in last.properties:
                raise CheckpointMismatch(
                    f"the checkpoint is lost, and would read again what the table has; {_REMEDY}",
                    batch=last.number,
                    **facts,
                )
            self._make_again(last, facts)
        else:
            self._require_logs(last, facts)
            self._put_right(last, planned, done)

    def _require_logs(self, last: Batch, facts: Mapping[str, str]) -> None:
        """Raise `CheckpointMismatch` if the lists of files that sources keep are not those of the last batch.

        As where a copy of the checkpoint has gone on: files that are listed here and were not read would be lost.
        """
        assert last.offsets is not None
        planned = self.offsets(last.number)
        if planned == last.offsets:
            return
        sources = [self.place.names(f"sources/{one}") for one in self.place.names("sources")]
        listed = {name.removesuffix(".compact") for names in sources for name in names}
        numbers = [one for one in _LOGGED.findall(last.offsets) if one.isdecimal()]
        if numbers and (planned is not None or not listed.issuperset(numbers)):
            raise CheckpointMismatch(
                "the checkpoint lists other files than the table's last batch has read, or none for it, as where "
                "another run of the stream has gone on; start the stream with that one's checkpoint, or take another "
                "stream_id and read the files from their beginning into an empty table",
                batch=last.number,
                version=last.version,
                **facts,
            )

    def _put_right(self, last: Batch, planned: list[int], done: list[int]) -> None:
        """Let Spark read the last batch as the table has it, and nothing after it as done."""
        assert last.offsets is not None
        is_as_read = self.offsets(last.number) == last.offsets
        for number in reversed(done):
            if number > last.number or (number == last.number and not is_as_read):
                self.place.delete(f"commits/{number}")
        for number in reversed(planned):
            if number > last.number + 1 or (number > last.number and not is_as_read):
                self.place.delete(f"offsets/{number}")
        if not is_as_read:
            self.place.write(f"offsets/{last.number}", last.offsets)

    def _make_again(self, last: Batch, facts: Mapping[str, str]) -> None:
        """Make a lost checkpoint from what the table says. Its last file is the one that makes it count."""
        assert last.offsets is not None
        bound = last.properties.get(BOUND)
        if bound is not None:
            raise CheckpointMismatch(
                f"the stream cannot go on without its checkpoint, which holds {bound}; restore it from a copy, or take "
                "another stream_id and read the sources from their beginning into an empty table",
                **facts,
            )
        for name in ("offsets", "commits", "sources", "state"):
            self.place.delete(name)
        for name, text in json.loads(last.properties.get(LOGS, "{}")).items():
            self.place.write(name, text)
        self.place.write(f"commits/{last.number}", _DONE)
        if last.number:  # Spark asks for the batch before, of which nothing counts once the last one is done
            self.place.write(f"offsets/{last.number - 1}", last.offsets)
        self.place.write(f"offsets/{last.number}", last.offsets)


def _is_uuid(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) is not None

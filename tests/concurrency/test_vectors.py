"""Facts of another system's test suite (``vectors.json``; each entry names its source), run through this library.

``lock`` in mode ``replace`` is the beginning of a replace, where its number is drawn; commits are commits; ``check`` of
what is visible compares data. Allocations, append locks and pending checks have no counterpart.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from lakehouse.testing.rows import SCHEMA, arrow

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
GRAINS = {"quarter": "month"}


def time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def segment_rows(segments: list[dict]):
    """Each segment as two rows, its first and last instant, whose client says whose data it is."""
    return arrow(
        [
            (instant, segment["data"], 0)
            for segment in segments
            for instant in (time(segment["start"]), time(segment["end"]) - timedelta(microseconds=1))
        ]
    )


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{one['id']}-{one['name']}" for one in VECTORS])
@pytest.mark.parametrize("ragged", ["true", "false"], ids=["ragged", "split"])
def test_a_schedule_of_another_systems_suite_ends_as_it_says(lake, vector, ragged):
    grain = (vector["chunk_grain"] or ["day"])[0]
    table = lake.create_table("t", SCHEMA, time="time", grain=GRAINS.get(grain, grain), properties={"ragged": ragged})
    replaces: dict[str, object] = {}
    checks = 0
    for step in vector["ops"]:
        match step:
            case {"op": "lock", "mode": "replace", "txn": name, "interval": interval}:
                replaces[name] = table.begin_replace((interval["start"], interval["end"]), wait_seconds=0)
            case {"op": "commit_replace", "txn": name, "segments": segments}:
                replaces[name].write(segment_rows(segments))
                replaces[name].commit()
            case {"op": "commit_append", "segments": segments}:
                table.append(segment_rows(segments))
            case {"op": "check", "what": "visible", "interval": interval, "data": expected}:
                found = table.scan(interval=(interval["start"], interval["end"]), columns=["client"]).to_arrow()
                assert sorted(set(found.column("client").to_pylist())) == sorted(expected), step
                checks += 1
    assert checks

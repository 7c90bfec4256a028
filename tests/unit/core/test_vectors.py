"""Facts from another system's test suite (``vectors.json``; each entry names its source).

They say which data a look-up sees after overlays and removals. What that system finds by partition numbers, which
segments do not have here, has no counterpart.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakehouse.core import Segment, Timeline, Tombstone, timeline
from lakehouse.core.interval import to_utc

VECTORS = Path(__file__).with_name("vectors.json")
ENTRIES: list[dict[str, Any]] = json.loads(VECTORS.read_text())

Slices = list[tuple[Any, Any, set[str]]]


def replaces(entry: dict[str, Any]) -> tuple[list[Segment], list[Tombstone]]:
    """Each live addition as a replace: an interval tombstone and a segment, both at its version."""
    segments: list[Segment] = []
    tombstones: list[Tombstone] = []
    for add in sorted(entry["adds"], key=lambda one: one["seq"]):
        if add["id"] in entry["live"]:
            ordinal = add.get("mapped_version", add["version"])
            segments.append(Segment(id=add["id"], start=add["start"], end=add["end"], ordinal=ordinal))
            tombstones.append(Tombstone(id=add["id"], start=add["start"], end=add["end"], ordinal=ordinal))
    return segments, tombstones


def joined(slices: Slices) -> Slices:
    """Equal neighbours as one."""
    found: Slices = []
    for start, end, ids in slices:
        if found and found[-1][1] == start and found[-1][2] == ids:
            found[-1] = (found[-1][0], end, ids)
        else:
            found.append((start, end, ids))
    return found


def seen(found: Timeline) -> Slices:
    return joined([(one.start, one.end, {each.id for each in one.segments}) for one in found.slices])


def looked_up(entry: dict[str, Any]) -> Timeline:
    lookup = entry.get("lookup")
    return timeline(*replaces(entry), within=None if lookup is None else (lookup["start"], lookup["end"]))


def of(key: str) -> Any:
    """The entries that say something about ``key``, each under its name."""
    found = [entry for entry in ENTRIES if key in entry]
    return pytest.mark.parametrize("entry", found, ids=[entry["name"] for entry in found])


def test_every_entry_says_what_must_be_seen() -> None:
    known = {"expected", "expected_visible_ids", "fully_overshadowed"}
    assert len([entry for entry in ENTRIES if known & entry.keys()]) == 28
    assert [entry["name"] for entry in ENTRIES if not (known | {"find_segment"}) & entry.keys()] == []


@of("expected")
def test_a_lookup_sees_the_expected_slices(entry: dict[str, Any]) -> None:
    expected = [(to_utc(one["start"]), to_utc(one["end"]), set(one["ids"])) for one in entry["expected"]]
    assert seen(looked_up(entry)) == joined(expected)


@of("expected_visible_ids")
def test_a_lookup_sees_the_expected_data(entry: dict[str, Any]) -> None:
    assert {one for _, _, ids in seen(looked_up(entry)) for one in ids} == set(entry["expected_visible_ids"])


@of("fully_overshadowed")
def test_the_expected_data_is_overshadowed(entry: dict[str, Any]) -> None:
    assert {one.id for one in looked_up(entry).overshadowed} == set(entry["fully_overshadowed"])

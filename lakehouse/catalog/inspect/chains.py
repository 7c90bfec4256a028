"""Inspects chains of deltas and key frames: what states of bins are built from."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, case, func, or_, select

from lakehouse.catalog.store.models import bin, delta, key_frame  # noqa: A004 - the word of the scheme
from lakehouse.core.bins import bin_interval
from lakehouse.core.key_frame import ChainLength, ChainLink, KeyFrame
from lakehouse.core.listing import Listing
from lakehouse.core.spec import TableSpec


def read_chain_lengths(
    connection: Connection, spec: TableSpec, ranges: Sequence[tuple[int, int]], limit: int
) -> Listing[ChainLength]:
    """Lengths of the chains of some bins, most recently changed first."""
    wanted = or_(*(bin.c.bin.between(first, last) for first, last in ranges))
    newest = select(bin).where(bin.c.table_id == spec.id, wanted).order_by(bin.c.version.desc(), bin.c.bin.desc())
    return Listing(
        ChainLength(bin_interval(spec.bin_grain, row.bin), row.version, row.frame_version, row.frame_entries, row.chain)
        for row in connection.execute(newest.limit(limit))
    )


def read_chunk_history(
    connection: Connection, spec: TableSpec, ranges: Sequence[tuple[int, int]], limit: int
) -> Listing[ChainLink]:
    """Every key frame and delta of some bins, oldest first; of each bin the newest ``limit``.

    If a version has both, the delta comes first. Cost: the deltas of these bins.
    """
    wanted = or_(*(delta.c.bin.between(first, last) for first, last in ranges))
    counted = select(
        delta.c.bin, delta.c.version, *(func.sum(case((delta.c.action == one, 1), else_=0)) for one in (1, -1))
    )
    changes = counted.where(delta.c.table_id == spec.id, wanted).group_by(delta.c.bin, delta.c.version)
    by_bin: dict[int, list[ChainLink]] = {}
    for one, version, added, dropped in connection.execute(changes.order_by(delta.c.bin, delta.c.version)):
        before = by_bin.setdefault(one, [])
        entries = (before[-1].entries if before else 0) + int(added) - int(dropped)
        before.append(ChainLink(bin_interval(spec.bin_grain, one), version, False, int(added), int(dropped), entries))
    wanted = or_(*(key_frame.c.bin.between(first, last) for first, last in ranges))
    frames = select(key_frame.c.bin, key_frame.c.version, key_frame.c.entries, func.length(key_frame.c.page))
    for one, version, entries, size in connection.execute(frames.where(key_frame.c.table_id == spec.id, wanted)):
        span = bin_interval(spec.bin_grain, one)
        by_bin.setdefault(one, []).append(ChainLink(span, version, True, 0, 0, entries, size))
    return Listing(
        link
        for one in sorted(by_bin)
        for link in sorted(by_bin[one], key=lambda link: (link.version, link.is_key_frame))[-limit:]
    )


def read_chain(
    connection: Connection, spec: TableSpec, ranges: Sequence[tuple[int, int]], version: int
) -> Listing[ChainLink]:
    """What the states of some bins at a version are built from: the key frame of each and the deltas after it."""
    wanted = or_(*(bin.c.bin.between(first, last) for first, last in ranges))
    bins = select(bin.c.bin).where(bin.c.table_id == spec.id, wanted).order_by(bin.c.bin)
    links: list[ChainLink] = []
    for one in connection.execute(bins).scalars().all():
        span = bin_interval(spec.bin_grain, one)
        of_frame = (key_frame.c.table_id == spec.id, key_frame.c.bin == one, key_frame.c.version <= version)
        newest = select(key_frame.c.version, key_frame.c.entries, func.length(key_frame.c.page)).where(*of_frame)
        frame = connection.execute(newest.order_by(key_frame.c.version.desc()).limit(1)).first()
        entries = 0 if frame is None else frame.entries
        if frame is not None:
            links.append(ChainLink(span, frame.version, True, 0, 0, entries, frame[2]))
        counted = select(
            delta.c.version, *(func.sum(case((delta.c.action == action, 1), else_=0)) for action in (1, -1))
        )
        after = (delta.c.version > (-1 if frame is None else frame.version), delta.c.version <= version)
        changes = counted.where(delta.c.table_id == spec.id, delta.c.bin == one, *after)
        for number, added, dropped in connection.execute(changes.group_by(delta.c.version).order_by(delta.c.version)):
            entries += int(added) - int(dropped)
            links.append(ChainLink(span, number, False, int(added), int(dropped), entries))
    return Listing(links)


def read_key_frames(connection: Connection, spec: TableSpec) -> Listing[KeyFrame]:
    """Every key frame of a table, by time and version."""
    query = (
        select(key_frame.c.bin, key_frame.c.version, key_frame.c.entries, func.length(key_frame.c.page))
        .where(key_frame.c.table_id == spec.id)
        .order_by(key_frame.c.bin, key_frame.c.version)
    )
    return Listing(
        KeyFrame(bin_interval(spec.bin_grain, one), version, entries, size)
        for one, version, entries, size in connection.execute(query)
    )

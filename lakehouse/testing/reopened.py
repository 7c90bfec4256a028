"""Checks of a lake that is opened after a writer died."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, select, text

from lakehouse.catalog.store.models import bin, delta, key_frame, segment  # noqa: A004 - the word of the scheme
from lakehouse.catalog.versions.horizon import read_horizon
from lakehouse.core.invariants import row_ids_are_apart
from lakehouse.core.version import ADD
from lakehouse.storage.verify import verified
from lakehouse.testing.expected import Expected, Wrong
from lakehouse.testing.history import FAR, KEPT, UNVERSIONED, Step, World
from lakehouse.testing.rows import Row, arrow, visible

RECOVERY_SECONDS = 5.0
_GONE_SECONDS = 5.0
_SCANNED = 8
"""Versions whose rows are read at the end of a lake; of every version, what is live is compared."""
_BEYOND = 9
"""Last digit of the values of rows in `FAR`: no step of a history changes them, so that no segment spans both."""
_MAINTAINING = frozenset({"compact", "clean", "tend"})
_LOCKING = frozenset({"replace", "replace a part", "replace keys", "drop", "transaction", "abort"})


def _require(holds: bool, message: str, **facts: Any) -> None:
    if not holds:
        raise Wrong(message, **facts)


def check(expected: Expected, lake: Any, step: Step | None) -> bool:
    """Check what a death left, and record whether the step in flight was committed. Raises `Wrong`."""
    _wait_for_the_dead(lake)
    _forget(expected, lake)
    landed = _landed(expected, lake, step)
    for name, rows in zip(expected.world.names, expected.world.rows, strict=True):
        table = lake.table(name)
        _require_rows(table, rows, step)
        _require_found(table, rows, expected.chance)
        verified(lake.session.warehouse, table.segments())
    known = list(expected.versions)
    place, version = expected.chance.randrange(2), expected.chance.choice(known)
    _check_entries(expected, lake, {*known[-2:], version})
    _require_rows(lake.table(expected.world.names[place]), expected.versions[version].rows[place], step, as_of=version)
    return landed


def _wait_for_the_dead(lake: Any) -> None:
    """A server may still be processing a dead client's last statements; wait until it has finished."""
    if lake.catalog.url.startswith("sqlite"):
        return
    others = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    deadline = time.monotonic() + _GONE_SECONDS
    while lake.catalog._read(lambda connection: connection.execute(others).scalar_one()):
        _require(time.monotonic() < deadline, "the server has not noticed a death")
        time.sleep(0.002)


def _forget(expected: Expected, lake: Any) -> None:
    """Record which versions expired: none of the newest ones, and none with a tag."""
    horizon = lake.catalog._read(read_horizon)
    _require(horizon >= expected.horizon, "the horizon went back", horizon=horizon, was=expected.horizon)
    expected.horizon = horizon
    kept = {*lake.tags().values(), *list(expected.versions)[-min(KEPT) :]}
    gone = {version for version in expected.versions if version < horizon and version not in lake.tags().values()}
    _require(not gone & kept, "a version that was to be kept is forgotten", versions=gone & kept)
    expected.forgotten |= gone
    expected.versions = {version: world for version, world in expected.versions.items() if version not in gone}


def _landed(expected: Expected, lake: Any, step: Step | None) -> bool:
    """Whether the step in flight was committed; the expected state then includes it."""
    known = list(expected.versions)
    log = [one.version for one in reversed(lake.log())]
    lost = set(known) - set(log)
    _require(not lost, "acknowledged versions are lost", lost=lost, log=log[-5:], known=known[-5:])
    new = [version for version in log if version > known[-1]]
    _require(
        not set(log[log.index(known[0]) :]) - {*known, *new, *expected.forgotten}, "versions that nobody made", log=log
    )
    _require(len(new) <= 1 and lake.head == log[-1], "versions that nobody made", new=new, head=lake.head)
    if step is None or (step.kind in UNVERSIONED and step.kind != "tag"):
        _require(not new, "a version that nobody made", new=new, step=step)
        _require_names(expected.world, lake, step)
        return False
    landed = step.other in lake.tags() if step.kind == "tag" else bool(new)
    if landed:
        _require(step.kind not in UNVERSIONED or not new, "a version that nobody made", new=new, step=step)
        expected.goes_on(step)
        expected.versions.update(dict.fromkeys(new, expected.world))
    _require_names(expected.world, lake, step)
    return landed


def _require_names(world: World, lake: Any, step: Step | None) -> None:
    found = lake.tables()
    _require(found == world.tables(), "other tables than expected", found=found, expected=world.tables(), step=step)
    _require(lake.tags() == dict(world.tags), "other tags than expected", found=lake.tags(), expected=world.tags)


def _require_rows(table: Any, expected: Iterable[Row], step: Step | None, as_of: int | None = None) -> None:
    found, wanted = visible(table, as_of=as_of), list(expected)
    if found != wanted:
        lost = [one for one in wanted if one not in found]
        extra = [one for one in found if one not in wanted]
        raise Wrong("rows differ", table=table.name, as_of=as_of, lost=lost, extra=extra, step=step)


def _require_found(table: Any, rows: Sequence[Row], chance: random.Random) -> None:
    """Check that look-ups by indexed columns return the right rows."""
    values = [row[2] for row in chance.sample(list(rows), min(3, len(rows)))]
    wanted = ", ".join(map(str, [*values, -1]))
    found = sorted(table.scan(where=f"value IN ({wanted})").to_arrow().column("value").to_pylist())
    _require(found == sorted(values), "a look-up misses rows", table=table.name, wanted=wanted, found=found)


def _check_entries(expected: Expected, lake: Any, versions: Iterable[int]) -> None:
    """Check that what is live at a version is exactly what was live when it was new."""
    for place, name in enumerate(expected.world.names):
        spec = lake.table(name).spec
        for version in versions:
            segments, tombstones = lake.catalog.live(spec, version)
            held = [_whole(one) for one in sorted(segments, key=lambda one: one.id)]
            live = repr((held, tombstones))
            before = expected.entries.setdefault((place, version), live)
            _require(live == before, "a version changed", table=name, version=version, was=before, now=live)


def _whole(segment: Any) -> dict[str, Any]:
    """Every field of a segment, including those that its repr leaves out."""
    return {one.name: getattr(segment, one.name) for one in fields(segment)}


def recover(expected: Expected, lake: Any, step: Step | None, died: float, *, landed: bool) -> None:
    """Write like a user who knows nothing of the death. Raises `Wrong` if that waits too long or is not visible."""
    if step is not None and step.txn is not None:
        _repeat(expected, lake, step, landed=landed)
    place = 0 if step is None else step.place
    expected.made += 1
    name = expected.world.names[place]
    table = lake.table(name)
    rows = arrow([(FAR.start, "a", 10 * expected.made + _BEYOND)])
    written = Step("append", place, name, rows=((FAR.start, "a", 10 * expected.made + _BEYOND),))
    if step is not None and step.kind in _MAINTAINING:
        for one in expected.world.names:  # the next victim may want any chunk that the dead one holds
            with lake.table(one).begin_compaction(wait_seconds=RECOVERY_SECONDS) as compaction:
                compaction.abort()
    with table.begin_compaction(FAR) as compaction:
        compaction.abort()
    expected.stepped(written, table.append(rows).version)
    beside = Step("replace", place, name, rows=written.rows, interval=(FAR.start, FAR.end))
    expected.stepped(beside, table.replace(rows, FAR, wait_seconds=0).version)
    again = _again(step, name)
    if again is not None:
        waits = (
            max(0.0, RECOVERY_SECONDS - (time.monotonic() - died))
            if step is not None and step.kind in _LOCKING
            else 0.0
        )
        target = lake.table(again.name)
        expected.stepped(again, target.replace(None, again.interval, keys=again.keys, wait_seconds=waits).version)
    changed = again.place if again is not None else place
    _require_rows(lake.table(expected.world.names[changed]), expected.world.rows[changed], step)
    _require(
        time.monotonic() - died < RECOVERY_SECONDS, "recovery took long", seconds=time.monotonic() - died, step=step
    )


def _again(step: Step | None, name: str) -> Step | None:
    """Replace chunks that the dead process may still hold."""
    if step is None or step.interval is None:
        return None
    place = 1 if step.kind == "transaction" else step.place
    return Step("replace", place, step.other if place != step.place else name, interval=step.interval, keys=step.keys)


def _repeat(expected: Expected, lake: Any, step: Step, *, landed: bool) -> None:
    """Append again with the same mark, and check that exactly one of both is committed."""
    version = lake.table(step.name).append(arrow(step.rows), txn=step.txn).version
    if landed:
        _require(version == max(expected.versions), "a marked append was repeated", version=version, step=step)
    else:
        expected.stepped(step, version)
    _require_rows(lake.table(step.name), expected.world.rows[step.place], step)


def check_all(expected: Expected, lake: Any) -> None:
    """Check every version, then again without key frames, and what the catalog's tables say of each other."""
    _require_frames_are_replay(lake)
    findings = lake.check().findings
    _require(not findings, "the catalog and the files do not agree", findings=findings)
    for _ in ("as they are", "forgotten"):
        _check_entries(expected, lake, expected.versions)
        for version in expected.chance.sample(list(expected.versions), min(_SCANNED, len(expected.versions))):
            for name, rows in zip(expected.world.names, expected.versions[version].rows, strict=True):
                _require_rows(lake.table(name), rows, None, as_of=version)
                verified(lake.session.warehouse, lake.table(name).segments(as_of=version))
        forget_key_frames(lake)
    lake.catalog._read(_check_catalog)


def forget_key_frames(lake: Any) -> None:
    """Drop every key frame, and this process's cache of them."""

    def work(connection: Connection) -> None:
        connection.execute(key_frame.delete())
        connection.execute(bin.update().values(frame_version=None, frame_entries=0))

    lake.catalog._database.run(work)
    lake.catalog.forget_remembered()


def _require_frames_are_replay(lake: Any) -> None:
    """A key frame has as many entries as a replay of its bin's deltas leaves."""

    def question(connection: Connection) -> None:
        deltas = connection.execute(select(delta).order_by(delta.c.version)).all()
        for frame in connection.execute(select(key_frame)):
            live = _replayed(deltas, frame)
            _require(
                len(live) == frame.entries,
                "a key frame is not what its deltas give",
                table=frame.table_id,
                bin=frame.bin,
                version=frame.version,
                entries=frame.entries,
                replayed=len(live),
            )

    lake.catalog._read(question)


def _replayed(deltas: Iterable[Any], frame: Any) -> set[int]:
    live: set[int] = set()
    for one in deltas:
        if (one.table_id, one.bin) == (frame.table_id, frame.bin) and one.version <= frame.version:
            (live.add if one.action == ADD else live.discard)(one.entry)
    return live


def _check_catalog(connection: Connection) -> None:
    """Check that no row id is given out twice, and that SQLite's own check passes."""
    taken: dict[int, list[tuple[int, int]]] = {}
    for one in connection.execute(select(segment).where(segment.c.has_row_ids.is_(False))).mappings():
        taken.setdefault(one["table_id"], []).append((one["first_row_id"], one["rows"]))
    for table, spans in taken.items():
        _require(row_ids_are_apart(*zip(*spans, strict=True)), "a row id was given out twice", table=table)
    if connection.dialect.name == "sqlite":
        _require(connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok", "SQLite's file is damaged")
        _require(connection.execute(text("PRAGMA foreign_key_check")).first() is None, "a reference leads nowhere")

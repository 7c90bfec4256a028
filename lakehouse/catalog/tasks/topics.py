"""What processes say of the topics that they run: a row a topic, and who may run it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, delete, or_, select, update

from lakehouse.catalog.store.columns import inserting
from lakehouse.catalog.store.topic_model import topic
from lakehouse.core.interval import from_us
from lakehouse.core.listing import Listing
from lakehouse.core.topic import LEASE_SECONDS, Progress, Topic, TopicState
from lakehouse.errors import TopicNotFound

Reports = Mapping[str, tuple[TopicState, Progress]]


def read_topics(connection: Connection, now_us: int) -> Listing[Topic]:
    """Every topic, by name."""
    return Listing(_topic_of(row, now_us) for row in connection.execute(select(topic).order_by(topic.c.name)))


def _topic_of(row: Any, now_us: int) -> Topic:
    try:
        progress = Progress.from_json(row.report)
    except (TypeError, ValueError, json.JSONDecodeError) as error:
        raise ValueError(f"a report that no release wrote, of topic {row.name!r}: {error}") from error
    silent = max(0.0, (now_us - row.reported_us) / 1_000_000)
    return Topic(row.name, TopicState(row.state), row.process, from_us(row.reported_us), silent, progress)


def claim(
    connection: Connection, name: str, process: str, progress: Progress, *, dead: Collection[str], now_us: int
) -> str | None:
    """Make a process the one that runs a topic; None, or the process that runs it.

    That of a process in ``dead``, or one that has not reported for `LEASE_SECONDS`, is taken.
    """
    free = or_(
        topic.c.process.in_([process, *dead]),
        topic.c.state.not_in([one.value for one in TopicState if one.is_live]),
        topic.c.reported_us <= now_us - int(LEASE_SECONDS * 1_000_000),
    )
    _put(connection, name, process, TopicState.RUNNING, progress, now_us, free)
    holder: str = connection.execute(select(topic.c.process).where(topic.c.name == name)).scalar_one()
    return None if holder == process else holder


def report(connection: Connection, process: str, reports: Reports, now_us: int) -> set[str]:
    """Store what a process says of its topics; the names of those that another process has taken."""
    lost = set()
    for name, (state, progress) in sorted(reports.items()):
        values = {"state": state.value, "reported_us": now_us, "report": progress.to_json()}
        mine = update(topic).where(topic.c.name == name, topic.c.process == process)
        if connection.execute(mine.values(**values)).rowcount == 1:
            continue
        if connection.execute(select(topic.c.name).where(topic.c.name == name)).first() is not None:
            lost.add(name)
        else:  # somebody has forgotten it while it runs
            _put(connection, name, process, state, progress, now_us)
    return lost


def _put(
    connection: Connection,
    name: str,
    process: str,
    state: TopicState,
    progress: Progress,
    now_us: int,
    free: Any = None,
) -> None:
    """Write a topic's row, over another one only if that is ``free``, in one statement."""
    insert: Any = inserting(topic, connection.dialect.name)
    values = {"process": process, "state": state.value, "reported_us": now_us, "report": progress.to_json()}
    put = insert.values(name=name, **values)
    put = put.on_conflict_do_update(index_elements=[topic.c.name], set_=values, where=free)
    connection.execute(put)


def forget(connection: Connection, name: str) -> None:
    """Remove a topic. Raises `TopicNotFound`."""
    if connection.execute(delete(topic).where(topic.c.name == name)).rowcount == 0:
        known = connection.execute(select(topic.c.name).order_by(topic.c.name).limit(20)).scalars().all()
        raise TopicNotFound("no process has run such a topic; use one that `lakehouse stream list` shows",
                            topic=name, known=", ".join(known))  # fmt: skip

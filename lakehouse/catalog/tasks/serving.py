"""Groups of query nodes: a row a group, which flips update by compare-and-set, and a row a node, with its lease."""

from __future__ import annotations

import json
import secrets
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, select, update

from lakehouse.catalog.store.columns import inserting
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import lake, lake_table
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.catalog.store.serving_model import serving_group, serving_node
from lakehouse.catalog.versions.horizon import keep_horizon
from lakehouse.core.interval import from_us
from lakehouse.core.listing import Listing
from lakehouse.core.serving.group import Glance, Group, Node, NodeReport, NodeStage
from lakehouse.core.serving.handoff import lacking
from lakehouse.errors import AlreadyExists

_LEAVING_SECONDS = 1.0
"""How long a node that ends waits for a catalog that another program holds; its lease ends the rest."""
_FORGOTTEN_US = 3_600_000_000
"""How long after its lease a node is still listed."""


def _glance(_: str) -> Any:
    erasure = select(func.coalesce(func.max(lake_table.c.erased_version), 0)).scalar_subquery()
    head = select(lake.c.head).scalar_subquery()
    group = serving_group.c
    return select(erasure, head, group.live, group.target, group.flips).where(group.name == bindparam("name"))


_GLANCE = Prepared(_glance)


class ServingGroups:
    """What query nodes read and write of a catalog. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def glance(self, name: str) -> Glance | None:
        """A group's row, the head and the newest erasure at one moment; None without such a group. One statement."""

        def look(connection: Connection) -> Glance | None:
            row = _GLANCE.run(connection, {"name": name}).fetchone()
            return None if row is None else Glance(*row)

        return self._database.read(look)

    def group(self, name: str) -> Group | None:
        """A group with its nodes; None if there is none of the name."""
        return next(iter(self._read(name)), None)

    def groups(self) -> Listing[Group]:
        """Every group, by name."""
        return self._read(None)

    def _read(self, name: str | None) -> Listing[Group]:
        return self._database.read(lambda connection: _groups(connection, name, self._database.now_us(connection)))

    def join(self, node: Node, least: int, *, lease_seconds: float, replicas: int | None = None) -> Group:
        """Make a node one of its group, which is made if there is none; ``replicas``: None as it is, 0 for all nodes.

        Where nobody serves, the group's live version becomes the head: there is nothing to hand over. Raises
        `AlreadyExists` while the lease of another node of the name lasts.
        """
        name = node.group

        def work(connection: Connection) -> Group:
            keep_horizon(connection)
            now_us = self._database.now_us(connection)
            new = inserting(serving_group, connection.dialect.name)
            made = {"lake": secrets.token_hex(8), "live": 0, "flips": 0, "flipped_us": now_us}
            connection.execute(new.values(name=name, **made).on_conflict_do_nothing())
            mine = update(serving_group).where(serving_group.c.name == name)
            connection.execute(mine.values(replicas=serving_group.c.replicas if replicas is None else replicas or None))
            old = serving_node.c.lease_until_us < now_us - _FORGOTTEN_US
            connection.execute(delete(serving_node).where(old))
            (group,) = _groups(connection, name, now_us)
            if not any(one.state.counts for one in group.nodes if one.id != node.id):
                head = select(lake.c.head).scalar_subquery()
                values = {"live": head, "target": None, "flips": group.flips + 1, "flipped_us": now_us}
                connection.execute(mine.where(serving_group.c.live < head).values(**values))
            _put(connection, node, least, now_us, lease_seconds)
            return _groups(connection, name, now_us)[0]

        return self._database.run(work)

    def report(self, node: Node, least: int, *, lease_seconds: float) -> None:
        """Store what a node says of itself, and renew its lease; versions from ``least`` on are kept for it.

        Raises `AlreadyExists` if another node has taken its name since its lease ended.
        """

        def work(connection: Connection) -> None:
            keep_horizon(connection)  # an expiry considers the lease either alive or ended, and so does this
            _put(connection, node, least, self._database.now_us(connection), lease_seconds)

        self._database.run(work)

    def leave(self, node_id: str, run: str = "") -> None:
        """Remove a node, for which nothing waits from now on; not another one that has taken its name since."""

        def work(connection: Connection) -> None:
            held = _held(connection, node_id)
            if held is not None and NodeReport.from_json(held.report).run == run:
                connection.execute(delete(serving_node).where(serving_node.c.id == node_id))

        self._database.run(work)

    def aim(self, name: str, flips: int, target: int | None) -> bool:
        """Make the head, of all tables at one moment, a group's target, if it still has the target that is named.

        False if another node was first, or there is nothing newer.
        """

        def work(connection: Connection) -> bool:
            head = select(lake.c.head).scalar_subquery()
            same = serving_group.c.target.is_(None) if target is None else serving_group.c.target == target
            mine = update(serving_group).where(
                serving_group.c.name == name, serving_group.c.flips == flips, same, serving_group.c.live < head
            )
            return connection.execute(mine.values(target=head)).rowcount == 1

        return self._database.run(work)

    def flip(self, name: str, flips: int, target: int) -> bool:
        """Make a group's target its live version, if all nodes that count have loaded it; whether this call did."""

        def work(connection: Connection) -> bool:
            now_us = self._database.now_us(connection)
            mine = update(serving_group).where(
                serving_group.c.name == name, serving_group.c.flips == flips, serving_group.c.target == target
            )
            values = {"live": target, "target": None, "flips": flips + 1, "flipped_us": now_us}
            nodes = [one.state for group in _groups(connection, name, now_us) for one in group.nodes]
            if lacking(target, nodes):
                return False
            return connection.execute(mine.values(**values)).rowcount == 1

        return self._database.run(work)


def _held(connection: Connection, node_id: str) -> Any:
    """A node's row, which nobody else changes until the transaction ends; None without any."""
    return connection.execute(select(serving_node).where(serving_node.c.id == node_id).with_for_update()).one_or_none()


def _put(connection: Connection, node: Node, least: int, now_us: int, lease_seconds: float) -> None:
    values = {
        "group_name": node.group,
        "url": node.url,
        "stage": node.stage.value,
        "live": node.live,
        "least": least,
        "lease_until_us": now_us + int(lease_seconds * 1_000_000),
        "report": node.report.to_json(),
    }
    held = _held(connection, node.id)
    if held is None:
        new = inserting(serving_node, connection.dialect.name).values(id=node.id, **values).on_conflict_do_nothing()
        if connection.execute(new).rowcount == 1:
            return
        held = _held(connection, node.id)  # another one of the name was inserted in between
    if held is not None and held.lease_until_us >= now_us and NodeReport.from_json(held.report).run != node.report.run:
        raise AlreadyExists(
            "a query node of this name serves already; choose another --name, or stop that one first",
            node=node.id,
            group=held.group_name,
            url=held.url,
            lease_seconds=(held.lease_until_us - now_us) / 1_000_000,
        )
    connection.execute(update(serving_node).where(serving_node.c.id == node.id).values(**values))


def _groups(connection: Connection, name: str | None, now_us: int) -> Listing[Group]:
    wanted, members = select(serving_group), select(serving_node)
    if name is not None:
        wanted = wanted.where(serving_group.c.name == name)
        members = members.where(serving_node.c.group_name == name)
    nodes: dict[str, list[Node]] = {}
    for row in connection.execute(members.order_by(serving_node.c.id)):
        nodes.setdefault(row.group_name, []).append(_node(row, now_us))
    return Listing(
        Group(
            row.name,
            row.lake,
            row.live,
            row.target,
            row.flips,
            row.replicas,
            from_us(row.flipped_us),
            Listing(nodes.get(row.name, ())),
        )
        for row in connection.execute(wanted.order_by(serving_group.c.name))
    )


def _node(row: Any, now_us: int) -> Node:
    try:
        report = NodeReport.from_json(row.report)
    except (TypeError, ValueError, json.JSONDecodeError) as error:
        raise ValueError(f"a report that no release wrote, of node {row.id!r}: {error}") from error
    left = (row.lease_until_us - now_us) / 1_000_000
    return Node(row.id, row.group_name, row.url, NodeStage(row.stage), row.live, left, report)


def oldest(connection: Connection, now_us: int) -> int | None:
    """The least version that nodes whose leases last answer at, load or have yet to let go of."""
    leased = serving_node.c.lease_until_us >= now_us
    served = select(serving_node.c.group_name).where(leased)
    found: list[int | None] = [
        connection.execute(select(func.min(serving_node.c.least)).where(leased)).scalar(),
        connection.execute(select(func.min(serving_group.c.live)).where(serving_group.c.name.in_(served))).scalar(),
    ]
    return min((one for one in found if one is not None), default=None)

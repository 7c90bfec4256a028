"""Preregistered operations: a batch in one transaction, for the next appends of a process.

An append must be registered before its first byte, which costs a transaction. A process that appends often registers
several at once, and twice as many each time that a batch is used up while fresh, which amortizes the cost; one that
appends rarely registers one. Unused ones are given back when the lake is closed, and expire with their lease if the
process dies, like any operation.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from lakehouse.catalog.locks import operations
from lakehouse.catalog.store.clock import steady_seconds
from lakehouse.catalog.store.database import Database
from lakehouse.core.operation import RESERVED, Begun, Kind
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import LakehouseError, coded
from lakehouse.forks import watch_forks

logger = logging.getLogger(__name__)

MOST = 32
"""The most operations of one batch."""


@dataclass(slots=True)
class _Block:
    spec: TableSpec
    size: int
    stale_at: float
    ready: list[Begun] = field(default_factory=list)


class PreregisteredAppends:
    """The preregistered operations of this process, by table. Thread-safe; a forked child starts with none."""

    def __init__(self, database: Database, lease_seconds: float) -> None:
        self._database = database
        self._lease_seconds = lease_seconds
        self._blocks: dict[TableId, _Block] = {}
        self._guard = threading.Lock()
        watch_forks(self)

    def take(self, spec: TableSpec) -> Begun:
        """A preregistered append with at least two thirds of its lease left.

        Its id was drawn while the table had the definition ``spec``, so that definitions follow the order of ids.
        """
        with self._guard:
            block, now = self._blocks.get(spec.id), steady_seconds()
            is_fresh = block is not None and now < block.stale_at and block.spec == spec
            if block is None or not is_fresh or not block.ready:
                size = min(2 * block.size, MOST) if block is not None and is_fresh else 1
                unused = block.ready if block is not None else []
                block = self._blocks[spec.id] = _Block(spec, size, now + self._lease_seconds / 3)
                block.ready = self.register(spec, RESERVED, size, instead=unused)
            return block.ready.pop(0)

    def close(self) -> None:
        """Give unused ones back; if the catalog does not answer, their leases end them."""
        with self._guard:
            left = [one for block in self._blocks.values() for one in block.ready]
            self._blocks.clear()
        try:
            if left:
                self._database.run(lambda connection: operations.give_back(connection, left), wait_seconds=0)
        except LakehouseError as error:
            logger.warning(
                "%d preregistered operations end with their leases, since they could not now: %s",
                len(left),
                coded(error),
            )

    def register(
        self, spec: TableSpec, kind: str = Kind.APPEND, size: int = 1, *, instead: Sequence[Begun] = ()
    ) -> list[Begun]:
        """Register appends that draw no number, replacing unused ones."""
        ids = [operations.new_id() for _ in range(size)]
        lease_us = int(self._lease_seconds * 1_000_000)

        def work(connection: Connection) -> list[Any]:
            if instead:
                operations.give_back(connection, instead)
            return []

        def last(connection: Connection, cursors: list[Any]) -> None:
            for one in ids:
                made = operations.register(connection, spec, kind, operation_id=one, lease_us=lease_us)
                cursors.append(made)

        def settled(connection: Connection) -> list[Any] | None:
            return operations.find_registered(connection, ids) or None

        cursors = self._database.run(work, last=last, settled=settled)
        return [operations.registered(one, spec) for one in cursors]

    def after_fork(self) -> None:
        """Drop everything; it belongs to the process that registered it."""
        self._guard = threading.Lock()
        self._blocks.clear()

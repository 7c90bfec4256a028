"""A node's part in its group: it joins, follows the live version, loads, flips, and renews its lease."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from lakehouse.catalog.tasks.serving import ServingGroups
from lakehouse.core.interval import to_us
from lakehouse.core.serving.group import Glance, Group, Node, NodeReport, NodeStage
from lakehouse.core.serving.handoff import Aim, Flip, Follow, Load, Step, Unload, next_step
from lakehouse.errors import (
    AlreadyExists,
    CatalogUnavailable,
    LakehouseError,
    NodeUnavailable,
    VersionNotFound,
    coded,
)
from lakehouse.faults import reach
from lakehouse.serving.holding import Placement
from lakehouse.serving.versions import Versions

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.05
"""How often a node looks at its group while versions change, and half as often while nothing does."""
_AGAIN_SECONDS = 2.0
"""After how long a version that could not be loaded is tried again."""
_NAME_SECONDS = 0.1
"""How often a node looks whether another one of its name, whose lease lasts, still renews it."""
_PLACE_SECONDS = 60.0
"""How often time makes a node look whether load rules ask it to hold other segments."""


@dataclass(frozen=True, slots=True)
class Membership:
    """What a node calls itself, and how it is one of its group. ``replicas``: see `ServingGroups.join`."""

    id: str
    group: str
    url: str
    lease_seconds: float = 3.0
    replicas: int | None = None


class Member:
    """A member of a group, at work in a thread of its own. `leave` ends that."""

    def __init__(
        self,
        own: Membership,
        groups: ServingGroups,
        versions: Versions,
        *,
        filled: Callable[[NodeReport], NodeReport],
        notice: Callable[[Glance], None],
    ) -> None:
        self._own = own
        self._run = secrets.token_hex(8)
        self._groups = groups
        self._versions = versions
        self._filled = filled
        self._notice = notice
        self._stage = NodeStage.JOINING
        self._failed: dict[int, tuple[str, float]] = {}
        self._progress = (0, 0)
        self._place: Placement | None = None
        self._placed_at = 0.0
        self._loader = ThreadPoolExecutor(1, "lakehouse-load")
        self._loading: tuple[int, Future[None]] | None = None
        self._reporting = threading.Lock()
        self._reported: tuple[float, object] = (0.0, None)
        self._stop = threading.Event()
        self._soon = threading.Event()
        self.trouble = ""
        """Why its last look at the group failed; empty if it did not."""
        self.group = self._join()
        self._thread = threading.Thread(target=self._work, name="lakehouse-member", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def _join(self) -> Group:
        """Become one of the group, at its live version, which cannot expire from then on."""
        while True:
            group = self._joined()
            reach("handoff.joined")
            with suppress(VersionNotFound):  # it flipped in between, and the old one expired
                self._versions.follow(group.live)
                return group

    def _joined(self) -> Group:
        """Its group. A node of its name that was killed is followed once its lease has ended.

        Raises `AlreadyExists` if the other one renews it.
        """
        own, before = self._own, float("inf")
        while True:
            try:
                return self._groups.join(
                    self.node(), self._versions.least, lease_seconds=own.lease_seconds, replicas=own.replicas
                )
            except AlreadyExists as error:
                left = error.facts["lease_seconds"]
                if left > before or self._stop.is_set():
                    raise
                before = left
            self._stop.wait(_NAME_SECONDS)

    def look(self) -> Glance:
        """What the catalog says of the group now. Raises `CatalogUnavailable`."""
        seen = self._groups.glance(self._own.group)
        if seen is None:
            raise CatalogUnavailable("the group of this node is not in the catalog any more", group=self._own.group)
        return seen

    @property
    def is_at_work(self) -> bool:
        """Whether it renews its lease and takes steps; False only for a bug, or after `leave`."""
        return self._thread.is_alive()

    @property
    def stage(self) -> NodeStage:
        """How far it has come."""
        return self._stage

    def node(self) -> Node:
        """The node as it is."""
        own, versions = self._own, self._versions
        cache = versions.warehouse.cache
        there, everything = self._progress
        report = NodeReport(
            loaded=tuple(sorted(versions.loaded)),
            used=tuple(sorted(versions.used)),
            failed={version: cause for version, (cause, _) in list(self._failed.items())},
            loading_bytes=there,
            loading_of=everything,
            held_files=len(versions.held),
            held_bytes=versions.held_bytes,
            limit_bytes=None if cache is None else cache.limit_bytes,
            run=self._run,
        )
        return Node(own.id, own.group, own.url, self._stage, versions.live, own.lease_seconds, self._filled(report))

    # The work of its thread

    def _work(self) -> None:
        while not self._stop.is_set():
            is_busy = False
            try:
                is_busy = self._tick()
                self.trouble = ""
            except Exception as error:  # noqa: BLE001 - a full disk has many faces, and the node goes on after it
                self.trouble = coded(error)
                logger.warning("node %s: %s", self._own.id, self.trouble)
            self._soon.wait(_TICK_SECONDS if is_busy else 2 * _TICK_SECONDS)
            self._soon.clear()

    def _tick(self) -> bool:
        """One look at the group, and the steps that follow; whether a handoff goes on."""
        while not self._stop.is_set():
            reach("handoff.look")
            seen = self.look()
            self._notice(seen)
            group = self._groups.group(self._own.group)
            if group is None or all(one.report.run != self._run for one in group.nodes):
                self.group = self._join()
                return True
            self.group = group
            mine = self.node().state
            step = next_step(group.state, mine, [one.state for one in group.nodes], seen.head)
            if not self._take(step, group):
                break
        self._load_again(self.group)
        self._versions.tidy([self.group.live, self.group.target, self._loading_now()])
        self.say()
        return self.group.target is not None or self.group.live < seen.head

    def _take(self, step: Step, group: Group) -> bool:
        """Take a step; whether there may be another one at once."""
        match step:
            case Follow(version):
                self._versions.follow(version)
            case Aim():
                is_first = self._groups.aim(group.name, group.flips, group.target)
                reach("handoff.aimed")
                return is_first
            case Flip(version):
                self.say()  # else the flip would wait for what this node has loaded just now
                reach("handoff.flip")
                if not self._groups.flip(group.name, group.flips, version):
                    return False
                reach("handoff.flipped")
                self._versions.follow(version)
            case Load(version):
                self._begin_load(version, group)
                return False
            case Unload(versions):
                self._versions.unload(versions)
                reach("handoff.unloaded")
                for version in versions:
                    self._failed.pop(version, None)
            case _:
                return False
        self.say(now=True)
        return True

    def say(self, *, now: bool = False) -> None:
        """Report what has changed, at once or when a third of the lease is over."""
        with self._reporting:
            if self._stage is NodeStage.LEAVING:
                return
            node = self.node()
            key = (node.stage, node.live, node.report.loaded, node.report.used, tuple(node.report.failed))
            at, before = self._reported
            if now or key != before or time.monotonic() - at > self._own.lease_seconds / 3:
                self._groups.report(node, self._versions.least, lease_seconds=self._own.lease_seconds)
                self._reported = (time.monotonic(), key)

    # Loading

    def _loading_now(self) -> int | None:
        return None if self._loading is None or self._loading[1].done() else self._loading[0]

    def _placement(self, group: Group, now_us: int = 0) -> Placement:
        nodes = {one.id for one in group.nodes if one.is_leased and one.stage is not NodeStage.LEAVING}
        return Placement(self._own.id, frozenset(nodes | {self._own.id}), group.replicas, now_us)

    def _begin_load(self, version: int, group: Group) -> None:
        """Load a version beside what else is done."""
        if self._loading_now() is None and not self._stop.is_set():
            placement = self._placement(group, to_us(self._versions.session.catalog.now()))
            self._loading = version, self._loader.submit(self._load, version, placement)

    def _load(self, version: int, placement: Placement) -> None:
        try:
            if self._versions.hold(version, placement, self._go_on):
                reach("handoff.loaded")
                self._loaded(version, placement)
        except LakehouseError as error:
            self._fail(version, str(error))
        except Exception as error:  # noqa: BLE001 - shown as the cause, and tried again
            self._fail(version, coded(error))
        finally:
            self._progress = (0, 0)
            self._soon.set()

    def _go_on(self, there: int, everything: int) -> None:
        self._progress = (there, everything)
        reach("handoff.loading")
        if self._stop.is_set():
            raise NodeUnavailable("the node is leaving")

    def _loaded(self, version: int, placement: Placement) -> None:
        self._failed.pop(version, None)
        self._place, self._placed_at = placement, time.monotonic()
        if self._stage is NodeStage.JOINING and version >= self._versions.live:
            self._stage = NodeStage.SERVING
            self._versions.sweep()

    def _fail(self, version: int, cause: str) -> None:
        logger.warning("node %s could not load version %d: %s", self._own.id, version, cause)
        self._failed[version] = (cause[:500], time.monotonic())

    def _load_again(self, group: Group) -> None:
        """Load again what failed, and the live version where time, nodes or an erasure ask for other segments."""
        now = time.monotonic()
        for version, (_, at) in list(self._failed.items()):
            if version not in (group.live, group.target):
                self._failed.pop(version)
            elif now - at > _AGAIN_SECONDS:
                self._begin_load(version, group)  # its cause is shown until it is there
                return
        if self._versions.live in self._versions.loaded and self._has_moved(group, now):
            self._begin_load(self._versions.live, group)

    def _has_moved(self, group: Group, now: float) -> bool:
        if self._place is None or now - self._placed_at > _PLACE_SECONDS:
            return True
        before = self._place
        return before.replicas != group.replicas or (group.replicas is not None and before != self._placement(group))

    def place_anew(self) -> None:
        """Hold again what an erasure has rewritten."""
        self._place = None
        self._soon.set()

    # The end

    def leave(self) -> None:
        """Stop working, and let no flip wait for this node."""
        self._stop.set()
        self._soon.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._loader.shutdown(wait=True, cancel_futures=True)
        with self._reporting:
            self._stage = NodeStage.LEAVING
            with suppress(LakehouseError):  # its lease ends by itself
                self._groups.leave(self._own.id, self._run)

    def status(self) -> tuple[Node, Group]:
        """The node as it is, and its group as it was seen last."""
        return self.node(), self.group

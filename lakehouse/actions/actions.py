"""Changes to a lake through the console: each action is proposed, confirmed, checked by role, and signed.

No page changes a lake by itself. It requests a proposal, which says in a sentence what will happen, and returns it with
the proposal's word as confirmation. Both steps check the role.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lakehouse.actions.roles import NEEDS, Action, Role, check_may, read_role
from lakehouse.arguments import read_text
from lakehouse.errors import InvalidArgument, LakehouseError, WriteConflict
from lakehouse.lake import Lake
from lakehouse.schema.names import check_table_name

LOG = logging.getLogger("lakehouse.actions")
"""Logs a line of JSON for each action, done or refused, including those that make no version."""
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Proposal:
    """A requested action: nothing has happened yet.

    ``sentence`` says what will happen, ``word`` confirms it. An action that ``is_final`` cannot be undone: have the
    word typed.
    """

    action: Action
    sentence: str
    word: str
    is_final: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seen_version: int | None = None
    """The table's version that the person saw; None if it does not matter."""


class Actions:
    """The actions of one person on a lake.

    Examples
    --------
    >>> import tempfile, lakehouse
    >>> folder = tempfile.mkdtemp()
    >>> lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse")
    >>> _ = lake.create_table("events", "at TIMESTAMP", time="at")
    >>> actions = Actions(lake, role=Role.MAINTAINER, by="ada@example.org")
    >>> proposal = actions.tag("before-spring", 1)
    >>> proposal.sentence
    'Name version 1 "before-spring".'
    >>> actions.carry_out(proposal, proposal.word)
    >>> lake.tags()
    {'before-spring': 1}
    >>> Actions(lake, role=Role.READER, by="bob@example.org").tag("mine", 1)
    Traceback (most recent call last):
    lakehouse.errors.Forbidden: this needs a greater role; ...
    >>> lake.close()
    """

    def __init__(self, lake: Lake, *, role: Role | str, by: str) -> None:
        if not by or len(by) > _LONGEST_NAME:
            raise InvalidArgument("say who acts, in at most 200 characters", length=len(by))
        self._lake = lake
        self.role = read_role(role)
        self.by = read_text(by, "who acts")

    def may(self, action: Action) -> bool:
        """Whether the role allows an action."""
        return self.role.includes(NEEDS[action])

    # Proposals

    def tag(self, name: str, version: int) -> Proposal:
        """Name a version."""
        return self._proposed(
            Action.TAG, f'Name version {version} "{name}".', "tag", arguments={"name": name, "version": version}
        )

    def untag(self, name: str) -> Proposal:
        """Remove a tag: its version may then expire."""
        sentence = f'Remove the tag "{name}". Its version may then expire.'
        return self._proposed(Action.UNTAG, sentence, name, is_final=True, arguments={"name": name})

    def restore(self, table: str, version: int, *, message: str | None = None) -> Proposal:
        """Restore a table to a version, as a new version."""
        seen = self._lake.table(table).version
        return self._proposed(
            Action.RESTORE,
            f"Make {table} what it was at version {version}, by a new version. History stays: version {seen} can be "
            "restored in the same way.",
            table,
            arguments={"table": table, "version": version, "message": message},
            seen_version=seen,
        )

    def save_query(self, name: str, query: str) -> Proposal:
        """Keep a query in the lake under a name, as a view. Raises `InvalidName`."""
        sentence = f"Keep this query as the view {check_table_name(name)}, which everybody can then query by that name."
        arguments = {"name": name, "query": query}
        return self._proposed(Action.SAVE_QUERY, f"{sentence} DROP VIEW takes it away.", name, arguments=arguments)

    def release(self, operation: str) -> Proposal:
        """End any running operation."""
        return self._proposed(
            Action.RELEASE,
            f"End operation {operation} and give back its locks. What it has written is lost; it has to run again.",
            operation[-6:],
            is_final=True,
            arguments={"operation_id": operation},
        )

    def maintain(self, table: str | None = None) -> Proposal:
        """Run a round of maintenance now, for one table or all."""
        what = "every table" if table is None else table
        sentence = f"Plan what {what} needs and do it now, as the tables' policies say. No row changes."
        return self._proposed(Action.MAINTAIN, sentence, "maintain", arguments={"table": table})

    def run_task(self, task: int, cause: str = "") -> Proposal:
        """Run a waiting task now."""
        sentence = f"Run task {task} now: {cause or 'what it proposes'}. No row changes."
        return self._proposed(Action.RUN_TASK, sentence, "run", arguments={"task_id": task})

    def cancel_task(self, task: int) -> Proposal:
        """Cancel a waiting or running task."""
        sentence = f"Cancel task {task}. If it runs it commits nothing more; the next plan may propose it again."
        return self._proposed(Action.CANCEL_TASK, sentence, "cancel", arguments={"task_id": task})

    def expire(self, *, older_than: str | None = None, keep_last: int | None = None) -> Proposal:
        """Expire old versions."""
        found = self._lake.expire(older_than=older_than, keep_last=keep_last, dry_run=True)
        return self._proposed(
            Action.EXPIRE,
            f"Expire {found.versions:,} versions, with {found.segments:,} segments of {found.bytes:,} bytes that they "
            "alone reach. They cannot be read or restored again.",
            "expire",
            is_final=True,
            arguments={"older_than": older_than, "keep_last": keep_last},
        )

    def collect(self, *, grace_seconds: float = 3600.0) -> Proposal:
        """Delete files of expired segments and of operations that never committed."""
        found = self._lake.collect(grace_seconds=grace_seconds, dry_run=True)
        return self._proposed(
            Action.COLLECT,
            f"Delete {found.files:,} files of {found.bytes:,} bytes that no version reaches.",
            "collect",
            is_final=True,
            arguments={"grace_seconds": grace_seconds},
        )

    def _proposed(self, action: Action, sentence: str, word: str, **more: Any) -> Proposal:
        check_may(self.role, action)
        return Proposal(action, sentence, word, **more)

    # Execution

    def carry_out(self, proposal: Proposal, confirmed: str) -> Any:
        """Carry out a proposal, and return what the lake's method returns.

        Raises `Forbidden`, `InvalidInput` if the confirmation is not the proposal's word, `WriteConflict` if the table
        has changed since the person saw it, and what the action itself raises.
        """
        try:
            self.check(proposal, confirmed)
            done = self._steps()[proposal.action](**proposal.arguments)
        except LakehouseError as error:
            self._log(proposal, refused=error.kind, code=error.code)
            raise
        self._log(proposal, made=getattr(done, "version", None))
        return done

    def check(self, proposal: Proposal, confirmed: str) -> None:
        """Raise what `carry_out` would raise before it does anything; for callers that run it in the background."""
        check_may(self.role, proposal.action)
        if confirmed.strip() != proposal.word:
            raise InvalidArgument("not confirmed, so nothing was done; type the requested word")
        if proposal.seen_version is None:
            return
        table = self._lake.table(proposal.arguments["table"])
        if table.version != proposal.seen_version:
            raise WriteConflict(
                "the table has changed since it was shown, so nothing was done; reload it",
                table=table.name,
                seen=proposal.seen_version,
                version=table.version,
            )

    def _steps(self) -> dict[Action, Callable[..., Any]]:
        lake = self._lake
        return {
            Action.TAG: lake.tag,
            Action.UNTAG: lake.untag,
            Action.RESTORE: self._restore,
            Action.SAVE_QUERY: partial(lake.create_view, comment=f"saved by {self.by}"),
            Action.RELEASE: lake.release,
            Action.MAINTAIN: partial(lake.maintain, properties={"by": self.by}),
            Action.RUN_TASK: partial(lake.run_task, properties={"by": self.by}),
            Action.CANCEL_TASK: lake.cancel_task,
            Action.EXPIRE: lake.expire,
            Action.COLLECT: lake.collect,
        }

    def _restore(self, table: str, version: int, message: str | None) -> Any:
        reason = message or f"restore of version {version}"
        return self._lake.table(table).restore(version, message=f"{reason} (by {self.by})", properties={"by": self.by})

    def _log(self, proposal: Proposal, **outcome: Any) -> None:
        line = {"by": self.by, "role": self.role, "action": proposal.action, **proposal.arguments, **outcome}
        LOG.info("%s", json.dumps({name: held for name, held in line.items() if held is not None}, default=str))

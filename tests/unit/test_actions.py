"""What people do through the console: proposed, confirmed, checked by role, and signed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import lakehouse
from lakehouse.actions.actions import Actions, Proposal
from lakehouse.actions.roles import NEEDS, Action, Role
from lakehouse.errors import Forbidden, InvalidInput, TableNotFound, VersionNotFound, WriteConflict
from lakehouse.testing.rows import SCHEMA, arrow, row, values


class Begun(NamedTuple):
    """What goes on in the lake: an operation that runs, and a task that waits."""

    operation: str
    task: int


ADA = "ada@example.org"
PROPOSALS: dict[Action, Callable[[Actions, Begun], Proposal]] = {
    Action.TAG: lambda actions, _: actions.tag("mine", 2),
    Action.UNTAG: lambda actions, _: actions.untag("held"),
    Action.RESTORE: lambda actions, _: actions.restore("flights", 2),
    Action.SAVE_QUERY: lambda actions, _: actions.save_query("counted", "SELECT count(*) AS n FROM flights"),
    Action.RELEASE: lambda actions, begun: actions.release(begun.operation),
    Action.MAINTAIN: lambda actions, _: actions.maintain("flights"),
    Action.RUN_TASK: lambda actions, begun: actions.run_task(begun.task),
    Action.CANCEL_TASK: lambda actions, begun: actions.cancel_task(begun.task),
    Action.EXPIRE: lambda actions, _: actions.expire(keep_last=1),
    Action.COLLECT: lambda actions, _: actions.collect(grace_seconds=0),
}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakehouse.Lake]:
    """Versions of flights: 1 creates, 2 and 3 append, and "held" names 2. Table small has segments to be merged."""
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        table = lake.create_table("flights", SCHEMA, time="time")
        table.append(arrow([row("2013-01-05", value=1)]))
        table.append(arrow([row("2013-01-06", value=2)]))
        lake.tag("held", 2)
        small = lake.create_table("small", SCHEMA, time="time")
        for value in range(10):
            small.append(arrow([row("2013-01-05", value=value)]))
        yield lake


@pytest.fixture
def begun(lake: lakehouse.Lake) -> Begun:
    [task] = lake.plan_tasks(table="small")
    return Begun(lake.table("flights").begin_append().id, task.id)


def everything(lake: lakehouse.Lake) -> object:
    tasks = [(one.id, one.state) for one in lake.tasks()]
    return lake.head, lake.tags(), [one.operation for one in lake.operations()], len(lake.log()), tasks


def test_every_action_that_is_offered_is_tried_here() -> None:
    assert set(PROPOSALS) == set(Action)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("action", PROPOSALS)
def test_every_action_is_done_for_its_role_and_refused_for_a_lesser_one(
    lake: lakehouse.Lake, begun: Begun, action: Action, role: Role
) -> None:
    actions = Actions(lake, role=role, by=ADA)
    before = everything(lake)
    assert actions.may(action) is role.includes(NEEDS[action])
    if not actions.may(action):
        with pytest.raises(Forbidden):
            PROPOSALS[action](actions, begun)
        asked = PROPOSALS[action](Actions(lake, role=Role.ADMIN, by=ADA), begun)
        with pytest.raises(Forbidden):
            actions.carry_out(asked, asked.word)
        assert everything(lake) == before
        return
    proposal = PROPOSALS[action](actions, begun)
    assert everything(lake) == before, "a proposal changes nothing"
    assert proposal.sentence.endswith(".")
    actions.carry_out(proposal, proposal.word)
    if action is not Action.COLLECT:
        assert everything(lake) != before


@pytest.mark.parametrize("confirmed", ["", "yes", "x"])
@pytest.mark.parametrize("action", PROPOSALS)
def test_nothing_is_done_without_the_word(lake: lakehouse.Lake, begun: Begun, action: Action, confirmed: str) -> None:
    actions = Actions(lake, role=Role.ADMIN, by=ADA)
    before = everything(lake)
    with pytest.raises(InvalidInput, match="not confirmed"):
        actions.carry_out(PROPOSALS[action](actions, begun), confirmed)
    assert everything(lake) == before


def test_what_cannot_be_undone_or_ends_anothers_work_takes_an_administrator_and_says_so(lake: lakehouse.Lake) -> None:
    actions = Actions(lake, role=Role.ADMIN, by=ADA)
    for action, propose in PROPOSALS.items():
        assert propose(actions, Begun("0" * 32, 1)).is_final is (NEEDS[action] is Role.ADMIN)


def test_a_restore_says_who_and_why_in_its_version(lake: lakehouse.Lake) -> None:
    actions = Actions(lake, role=Role.MAINTAINER, by=ADA)
    proposal = actions.restore("flights", 2, message="<b>bad load</b>")
    commit = actions.carry_out(proposal, "flights")
    assert values(lake.table("flights")) == [1]
    newest = lake.log(1)[0]
    assert newest.version == commit.version
    assert newest.message == f"<b>bad load</b> (by {ADA})"
    assert newest.properties == {"by": ADA}


@pytest.mark.parametrize("action", [Action.RUN_TASK, Action.MAINTAIN])
def test_a_task_that_somebody_runs_says_who_in_its_version(lake: lakehouse.Lake, begun: Begun, action: Action) -> None:
    actions = Actions(lake, role=Role.MAINTAINER, by=ADA)
    proposal = actions.run_task(begun.task) if action is Action.RUN_TASK else actions.maintain("small")
    actions.carry_out(proposal, proposal.word)
    [merged] = [one for one in lake.log() if one.operation == "compact"]
    assert merged.properties == {"by": ADA, "task": str(begun.task)}
    assert len(lake.table("small").segments()) == 1


def test_a_restore_of_a_table_that_changed_meanwhile_is_refused(lake: lakehouse.Lake) -> None:
    actions = Actions(lake, role=Role.MAINTAINER, by=ADA)
    proposal = actions.restore("flights", 2)
    lake.table("flights").append(arrow([row("2013-01-07", value=3)]))
    with pytest.raises(WriteConflict, match="changed since it was shown"):
        actions.carry_out(proposal, "flights")
    assert values(lake.table("flights")) == [1, 2, 3]


def test_actions_on_what_is_not_there_fail_as_the_library_does(lake: lakehouse.Lake) -> None:
    actions = Actions(lake, role=Role.ADMIN, by=ADA)
    with pytest.raises(TableNotFound):
        actions.restore("nowhere", 2)
    for proposal, error in (
        (actions.untag("nothing"), VersionNotFound),
        (actions.tag("x", 99), VersionNotFound),
        (actions.tag("1; no tag", 2), InvalidInput),
        (actions.release("0" * 32), InvalidInput),
    ):
        with pytest.raises(error):
            actions.carry_out(proposal, proposal.word)


def test_every_attempt_leaves_a_line_that_says_who(lake: lakehouse.Lake, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lakehouse.actions")
    actions = Actions(lake, role=Role.ADMIN, by="eve\nadmin")
    actions.carry_out(actions.tag("mine", 2), "tag")
    with pytest.raises(InvalidInput):
        actions.carry_out(actions.untag("held"), "no")
    lines = [record.getMessage() for record in caplog.records]
    assert all("\n" not in line for line in lines)
    assert [json.loads(line) for line in lines] == [
        {"by": "eve\nadmin", "role": "admin", "action": "tag", "name": "mine", "version": 2},
        {
            "by": "eve\nadmin",
            "role": "admin",
            "action": "untag",
            "name": "held",
            "refused": "invalid_input",
            "code": "invalid_argument",
        },
    ]


@pytest.mark.parametrize("by", ["", "x" * 201, "nul\0"])
def test_nobody_acts_without_a_name(lake: lakehouse.Lake, by: str) -> None:
    with pytest.raises(InvalidInput):
        Actions(lake, role=Role.ADMIN, by=by)


def test_a_role_may_be_said_by_name_and_no_other_is_taken(lake: lakehouse.Lake) -> None:
    assert Actions(lake, role="maintainer", by=ADA).may(Action.TAG)
    with pytest.raises(InvalidInput, match="no such role"):
        Actions(lake, role="owner", by=ADA)

"""The table service: it plans, runs and explains, and changes no row."""

from __future__ import annotations

import threading
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import text

from lakehouse.catalog.tasks.queue import MOST_ATTEMPTS
from lakehouse.catalog.tasks.rows import Proposal
from lakehouse.core.interval import Interval, to_utc
from lakehouse.core.task import Candidate, Gain, TaskKind, TaskState, Worker
from lakehouse.errors import InvalidInput
from lakehouse.service import Limits, Service, registry
from lakehouse.service.planning import plan_table
from lakehouse.service.running import run_claim
from lakehouse.testing import behind, faults
from lakehouse.testing.rows import KEYED, SCHEMA, arrow, tabled, values, visible

DAY = "2013-01-05"
SPAN = Interval.of(DAY)


def appended(table, count=10, day=DAY):
    for n in range(count):
        table.append(arrow([(day, "a", n)]))
    return table


def candidate(table, *, kind=TaskKind.COMPACT, gain=100, interval=SPAN, segments=None):
    ids = [one.id for one in table.segments(interval=interval)] if segments is None else segments
    return Candidate(
        kind, "test", "because", interval, np.array(sorted(ids), dtype=np.int64), bytes=1000, gain=Gain(files=gain)
    )


def proposed(lake, table, *candidates, worker=Worker.ELASTIC):
    lake.catalog.tasks().propose(table.spec, table.version, [Proposal(one, worker) for one in candidates])
    return lake.tasks(table=table.name, state="waiting")


def late(lake, claim):
    """Let a claim's lease run out, as if its worker had died."""
    behind.change(lake.catalog, text("UPDATE task SET lease_until_us = 0 WHERE id = :id"), id=claim.task.id)


def test_small_appends_are_merged_and_no_row_changes(lake, table):
    before = visible(appended(table, 20))
    done = lake.maintain().tasks
    assert {one.state for one in done} == {TaskState.DONE}
    assert TaskKind.COMPACT in {one.kind for one in done}
    assert visible(table) == before
    assert len(table.segments()) == 1
    assert [one.kind for one in lake.maintain().tasks if one.kind is not TaskKind.PLAN] == []


def test_a_task_shows_its_cause_prediction_and_what_it_gained(lake, table):
    appended(table, 20)
    (merge,) = [one for one in lake.maintain().tasks if one.kind is TaskKind.COMPACT]
    assert "small" in merge.cause
    assert merge.predicted.files == merge.actual.files == 19
    commit = next(one for one in table.log() if one.version == merge.version)
    assert (commit.operation, commit.message, commit.properties) == ("compact", merge.cause, {"task": str(merge.id)})
    assert merge.started_at <= merge.ended_at
    assert merge.interval.contains(SPAN)


def test_small_batches_are_visible_at_once_and_joined_when_they_are_enough_or_old(lake, table):
    def merges():
        return [one for one in lake.maintain().tasks if one.kind is TaskKind.COMPACT]

    table.set_properties({"segment_rows": "20", "segment_age": "1h"})
    for number in range(19):
        table.append(arrow([(DAY, "a", number)]))
        assert values(table) == list(range(number + 1))
    assert merges() == []  # more than `small_files` lets lie
    table.append(arrow([(DAY, "a", 19)]))
    assert [one.cause for one in merges()] == ["20 batches of 20 rows end a segment"]
    assert len(table.segments()) == 1
    appended(table, 3)
    assert merges() == []
    behind.change(lake.catalog, text("UPDATE commit_log SET committed_us = committed_us - 7200000000"))
    appended(table, 1)
    assert [one.cause for one in merges()] == ["4 batches of 4 rows end a segment"]
    assert values(table) == sorted([*range(20), 0, 1, 2, 0])
    assert table.amplification().rewritten_bytes <= table.amplification().appended_bytes


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(lake, table):
    appended(table, 20)
    head = lake.head
    wanted = lake.maintain(dry_run=True)
    assert [one.kind for one in wanted.tasks] == [TaskKind.COMPACT]
    assert wanted.bytes > 0
    assert lake.head == head
    assert lake.tasks() == []


def test_a_round_reads_no_more_than_its_budget(lake, table):
    for day in ("2013-01-05", "2013-01-06", "2013-01-07"):
        appended(table, 20, day)
    merges = [one for one in lake.maintain(dry_run=True).tasks if one.kind is TaskKind.COMPACT]
    assert len(merges) == 3
    some = lake.maintain(budget_bytes=merges[0].budget_bytes + 1)
    assert len([one for one in some.tasks if one.kind is TaskKind.COMPACT]) == 1
    assert some.bytes <= merges[0].budget_bytes + 1


def test_tasks_run_by_score_over_all_tables(lake, table):
    other = lake.create_table("other", table.schema, time="time")
    appended(table), appended(other)
    proposed(lake, table, candidate(table, gain=10))
    proposed(lake, other, candidate(other, gain=1000))
    claims = [lake.catalog.tasks().claim(kinds=[TaskKind.COMPACT]) for _ in range(2)]
    assert [one.task.table for one in claims] == ["other", "flights"]
    assert lake.catalog.tasks().claim(kinds=[TaskKind.COMPACT]) is None


def test_what_is_claimed_is_nobody_elses_until_its_lease_ends(lake, connect, table):
    appended(table)
    proposed(lake, table, candidate(table))
    queue, theirs = lake.catalog.tasks(), connect().catalog.tasks()
    mine = queue.claim(kinds=[TaskKind.COMPACT])
    assert theirs.claim(kinds=[TaskKind.COMPACT]) is None
    assert queue.renew(mine)
    late(lake, mine)
    second = theirs.claim(kinds=[TaskKind.COMPACT])
    assert (second.task.id, second.task.attempts) == (mine.task.id, 2)
    assert not queue.renew(mine)
    assert not queue.end(mine, TaskState.DONE)
    assert lake.tasks(state="running")[0].id == mine.task.id
    assert theirs.end(second, TaskState.DONE, actual=Gain(files=3))
    assert queue.task(mine.task.id).actual == Gain(files=3)


def test_claims_from_many_threads_take_each_task_once(lake, connect, table):
    appended(table, 2)
    days = [Interval(to_utc(DAY) + timedelta(days=n), to_utc(DAY) + timedelta(days=n + 1)) for n in range(40)]
    proposed(lake, table, *(candidate(table, interval=day, segments=[n]) for n, day in enumerate(days)))
    taken: list[int] = []
    guard = threading.Lock()

    def work(queue):
        while (claim := queue.claim(kinds=[TaskKind.COMPACT])) is not None:
            with guard:
                taken.append(claim.task.id)

    threads = [threading.Thread(target=work, args=(connect().catalog.tasks(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Whoever finds all that is left locked by others' short transactions may leave too early, never take one twice.
    assert len(taken) == len(set(taken))
    assert len(taken) + len(lake.tasks(state="waiting")) == 40


def test_tasks_that_lock_one_chunk_are_not_run_side_by_side(lake, table):
    appended(table)
    ids = [one.id for one in table.segments()]
    proposed(lake, table, candidate(table, segments=ids[:5]), candidate(table, segments=ids[5:]))
    queue = lake.catalog.tasks()
    first = queue.claim(kinds=[TaskKind.COMPACT])
    assert queue.claim(kinds=[TaskKind.COMPACT]) is None
    queue.end(first, TaskState.DONE)
    assert queue.claim(kinds=[TaskKind.COMPACT]) is not None


def test_a_new_plan_replaces_what_waits_and_keeps_what_it_proposes_again(lake, table):
    appended(table)
    ids = [one.id for one in table.segments()]
    kept, gone = candidate(table, segments=ids[:5]), candidate(table, segments=ids[5:])
    first = {one.id for one in proposed(lake, table, kept, gone)}
    again = proposed(lake, table, candidate(table, segments=ids[:5], gain=7))
    assert [(one.id in first, one.predicted.files) for one in again] == [(True, 7)]


def test_a_users_replace_takes_the_chunk_and_the_task_is_tried_again(lake, table):
    appended(table)
    (task,) = proposed(lake, table, candidate(table))
    held = table.begin_replace(SPAN)
    queue = lake.catalog.tasks()
    claim = queue.claim(task_id=task.id)
    after = run_claim(lake.session, claim)
    assert (after.state, after.attempts) == (TaskState.WAITING, 0)
    assert "locked" in after.error or "hold" in after.error
    held.write(arrow([(DAY, "z", 99)]))
    held.commit()
    assert [value for *_, value in visible(table)] == [99]
    assert lake.run_task(task.id).state is TaskState.CANCELLED  # what it was to merge is gone


def test_a_replace_during_a_merge_wins_at_once(lake, table):
    appended(table)
    (task,) = proposed(lake, table, candidate(table))
    gate = faults.Gate()
    ended = []
    with faults.armed({"write.after": gate.hold}):
        merging = threading.Thread(target=lambda: ended.append(lake.run_task(task.id)))
        merging.start()
        gate.wait_reached()
        gate_free = {"write.after": lambda: None}
        with faults.armed(gate_free):
            table.replace(arrow([(DAY, "z", 99)]), SPAN, wait_seconds=0)
        gate.open()
        merging.join()
    assert [one.state for one in ended] == [TaskState.WAITING]
    assert [value for *_, value in visible(table)] == [99]


def test_a_cancelled_merge_commits_nothing(lake, table):
    appended(table)
    (task,) = proposed(lake, table, candidate(table))
    gate = faults.Gate()
    version = table.version
    with faults.armed({"write.after": gate.hold}):
        merging = threading.Thread(target=lambda: lake.run_task(task.id))
        merging.start()
        gate.wait_reached()
        lake.cancel_task(task.id)
        gate.open()
        merging.join()
    assert lake.tasks(state="cancelled")[0].id == task.id
    assert table.version == version
    with pytest.raises(InvalidInput, match="has ended"):
        lake.cancel_task(task.id)


def test_a_task_that_fails_waits_longer_each_time_and_is_then_given_up(lake, table):
    appended(table)
    (task,) = proposed(lake, table, candidate(table))
    with faults.armed({"write.before": faults.fail("no disk")}):
        pauses = []
        for _ in range(MOST_ATTEMPTS):
            after = lake.run_task(task.id)
            pauses.append((after.not_before - after.started_at).total_seconds())
    assert after.state is TaskState.FAILED
    assert "no disk" in after.error
    assert pauses[:-1] == sorted(pauses[:-1])
    assert pauses[0] < pauses[-2]
    assert len(table.segments()) == 10
    with pytest.raises(InvalidInput, match="cannot be run"):
        lake.run_task(task.id)
    assert [one.kind for one in lake.plan_tasks()] == [TaskKind.COMPACT]  # the next plan proposes it anew


def test_a_worker_that_dies_before_its_end_is_recorded_leaves_nothing_to_do(lake, table):
    appended(table)
    (task,) = proposed(lake, table, candidate(table))
    before = visible(table)
    queue = lake.catalog.tasks()
    claim = queue.claim(task_id=task.id)
    with faults.armed({"task.done": faults.fail()}):
        run_claim(lake.session, claim)
    assert lake.run_task(task.id).state is TaskState.CANCELLED
    assert visible(table) == before
    assert len(table.segments()) == 1


def test_key_tombstones_are_resolved_and_what_hides_nothing_is_cleaned(lake):
    keyed = lake.create_table(
        "keyed", KEYED, time="time", primary_key=("value",), properties={"tombstone_debt": "0", "small_files": "2"}
    )
    keyed.append(tabled([(to_utc(DAY), "a", n) for n in range(10)], KEYED))
    for n in range(5):
        keyed.upsert(tabled([(to_utc(DAY), "b", n)], KEYED))
    before = visible(keyed)
    done = lake.maintain().tasks
    assert {one.state for one in done} == {TaskState.DONE}
    assert visible(keyed) == before
    assert keyed.tombstones() == []
    assert len(keyed.segments()) == 1


def test_overshadowed_segments_are_dropped_without_a_rewrite(lake, table):
    for n in range(3):
        table.append(arrow([(f"{DAY}T01:00", "a", n), (f"{DAY}T20:00", "a", n)]))
    table.replace(None, (f"{DAY}T00:00", f"{DAY}T12:00"))
    table.replace(arrow([(f"{DAY}T13:00", "a", 7)]), (f"{DAY}T12:00", "2013-01-06"))
    assert len(table.timeline().overshadowed) == 3
    before = visible(table)
    assert lake.plan_tasks()
    lake.maintain()
    assert visible(table) == before
    assert table.timeline().overshadowed == ()
    assert table.tombstones() == []


def test_retention_forgets_versions_and_deletes_their_files(lake, table, warehouse):
    table.set_properties({"retention": "0s", "keep_last": 1})
    for n in range(5):
        table.replace(arrow([(DAY, "a", n)]), DAY)
    (collected,) = [one for one in lake.maintain().tasks if one.kind is TaskKind.COLLECT]
    assert collected.details["versions"] > 0
    assert len(table.log()) == 1
    assert [one.kind for one in lake.maintain().tasks if one.kind is TaskKind.COLLECT] == []  # not again so soon


def test_nothing_is_forgotten_where_a_table_is_to_be_kept_for_ever(lake, table):
    table.set_properties({"retention": "0s", "keep_last": 1})
    lake.create_table("kept", table.schema, time="time", properties={"retention": "forever"})
    for n in range(5):
        table.replace(arrow([(DAY, "a", n)]), DAY)
    lake.maintain()
    assert len(table.log()) == 5


def test_a_table_that_nothing_was_written_to_has_nothing_to_do(lake, table):
    assert lake.plan_tasks(table="flights") == []
    assert lake.maintain(table="flights").tasks == []


def test_a_table_whose_maintenance_is_off_is_left_alone(lake, table):
    table.set_properties({"maintenance": "off"})
    appended(table, 20)
    assert [one.kind for one in lake.maintain().tasks if one.kind is not TaskKind.COLLECT] == [TaskKind.PLAN]
    assert len(table.segments()) == 20


def test_a_table_is_planned_again_as_soon_as_a_threshold_grows_stricter(lake, table):
    table.set_properties({"small_files": "8, 2 after 1m"})
    appended(table, 5)
    young = plan_table(lake.session, table)
    assert (young.proposals, young.due_seconds) == ((), 60)
    behind.change(lake.catalog, text("UPDATE commit_log SET committed_us = committed_us - 61000000"))
    older = plan_table(lake.session, table)
    assert [one.candidate.kind for one in older.proposals] == [TaskKind.COMPACT]
    assert older.due_seconds == 3600


def test_nothing_is_rewritten_in_quiet_hours(lake, table):
    appended(table, 20)
    hour = lake.catalog.now().hour
    table.set_properties({"quiet_hours": f"{hour}-{(hour + 2) % 24}"})
    assert TaskKind.COMPACT not in {one.kind for one in lake.maintain().tasks}
    assert [one.kind for one in lake.tasks(state="waiting")] == [TaskKind.COMPACT]
    table.set_properties({"quiet_hours": None})
    assert TaskKind.COMPACT in {one.kind for one in lake.maintain().tasks}


def test_no_more_is_rewritten_than_the_policy_allows(lake, table):
    appended(table, 20)
    table.set_properties({"write_amplification": 0})
    assert TaskKind.COMPACT not in {one.kind for one in lake.maintain().tasks}
    table.set_properties({"write_amplification": None})
    lake.maintain()
    written = table.amplification()
    assert written.appended_bytes > 0
    assert 0 < written.ratio <= table.policy.write_amplification


def test_what_is_read_more_often_is_done_first(lake, connect, table):
    for day in ("2013-01-05", "2013-02-05"):
        appended(table, 20, day)
    for _ in range(50):
        table.scan(interval="2013-02-05").plan()
    lake.session.plan_counts.flush()
    first, second = [one for one in connect().plan_tasks() if one.kind is TaskKind.COMPACT]
    assert first.interval.contains(Interval.of("2013-02-05"))
    assert first.score > second.score


def test_a_strategy_of_another_package_is_asked_and_its_failure_stops_nobody(lake, table, monkeypatch):
    appended(table, 20)

    def broken(state):
        raise ValueError("a stranger's mistake")

    monkeypatch.setattr(registry, "BUILT_IN", (*registry.BUILT_IN, ("broken", broken)))
    registry.strategies.cache_clear()
    try:
        done = lake.maintain().tasks
    finally:
        registry.strategies.cache_clear()
    assert next(one for one in done if one.kind is TaskKind.PLAN).details["failed_strategies"] == 1
    assert len(table.segments()) == 1


def test_properties_are_checked_and_shown(lake, table):
    with pytest.raises(InvalidInput, match="small_files"):
        table.set_properties({"small_files": "many"})
    with pytest.raises(InvalidInput, match="did you mean"):
        table.set_properties({"retension": "3d"})
    table.set_properties({"small_files": "4, 2 after 1h", "retention": "7d"})
    assert lake.table("flights").policy.described()["small_files"] == "4, 2 after 1h"
    assert lake.table("flights").policy.retention_seconds == 7 * 86_400
    assert lake.log(1)[0].operation == "alter"
    table.append(arrow([(DAY, "a", 1)]))


def test_the_former_name_of_a_service_s_argument_still_works_and_warns(lake):
    with pytest.warns(DeprecationWarning, match="Service\\(told=\\) is called Service\\(on_end=\\) now"):
        Service(lake.session, Limits(), told=print)


def test_services_share_the_work_until_they_are_stopped(lake, connect, table):
    days = [f"2013-01-{day:02d}" for day in range(1, 9)]
    for day in days:
        appended(table, 8, day)
    before = visible(table)
    stop, done = threading.Event(), threading.Event()
    guard, ended = threading.Lock(), []

    def on_end(task):
        with guard:
            ended.append(task)
            if len({one.interval for one in ended if one.kind is TaskKind.COMPACT}) == len(days):
                done.set()

    services = [Service(connect().session, Limits(), every_seconds=0.05, on_end=on_end) for _ in range(2)]
    threads = [threading.Thread(target=one.run, args=(stop,)) for one in services]
    for thread in threads:
        thread.start()
    assert done.wait(60)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(table.segments()) == len(days)
    assert visible(table) == before
    merged = [one.id for one in ended if one.kind is TaskKind.COMPACT and one.state is TaskState.DONE]
    assert len(merged) == len(set(merged))


def test_ended_tasks_are_listed_and_forgotten_in_time(lake, table):
    appended(table, 20)
    lake.maintain()
    assert isinstance(lake.tasks().to_arrow(), pa.Table)
    assert lake.tasks(limit=1)[0].id == max(one.id for one in lake.tasks())
    with pytest.raises(InvalidInput, match="state"):
        lake.tasks(state="gone")
    assert lake.catalog.tasks().forget(0) > 0
    assert lake.tasks() == []


def test_indexes_and_statistics_are_made_where_the_policy_asks_for_them(lake, table):
    table.append(arrow([(DAY, "a", n) for n in range(100)]))
    assert {one.kind for one in lake.maintain().tasks} == {TaskKind.PLAN, TaskKind.COLLECT}
    table.set_properties({"index": "client", "statistics": "on"})
    kinds = [one.kind for one in lake.maintain().tasks]
    assert sorted(kinds) == ["index", "plan", "stats"]
    assert table.scan(where="client = 'b'").plan().files == []
    assert next(one for one in table.statistics() if one.column == "value").distinct > 90
    assert [one.kind for one in lake.plan_tasks()] == []


def test_a_few_rows_over_months_of_a_ragged_table_are_cut_where_it_is_empty(lake):
    table = lake.create_table("ragged", SCHEMA, time="time", properties={"ragged": "true"})
    first = to_utc("2013-01-01")
    for day in range(80):
        table.append(arrow([(first + timedelta(days=day), "a", day)]))
    table.append(arrow([(first, "b", 1), (first + timedelta(days=79), "b", 2)]))
    before = visible(table)
    assert any("span up to 79 days" in one.cause for one in lake.maintain().tasks)
    assert visible(table) == before
    assert max(one.end - one.start for one in table.segments()) < timedelta(days=2)


def test_segments_that_overlap_are_sorted_so_that_looks_for_a_key_open_fewer(lake):
    properties = {"order": "zorder", "target_rows": "1000"}
    table = lake.create_table("sorted", SCHEMA, time="time", cluster_by=("client",), properties=properties)
    day = to_utc(DAY)
    for part in range(20):
        seconds = [(number * 20 + part, number * 7 % 26) for number in range(600)]
        table.append(
            arrow([(day + timedelta(seconds=one), "abcdefghijklmnopqrstuvwxyz"[n], one) for one, n in seconds])
        )
    before, look = visible(table), "client = 'q'"
    opened = len(table.scan(where=look).plan().segments)
    assert any("lie over one point" in one.cause for one in lake.maintain().tasks)
    assert visible(table) == before
    segments = table.segments()
    assert (opened, len(segments)) == (20, 12)
    assert len(table.scan(where=look).plan().segments) <= 6
    assert [one.kind for one in lake.maintain().tasks if one.kind is TaskKind.COMPACT] == []

"""A random history through the library and the reference model, compared after every step at the head and before."""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

import lakehouse
from lakehouse.core import timeline
from lakehouse.core.conflict import Cell
from lakehouse.core.interval import Interval
from lakehouse.core.invariants import is_ordered_before, locks_are_apart, slices_are_apart
from lakehouse.errors import LockLost, LockTimeout, VersionNotFound, WriteConflict
from lakehouse.testing import strategies
from lakehouse.testing.followed import Followed
from lakehouse.testing.model import Clauses, ModelLake
from lakehouse.testing.object_stores import moto_server
from lakehouse.testing.rows import COLUMNS, KEYED, SCHEMA, arrow, plain, visible
from lakehouse.testing.store_faults import Schedule
from lakehouse.testing.store_proxy import StoreProxy

TABLES = ("one", "two")
DAYS = tuple(datetime(2012, month, day, tzinfo=UTC) for month, day in ((2, 28), (2, 29), (3, 1), (12, 31)))
WEEKS = (*DAYS, datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 1, 7, tzinfo=UTC))


WIDE = timedelta(days=40)
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # syncing a file to memory costs nothing


class History(RuleBasedStateMachine):
    """Two tables of one lake beside their models. Hypothesis picks what happens next."""

    operations = Bundle("operations")
    scans = Bundle("scans")

    def open(self, url, machine, **settings):
        """The lake as a process opens it, on one of two machines."""
        return lakehouse.connect(url, f"{self.folder}/warehouse", **settings)

    @initialize(
        grain=st.sampled_from(["hour", "day", "week", "month", "all"]),
        ragged=st.booleans(),
        target_rows=st.sampled_from([2, 1000]),
        followed=st.lists(st.tuples(st.sampled_from(TABLES), st.booleans()), max_size=2),
    )
    def create(self, grain, ragged, target_rows, followed):
        self.folder = tempfile.mkdtemp(dir=SCRATCH)
        url = self.new_catalog()
        self.lake = self.open(url, "here", wait_seconds=0)
        self.there = self.open(url, "there")  # as another process sees it
        self.model = ModelLake()
        self.tables, self.names = {}, {}
        self.numbers: dict[str, dict[int, int]] = {}
        self.tags: dict[str, int] = {}
        self.horizon, self.forgotten = 0, {name: set() for name in TABLES}
        self.made = self.columns_made = 0
        self.followed: list[tuple[str, Followed]] = []
        self.is_timeless = grain == "all"
        division = {} if self.is_timeless else {"time": "time", "grain": grain}
        for index, name in enumerate(TABLES):
            is_ragged = ragged and index == 0 and not self.is_timeless
            properties = {"ragged": str(is_ragged).lower(), "target_rows": str(target_rows)}
            schema, key = (KEYED, ("value",)) if name == "two" else (SCHEMA, ())
            table = self.lake.create_table(
                name,
                schema,
                **division,
                primary_key=key,
                cluster_by=("client",),
                properties=properties,
            )
            self.tables[name], self.names[name] = table, name
            self.model.create_table(name, COLUMNS, time="time", grain=grain, primary_key=key)
            self.numbers[name] = {table.version: self.model.newest}
        for name, changes in followed:
            self.follow(name, changes)

    def within(self, interval):
        """An interval of these tables: without a time, all of time is the only one."""
        return Interval(None, None) if self.is_timeless and interval is not None else interval

    def new_catalog(self):
        """The URL of an empty catalog: a copy, for copying one costs less than making it."""
        raise NotImplementedError

    def teardown(self):
        if hasattr(self, "lake"):
            self.lake.close()
            self.there.close()
            shutil.rmtree(self.folder)

    def note(self, name, version, number):
        """Remember which version of the library is which of the model."""
        assert version == self.lake.head
        assert version > max(self.numbers[name])
        self.numbers[name][version] = number

    # One-call writes

    @rule(name=st.sampled_from(TABLES), rows=strategies.rows(strategies.edges(WEEKS), min_size=1, max_size=6))
    def append(self, name, rows):
        self.note(name, self.tables[name].append(arrow(rows)).version, self.model.append(name, rows))

    @rule(
        name=st.sampled_from(TABLES),
        interval=strategies.intervals(WEEKS),
        keys=st.none() | strategies.key_scopes(),
        data=st.data(),
    )
    def replace(self, name, interval, keys, data):
        interval = self.within(interval)
        rows = data.draw(strategies.rows_within(interval, keys))
        try:
            number = self.model.replace(name, rows, interval, keys=keys)
        except LockTimeout:
            with pytest.raises(LockTimeout):
                self.tables[name].begin_replace(interval, keys=keys, wait_seconds=0)
            return
        self.note(name, self.tables[name].replace(arrow(rows), interval, keys=keys).version, number)

    @rule(name=st.sampled_from(TABLES), interval=st.none() | strategies.intervals(WEEKS))
    def compact(self, name, interval):
        interval = self.within(interval)
        try:
            self.model.begin_compaction(name, interval).abort()
        except LockTimeout:
            return
        try:
            commit = self.tables[name].compact(interval)
        except LockTimeout:  # a ragged segment reaches into a chunk that is held
            return
        if commit is not None:
            self.note(name, commit.version, self.model.begin_compaction(name, interval).commit())
        assert self.tables[name].compact(interval) is None

    @rule(name=st.sampled_from(TABLES), data=st.data())
    def restore(self, name, data):
        version = data.draw(st.sampled_from(sorted(self.numbers[name])))
        try:
            restored = self.tables[name].restore(version).version
        except LockTimeout:
            assert any(holder.kind == "replace" for holder in self.model.tables[name].holders)
            return
        self.note(name, restored, self.model.restore(name, self.numbers[name][version]))

    @rule(name=st.sampled_from(TABLES), change=st.sampled_from(["add", "drop", "rename", "widen", "move"]))
    def alter(self, name, change):
        """Columns come and go beside those of the model, whose rows stay; each has its default in every row."""
        table = self.tables[name]
        table.refresh()
        others = [one for one in table.schema.names if one not in COLUMNS]
        self.columns_made += 1
        if change == "add" or not others:
            table.add_column(
                f"x{self.columns_made}", "INT", default=self.columns_made, first=self.columns_made % 2 == 0
            )
        elif change == "drop":
            table.drop_column(others[0])
        elif change == "rename":
            letter = "yx"[others[-1].startswith("y")]
            table.rename_column(others[-1], f"{letter}{others[-1][1:]}")
        elif change == "widen":
            table.widen_column(others[0], "BIGINT")
        else:
            table.move_column(others[0])
        self.note(name, table.version, self.numbers[name][max(self.numbers[name])])
        found = self.there.table(self.names[name]).scan().to_arrow()
        for column in set(found.column_names) - set(COLUMNS):
            assert set(found[column].to_pylist()) <= {int(column[1:])}

    def change(self, name, do, begun):
        """Change single rows; where a replace runs, that may have to wait for it."""
        try:
            version = do().version
        except (WriteConflict, LockTimeout):
            assert any(one.kind == "replace" for one in self.model.tables[name].holders)
            begun.abort()
            return
        begun.forced = True
        self.note(name, version, begun.commit())

    @rule(name=st.sampled_from(TABLES), meant=strategies.conditions(WEEKS))
    def delete(self, name, meant):
        begun = self.model.begin_delete(name, meant.holds)
        self.change(name, lambda: self.tables[name].delete(meant.sql), begun)

    @rule(name=st.sampled_from(TABLES), meant=strategies.conditions(WEEKS), values=strategies.assignments(WEEKS))
    def update(self, name, meant, values):
        begun = self.model.begin_update(name, values.change, meant.holds)
        self.change(name, lambda: self.tables[name].update(values.sql, meant.sql), begun)

    @rule(
        name=st.sampled_from(TABLES),
        updates=st.booleans(),
        inserts=st.booleans(),
        data=st.data(),
    )
    def merge(self, name, updates, inserts, data):
        rows = data.draw(strategies.keyed_rows(DAYS, self.known(name)))
        clauses = Clauses((lambda _, source: {"client": source["client"]}) if updates else None, not updates, inserts)
        begun = self.model.begin_merge(name, rows, ("value",), clauses)
        self.change(
            name,
            lambda: self.tables[name].merge(
                arrow(rows),
                ["value"],
                when_matched_update={"client": "source.client"} if updates else None,
                when_matched_delete=not updates,
                when_not_matched_insert=inserts,
            ),
            begun,
        )

    def known(self, name):
        """The keys of some rows."""
        return [row[2] for row in self.model.rows(name)[:8]]

    @rule(data=st.data())
    def upsert(self, data):
        rows = data.draw(strategies.keyed_rows(DAYS, self.known("two")))
        begun = self.model.begin_upsert("two")
        begun.write(rows)
        self.change("two", lambda: self.tables["two"].upsert(arrow(rows)), begun)

    @rule(data=st.data())
    def delete_keys(self, data):
        keys = [row[2:] for row in data.draw(strategies.keyed_rows(DAYS, self.known("two")))]
        begun = self.model.begin_delete_keys("two")
        begun.write(keys)
        listed = pa.table({"value": pa.array([key for (key,) in keys], pa.int64())})
        self.change("two", lambda: self.tables["two"].delete_keys(listed), begun)

    @rule(name=st.sampled_from(TABLES), tends=st.booleans())
    def keep_in_shape(self, name, tends):
        """Drop what cannot matter, or do what the table service finds best; no row changes by either."""
        try:
            if tends:
                waiting = self.lake.plan_tasks(table=self.names[name])
                done = self.lake.run_task(waiting[0].id) if waiting else None
                version = None if done is None else done.version
            else:
                commit = self.tables[name].clean()
                version = None if commit is None else commit.version
        except LockTimeout:
            return
        if version is not None:
            self.note(name, version, self.model.table(name).newest)

    @rule()
    def resolve(self):
        commit = self.tables["two"].resolve()
        if commit is not None:
            self.note("two", commit.version, self.model.table("two").newest)

    @rule(
        name=st.sampled_from(TABLES),
        rows=strategies.rows(strategies.edges(DAYS), min_size=1, max_size=3),
        turn=st.integers(0, 2),
    )
    def append_once(self, name, rows, turn):
        known = self.model.transactions.get((name, "feed", turn))
        number = self.model.append(name, rows, txn=("feed", turn))
        version = self.tables[name].append(arrow(rows), txn=("feed", turn)).version
        if known is None:
            self.note(name, version, number)
        else:
            # Also of a version that has been forgotten the mark stays.
            assert number == known
            assert version in self.forgotten[name] or self.numbers[name][version] == known

    @rule(
        first=strategies.rows(strategies.edges(DAYS), min_size=1, max_size=3),
        interval=strategies.intervals(DAYS),
        fails=st.booleans(),
    )
    def write_both_tables(self, first, interval, fails):
        interval = self.within(interval)
        appended = self.model.begin_append("one")
        appended.write(first)
        try:
            replaced = self.model.begin_replace("two", interval)
        except LockTimeout:
            return

        def attempt():
            with self.lake.transaction() as tx:
                tx.table(self.names["one"]).append(arrow(first))
                tx.table(self.names["two"]).replace(None, interval)
                if fails:
                    raise ZeroDivisionError

        if fails:
            replaced.abort()
            with pytest.raises(ZeroDivisionError):
                attempt()
        else:
            attempt()
            number = self.model.commit([appended, replaced])
            version = self.lake.head
            for name in TABLES:
                self.note(name, version, number)

    # The same in three steps, several at a time

    @rule(target=operations, name=st.sampled_from(TABLES))
    def begin_append(self, name):
        return name, self.tables[name].begin_append(), self.model.begin_append(name), None, None

    @rule(
        target=operations,
        name=st.sampled_from(TABLES),
        interval=strategies.intervals(DAYS),
        keys=st.none() | strategies.key_scopes(),
    )
    def begin_replace(self, name, interval, keys):
        interval = self.within(interval)
        try:
            begun = self.model.begin_replace(name, interval, keys)
        except LockTimeout:
            with pytest.raises(LockTimeout):
                self.tables[name].begin_replace(interval, keys=keys, wait_seconds=0)
            return multiple()
        return name, self.tables[name].begin_replace(interval, keys=keys, wait_seconds=0), begun, interval, keys

    @rule(target=operations, name=st.sampled_from(TABLES), interval=st.none() | strategies.intervals(DAYS))
    def begin_compaction(self, name, interval):
        interval = self.within(interval)
        try:
            real = self.tables[name].begin_compaction(interval)
        except LockTimeout:
            holders = self.model.tables[name].holders
            assert holders, "only a chunk that is held is waited for"
            return multiple()
        # What it locked: the chunks of ragged segments too, and of all of time only where something is.
        return name, real, self.model.begin_compaction(name, real.begun.interval), None, None

    @rule(target=operations, name=st.sampled_from(TABLES), meant=strategies.reading(WEEKS))
    def begin_delete(self, name, meant):
        model = self.model.begin_delete(name, meant.holds)
        return name, self.tables[name].begin_delete(meant.sql), model, None, None

    @rule(
        target=operations,
        name=st.sampled_from(TABLES),
        meant=strategies.conditions(WEEKS),
        values=strategies.assignments(WEEKS),
    )
    def begin_update(self, name, meant, values):
        model = self.model.begin_update(name, values.change, meant.holds)
        return name, self.tables[name].begin_update(values.sql, meant.sql), model, None, None

    @rule(target=operations, data=st.data())
    def begin_upsert(self, data):
        rows = data.draw(strategies.keyed_rows(DAYS, self.known("two")))
        real, model = self.tables["two"].begin_upsert(), self.model.begin_upsert("two")
        real.write(arrow(rows))
        model.write(rows)
        return "two", real, model, None, None

    @rule(operation=operations, data=st.data())
    def write(self, operation, data):
        _, real, model, interval, keys = operation
        if model.kind not in ("append", "replace") or model.ended:
            return
        near = strategies.rows(strategies.edges(DAYS), max_size=4)
        rows = data.draw(near if interval is None else strategies.rows_within(interval, keys))
        real.write(arrow(rows))
        model.write(rows)

    @rule(operation=consumes(operations))
    def commit(self, operation):
        name, real, model, _, _ = operation
        if model.kind == "compact":
            self.commit_compaction(name, real, model)
        elif model.kind in ("delete", "update"):
            self.commit_change(name, real, model)
        else:
            self.note(name, real.commit().version, model.commit())

    def commit_change(self, name, real, model):
        """Commit what read rows, unless it conflicts: with what was committed since, or a replace that runs."""
        before = self.lake.head
        try:
            version = real.commit().version
        except WriteConflict:
            replacing = any(one.kind == "replace" for one in self.model.tables[name].holders)
            assert replacing or self.model.table(name).newest > model.base
            assert self.lake.head == before
            model.abort()
            return
        model.forced = True
        self.note(name, version, model.commit())

    def commit_compaction(self, name, real, model):
        """Commit it, unless it was fenced."""
        before = self.lake.head
        try:
            real.run()
            commit = real.commit()
        except LockLost:
            assert model.fenced
            assert self.lake.head == before
            model.abort()
            real.abort()
            return
        assert not model.fenced
        if commit is None:
            model.abort()
        else:
            self.note(name, commit.version, model.commit())

    @rule(operation=consumes(operations))
    def abort(self, operation):
        _, real, model, _, _ = operation
        head = self.lake.head
        real.abort()
        model.abort()
        assert self.lake.head == head

    # Names and readings

    @rule(name=st.sampled_from(TABLES), data=st.data())
    def tag(self, name, data):
        self.made += 1
        tag = f"{self.names[name]}-tag-{self.made}"
        version = data.draw(st.sampled_from(sorted(self.numbers[name])))
        if version < self.horizon and version not in self.tags.values():  # of this table alone
            with pytest.raises(VersionNotFound):
                self.lake.tag(tag, version)
            return
        self.lake.tag(tag, version)
        self.tags[tag] = version
        assert visible(self.tables[name], as_of=tag) == self.model.rows(name, self.numbers[name][version])

    @precondition(lambda self: hasattr(self, "lake") and self.tags)
    @rule(data=st.data())
    def untag(self, data):
        tag = data.draw(st.sampled_from(sorted(self.tags)))
        self.lake.untag(tag)
        del self.tags[tag]

    # Clean-up

    @rule(keep_last=st.integers(1, 6), collects=st.booleans())
    def forget(self, keep_last, collects):
        self.horizon = self.lake.expire(keep_last=keep_last).horizon
        for name in TABLES:
            points = [self.horizon, *(version for version in self.tags.values() if version < self.horizon)]
            known = self.numbers[name]
            kept = {max((one for one in known if one <= point), default=None) for point in points}
            self.numbers[name] = {one: known[one] for one in known if one >= self.horizon or one in kept}
            self.forgotten[name] |= known.keys() - self.numbers[name].keys() - set(self.tags.values())
            self.forgotten[name] -= set(self.tags.values())
        if collects:
            self.lake.collect(grace_seconds=0)
        assert self.lake.check().findings == []

    @rule(name=st.sampled_from(TABLES), data=st.data())
    def what_is_forgotten_cannot_be_read(self, name, data):
        for version in sorted(self.forgotten[name])[-3:]:
            with pytest.raises(VersionNotFound):
                self.tables[name].scan(as_of=version)

    @rule(target=scans, name=st.sampled_from(TABLES), data=st.data())
    def begin_to_read(self, name, data):
        version = data.draw(st.sampled_from(sorted(self.numbers[name])))
        rows = self.model.rows(name, self.numbers[name][version])
        return self.there.table(self.names[name]).scan(as_of=version), rows

    @rule(scan=consumes(scans))
    def read_to_the_end(self, scan):
        begun, rows = scan
        assert plain(begun.to_arrow()) == rows

    @precondition(lambda self: hasattr(self, "lake") and len(self.followed) < 3)
    @rule(name=st.sampled_from(TABLES), changes=st.booleans())
    def follow(self, name, changes):
        """Follow a table from now on, beginning with the rows that there are."""
        self.followed.append((name, Followed(f"c{len(self.followed)}", changes=changes)))

    @invariant()
    def who_follows_is_given_what_leads_to_the_models_rows(self):
        for place, (name, one) in enumerate(self.followed if hasattr(self, "lake") else ()):
            if (place + self.lake.head) % 2:  # several commits at once too
                continue
            numbers = self.numbers[name]
            one.read_on(
                self.there.table(self.names[name]),
                max(numbers),
                at=lambda version, name=name: self.model.rows(name, self.numbers[name][version]),
                before=lambda version, known=numbers: max(one for one in known if one < version),
            )

    @rule(name=st.sampled_from(TABLES), data=st.data())
    def read_elsewhere(self, name, data):
        version = data.draw(st.sampled_from(sorted(self.numbers[name])))
        there = self.there.table(self.names[name])
        assert visible(there, as_of=version) == self.model.rows(name, self.numbers[name][version])
        assert visible(there) == self.model.rows(name)

    @rule(name=st.sampled_from(TABLES))
    def rename(self, name):
        self.made += 1
        new = f"{name}_renamed_{self.lake.head}_{self.made}"
        self.lake.rename_table(self.names[name], new)
        self.names[name] = new
        self.tables[name] = self.lake.table(new)

    @rule(name=st.sampled_from(TABLES), interval=strategies.intervals(WEEKS))
    def read_an_interval(self, name, interval):
        interval = self.within(interval)
        assert visible(self.tables[name], interval=interval) == self.model.rows(name, interval=interval)

    @rule(name=st.sampled_from(TABLES), client=strategies.clients())
    def read_one_client(self, name, client):
        where = "client IS NULL" if client is None else "client = '{}'".format(client.replace("'", "\\'"))
        expected = [row for row in self.model.rows(name) if row[1] == client]
        assert visible(self.tables[name], where=where) == expected

    @rule(name=st.sampled_from(TABLES), value=st.integers(-(2**63), 2**63 - 1))
    def read_by_value(self, name, value):
        expected = [row for row in self.model.rows(name) if row[2] >= value]
        assert visible(self.tables[name], where=f"value >= {value}") == expected

    @rule(name=st.sampled_from(TABLES), data=st.data())
    def read_an_old_version(self, name, data):
        version = data.draw(st.sampled_from(sorted(self.numbers[name])))
        assert visible(self.tables[name], as_of=version) == self.model.rows(name, self.numbers[name][version])

    # What holds after every step

    @invariant()
    def the_head_and_some_earlier_versions_are_the_models(self):
        for name in TABLES if hasattr(self, "lake") else ():
            versions = sorted(self.numbers[name])
            assert visible(self.tables[name]) == self.model.rows(name)
            sampled = versions[(len(versions) + self.lake.head) % len(versions)]
            assert visible(self.tables[name], as_of=sampled) == self.model.rows(name, self.numbers[name][sampled])
            assert self.tables[name].version == versions[-1]
            assert self.tables[name].scan().count() == len(self.model.rows(name))

    @invariant()
    def what_is_retained_is_stored(self):
        for name in TABLES if hasattr(self, "lake") else ():
            for version in self.numbers[name]:
                for segment in self.tables[name].segments(as_of=version):
                    assert is_ordered_before(segment.ordinal, version)
                    assert self.lake.session.warehouse.size(segment.path) == segment.bytes

    @invariant()
    def the_timeline_shows_where_rows_are_visible(self):
        for name in TABLES if hasattr(self, "lake") else ():
            table = self.tables[name]
            slices = table.timeline().slices
            assert slices == timeline(table.segments(), table.tombstones()).slices
            assert slices_are_apart(slices)
            for time, *_ in self.model.rows(name):
                assert any(one.start <= time < one.end for one in slices)

    @invariant()
    def chunks_count_what_is_live(self):
        for name in TABLES if hasattr(self, "lake") else ():
            table = self.tables[name]
            if any(one.end - one.start > WIDE for one in table.tombstones()):
                continue  # every chunk that a tombstone covers is listed
            chunks, every = table.chunks(), table.segments()
            for place, chunk in enumerate(chunks):
                within = Interval(chunk.start, chunk.end)
                live = [segment for segment in every if segment.interval.overlaps(within)]
                assert (chunk.segments, chunk.rows) == (len(live), sum(segment.rows for segment in live))
                if (
                    place % (1 + len(chunks) // 20) == 0
                ):  # a segment may lie in a thousand, a look at each takes minutes
                    assert {one.id for one in table.segments(interval=within)} == {one.id for one in live}

    @invariant()
    def locks_are_those_of_running_operations(self):
        for name in TABLES if hasattr(self, "lake") else ():
            locks = self.tables[name].locks()
            assert locks_are_apart((lock.operation, Cell(lock.chunk, lock.keys)) for lock in locks)
            held = {lock.operation for lock in locks}
            running = [holder for holder in self.model.tables[name].holders if holder.kind == "replace"]
            assert len(held) >= len(running)

    @precondition(lambda self: hasattr(self, "lake") and len(self.numbers["one"]) > 1)
    @rule(name=st.sampled_from(TABLES), data=st.data())
    def a_diff_leads_from_one_version_to_another(self, name, data):
        versions = st.sampled_from(sorted(self.numbers[name]))
        a, b = data.draw(versions), data.draw(versions)
        table = self.tables[name]
        diff = table.diff(a, b)
        live = [{one.id for one in (*table.segments(as_of=at), *table.tombstones(as_of=at))} for at in (a, b)]
        assert {one.id for one in diff.added} == live[1] - live[0]
        assert {one.id for one in diff.dropped} == live[0] - live[1]


CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def explore(machine, examples):
    steps = settings(max_examples=examples, stateful_step_count=20, deadline=None, suppress_health_check=CHECKS)
    run_state_machine_as_test(machine, settings=steps)


@pytest.mark.timeout(600)
def test_a_random_history_is_the_models_on_sqlite(sqlite_url, tmp_path):
    lakehouse.connect(sqlite_url, str(tmp_path / "warehouse")).close()

    class OnSqlite(History):
        def new_catalog(self):
            shutil.copy(tmp_path / "catalog.db", self.folder)
            return f"sqlite:///{self.folder}/catalog.db"

    explore(OnSqlite, 6)


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("object_store")
def test_a_random_history_is_the_models_in_an_object_store_that_throttles_and_breaks_off(sqlite_url, tmp_path):
    lakehouse.connect(sqlite_url, str(tmp_path / "warehouse")).close()
    with moto_server() as store, StoreProxy(store.port) as proxy:

        class InStore(History):
            def new_catalog(self):
                shutil.copy(tmp_path / "catalog.db", self.folder)
                proxy.schedule = Schedule(len(proxy.exchanges), 0.3, in_a_row=1)
                return f"sqlite:///{self.folder}/catalog.db"

            def open(self, url, machine, **settings):
                place = store.under(os.path.basename(self.folder)).through(proxy.port)  # noqa: PTH119
                options = dict(place.options)
                cache = f"{self.folder}/{machine}"
                return lakehouse.connect(url, place.url, storage_options=options, cache_dir=cache, **settings)

        explore(InStore, 3)
        assert proxy.faults()


@pytest.mark.timeout(600)
def test_a_random_history_is_the_models_on_postgresql(postgres, postgres_template):
    class OnPostgres(History):
        def new_catalog(self):
            self.database = postgres.create_database(template=postgres_template)
            return postgres.url(self.database)

        def teardown(self):
            super().teardown()
            if hasattr(self, "database"):
                postgres.drop_database(self.database)

    explore(OnPostgres, 5)

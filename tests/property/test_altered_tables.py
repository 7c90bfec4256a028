"""Random changes of columns among writes, compactions and restores, against rows in a list: every version, each way."""

from __future__ import annotations

import os
import random
import shutil
import tempfile

import pytest

import lakehouse
from lakehouse.errors import SchemaMismatch
from lakehouse.testing.columns import Altered

SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # syncing a file to memory costs nothing


@pytest.fixture
def scratch():
    folder = tempfile.mkdtemp(dir=SCRATCH)
    yield folder
    shutil.rmtree(folder)


def altered_table(folder, seed, steps):
    """A table after so many random steps, and what it has to be."""
    lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse")
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT", time="at", primary_key=["id"])
    model = Altered(random.Random(seed))
    for _ in range(steps):
        step(model, table)
        model.note(lake.head)
        assert_same(model, table, None, f"seed {seed} at version {lake.head}")
    return lake, table, model


def step(model, table):
    match model.rng.choice(("append", "append", "add", "add", "drop", "rename", "widen", "delete", "upsert", "compact",
                            "restore", "move")):  # fmt: skip
        case "append":
            table.append(model.append(model.rng.randint(1, 4)))
        case "upsert":
            table.upsert(model.append(1))
        case "add":
            add(model, table)
        case "drop":
            column = model.drop()
            if column is not None:
                table.drop_column(column.name)
        case "rename":
            names = model.rename()
            if names is not None:
                table.rename_column(*names)
        case "widen":
            column = model.widen()
            if column is not None:
                table.widen_column(column.name, column.type)
        case "move" if model.columns:
            column = model.columns.pop()
            model.columns.insert(0, column)
            table.move_column(column.name, after="id")
        case "delete":
            rest = model.rng.randrange(5)
            model.delete(lambda number: number % 5 == rest)
            table.delete(f"id % 5 = {rest}")
        case "compact":
            table.compact()
        case "restore" if model.versions:
            table.restore(model.restore())


def add(model, table):
    found = model.add()
    if found is None:
        return
    column, place = found
    after = model.columns[place - 1].name if place else "id"
    table.add_column(column.name, column.type, default=column.default, default_for_new=column.for_new, after=after)


def rows(found):
    return sorted(found.to_pylist(), key=lambda row: row["id"])


def assert_same(model, table, version, said):
    scan = table.scan(as_of=version)
    found = scan.to_arrow()
    columns = model.columns if version is None else model.versions[version][0]
    assert [(one.name, one.type) for one in found.schema][2:] == [(one.name, one.type) for one in columns], said
    assert rows(found) == model.seen(version), said
    assert scan.count() == found.num_rows, said


@pytest.mark.parametrize("seed", range(9))
def test_every_version_shows_the_columns_and_rows_that_it_had(scratch, seed):
    lake, table, model = altered_table(scratch, seed, 40)
    with lake:
        for version in model.versions:
            assert_same(model, table, version, f"seed {seed} as of version {version}")
            try:
                current = table.scan(as_of=version, schema="current").to_arrow()
            except SchemaMismatch:
                assert model.narrows(version), (seed, version)
            else:
                assert rows(current) == model.seen(version, current=True), (seed, version)
        assert not lake.check(deep=True).findings


@pytest.mark.parametrize("seed", range(100, 102))
def test_filters_find_the_rows_that_a_list_does_whatever_the_column_was(scratch, seed):
    lake, table, model = altered_table(scratch, seed, 30)
    with lake:
        for version in [*model.versions][::3]:
            for name in (one.name for one in model.versions[version][0]):
                seen = model.seen(version)
                wanted = [row["id"] for row in seen if row[name] is None]
                found = table.scan(as_of=version, where=f"`{name}` IS NULL", columns=["id"]).to_arrow()
                assert sorted(found["id"].to_pylist()) == wanted, (seed, version, name)


@pytest.mark.parametrize("seed", range(200, 202))
def test_a_new_catalog_of_an_export_reads_what_the_lost_one_did(scratch, seed):
    lake, table, model = altered_table(scratch, seed, 30)
    lake.tag("kept", model.rng.choice(list(model.versions)))
    kept = lake.tags()["kept"]
    lake.export()
    lake.close()
    lakehouse.recover(f"{scratch}/warehouse", catalog=f"sqlite:///{scratch}/new.db")
    with lakehouse.connect(f"sqlite:///{scratch}/new.db", f"{scratch}/warehouse") as found:
        table = found.table("t")
        assert_same(model, table, None, seed)
        assert_same(model, table, kept, seed)
        table.add_column("one more", "INT", default=7)
        assert set(table.scan().to_arrow()["one more"].to_pylist()) <= {7}

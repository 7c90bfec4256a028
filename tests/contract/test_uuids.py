"""Columns of UUIDs: text in one spelling, whatever writes it, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.engine.conform import conform
from lakehouse.errors import InvalidInput, InvalidRows, SchemaMismatch
from lakehouse.schema import define_table, typed_value
from tests.unit.engine.typed import AT

DAY = datetime(2013, 1, 5, tzinfo=UTC)
A, B, C = (f"0f8fad5b-d9cb-469f-a165-70867728950{end}" for end in "abc")
WRONG = [A.upper(), f"{{{A}}}", A.replace("-", ""), f"{A}\n", f" {A}", A[:-1] + "g", f"urn:uuid:{A}", "", "\u212a" * 36]
"""Texts that are no UUID, or one in another spelling."""


@pytest.fixture
def catalog_url(sqlite_url):
    """One catalog is enough: nothing here depends on it."""
    return sqlite_url


@pytest.fixture
def table(lake):
    return lake.create_table("t", "at TIMESTAMP, id BIGINT, u UUID", time="at", primary_key="u")


def rows(uuids, kind=None):
    return pa.table({"at": pa.array([DAY] * len(uuids), AT), "id": list(range(len(uuids))), "u": pa.array(uuids, kind)})


def held(table, column="u"):
    return table.scan().to_arrow().sort_by("id")[column].to_pylist()


def declared(lake):
    return lake.sql("SHOW CREATE TABLE t")["createtab_stmt"][0].as_py()


@pytest.mark.parametrize("wrong", WRONG)
def test_a_text_that_is_no_uuid_or_one_in_another_spelling_is_refused(wrong):
    column = define_table("t", "at TIMESTAMP, u UUID", time="at").schema.field("u")
    with pytest.raises(InvalidRows, match="column=u row=2"):
        conform(pa.table({"u": [A, None, wrong, wrong]}), pa.schema([column]))
    with pytest.raises(InvalidInput, match="column=u"):
        typed_value(wrong, column)


def test_no_write_stores_another_spelling(lake, table):
    table.append(rows([A]))
    wrong = rows([B, A.upper()])
    lake.create_table("texts", "at TIMESTAMP, id BIGINT, u STRING", time="at").append(wrong)
    writes = [
        lambda: table.append(wrong),
        lambda: table.replace(wrong, "2013-01-05"),
        lambda: table.upsert(wrong),
        lambda: table.delete_keys(wrong.select(["u"])),
        lambda: table.merge(wrong, on=["u"]),
        lambda: lake.sql("INSERT INTO t SELECT * FROM texts"),
        lambda: lake.sql("MERGE INTO t USING texts s ON t.u = s.u WHEN NOT MATCHED THEN INSERT *"),
    ]
    for write in writes:
        with pytest.raises(InvalidRows, match="column=u"):
            write()
    assert held(table) == [A]


def test_an_error_names_the_row(table):
    with pytest.raises(InvalidRows, match=r"no UUID; write it as 36 characters in lower case.*column=u.*row=2"):
        table.append(pa.concat_tables([rows([A]), rows([B, "x"]), rows([C])]))


def test_an_update_stores_uuids_alone(lake, table):
    lake.create_table("v", "at TIMESTAMP, id BIGINT, u UUID, w STRING", time="at").append(
        rows([A]).append_column("w", pa.array([B]))
    )
    lake.sql("UPDATE v SET u = w")
    assert held(lake.table("v")) == [B]
    for expression in ("'x'", "u || 'a'"):
        with pytest.raises(InvalidRows, match="column=u"):
            lake.table("v").update({"u": expression}, "id = 0")


def test_a_condition_names_uuids_as_they_are_spelled(lake, table):
    table.append(rows([A, B, C]))
    for where in ("u = '{}'", "u <> '{}'", "u IN ('{}', NULL)", f"u NOT IN ('{{}}', '{B}')", "u <=> '{}'", "'{}' = u"):
        right, wrong = where.format(A), where.format(A.upper())
        wanted = [B, C] if "<>" in where else [C] if "NOT" in where else [A]
        assert sorted(table.scan(where=right).to_arrow()["u"].to_pylist()) == wanted, where
        for attempt in (lambda wrong=wrong: table.scan(where=wrong).count(), lambda wrong=wrong: table.delete(wrong)):
            with pytest.raises(InvalidInput, match="no row spells a UUID so"):
                attempt()
    with pytest.raises(InvalidInput, match="no row spells a UUID so"):
        lake.sql(f"DELETE FROM t WHERE u = '{A.upper()}'")
    assert lake.sql(f"SELECT u FROM t WHERE u = '{A.upper()}'").fetchall() == []
    assert table.scan(where=f"u >= '{B[:-1]}' AND u LIKE '%b'").to_arrow()["u"].to_pylist() == [B]
    assert held(table) == [A, B, C]


def test_uuids_of_python_stand_for_their_text(lake, table):
    uuids = [UUID(A), UUID(B), UUID(C)]
    table.append(rows(uuids[:2], pa.uuid()))
    table.upsert(rows(uuids, pa.uuid()))
    table.merge(rows(uuids[2:], pa.uuid()), on=["u"], when_matched_update={"id": "7"})
    assert held(table) == [A, B, C]
    assert lake.sql("SELECT u FROM t WHERE u = ?", args=[uuids[1]]).fetchall() == [(B,)]
    table.delete_keys(pa.table({"u": pa.array(uuids[:1], pa.uuid())}))
    assert held(table) == [B, C]
    keyed = lake.create_table("k", table.schema, time="at", cluster_by=["u"])
    keyed.append(rows([A, B]))
    keyed.replace(None, "2013-01-05", keys={"u": uuids[0]})
    assert held(keyed) == [B]
    keyed.append(rows([C, B]))
    keyed.compact()
    keyed.erase(f"u = '{B}'")
    assert (held(keyed), keyed.scan(where=f"u = '{B}'").count()) == ([C], 0)
    before = keyed.append(rows([B])).version - 1
    changed = keyed.changes(before).to_arrow()
    assert changed["u"].to_pylist() == [B]
    with pytest.raises(InvalidInput, match="column=u"):
        keyed.replace(None, "2013-01-05", keys={"u": B.upper()})
    with pytest.raises(InvalidRows, match="column=u"):
        keyed.append(rows(["x"]))
    assert not lake.check(deep=True).findings


def test_versions_in_which_a_column_of_uuids_was_any_text_are_not_read_as_uuids(lake, table):
    table.append(rows([A, B]).append_column("w", pa.array([UUID(A), UUID(B)], pa.uuid())), schema="merge")
    as_uuids = table.version
    table.widen_column("w", "STRING")
    table.append(rows([C]).append_column("w", pa.array(["any text"])))
    as_text = table.version
    table.restore(as_uuids)
    table.append(rows([C]).append_column("w", pa.array([UUID(C)], pa.uuid())))
    restored = table.version
    assert sorted(held(table, "w")) == [A, B, C]
    assert table.scan(where=f"w = '{A}'").count() == 1
    assert table.scan(as_of=as_uuids, schema="current").to_arrow()["w"].to_pylist() == [A, B]
    assert sorted(table.scan(as_of=as_text).to_arrow()["w"].to_pylist()) == [A, B, "any text"]
    with pytest.raises(SchemaMismatch, match="column=w"):
        table.scan(as_of=as_text, schema="current").to_arrow()
    with pytest.raises(SchemaMismatch, match="column=w"):
        table.changes(as_uuids).to_arrow()
    assert table.changes(as_uuids, as_text).to_arrow()["w"].to_pylist() == ["any text"]
    assert table.erase(f"u = '{C}'").rows_deleted == 2
    assert sorted(table.scan(as_of=as_text, schema="current").to_arrow()["w"].to_pylist()) == [A, B]
    table.restore(as_text)
    assert sorted(table.scan(as_of=restored, schema="current").to_arrow()["w"].to_pylist()) == [A, B]
    table.append(rows([C]).append_column("w", pa.array(["more text"])))
    table.compact()
    assert sorted(held(table, "w")) == [A, B, "more text"]
    assert not lake.check(deep=True).findings


def test_changes_of_columns_keep_what_a_column_is(lake, table):
    table.append(rows([A, B]))
    before = lake.head
    with pytest.raises(InvalidInput, match="column=z"):
        table.add_column("z", "UUID", default="x")
    lake.sql(f"ALTER TABLE t ADD COLUMN v UUID DEFAULT '{C}'")
    assert held(table, "v") == [C, C]
    table.rename_column("v", "w")
    with pytest.raises(InvalidInput, match="column=w"):
        table.set_default("w", C.upper())
    table.set_default("w", UUID(A))
    assert f"  `u` UUID NOT NULL,\n  `w` UUID DEFAULT '{A}',\n" in declared(lake)
    assert lake.sql("DESCRIBE t")["type"].to_pylist() == ["TIMESTAMP", "BIGINT", "UUID", "UUID"]
    as_uuids = lake.head
    table.widen_column("w", "STRING")
    table.update({"w": "'any text'"}, f"u = '{A}'")
    assert (held(table, "w"), "`w` STRING" in declared(lake)) == (["any text", C], True)
    begun = table.begin_append()
    begun.write(rows([C]).append_column("w", pa.array(["any text"])))
    table.restore(as_uuids)
    with pytest.raises(SchemaMismatch, match="it holds UUIDs now"):
        begun.commit()
    table.restore(before)
    with pytest.raises(InvalidRows, match="column=u"):
        table.append(rows(["x"]))
    table.append(rows([C]).append_column("n", pa.array([UUID(A)], pa.uuid())), schema="merge")
    assert "`n` UUID" in declared(lake)
    for path in (("s", "u"), "s"):
        kind = "UUID" if path == ("s", "u") else "STRUCT<u: UUID>"
        if path != "s":
            table.add_column("s", "STRUCT<a: INT>")
        with pytest.raises(InvalidInput, match="inside others use STRING"):
            table.add_column(path if path != "s" else "s2", kind)


@pytest.mark.parametrize("has_export", [True, False])
def test_a_recovered_catalog_knows_which_columns_hold_uuids(lake, table, tmp_path, has_export):
    table.append(rows([A]))
    if has_export:
        lake.export()
    url = f"sqlite:///{tmp_path}/recovered.db"
    lakehouse.recover(lake.warehouse, url, adopt=not has_export)
    with lakehouse.connect(url, str(lake.warehouse)) as again:
        assert held(again.table("t")) == [A]
        assert "  `u` UUID NOT NULL,\n" in declared(again)
        with pytest.raises(InvalidRows, match="column=u"):
            again.table("t").append(rows([B.upper()]))

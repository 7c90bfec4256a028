"""Views have versions like everything else: each version of the lake has those that were there then."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import pytest

import lakehouse
from lakehouse.catalog.store.models import lake_view
from lakehouse.core.operation import Kind
from lakehouse.errors import AlreadyExists, BrokenView, LakehouseError, VersionNotFound, ViewNotFound
from lakehouse.storage.exports import find_exports
from lakehouse.storage.files import Folder
from lakehouse.testing import behind
from lakehouse.testing.rows import SCHEMA, arrow

DAY = "2013-01-05"


def values(lake: Any, name: str, as_of: Any = None) -> list[int]:
    found = lake.sql(f"SELECT value FROM {name} ORDER BY value", engine="duckdb", as_of=as_of)
    return [row[0] for row in found.fetchall()]


def test_making_replacing_and_dropping_a_view_are_versions_of_the_lake(lake: Any, table: Any) -> None:
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    lake.create_view("late", "SELECT value FROM flights WHERE value > 1", comment="late ones")
    made = lake.head
    lake.create_view("late", "SELECT value FROM flights", or_replace=True)
    lake.drop_view("LATE")
    log = [(one.version, one.operation, one.message) for one in lake.log(3)]
    assert log == [
        (made + 2, Kind.DROP_VIEW, "drop view late"),
        (made + 1, Kind.CREATE_VIEW, "replace view late"),
        (made, Kind.CREATE_VIEW, "create view late"),
    ]
    assert values(lake, f"late VERSION AS OF {made}") == values(lake, "late", as_of=made) == [2]
    assert values(lake, "late", as_of=made + 1) == [1, 2]
    assert (lake.views(), lake.tables()) == ([], ["flights"])
    with pytest.raises(ViewNotFound):
        lake.drop_view("late")
    with pytest.raises(VersionNotFound, match="view did not exist"):
        values(lake, f"late VERSION AS OF {made - 1}")


def test_every_version_reads_through_the_view_that_it_had(lake: Any, table: Any) -> None:
    """A random history, and what each version shows as a list of what was done says it."""
    chance = random.Random(7)
    rows: list[int] = []
    limit: int | None = None
    known: dict[int, list[int] | None] = {}
    for turn in range(24):
        match chance.choice(["append", "append", "make", "drop"]):
            case "append":
                table.append(arrow([(DAY, "a", turn)]))
                rows = [*rows, turn]
            case "make":
                limit = turn // 2
                lake.create_view("late", f"SELECT value FROM flights WHERE value >= {limit}", or_replace=True)
            case "drop" if limit is not None:
                lake.drop_view("late")
                limit = None
        known[lake.head] = None if limit is None else [one for one in rows if one >= limit]
    assert None in known.values()
    assert len({len(one) for one in known.values() if one is not None}) > 3
    for version, expected in known.items():
        for name, as_of in ((f"late VERSION AS OF {version}", None), ("late", version)):
            if expected is None:
                with pytest.raises(LakehouseError):
                    values(lake, name, as_of)
            else:
                assert values(lake, name, as_of) == expected, version


def test_a_view_and_a_table_never_share_a_name(lake: Any, table: Any) -> None:
    lake.create_view("late", "SELECT 1 AS one")
    head = lake.head
    for make in (
        lambda: lake.create_view("Flights", "SELECT 1 AS one"),
        lambda: lake.create_view("flights", "SELECT 1 AS one", or_replace=True),
        lambda: lake.create_view("flights", "SELECT 1 AS one", if_not_exists=True),
        lambda: lake.create_view("LATE", "SELECT 1 AS one"),
        lambda: lake.create_table("Late", "at TIMESTAMP", time="at"),
        lambda: lake.create_table("late", "at TIMESTAMP", time="at", if_not_exists=True),
        lambda: lake.rename_table("flights", "LATE"),
    ):
        with pytest.raises(AlreadyExists):
            make()
    lake.create_view("late", "SELECT 2 AS two", if_not_exists=True)
    assert lake.head == head
    assert lake.sql("SELECT * FROM late", engine="duckdb").columns == ["one"]
    lake.rename_table("flights", "rides")
    lake.create_view("flights", "SELECT value FROM rides")
    with pytest.raises(AlreadyExists, match="a view of that name"):
        lake.rename_table("rides", "flights")


def test_an_expiry_keeps_the_views_of_tags_and_of_the_horizon(lake: Any, table: Any) -> None:
    table.append(arrow([(DAY, "a", 1)]))
    versions = []
    for number in range(5):
        lake.create_view("late", f"SELECT value + {number} AS value FROM flights", or_replace=True)
        versions.append(lake.head)
    lake.tag("kept", versions[1])
    lake.drop_view("late")
    lake.expire(keep_last=2)
    assert len(behind.rows_of(lake.catalog, lake_view.select())) == 2
    assert values(lake, "late VERSION AS OF 'kept'") == values(lake, "late", "kept") == [2]
    assert values(lake, "late", versions[4]) == [5]
    for version in (versions[0], versions[2], versions[3]):
        with pytest.raises(VersionNotFound):
            values(lake, "late", version)
    lake.untag("kept")
    assert lake.check().forgotten > 0
    lake.expire(keep_last=1)
    assert behind.rows_of(lake.catalog, lake_view.select()) == []
    assert (lake.check().forgotten, lake.check().is_sound) == (0, True)


def test_an_old_version_of_a_table_that_took_a_views_name_is_read_all_the_same(lake: Any, table: Any) -> None:
    table.append(arrow([(DAY, "a", 1)]))
    kept = table.version
    lake.create_view("rides", "SELECT 7 AS value")
    lake.tag("view")
    lake.drop_view("rides")
    lake.rename_table("flights", "rides")
    lake.create_view("late", "SELECT 1 AS one")
    lake.expire(keep_last=1)
    assert values(lake, f"rides VERSION AS OF {kept}") == values(lake, "rides") == [1]
    assert values(lake, "rides VERSION AS OF 'view'") == [7]


def test_a_recovered_lake_has_the_views_of_the_export(lake: Any, table: Any, warehouse: Any, tmp_path: Any) -> None:
    table.append(arrow([(DAY, "a", 1)]))
    lake.create_view("late", "SELECT value FROM flights", columns=["value"], comment="it's")
    lake.tag("first")
    lake.create_view("late", "SELECT value + 10 AS value FROM flights", or_replace=True)
    lake.create_view("gone", "SELECT 1 AS one")
    lake.drop_view("gone")
    before = [one for one in lake.catalog.views() if one.name == "late"]
    lake.export()
    url = f"sqlite:///{tmp_path}/recovered.db"
    lakehouse.recover(warehouse, url)
    with lakehouse.connect(url, warehouse) as again:
        assert again.catalog.views() == before
        assert values(again, "late") == [11]
        assert values(again, "late VERSION AS OF 'first'") == [1]
        again.create_view("gone", "SELECT 1 AS one")
        assert again.check().is_sound


def test_a_table_that_an_export_does_not_know_leaves_a_view_its_name(
    lake: Any, table: Any, warehouse: Any, tmp_path: Any
) -> None:
    lake.create_view("late", "SELECT 1 AS value")
    lake.export()
    lake.drop_view("late")
    lake.create_table("Late", SCHEMA, time="time").append(arrow([(DAY, "a", 7)]))
    url = f"sqlite:///{tmp_path}/recovered.db"
    lakehouse.recover(warehouse, url, adopt=True)
    with lakehouse.connect(url, warehouse) as again:
        (name,) = [one for one in again.tables() if one != "flights"]
        assert (values(again, "late"), values(again, name)) == ([1], [7])
        assert again.check().is_sound


def test_an_export_of_a_release_that_had_no_views_is_recovered_from(
    lake: Any, table: Any, warehouse: Any, tmp_path: Any
) -> None:
    table.append(arrow([(DAY, "a", 1)]))
    lake.export()
    (folder,) = find_exports(Folder(warehouse))
    manifest = folder / "manifest.json"
    said = json.loads(manifest.read_text().split("\n")[0])
    del said["parts"]["lake_view"]
    (folder / "lake_view.arrow").unlink()
    text = json.dumps(said)
    manifest.write_text(f"{text}\n{hashlib.sha256(text.encode()).hexdigest()}\n")
    found = lakehouse.recover(warehouse, f"sqlite:///{tmp_path}/recovered.db")
    assert (found.export, found.damaged) == (str(folder), ())


@pytest.mark.parametrize(
    ("values_", "found"),
    [
        ({"name": "flights"}, "this name at one version"),
        ({"created_version": 99_000}, "beyond the head"),
    ],
)
def test_a_check_reports_views_that_cannot_be(lake: Any, table: Any, values_: dict[str, Any], found: str) -> None:
    lake.create_view("late", "SELECT 1 AS one")
    behind.change(lake.catalog, lake_view.update().values(**values_))
    (finding,) = lake.check().findings
    assert finding.kind == "view"
    assert found in finding.problem


def test_views_that_read_each_other_are_refused_when_they_are_read(lake: Any, table: Any) -> None:
    """Two that are replaced at once may come to this: each was checked against the other's old form."""
    lake.create_view("one", "SELECT value FROM flights")
    lake.create_view("two", "SELECT value FROM one")
    behind.change(
        lake.catalog, lake_view.update().where(lake_view.c.name == "one").values(query="SELECT value FROM two")
    )
    for name in ("one", "two"):
        with pytest.raises(BrokenView, match="reads itself"):
            values(lake, name)
    lake.create_view("one", "SELECT value FROM flights", or_replace=True)
    assert values(lake, "two") == []

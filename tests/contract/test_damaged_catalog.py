"""A catalog in which a value became another is said to be damaged, and where; whatever it is asked."""

from __future__ import annotations

from contextlib import closing, suppress

import pytest

from lakehouse.catalog.store.damage import find_damage
from lakehouse.catalog.store.opening import sqlite
from lakehouse.errors import CatalogUnavailable, LakehouseError
from lakehouse.testing import behind
from lakehouse.testing.rows import arrow

DAY = "2013-01-05"
pytestmark = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
DAMAGE = {
    "segment.rows": "'x'",
    "segment.statistics": "'{'",
    "segment.checksum": "'abc'",
    "segment.codec": "'x'",
    "segment.path": "x'ff'",
    "lake_table.definition": "'[]'",
    "lake_table.created_version": "'v'",
    "commit_log.committed_us": "'soon'",
    "commit_log.properties": "'x'",
    "delta.action": "'q'",
    "bin.chain": "'x'",
    "tombstone.kind": "'nothing'",
    "tombstone.keys": "'['",
    "tombstone_set.content": "'x'",
    "operation.state": "'asleep'",
    "plan_count.plans": "'many'",
}
LOOKS = {
    "scan": lambda lake: lake.table("flights").scan().to_arrow(),
    "log": lambda lake: lake.log(),
    "chunks": lambda lake: lake.table("flights").chunks(),
    "append": lambda lake: lake.table("flights").append(arrow([(DAY, "a", 9)])),
    "delete": lambda lake: lake.table("flights").delete("value = 2"),
    "replace": lambda lake: lake.table("flights").replace(None, DAY),
    "compact": lambda lake: lake.table("flights").compact(),
    "maintain": lambda lake: lake.maintain(),
    "expire": lambda lake: lake.expire(keep_last=1),
    "collect": lambda lake: lake.collect(grace_seconds=0),
    "export": lambda lake: lake.export(),
}


@pytest.mark.parametrize("place", DAMAGE)
def test_a_value_that_cannot_be_raises_that_the_catalog_is_damaged(connect, lake, place):
    with connect() as there:
        made = there.create_table("flights", arrow([(DAY, "a", 1)]).schema, time="time", cluster_by=["client"])
        for value in range(3):
            made.append(arrow([(DAY, "a", value), (DAY, "b", value)]), properties={"by": "hand"})
        made.delete("value = 1")
        made.delete(f"client = 'b' AND time >= '{DAY}' AND time < '{DAY}T07:00'")
        assert made.scan(interval=DAY).count() == 2
        assert behind.ask(there.catalog, find_damage) is None
    name, column = place.split(".")
    path = behind.file_of(lake.catalog)
    lake.close()
    with closing(sqlite.connect(path)) as catalog:
        catalog.execute("PRAGMA ignore_check_constraints = 1")
        held = catalog.execute(f"UPDATE {name} SET {column} = {DAMAGE[place]}").rowcount
        catalog.commit()
    assert held > 0
    with connect() as there:
        with pytest.raises(CatalogUnavailable, match=f"damaged.*{place}"):
            there.check()
        for look in LOOKS.values():
            with suppress(LakehouseError):
                look(there)

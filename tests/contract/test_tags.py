"""Tags name versions."""

from __future__ import annotations

import pytest

from lakehouse.errors import AlreadyExists, InvalidInput, VersionNotFound
from lakehouse.testing.rows import arrow, values


def test_a_tag_names_the_head_or_a_version(lake, table):
    first = table.append(arrow([("2013-01-05", "a", 1)])).version
    table.append(arrow([("2013-01-05", "a", 2)]))
    lake.tag("closing")
    lake.tag("opening", first)
    table.append(arrow([("2013-01-05", "a", 3)]))
    assert lake.tags() == {"closing": table.log()[1].version, "opening": first}
    assert values(table, as_of="opening") == [1]
    assert values(table, as_of="closing") == [1, 2]


def test_a_tag_that_exists_is_not_moved(lake, table):
    lake.tag("closing")
    version = lake.tags()["closing"]
    table.append(arrow([("2013-01-05", "a", 1)]))
    with pytest.raises(AlreadyExists, match="closing"):
        lake.tag("closing")
    assert lake.tags() == {"closing": version}


def test_untag_forgets_a_name(lake, table):
    lake.tag("closing")
    lake.untag("closing")
    assert lake.tags() == {}
    with pytest.raises(VersionNotFound, match="closing"):
        table.scan(as_of="closing").to_arrow()
    with pytest.raises(VersionNotFound, match="closing"):
        lake.untag("closing")


def test_a_tag_of_a_version_that_is_not_there_is_refused(lake, table):
    with pytest.raises(VersionNotFound):
        lake.tag("future", lake.head + 10)
    with pytest.raises((VersionNotFound, InvalidInput)):
        lake.tag("past", -1)
    assert lake.tags() == {}


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 1000, None, 3, "2013-01", "17"])
def test_a_bad_tag_is_refused(lake, table, name):
    with pytest.raises(InvalidInput):
        lake.tag(name)
    assert lake.tags() == {}


def test_a_tag_names_a_consistent_state_of_every_table(lake, table):
    other = lake.create_table("other", "time TIMESTAMP, client STRING, value BIGINT", time="time")
    table.append(arrow([("2013-01-05", "a", 1)]))
    other.append(arrow([("2013-01-05", "a", 2)]))
    lake.tag("roll-out")
    table.append(arrow([("2013-01-05", "a", 3)]))
    other.append(arrow([("2013-01-05", "a", 4)]))
    assert (values(table, as_of="roll-out"), values(other, as_of="roll-out")) == ([1], [2])

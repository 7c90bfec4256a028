"""A COMMIT whose answer was lost is resolved by its operation's id: one version, its rows once, every file stays."""

from __future__ import annotations

import contextlib

import pytest

import lakehouse
from lakehouse.errors import CatalogUnavailable, CommitUnknown
from lakehouse.testing.proxy import CommitLosingProxy
from lakehouse.testing.rows import SCHEMA, arrow, values

ROWS = arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2)])


@pytest.fixture
def proxy(postgres):
    with CommitLosingProxy(postgres.port) as found:
        yield found


@pytest.fixture
def direct(postgres_url, warehouse):
    """A lake on the server itself."""
    with lakehouse.connect(postgres_url, str(warehouse)) as lake:
        lake.create_table("flights", SCHEMA, time="time", cluster_by=("client",))
        lake.create_table("other", SCHEMA, time="time")
        yield lake


@pytest.fixture
def remote(direct, postgres, postgres_database, proxy, warehouse):
    """The same lake through the network that loses answers."""
    with lakehouse.connect(postgres.url(postgres_database, port=proxy.port), str(warehouse)) as lake:
        lake.table("flights").append(arrow([("2013-01-05", "a", 0)]))
        yield lake


def both(lake):
    with lake.transaction() as tx:
        tx.table("flights").append(ROWS)
        tx.table("other").append(ROWS)


WRITES = {
    "append": lambda lake: lake.table("flights").append(ROWS),
    "append once": lambda lake: lake.table("flights").append(ROWS, txn=("feed", 1)),
    "replace": lambda lake: lake.table("flights").replace(ROWS, ("2013-01-05", "2013-01-07")),
    "replace a part": lambda lake: lake.table("flights").replace(None, ("2013-01-05", "2013-01-05T12:00")),
    "restore": lambda lake: lake.table("flights").restore(lake.table("flights").version),
    "transaction": both,
    "create": lambda lake: lake.create_table("new", SCHEMA, time="time"),
    "rename": lambda lake: lake.rename_table("other", "another"),
    "drop": lambda lake: lake.drop_table("other"),
    "tag": lambda lake: lake.tag("closing"),
}
AFTER = {
    "replace": [1, 2],
    "replace a part": [],
    "append": [0, 1, 2],
    "append once": [0, 1, 2],
    "transaction": [0, 1, 2],
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("answers", [1, 2, 3])
def test_a_lost_answer_is_not_seen_by_the_caller_and_leaves_one_version(
    direct, remote, proxy, warehouse, write, answers
):
    head = direct.head
    files = set(warehouse.rglob("*.parquet"))
    proxy.lose(answers)
    WRITES[write](remote)
    assert proxy.losses == answers or (proxy.losses >= 1 and answers > 1)
    proxy.lose(0)
    versions = [commit.version for commit in direct.log() if commit.version > head]
    assert len(versions) == (0 if write == "tag" else 1)
    assert values(direct.table("flights")) == AFTER.get(write, [0])
    assert files <= set(warehouse.rglob("*.parquet"))
    assert direct.table("flights").locks() == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("write", WRITES)
def test_a_connection_lost_while_reading_is_made_again(direct, remote, proxy, write):
    proxy.lose(1, reads=True)
    WRITES[write](remote)
    assert values(remote.table("flights")) == AFTER.get(write, [0])
    assert values(direct.table("flights")) == AFTER.get(write, [0])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_the_answer_to_each_commit_of_an_operation_may_be_lost(direct, remote, proxy, lost):
    """The operation's own catalog transactions are begin and commit; each in turn loses its answer."""
    table = remote.table("flights")
    proxy.lose(1 if lost in (1, 3) else 0)
    operation = table.begin_replace("2013-01-05") if lost <= 2 else table.begin_append()
    operation.write(arrow([("2013-01-05", "a", 7)]))
    proxy.lose(1 if lost in (2, 4) else 0)
    commit = operation.commit()
    assert commit == operation.commit()
    proxy.lose(0)
    assert values(direct.table("flights")) == ([7] if lost <= 2 else [0, 7])
    assert direct.head == commit.version
    assert direct.table("flights").locks() == []


@pytest.mark.timeout(300)
def test_a_commit_that_cannot_be_asked_about_is_unknown_and_resolved_later(direct, remote, proxy, warehouse):
    table = remote.table("flights")
    operation = table.begin_append()
    operation.write(ROWS)
    proxy.lose(10_000)
    with pytest.raises((CommitUnknown, CatalogUnavailable)) as caught:
        operation.commit()
    assert isinstance(caught.value, CommitUnknown)
    proxy.lose(0)
    head = direct.head
    commit = operation.commit()
    assert commit.version <= head
    assert direct.head == head
    assert values(direct.table("flights")) == [0, 1, 2]


@pytest.mark.timeout(300)
def test_an_abort_after_an_unknown_commit_deletes_no_file_of_it(direct, remote, proxy, warehouse):
    table = remote.table("flights")
    operation = table.begin_append()
    operation.write(ROWS)
    proxy.lose(10_000)
    with pytest.raises(CommitUnknown):
        operation.commit()
    proxy.lose(0)
    with contextlib.suppress(lakehouse.LakehouseError):
        operation.abort()
    assert values(direct.table("flights")) in ([0, 1, 2], [0])
    if values(direct.table("flights")) == [0, 1, 2]:
        assert all((warehouse / segment.path).is_file() for segment in direct.table("flights").segments())


@pytest.mark.timeout(300)
def test_a_block_that_ends_in_an_unknown_commit_keeps_its_rows_readable(direct, remote, proxy, warehouse):
    table = remote.table("flights")
    proxy.lose(0)

    def attempt() -> None:
        with table.begin_append() as operation:
            operation.write(ROWS)
            proxy.lose(10_000)

    with pytest.raises(lakehouse.LakehouseError):
        attempt()
    proxy.lose(0)
    assert values(direct.table("flights")) in ([0, 1, 2], [0])

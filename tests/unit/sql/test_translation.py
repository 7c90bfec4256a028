"""What was made of a statement's text is used again, and never where its names mean something else by then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound
from lakehouse.sql import parse
from lakehouse.sql.translation import translate
from tests.unit.sql.conftest import rows_of

TEXT = "WITH few AS (SELECT id FROM TRIPS WHERE price > 0) SELECT count(*), sum(id) FROM few"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that the parser reads from now on."""
    texts: list[str] = []
    read = parse.DIALECT.tokenize

    def reading(text: str, **options: object) -> object:
        texts.append(text)
        return read(text, **options)

    monkeypatch.setattr(parse.DIALECT, "tokenize", reading)
    return texts


def test_a_statement_that_was_asked_before_is_not_read_again(lake: lakehouse.Lake, parsed: list[str]) -> None:
    assert [rows_of(lake, TEXT) for _ in range(3)] == [[(2, 3)]] * 3
    assert parsed.count(TEXT) == 1


def test_it_reads_what_there_is_by_then_or_was_at_the_version_that_it_is_asked_of(lake: lakehouse.Lake) -> None:
    version = lake.head
    assert rows_of(lake, TEXT) == [(2, 3)]
    lake.sql("INSERT INTO trips VALUES ('2013-01-05', 9, 'x', 1, 1, NULL)")
    assert rows_of(lake, TEXT) == [(3, 12)]
    assert rows_of(lake, TEXT, as_of=version) == [(2, 3)]
    lake.sql("DELETE FROM trips WHERE id = 9")
    assert rows_of(lake, TEXT) == [(2, 3)]


def renamed(lake: lakehouse.Lake) -> None:
    lake.rename_table("trips", "journeys")


def dropped(lake: lakehouse.Lake) -> None:
    lake.drop_table("trips")


def shadowed(lake: lakehouse.Lake) -> None:
    lake.create_table("Trips", "at TIMESTAMP, id BIGINT, price DOUBLE", time="at")


@pytest.mark.parametrize("change", [renamed, dropped, shadowed])
def test_a_name_that_means_no_table_any_more_is_refused(
    lake: lakehouse.Lake, change: Callable[[lakehouse.Lake], None]
) -> None:
    rows_of(lake, TEXT)
    change(lake)
    for _ in range(2):
        with pytest.raises(TableNotFound):
            rows_of(lake, TEXT)


def test_another_table_of_the_name_is_asked_by_its_own_columns(lake: lakehouse.Lake, parsed: list[str]) -> None:
    text = "SELECT * FROM trips"
    assert len(rows_of(lake, text)[0]) == 6
    lake.drop_table("trips")
    lake.sql("CREATE TABLE trips (at TIMESTAMP, other STRING) PARTITIONED BY (days(at))")
    lake.sql("INSERT INTO trips VALUES ('2013-01-05', 'x')")
    assert [row[1] for row in rows_of(lake, text)] == ["x"]
    assert parsed.count(text) == 2
    with pytest.raises(InvalidInput):
        rows_of(lake, TEXT)


def test_a_table_with_exactly_the_name_comes_before_one_that_differs_by_case(lake: lakehouse.Lake) -> None:
    text = "SELECT count(*) FROM clients"
    assert rows_of(lake, text) == [(2,)]
    lake.create_table("clients", "at TIMESTAMP, id BIGINT", time="at")
    assert rows_of(lake, text) == [(0,)]
    lake.drop_table("clients")
    assert rows_of(lake, text) == [(2,)]


def test_what_is_refused_stays_refused(lake: lakehouse.Lake) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput):
            rows_of(lake, "SELECT nowhere FROM trips")
        with pytest.raises(InvalidInput):
            rows_of(lake, "SELECT uuid() FROM trips")


def test_texts_are_kept_up_to_a_size(lake: lakehouse.Lake) -> None:
    for number in range(30):
        rows_of(lake, f"SELECT count(*) FROM trips WHERE client <> '{number:0>200000}'")
    assert 0 < len(lake.session.translations) < 30


def test_a_translation_holds_no_tree(lake: lakehouse.Lake) -> None:
    tree = parse.parse_statement(TEXT).tree
    assert tree is not None
    translation, tables = translate(lake.session, tree, "duckdb")
    assert list(tables) == list(translation.specs) == ["trips"]
    assert [(one.table, one.wanted.columns, one.as_of) for one in translation.asked] == [
        ("trips", ("id", "price"), None)
    ]

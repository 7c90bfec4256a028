"""Whatever a value says, a page shows it as text, cut, and is the same page: without a browser, then in one."""

import csv
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakehouse
from queries import query
from tests.browser import hostile
from tests.browser.conftest import Place

APP = Path(__file__).resolve().parents[2] / "console/app.py"
PAGES = sorted(path.stem for path in (APP.parent / "views").glob("*.py"))
QUERY = f"SELECT what, `{hostile.COLUMN}`, at FROM hostile"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A lake of hostile values, looked at and never committed to."""
    folder = tmp_path_factory.mktemp("hostile")
    found = Place(f"sqlite:///{folder}/catalog.db", str(folder / "warehouse"))
    with lakehouse.connect(*found) as lake:
        hostile.fill(lake)
    return found


@pytest.fixture
def place(request: pytest.FixtureRequest, place: Place, filled: Place) -> Place:
    return filled if "table" in request.fixturenames else place


@pytest.fixture
def table(lake: lakehouse.Lake) -> lakehouse.Table:
    return lake.table("hostile")


def check_nothing_is_rendered(app: Any) -> None:
    assert not app.exception
    found = [(kind, text[:200]) for kind, text in hostile.rendered(app) if hostile.TOKEN in text]
    assert found == []
    assert not any(getattr(one.proto, "allow_html", False) and hostile.TOKEN in one.value for one in app.markdown)


@pytest.mark.parametrize("name", PAGES)
def test_no_page_renders_a_value_as_markdown(open_page: Any, table: lakehouse.Table, name: str) -> None:
    operation = table.begin_replace("2013-01-03", keys={"what": hostile.SCRIPT})
    for parameters in ({}, {"version": "hostile-tag", "interval": "2013-01-02"}):
        check_nothing_is_rendered(open_page(name, table="hostile", **parameters))
    operation.abort()


@pytest.mark.looks
@pytest.mark.parametrize("name", PAGES)
def test_no_page_renders_what_an_address_says(open_page: Any, flights: lakehouse.Table, name: str) -> None:
    for value in (hostile.SCRIPT, hostile.MARKDOWN, hostile.TURNED, hostile.NULL, "9" * 5000):
        app = open_page(name, table=value, version=value, interval=value, sql=value)
        check_nothing_is_rendered(app)
        for one in (*app.code, *app.text):
            assert not set("\0\u202e\u2066\u200b\x1b") & set(str(one.value))
            assert len(str(one.value)) < 10_000


@pytest.mark.looks
def test_the_check_itself_sees_a_value_that_is_rendered(open_page: Any, flights: lakehouse.Table) -> None:
    labels = dict.fromkeys(text for _, text in hostile.rendered(open_page("query")))
    assert {"Query", "Table", "SQL", "Run"} <= set(labels)
    assert any("One statement of Spark's SQL" in text for text in labels)


@pytest.mark.parametrize(
    "sql",
    [
        QUERY,
        f"SELECT '{hostile.TOKEN} <img src=x onerror=alert(1)>' AS `<script>{hostile.TOKEN}</script>`",
        f"SELECT 1 AS `{hostile.TOKEN}.a[0]:Q`, 2 AS `{hostile.TOKEN}\"'\\\\`",
        f"SELECT count(*) AS `{'n' * 10_000}{hostile.TOKEN}` FROM hostile WHERE what = '<img {hostile.TOKEN}>'",
        f"SELECT * FROM `<img {hostile.TOKEN}>`",
        f"SELECT {hostile.TOKEN}('<img>')",
        f"EXPLAIN SELECT * FROM hostile WHERE what = '**{hostile.TOKEN}**'",
        "DESCRIBE HISTORY hostile",
        "DESCRIBE hostile",
    ],
)
def test_rows_names_plans_and_errors_of_a_query_are_text(open_page: Any, table: lakehouse.Table, sql: str) -> None:
    app = open_page("query", sql=sql)
    check_nothing_is_rendered(app)
    for frame in app.dataframe:
        for name in frame.value.columns:
            assert len(name) < 200
        for cell in frame.value.select_dtypes("object").to_numpy().ravel():
            assert len(str(cell)) < 1_000
            assert not set("\0\u202e\u2066\u200b\x1b") & set(str(cell))


def test_what_is_taken_away_is_whole_and_no_formula_runs(
    open_page: Any, lake: lakehouse.Lake, table: lakehouse.Table
) -> None:
    found = query.ask(lake, QUERY, None, reader="somebody", on_wait=bool)
    back = pq.read_table(pa.BufferReader(query.to_parquet(found.rows)))
    assert sorted(back["what"].to_pylist()) == sorted(found.rows["what"].to_pylist())
    csv.field_size_limit(2_000_000)
    rows = list(csv.reader(io.StringIO(query.to_csv(found.rows).decode())))
    cells = [cell for row in rows for cell in row]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)

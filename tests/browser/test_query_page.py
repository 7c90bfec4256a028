"""The Query page, run without a browser: rows, refusals, limits, and why segments were left out."""

from typing import Any

import pytest

import lakehouse
import opened


def metrics(app: Any) -> dict[str, str]:
    return {one.label: one.value for one in app.metric}


def asked(open_page: Any, sql: str, **parameters: str) -> Any:
    app = open_page("query", **parameters)
    app.text_area(key="sql").set_value(sql)
    return app.button(key="run").click().run()


@pytest.mark.looks
def test_a_page_without_a_statement_says_what_to_do(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("query")
    assert not app.exception
    assert "Write a statement" in app.info[0].value
    app = app.button(key="example").click().run()
    assert not app.exception
    assert not app.error
    assert "ORDER BY `at` DESC" in app.text_area(key="sql").value
    assert len(app.dataframe[0].value) == 100


@pytest.mark.looks
def test_what_runs_the_first_statement_starts_while_it_is_written(open_page: Any, flights: lakehouse.Table) -> None:
    open_page("query")
    [process] = opened.lake().session.query_processes.idle()
    app = asked(open_page, "SELECT count(*) AS n FROM flights")
    assert not app.error
    assert [one.pid for one in opened.lake().session.query_processes.idle()] == [process.pid]


@pytest.mark.looks
def test_a_statement_in_the_address_is_run_at_the_version_in_the_address(
    open_page: Any, flights: lakehouse.Table
) -> None:
    counts = {}
    for version in ("2", "3"):
        app = open_page("query", sql="SELECT count(*) AS n FROM flights", version=version)
        assert not app.exception
        assert not app.error
        counts[version] = int(app.dataframe[0].value["n"][0])
    assert counts == {"2": 240, "3": 384}


@pytest.mark.looks
def test_a_tag_names_a_version_too(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("query", sql="SELECT count(*) AS n FROM flights", version="before-the-drop")
    assert int(app.dataframe[0].value["n"][0]) == flights.scan(as_of=5).count()


@pytest.mark.looks
@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE flights",
        "DELETE FROM flights WHERE delay = 1",
        "INSERT INTO flights VALUES ('2013-01-05', 'UA', 1)",
        "SELECT 1; DROP TABLE flights",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "COPY flights TO '/tmp/x'",
        "PRAGMA database_list",
    ],
)
def test_what_is_no_look_is_refused_and_changes_nothing(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table, sql: str
) -> None:
    head = lake.head
    app = asked(open_page, sql)
    assert not app.exception
    assert app.error[0].value == "The statement was not run."
    assert (lake.head, lake.tables()) == (head, ["flights", "weather"])


@pytest.mark.looks
def test_what_was_left_out_is_reported_with_its_reason(open_page: Any, flights: lakehouse.Table) -> None:
    app = asked(open_page, "SELECT carrier FROM flights WHERE at < '2013-01-03' AND delay > 30")
    opened, _, whole = metrics(app)["Segments opened"].partition(" of ")
    assert int(whole) == len(flights.segments())
    reasons, left_out = (frame.value for frame in app.dataframe if "reason" in frame.value)
    assert set(reasons["reason"]) == {"time", "min and max"}
    assert reasons.set_index("reason").loc["min and max", "condition"] == "delay > 30"
    assert reasons["segments"].sum() == int(whole) - int(opened) == len(left_out)


@pytest.mark.looks
def test_rows_beyond_the_limit_are_left_out_and_that_is_said(open_page: Any, flights: lakehouse.Table) -> None:
    app = asked(open_page, "SELECT a.at FROM flights a, flights b")
    assert len(app.dataframe[0].value) == 5_000
    assert any("more were left out" in one.value for one in app.text)


@pytest.mark.looks
def test_a_chart_is_offered_for_numbers(open_page: Any, flights: lakehouse.Table) -> None:
    app = asked(open_page, "SELECT at, delay, carrier FROM flights")
    assert app.selectbox(key="across").options == ["at", "delay", "carrier"]
    assert app.selectbox(key="up").options == ["delay"]
    for kind in ("bars", "points"):
        app = app.selectbox(key="shape").select(kind).run()
        assert not app.exception
    app = app.selectbox(key="across").select("carrier").run()
    assert not app.exception


@pytest.mark.looks
@pytest.mark.parametrize(
    "sql", ["SHOW TABLES", "DESCRIBE flights", "DESCRIBE HISTORY flights", "EXPLAIN SELECT 1", "SELECT 1 AS a, 2 AS a"]
)
def test_other_looks_are_shown(open_page: Any, flights: lakehouse.Table, sql: str) -> None:
    app = asked(open_page, sql)
    assert not app.exception
    assert not app.error
    assert len(app.dataframe[0].value) >= 1


@pytest.mark.looks
def test_the_same_question_can_be_copied(open_page: Any, flights: lakehouse.Table) -> None:
    sql = "SELECT max(delay) AS late FROM flights WHERE carrier = 'UA'"
    app = asked(open_page, sql, version="3")
    copies = [code.value for code in app.code]
    assert any("lake.query(" in one and "as_of='3'" in one for one in copies)
    assert sql in copies
    assert any(one.startswith("lakehouse sql ") and "--as-of 3" in one for one in copies)
    assert any("/query?" in one and "sql=SELECT" in one for one in copies)


WORDS = [
    ("SELECT delya FROM flights", "No such column: delya", "Did you mean delay?"),
    ("SELECT * FROM flihgts", "No such table in the lake: flihgts", "Did you mean flights?"),
    ("SELECT fist(delay) FROM flights", "This function is not allowed: fist", "Did you mean first or"),
    ("SELECT carrier + 1 FROM flights", "Candidate functions:", ""),
    ("SELECT carrier, count(*) FROM flights", 'column "carrier" must appear in the GROUP BY clause', ""),
    ("SELECT at\nFROM flights WHERE (at", "FROM flights WHERE (at\n                     ^", ""),
    ("SELECT 1; SELECT 2", "One statement at a time", "Run them one by one."),
    ("SELECT :late", "The statement needs values: :late", "Write the values into the statement"),
    ("SELEC 1", "No statement of this kind is taken: SELEC 1", "Statements here begin with SELECT"),
]


@pytest.mark.looks
@pytest.mark.parametrize(("sql", "words", "advice"), WORDS)
def test_a_refusal_is_in_the_engines_words_with_candidates_and_advice_for_this_page(
    open_page: Any, flights: lakehouse.Table, sql: str, words: str, advice: str
) -> None:
    app = asked(open_page, sql)
    assert not app.exception
    said = "\n".join(one.value for one in (*app.code, *app.text, *app.markdown))
    assert words in app.code[0].value
    assert advice in said
    for elsewhere in ("engine=", "args=", "most_", "`lakehouse ", "lake."):
        assert elsewhere not in said


@pytest.mark.looks
def test_a_query_that_reaches_a_limit_says_where_to_allow_more(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("query")
    app.number_input(key="most seconds").set_value(1)
    app.text_area(key="sql").set_value(
        "SELECT count(*) FROM flights a, flights b, flights c, flights d WHERE a.delay + b.delay > c.delay * d.delay"
    )
    app = app.button(key="run").click().run()
    assert app.error[0].value == "The query was stopped."
    assert any("under Limits" in one.value for one in app.text)


def test_a_query_is_saved_as_a_link_and_in_the_lake_by_who_may(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for = {"sql": "SELECT at, delay FROM flights WHERE delay > 300", "version": "3", "title": "late"}
    app = open_page("query", **asked_for)
    (address,) = [one.value for one in app.code if "/query?" in one.value]
    assert "title=late" in address
    assert "version=3" in address
    (save,) = [one for one in app.button if one.label.startswith("Save it")]
    assert save.disabled
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", "maintainer")
    for name, is_name in (("not a name", False), ("late", True)):
        app = open_page("query", **{**asked_for, "title": name})
        (save,) = [one for one in app.button if one.label.startswith("Save it")]
        app = save.click().run()
        assert bool(app.error) != is_name
    app = next(one for one in app.button if one.label == "Confirm").click().run()
    assert not app.error
    assert lake.views() == ["late"]
    (link,) = [one for one in app.get("page_link") if one.proto.label == "late"]
    assert "sql=SELECT+%2A+FROM+late" in link.proto.query_string
    app = open_page("query", sql="SELECT count(*) AS n FROM late", version=str(lake.head))
    assert int(app.dataframe[0].value["n"][0]) == flights.scan(where="delay > 300").count()

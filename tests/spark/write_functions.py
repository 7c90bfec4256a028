"""Ask Spark itself what every expression of the table means: ``python -m tests.spark.write_functions``."""

from __future__ import annotations

import json
from typing import Any

from pyspark.errors import PySparkException

from lakehouse.engine.spark.session import start_session
from tests.unit.sql.functions_table import ALL, ANSWERS, ROWS, statement
from tests.unit.sql.test_functions import ERROR, column_of, encoded

_TOGETHER = 40


def ask(session: Any, text: str) -> list[str] | str:
    """The answers to one statement, encoded; `ERROR` where Spark refuses it or fails on a row."""
    try:
        found = session.sql(text).toArrow()
    except PySparkException:
        return ERROR
    except ValueError:  # a type of nothing but nulls, which Arrow cannot have everywhere
        answers = [encoded(row[0]) for row in session.sql(text).collect()]
        return answers[0] if len(set(answers)) == 1 else answers
    return column_of(found.column(0))


def ask_together(session: Any, expressions: list[str]) -> dict[str, list[str] | str] | None:
    """The answers to several expressions by one statement; None where one of them fails."""
    listed = ", ".join(f"{one} AS c{place}" for place, one in enumerate(expressions))
    try:
        found = session.sql(f"SELECT {listed} FROM r").toArrow()
    except (PySparkException, ValueError):
        return None
    return {one: column_of(held) for one, held in zip(expressions, found.columns, strict=True)}


def prepare(session: Any) -> None:
    """Settings as those of statements, and the rows as a view."""
    for name, value in (("sql.session.timeZone", "UTC"), ("sql.ansi.enabled", "true")):
        session.conf.set(f"spark.{name}", value)
    session.createDataFrame(ROWS).coalesce(1).orderBy("o").cache().createOrReplaceTempView("r")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Write the file of answers."""
    session = start_session()
    session.sparkContext.setLogLevel("OFF")
    prepare(session)
    answers: dict[str, Any] = {}
    for first in range(0, len(ALL), _TOGETHER):
        some = ALL[first : first + _TOGETHER]
        together = [one for one in some if one.startswith("TRY_CAST")]
        rows = ask_together(session, together) if together else None
        answers |= rows or {}
        answers |= {one: ask(session, statement(one)) for one in some if one not in answers}
    lines = (f"{_text(one)}: {_text(answers[one])}" for one in ALL)
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

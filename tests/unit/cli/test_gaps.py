"""Numbers between versions: the log says who drew them, and pictures speak of versions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lakehouse

Run = Callable[..., Any]


def test_the_log_says_what_became_of_each_number(run: Run, trips: Path) -> None:
    with lakehouse.connect() as lake:
        table = lake["trips"]
        replaced = table.replace(table.head(1), "2013-01-05")
        op = table.begin_replace("2013-01-06")
        op.abort()
        last = table.append(table.head(1))
        other = lake.create_table("other", "n INT").version
        final = table.append(table.head(1))
    said = run("log").out
    assert f"{replaced.version - 1} was drawn by a replace of trips, which became version {replaced.version}\n" in said
    assert f"{last.version - 1} was drawn by a replace of trips, which did not commit\n" in said
    assert "other numbers" not in said
    assert "other numbers between them are versions of other tables" in run("log", "trips").out
    assert (other, final.version) == (last.version + 1, last.version + 2)


def test_pictures_and_diffs_speak_of_versions(run: Run, trips: Path) -> None:
    with lakehouse.connect() as lake:
        table = lake["trips"]
        lake.create_table("other", "n INT")
        replaced = table.replace(table.head(1), "2013-01-05")
    lines = run("timeline", "trips", "--width", "60").out.splitlines()
    assert lines[1].split("|")[0].strip() == str(replaced.version)
    assert run("diff", "trips", "2", "3").out == "trips is the same at 2 and 3\n"
    assert f"trips: 3 .. {replaced.version}" in run("diff", "trips", "3", str(replaced.version)).out

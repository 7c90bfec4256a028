"""What each command does, prints and exits with."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.cli import app

Run = Callable[..., Any]


def rows() -> list[dict[str, Any]]:
    with lakehouse.connect() as lake:
        found: list[dict[str, Any]] = lake.table("trips").scan().to_arrow().sort_by("at").to_pylist()
        return found


def test_every_command_has_help_and_every_look_and_write_takes_json_and_addresses(run: Run) -> None:
    commands = [command.name for command in app.registered_commands]
    assert {"demo", "doctor", "init", "tables", "log", "show", "diff", "timeline", "append", "replace"} <= set(commands)
    assert {"compact", "restore", "tag", "locks", "expire", "collect", "check", "migrate", "console"} <= set(commands)
    for command in commands:
        ran = run(command, "--help")
        assert ran.code == 0
        assert command == "new" or "--catalog" in ran.out  # a project says itself where its lake is
        assert command == "new" or "--warehouse" in ran.out
        assert command in ("console", "serve") or "--json" in ran.out


def test_init_makes_a_lake_and_says_what_is_in_it(run: Run, tmp_path: Path) -> None:
    assert run("init").out == "lake at version 0 with 0 tables\n"
    assert (tmp_path / ".lakehouse/catalog.db").exists()
    assert json.loads(run("init", "--json").out) == {"head": 0, "tables": []}


def test_init_with_a_table_needs_its_columns(run: Run) -> None:
    ran = run("init", "trips")
    assert (ran.code, "--schema" in ran.err) == (2, True)


def test_a_timeless_table_takes_every_command(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "codes.csv"
    file.write_text("code,name\nUA,United\nB6,JetBlue\n")
    assert run("init", "codes", "--schema", "code string, name string", "--cluster-by", "code", "--grain", "day").code
    assert run("init", "codes", "--schema", "code string, name string", "--cluster-by", "code").code == 0
    assert run("append", "codes", str(file)).code == 0
    assert run("replace", "codes", "all", str(file)).code == 0
    assert run("replace", "codes", "all", "--key", "code=UA", "--empty").code == 0
    ran = run("replace", "codes", "2013-01-05", "--empty")
    assert (ran.code, "the table has no time" in ran.err) == (1, True)
    assert "replace codes all FILE" in " ".join(run("replace", "codes", "2013", str(file)).err.split())
    (told,) = json.loads(run("tables", "--json").out)["tables"]
    assert (told["time"], told["grain"], told["start"], told["rows"]) == (None, "all", None, 1)
    assert "all" in run("tables").out
    looks = ("show codes --segments", "timeline codes", "log codes", "diff codes 2 3", "locks", "check --deep")
    for command in (*(look.split() for look in looks), ["compact", "codes"], ["delete", "codes", "code = 'B6'"]):
        assert run(*command).code == 0, command
    for command in (["show", "codes"], ["timeline", "codes"], ["compact", "codes"]):
        assert run(*command, "--interval", "2013").code == 1, command


def test_addresses_come_from_options_before_the_environment(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CATALOG", f"sqlite:///{tmp_path}/from-environment.db")
    run("init", "--warehouse", str(tmp_path / "w"))
    run("init", "--catalog", f"sqlite:///{tmp_path}/from-option.db", "--warehouse", str(tmp_path / "w"))
    assert {path.name for path in tmp_path.glob("*.db")} == {"from-environment.db", "from-option.db"}


def test_append_reads_text_with_and_without_offsets_as_utc(run: Run, trips: Path) -> None:
    assert [str(row["at"]) for row in rows()] == [
        "2013-01-05 07:00:00+00:00",
        "2013-01-05 07:00:00+00:00",
        "2013-01-07 01:02:03.500000+00:00",
    ]
    assert {row["price"] for row in rows()} == {2.5, None, 1.0}


def test_append_prints_the_commit(run: Run, trips: Path) -> None:
    assert run("append", "trips", str(trips)).out == "version 3: append trips: segments +2 -0, rows +3 -0\n"
    commit = json.loads(run("append", "trips", str(trips), "--json").out)
    assert (commit["version"], commit["rows_added"], commit["tables"]) == (4, 3, ["trips"])


def test_replace_puts_a_file_in_place_of_an_interval(run: Run, trips: Path, tmp_path: Path) -> None:
    day = tmp_path / "day.jsonl"
    day.write_text('{"at": "2013-01-05T10:00:00Z", "client": 5, "name": "new", "price": 9.0}\n')
    assert run("replace", "trips", "2013-01-05", str(day)).code == 0
    assert [(row["client"], row["name"]) for row in rows()] == [(5, "new"), (77, "c, d")]


def test_replace_of_one_key_leaves_the_others(run: Run, trips: Path) -> None:
    assert run("replace", "trips", "2013-01-05", "--key", "client=77", "--empty").code == 0
    assert [row["client"] for row in rows()] == [1, 77]


def test_replace_asks_for_a_file_or_for_nothing_but_not_for_both(run: Run, trips: Path) -> None:
    assert run("replace", "trips", "2013-01-05").code == 2
    assert run("replace", "trips", "2013-01-05", str(trips), "--empty").code == 2
    assert len(rows()) == 3


def test_a_key_that_is_no_value_of_its_column_is_named(run: Run, trips: Path) -> None:
    ran = run("replace", "trips", "2013-01-05", "--key", "client=many", "--empty")
    assert (ran.code, "client" in ran.err and "many" in ran.err) == (1, True)
    assert run("replace", "trips", "2013-01-05", "--key", "client", "--empty").code == 2


def test_a_file_with_other_columns_is_refused_fitted_or_gives_the_table_columns(
    run: Run, trips: Path, tmp_path: Path
) -> None:
    (tmp_path / "more.csv").write_text("at,client,gate\n2013-01-09 01:00,5,B2\n")
    assert run("append", "trips", "more.csv").code == 1
    for command in (("append", "trips"), ("replace", "trips", "2013-01-09")):
        assert run(*command, "more.csv", "--schema", "ignore").code == 0
    assert run("replace", "trips", "2013-01-09", "more.csv", "--schema", "merge").code == 0
    assert [(row["client"], row["gate"]) for row in rows()][-1] == (5, "B2")
    assert run("append", "trips", "more.csv", "--schema", "loose").code == 2


def test_rows_outside_the_interval_fail_in_one_line_and_change_nothing(run: Run, trips: Path) -> None:
    ran = run("replace", "trips", "2013-01-09", str(trips))
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "2013-01-09" in ran.err
    assert json.loads(run("tables", "--json").out)["head"] == 2


def test_a_rebuild_lays_a_table_out_anew(run: Run, trips: Path) -> None:
    done = json.loads(run("rebuild", "trips", "--cluster-by", "client=16", "--grain", "month", "--json").out)
    assert done["rows_added"] == 0
    shown = json.loads(run("show", "trips", "--json").out)
    assert (shown["cluster_by"], shown["grain"]) == ({"client": 16}, "month")
    assert "write COLUMN or COLUMN=BUCKETS" in run("rebuild", "trips", "--cluster-by", "client=x").err
    run("rebuild", "trips", "--cluster-by", "none")
    assert json.loads(run("show", "trips", "--json").out)["cluster_by"] == {}


def test_compact_says_when_there_is_nothing_to_gain(run: Run, trips: Path) -> None:
    run("append", "trips", str(trips))
    assert json.loads(run("compact", "trips", "--json").out)["operation"] == "compact"
    assert run("compact", "trips").out == "nothing to gain in trips\n"
    assert json.loads(run("compact", "trips", "--json").out) is None
    assert len(rows()) == 6


def test_delete_and_update_change_the_rows_of_a_condition(run: Run, trips: Path) -> None:
    before = len(rows())
    ran = json.loads(run("update", "trips", "client=client + 100", "--where", "client = 12", "--json").out)
    assert ran["operation"] == "update"
    assert run("update", "trips", "client", "--where", "TRUE").code == 1
    ran = json.loads(run("delete", "trips", "client = 112", "--message", "gone", "--json").out)
    assert (ran["operation"], ran["message"]) == ("delete", "gone")
    assert len(rows()) == before - ran["rows_deleted"]
    assert run("delete", "trips", "nosuch = 1").code == 1


def test_upsert_and_resolve_work_by_primary_key(run: Run, trips: Path) -> None:
    assert run("upsert", "trips", str(trips)).code == 1
    table = (
        "init",
        "keyed",
        "--schema",
        "at timestamp, client bigint, name string, price double",
        "--time",
        "at",
        "--primary-key",
        "client",
    )
    run(*table)
    assert run("upsert", "keyed", str(trips), "--newest", "at").code == 0
    assert run("upsert", "keyed", str(trips), "--newest", "at").code == 0
    assert json.loads(run("resolve", "keyed", "--json").out)["operation"] == "resolve"
    assert run("resolve", "keyed").out == "no key tombstone in keyed\n"


def test_restore_goes_back_to_a_version_or_a_tag(run: Run, trips: Path) -> None:
    assert json.loads(run("tag", "good", "2", "--json").out) == {"good": 2}
    run("replace", "trips", "2013", "--empty")
    assert rows() == []
    assert run("restore", "trips", "good").code == 0
    assert len(rows()) == 3
    run("replace", "trips", "2013", "--empty")
    assert run("restore", "trips", "2").code == 0
    assert len(rows()) == 3


def test_tags_are_listed_and_removed(run: Run, trips: Path) -> None:
    run("tag", "good")
    assert "good" in run("tag").out
    assert run("tag", "good", "--delete").code == 0
    assert json.loads(run("tag", "--json").out) == {}
    assert run("tag", "--delete").code == 2
    assert run("tag", "good", "--delete").code == 1


def test_tables_show_totals(run: Run, trips: Path) -> None:
    (table,) = json.loads(run("tables", "--json").out)["tables"]
    assert (table["name"], table["rows_stored"], table["segments"], table["chunks"]) == ("trips", 3, 2, 2)
    assert "trips" in run("tables").out


def test_an_empty_lake_says_how_to_make_a_table(run: Run) -> None:
    assert "lakehouse create" in run("tables").out


def test_the_log_is_newest_first_limited_and_shows_messages_and_tags(run: Run, trips: Path) -> None:
    run("append", "trips", str(trips))
    run("tag", "good", "2")
    assert [commit["version"] for commit in json.loads(run("log", "--json").out)] == [3, 2, 1]
    assert [commit["version"] for commit in json.loads(run("log", "trips", "-n", "1", "--json").out)] == [3]
    printed = run("log").out
    assert "three rows" in printed
    assert "good" in printed


def test_show_shows_columns_chunks_segments_tombstones_and_key_frames(run: Run, trips: Path) -> None:
    run("replace", "trips", "2013-01-05", "--key", "client=1", "--empty")
    document = json.loads(run("show", "trips", "--segments", "--tombstones", "--key-frames", "--json").out)
    assert [column["name"] for column in document["schema"]] == ["at", "client", "name", "price"]
    assert [chunk["segments"] for chunk in document["chunks"]] == [1, 1]
    assert [tombstone["keys"] for tombstone in document["tombstones"]] == [{"client": [1]}]
    assert len(document["segments"]) == 2
    assert document["key_frames"]
    assert "client=1" in run("show", "trips", "--tombstones").out


def test_show_is_limited_to_a_version_and_an_interval(run: Run, trips: Path) -> None:
    run("append", "trips", str(trips))
    document = json.loads(run("show", "trips", "--as-of", "2", "--interval", "2013-01-07", "--segments", "--json").out)
    assert (len(document["segments"]), len(document["chunks"])) == (1, 1)


def test_diff_lists_what_came_and_went(run: Run, trips: Path) -> None:
    run("replace", "trips", "2013-01-07", "--empty")
    document = json.loads(run("diff", "trips", "2", "3", "--json").out)
    assert document["changes"] == []
    head = str(json.loads(run("tables", "--json").out)["head"])
    document = json.loads(run("diff", "trips", "2", head, "--json").out)
    assert [(change["action"], change["kind"]) for change in document["changes"]] == [("drop", "segment")]
    assert "the same" in run("diff", "trips", "2", "2").out
    assert "drop" in run("diff", "trips", "2", head).out
    ends = " ".join(run("diff", "trips", "1", "2").out.split())
    assert "2013-01-05 07:00 2013-01-05 07:00 2" in ends, "the last row is where a segment ends"
    assert "00.000001" not in ends
    run("replace", "trips", "2013-01-05T06:00/2013-01-05T07:30", "--key", "client=1", "--empty")
    cut = str(json.loads(run("tables", "--json").out)["head"])
    assert "before 2013-01-05 07:30" in run("diff", "trips", head, cut).out
    head = cut
    run("alter", "trips", "ADD COLUMN gate STRING")
    altered = str(json.loads(run("tables", "--json").out)["head"])
    ran = run("diff", "trips", head, altered)
    assert (ran.code, ran.out) == (0, "column gate added: string\n")
    changes = json.loads(run("diff", "trips", "2", altered, "--json").out)["columns"]
    assert changes == [{"kind": "added", "column": "gate", "before": "", "after": "string"}]


def test_the_timeline_is_drawn_and_reported(run: Run, trips: Path) -> None:
    run("replace", "trips", "2013-01-07T00:00/2013-01-07T01:00", "--empty")
    run("replace", "trips", "2013-01-05", "--key", "client=1", "--empty")
    lines = run("timeline", "trips", "--width", "60").out.splitlines()
    assert "visible" in lines[0]
    assert all(len(line) <= 60 for line in lines[1:])
    assert any("█" in line for line in lines[1:])
    assert any("╱" in line for line in lines[1:])
    document = json.loads(run("timeline", "trips", "--json").out)
    assert [len(one["tombstones"]) for one in document["slices"]] == [1, 0]
    assert "nothing" in run("timeline", "trips", "--interval", "1999").out


def test_locks_name_their_holder(run: Run, trips: Path) -> None:
    assert run("locks").out == "no locks are held\n"
    with lakehouse.connect() as lake:
        operation = lake.table("trips").begin_replace("2013-01-05", keys={"client": 77})
        (lock,) = json.loads(run("locks", "trips", "--json").out)
        printed = run("locks").out
        released = run("locks", "--release", operation.id)
        again = run("locks", "--release", operation.id)
        operation.abort()
    assert (lock["operation"], lock["keys"]) == (operation.id, {"client": [77]})
    assert operation.id in printed
    assert (released.code, released.out) == (0, "no locks are held\n")
    assert (again.code, "no such operation" in again.err) == (1, True)


def test_migrate_names_the_revision(run: Run, trips: Path) -> None:
    assert json.loads(run("migrate", "--json").out)["revision"]


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (("log", "nowhere"), "table_not_found", "table_not_found"),
        (("show", "trips", "--as-of", "99"), "version_not_found", "version_not_found"),
        (("timeline", "trips", "--interval", "2013-13"), "invalid_input", "invalid_interval"),
        (("restore", "trips", "no-such-tag"), "version_not_found", "version_not_found"),
        (("delete", "trips", "no_such_column = 1"), "invalid_input", "unknown_column"),
        (("sql", "SELECT * FROM nowhere"), "table_not_found", "table_not_found"),
        (("init", "trips", "--schema", "at TIMESTAMP", "--time", "at"), "already_exists", "already_exists"),
        (("tag", ""), "invalid_input", "invalid_name"),
    ],
)
def test_an_error_is_one_line_or_one_document(
    run: Run, trips: Path, arguments: tuple[str, ...], kind: str, code: str
) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith("lakehouse: ")
    ran = run(*arguments, "--json")
    document = json.loads(ran.err)
    assert (ran.code, ran.out, document["error"], document["code"]) == (1, "", kind, code)
    assert document.keys() == {"error", "code", "message", "facts"}


def test_a_bug_is_one_line_or_one_document_too(run: Run, trips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(lakehouse.Lake, "log", fail)
    ran = run("log")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "a bug of lakehouse: ZeroDivisionError: by nothing; please report it" in ran.err
    document = json.loads(run("log", "--json").err)
    assert (document["error"], document["code"]) == ("internal", "internal_error")
    assert "ZeroDivisionError: by nothing" in document["message"]


def test_a_catalog_that_is_down_is_an_error_without_a_stack_trace_or_a_password(run: Run) -> None:
    ran = run("tables", "--catalog", "postgresql+psycopg://nobody:secret@127.0.0.1:1/none")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert "secret" not in ran.err


def test_wrong_usage_exits_with_two(run: Run) -> None:
    assert run("append").code == 2
    assert run("no-such-command").code == 2
    assert run("append", "trips", "no-such-file.csv").code == 2


def test_control_characters_in_stored_text_do_not_reach_the_terminal(run: Run, trips: Path) -> None:
    run("append", "trips", str(trips), "--message", "red \x1b[31m bell \x07 [bold]x[/bold]")
    printed = run("log").out
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "[bold]x[/bold]" in printed


def test_nothing_is_cut_where_there_is_no_terminal(run: Run, trips: Path) -> None:
    run("append", "trips", str(trips), "--message", "x" * 500)
    assert "x" * 500 in run("log").out


UNASKED = {"lakehouse.cli.serve", "lakehouse.cli.write", "sqlalchemy.orm", "sqlmodel"}
"""Of other commands, and of a mapper that nothing needs."""
OPTIONAL = {"pandas", "polars", "pyspark", "dagster", "streamlit"}
STATEMENTS = {"lakehouse.sql.run", "lakehouse.sql.looking", "lakehouse.predicate.parsing", "lakehouse.schema.read"}
CHANGES = {
    "lakehouse.admin.check",
    "lakehouse.catalog.commit.commit",
    "lakehouse.catalog.forget.expiry",
    "lakehouse.catalog.tasks.queue",
    "lakehouse.operations.append",
    "lakehouse.operations.merge",
    "lakehouse.reading.changes",
    "lakehouse.schema.alter",
    "lakehouse.service.rounds",
    "lakehouse.table.transaction",
}


def test_the_command_line_loads_no_engine_no_catalog_and_no_dagster() -> None:
    heavy = ("pyspark", "duckdb", "sqlalchemy", "dagster", "streamlit", "pandas", "polars")
    program = f"import sys, lakehouse.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("command", "late"),
    [
        ("tables", STATEMENTS | CHANGES | UNASKED | {"sqlglot", "duckdb"}),
        ("log", STATEMENTS | CHANGES | {"sqlglot", "duckdb"}),
        ("show trips", STATEMENTS | CHANGES | {"sqlglot", "duckdb"}),
        ("head trips", STATEMENTS | CHANGES | {"sqlglot"}),
    ],
)
def test_a_command_that_opens_the_lake_loads_what_it_runs(run: Run, trips: Path, command: str, late: set[str]) -> None:
    run("append", "trips", str(trips))
    program = (
        "import sys, lakehouse.command\n"
        "try:\n"
        "    lakehouse.command.main()\n"
        "finally:\n"
        f"    print({OPTIONAL | late} & sys.modules.keys(), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *command.split()], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip(), done.stdout != "") == (0, "set()", True)


def test_an_erasure_asks_to_be_confirmed(run: Run, trips: Path) -> None:
    run("append", "trips", str(trips))
    before = rows()
    refused = run("erase", "trips", "client = 77")
    assert (refused.code, "--yes" in refused.err, rows() == before) == (2, True, True)
    done = run("erase", "trips", "client = 77", "--yes", "--message", "request 17", "--json")
    assert json.loads(done.out)["rows_deleted"] == sum(one["client"] == 77 for one in before) > 0
    assert all(one["client"] != 77 for one in rows())


def test_an_erasure_is_verified_until_its_files_are_collected(run: Run, trips: Path) -> None:
    ran = run("erase", "trips", "client = 77", "--yes", "--verify", "--reason", "request 17")
    assert ran.code == 1
    assert "found: value 1 in" in ran.out
    assert "run collect" in ran.out
    assert "reason: request 17" in run("log", "trips").out
    run("collect", "--grace", "0")
    ran = run("erase", "trips", "client = 77", "--verify", "--json")
    assert (ran.code, json.loads(ran.out)["erased"]) == (0, None)
    assert run("erase", "trips", "client > 77", "--verify", "--value", "request 17").code == 1
    assert run("erase", "trips", "client = 77", "--yes", "--vacuum").code == 2
    before = len(rows())
    ran = run("erase", "trips", "client > 0", "--yes", "--verify")
    assert (ran.code, "no list" in ran.err, len(rows())) == (1, True, before)


def test_rows_are_counted_and_called_stored_where_they_are_too_many_to_count(
    run: Callable[..., Any], trips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "stored" not in run("tables").out
    assert json.loads(run("tables", "--json").out)["tables"][0]["rows"] == 3
    assert run("delete", "trips", "client = 1").code == 0
    table = json.loads(run("tables", "--json").out)["tables"][0]
    assert (table["rows"], table["rows_stored"]) == (2, 3)
    monkeypatch.setattr(lakehouse.Table.count, "__kwdefaults__", {"interval": None, "as_of": None, "most_rows": 1})
    assert "3 stored" in run("tables").out
    table = json.loads(run("tables", "--json").out)["tables"][0]
    assert (table["rows"], table["rows_stored"]) == (None, 3)


@pytest.mark.parametrize("command", ["log", "locks", "tasks", "consumers", "serving", "stream list", "head x"])
def test_a_command_that_looks_makes_no_lake_where_there_is_none(run, tmp_path, command):
    ran = run(*command.split())
    said = "lakehouse: there is no lake; name yours by --catalog, or make one: lakehouse init"
    assert (ran.code, ran.err.split(" (")[0]) == (1, said)
    assert list(tmp_path.iterdir()) == []

"""What README shows is run as it stands."""

import re
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from lakehouse.cli import app, main
from tools.docs_site.markdown import examples

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str, page: str = README) -> list[str]:
    return [one.code for one in examples(page, language)]


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("LAKEHOUSE_CATALOG", "LAKEHOUSE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_first_steps_run_as_printed(empty_folder: Path) -> None:
    (program,) = blocks("python")
    exec(compile(program, "README.md", "exec"), {})


def test_what_is_said_of_other_tools_runs_as_printed(empty_folder: Path) -> None:
    (program,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(program.replace("\nlake.close()", ""), "README.md", "exec"), names)
    for number, example in enumerate(blocks("python", (ROOT / "docs/interop.md").read_text())):
        exec(compile(example, f"docs/interop.md, example {number}", "exec"), names)
    rows = names["trips"].scan().to_arrow().to_pylist()
    clients = [one["client"] for one in rows]
    totals = {client: sum(one["price"] for one in rows if one["client"] == client) for client in clients}
    assert dict(names["prices"]) == totals
    assert names["joined"] == [(clients.count(77) ** 2,)]
    assert names["version"] == (names["lake"].head - 1,)  # before the compaction
    assert names["count"] == (len(rows),)
    assert names["cheap"]["client"].sort().to_list() == sorted(one for one in clients if one in (12, 77))
    assert names["found"].num_rows == len(rows)
    names["lake"].close()


def test_what_the_page_of_columns_shows_runs_as_printed(empty_folder: Path) -> None:
    page = (ROOT / "docs/columns.md").read_text()
    names: dict[str, Any] = {}
    for example in examples(page, "python", "sql"):
        if example.language == "python":
            exec(compile(example.code, "docs/columns.md", "exec"), names)
        else:
            for statement in example.code.splitlines():
                names["lake"].sql(statement)
    (row,) = names["lake"].table("trips").scan().to_arrow().to_pylist()
    assert row["place"] == {"stop": "Elm St", "zone": None, "lift": True}
    (visit,) = names["lake"].table("visits").scan().to_arrow().to_pylist()
    assert (visit["visitor"], visit["place"]) == (7, {"stop": "Elm St"})
    names["lake"].close()


def test_the_commands_run_as_printed(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "2013-01-05T07:00:00,77,2.5\n"
    (empty_folder / "trips.csv").write_text("at,client,price\n" + line + line.replace("77", "12"))
    day = pa.table({"at": [datetime(2013, 1, 5, 9, tzinfo=UTC)], "client": [77], "price": [1.0]})
    pa.parquet.write_table(day, empty_folder / "day.parquet")
    (*_, commands) = blocks("sh")
    names = []
    for command in commands.splitlines():
        program, name, *rest = shlex.split(command, comments=True)
        assert program == "lakehouse"
        names.append(name)
        monkeypatch.setattr(sys, "argv", [program, name, *rest])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, command
    elsewhere = {"demo", "console", "migrate", "serve"}
    there = {command.name for command in (*app.registered_commands, *app.registered_groups)}
    assert set(names) | elsewhere == there


def test_every_link_leads_to_a_file() -> None:
    pages = (
        "README.md",
        "ARCHITECTURE.md",
        "docs/house.md",
        "docs/interop.md",
        "docs/deployment.md",
        "docs/adr/README.md",
    )
    for page in (*pages, *map(str, ROOT.glob("docs/adr/0*.md"))):
        path = ROOT / page
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{page}: {target}"


def test_code_cites_only_decisions_that_exist() -> None:
    numbers = {path.name[:4] for path in (ROOT / "docs/adr").glob("0*.md")}
    cited = {
        number for path in (ROOT / "lakehouse").rglob("*.py") for number in re.findall(r"ADR (\d{4})", path.read_text())
    }
    assert cited <= numbers


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/house.md"])
def test_every_place_that_is_named_is_there(page: str) -> None:
    there = [
        f"/{path.relative_to(ROOT)}" for path in ROOT.rglob("*") if not path.relative_to(ROOT).parts[0].startswith(".")
    ]
    there += [f"{path}/" for path in there]
    named = set(re.findall(r"`((?:[\w.]+/)*[\w.]+(?:\.py|\.md|\.toml|/))`", (ROOT / page).read_text()))
    assert len(named) > 30
    assert [one for one in sorted(named) if not any(path.endswith(f"/{one}") for path in there)] == []

"""Every block of Python, SQL and commands in the documentation is run, or says why it is not."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import lakehouse
from lakehouse.cli import main
from tests.docs.prepared import PREPARE, ROOT
from tools.docs_site.markdown import Block, blocks, examples
from tools.docs_site.pages import sources

RUN = ("python", "py", "sh", "sql")
READ = ("toml", "json", "yaml")
SHOWN = ("text", "ini")
ELSEWHERE = {
    ("README.md", "python"): "tests/style/test_readme.py",
    ("README.md", "sh"): "tests/style/test_readme.py",
    ("docs/columns.md", "python"): "tests/style/test_readme.py",
    ("docs/columns.md", "sql"): "tests/style/test_readme.py",
    ("docs/deployment.md", "python"): "tests/contract/test_deployment.py",
    ("docs/deployment.md", "sh"): "tests/contract/test_deployment.py",
    ("docs/interop.md", "python"): "tests/style/test_readme.py",
    ("docs/python.md", "python"): "tests/unit/test_easy_calls.py",
}
"""Blocks that another test runs, all of that page and language, since it looks for more than that they do not fail."""
ENDS_WITH = {'lakehouse erase clients "client = 77" --verify': 1}
"""Commands that end with another status than 0, as the page says beside them."""
PAGES = {page: blocks((ROOT / page).read_text(encoding="utf-8")) for page in sources()}


def runnable(page: str) -> list[Block]:
    """The blocks of a page that are to be run here."""
    found = examples((ROOT / page).read_text(encoding="utf-8"), *RUN)
    return [one for one in found if (page, one.language) not in ELSEWHERE]


HERE = sorted(page for page in PAGES if runnable(page))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("LAKEHOUSE_CATALOG", "LAKEHOUSE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, Callable[[], Any]], None]:
    def run_page(page: str, connect: Callable[[], Any]) -> None:
        if page not in PREPARE:
            run_blocks(page, {}, None, monkeypatch, capsys)
            return
        with connect() as lake:
            run_blocks(page, PREPARE[page](lake), lake, monkeypatch, capsys)

    return run_page


@pytest.mark.parametrize("page", [page for page in HERE if page != "docs/sql.md"])
def test_what_a_page_shows_runs_as_printed(page: str, run: Callable[[str, Callable[[], Any]], None]) -> None:
    run(page, lakehouse.connect)


def test_what_the_page_of_sql_shows_runs_as_printed(spark: Any, run: Callable[[str, Callable[[], Any]], None]) -> None:
    run("docs/sql.md", lambda: lakehouse.connect(spark=spark))


def run_blocks(
    page: str,
    names: dict[str, Any],
    lake: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for block in runnable(page):
        capsys.readouterr()
        place = f"{page}:{block.line}"
        if block.language == "python":
            exec(compile("\n" * block.line + block.code, page, "exec"), names)
        elif block.language == "sql":
            for statement in re.split(r";\s*\n", block.code):
                result = lake.sql(statement) if statement.strip() else None
                if hasattr(result, "fetchall"):
                    result.fetchall()
        else:
            for line in block.code.splitlines():
                run_command(line, place, monkeypatch)
            printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
            missing = [line for line in shown_below(page, block) if not any(re.search(line, one) for one in printed)]
            assert missing == [], f"{place}: {printed}"


def shown_below(page: str, block: Block) -> list[str]:
    """What the page shows as printed by a block of commands, as patterns: ``...`` stands for anything."""
    after = PAGES[page][PAGES[page].index(block) + 1 :][:1]
    if not after or after[0].language != "text" or after[0].line != block.line + block.code.count("\n") + 3:
        return []
    return [re.escape(" ".join(line.split())).replace(r"\.\.\.", ".*") for line in after[0].code.splitlines()]


def run_command(line: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match shlex.split(line, comments=True):
        case []:
            return
        case ["export", *settings]:
            for setting in settings:
                monkeypatch.setenv(*setting.split("=", 1))
        case ["lakehouse", *rest]:
            monkeypatch.setattr(sys, "argv", ["lakehouse", *rest])
            with pytest.raises(SystemExit) as end:
                main()
            wanted = next((code for said, code in ENDS_WITH.items() if line.startswith(said)), 0)
            assert (end.value.code or 0) == wanted, f"{place}: {line}"
        case other:
            pytest.fail(f'{place}: {other[0]} is not run by tests; say not-run="why" behind the fence\'s language')


def test_every_block_is_run_or_says_why_not() -> None:
    wrong = [
        f"{page}:{one.line}: a block of {one.language or 'no language'}"
        for page, found in PAGES.items()
        for one in found
        if one.language not in (*RUN, *READ, *SHOWN)
        and not (page == "ARCHITECTURE.md" and not one.language)  # the one picture
    ]
    assert wrong == []
    assert [f"{page}:{one.line}" for page, found in PAGES.items() for one in found if one.reason == ""] == []


def test_reasons_name_tests_that_are_there() -> None:
    reasons = [(page, one.reason) for page, found in PAGES.items() for one in found if one.reason]
    assert reasons
    named = [(page, path) for page, reason in reasons for path in re.findall(r"tests/[\w/.]*\w", reason)]
    assert [(page, path) for page, path in named if not (ROOT / path).exists()] == []


def test_what_runs_elsewhere_is_named_there() -> None:
    for (page, language), path in ELSEWHERE.items():
        assert any(one.language == language and not one.reason for one in PAGES[page]), (page, language)
        assert page.rpartition("/")[2] in (ROOT / path).read_text(encoding="utf-8"), (page, path)


def settings() -> Iterator[Any]:
    for page, found in PAGES.items():
        for one in found:
            if one.language in READ:
                yield pytest.param(one, id=f"{page}:{one.line}")


@pytest.mark.parametrize("block", list(settings()))
def test_a_file_that_a_page_shows_can_be_read(block: Block) -> None:
    read = {"toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}[block.language]
    assert read(block.code)

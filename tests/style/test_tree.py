"""Rules of the tree that no linter knows."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_MODULE_LINES = 500
"""The aim is 400; above this a module holds more than one idea."""
MAX_FUNCTION_LINES = 60
FORBIDDEN_NAMES = re.compile(r"(?:^|_)(?:utils?|helpers?|managers?|misc|common)$")
MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(?:work|root|home/\w+|Users/\w+|tmp/\w+)/")
MARKS_OF_DEFEAT = re.compile(
    r"pytest\.(?:mark\.)?(?:skip|xfail|importorskip)|unittest(?:\.| import .*\b)mock\b|^\s*(?:import|from) mock\b"
    r"|\bTODO\b|\bFIXME\b"
)
THIS_FILE = Path(__file__).resolve()


def tracked_files(*endings: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    names = [name for name in listed.stdout.decode().split("\0") if name.endswith(endings)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def lines_that_match(pattern: re.Pattern[str], files: list[Path]) -> Iterator[str]:
    for path in files:
        if path != THIS_FILE:
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if pattern.search(line):
                    yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_no_file_names_a_path_of_some_machine() -> None:
    assert list(lines_that_match(MACHINE_PATHS, tracked_files(""))) == []


def test_requirements_pin_what_the_project_asks_for_and_name_no_place_to_get_it_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    extras = [one for extra in project["project"]["optional-dependencies"].values() for one in extra]
    own = project["project"]["name"]
    asked = {
        "requirements.txt": [*project["project"]["dependencies"], *(one for one in extras if not one.startswith(own))]
    }
    asked["requirements-tests.txt"] = [*asked["requirements.txt"], *groups["test"], *groups["lint"], *groups["docs"]]
    for name, wanted in asked.items():
        lines = (ROOT / name).read_text().splitlines()
        pinned = {re.sub(r"\[.*?\]| .*", "", line) for line in lines if not line.startswith(" ")}
        exact = {re.sub(r"\[.*?\]|;.*", "", one) for one in wanted if "==" in one.partition(";")[0]}
        assert exact - pinned == set()
        names = {re.split(r"[^\w-]", one)[0] for one in wanted}
        assert names - {one.partition("==")[0] for one in pinned} == set()
        assert not [line for line in lines if "://" in line]
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?|\S+==\S+( ; .*)? \\", line) for line in lines)


def test_no_test_is_skipped_mocked_or_left_for_later() -> None:
    assert list(lines_that_match(MARKS_OF_DEFEAT, tracked_files(".py"))) == []


def test_modules_are_named_for_what_they_hold() -> None:
    assert [path for path in tracked_files(".py") if FORBIDDEN_NAMES.search(path.stem)] == []


@pytest.mark.parametrize("folder", ["lakehouse", "assets", "resources", "console"])
def test_modules_and_functions_stay_short(folder: str) -> None:
    too_long = []
    for path in tracked_files(".py"):
        if path.relative_to(ROOT).parts[0] != folder or "migrations" in path.parts:
            continue  # a migration is a record of one change, however long
        text = path.read_text()
        if text.count("\n") > MAX_MODULE_LINES:
            too_long.append(f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.body[0].lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    too_long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {lines} lines")
    assert too_long == []


def test_no_error_is_swallowed() -> None:
    """``except Exception`` may stand only where the error is raised again, or kept for someone to look at."""
    found = []
    for path in tracked_files(".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler) and _is_blind(node) and not _is_passed_on(node):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []


def _is_blind(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or (
        isinstance(handler.type, ast.Name) and handler.type.id in ("Exception", "BaseException")
    )


def _is_passed_on(handler: ast.ExceptHandler) -> bool:
    inside = [node for statement in handler.body for node in ast.walk(statement)]
    return any(isinstance(node, ast.Raise) for node in inside) or any(
        isinstance(node, ast.Name) and node.id == handler.name for node in inside
    )


def test_the_console_asks_the_library_and_knows_no_orchestrator() -> None:
    imported = {
        name.split(".")[0]
        for path in tracked_files(".py")
        if path.relative_to(ROOT).parts[0] == "console"
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _imported(node)
    }
    assert "lakehouse" in imported
    assert imported.isdisjoint({"dagster", "assets", "resources", "sqlalchemy", "pyspark"})


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            return [node.module or ""]
        case _:
            return []


def test_ci_runs_the_test_command_and_nothing_else() -> None:
    script = (ROOT / ".ci/run").read_text().splitlines()
    commands = [line for line in script if line and not line.startswith("#")]
    assert commands == ["exec make test"]


def test_every_word_of_the_makefile_is_in_the_readme() -> None:
    commands = re.findall(r"^(\w+):.*?## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    readme = (ROOT / "README.md").read_text()
    assert [name for name in commands if f"make {name}" not in readme] == []

"""What a commit plans is data: only `execute` writes it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMIT = Path(__file__).resolve().parents[2] / "lakehouse/catalog/commit"
PLANNING = ("plan", "delta", "row_changes", "erasure", "concurrent", "leftover")
WRITES = {"insert", "update", "delete", "run_for_each", "run_many", "release", "make_way", "forget_summaries"}


def writes(source: str) -> Iterator[str]:
    """Names of calls in a module that write into the catalog."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in WRITES:
                yield name


@pytest.mark.parametrize("module", PLANNING)
def test_the_planning_of_a_commit_writes_nothing(module: str) -> None:
    assert list(writes((COMMIT / f"{module}.py").read_text())) == []


def test_the_rule_sees_what_writes() -> None:
    assert {"insert", "update", "delete", "release", "run_for_each"} <= set(writes((COMMIT / "execute.py").read_text()))

"""The page of accidents names tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/accidents.md"


def test_every_accident_names_tests_that_exist() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "seen at" not in line]
    assert rows
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text())
            assert name in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}, (path, name)


def test_the_page_is_found_from_the_architecture() -> None:
    assert "docs/accidents.md" in (ROOT / "ARCHITECTURE.md").read_text()

"""Tests ask the library as anybody could: what they need of its inside has a public name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REACH_IN = {
    "tests/concurrency/broken.py": "breaks a rule inside, which the tests then have to notice",
    "tests/crash/power.py": "the same, for what a disk is asked to keep",
    "tests/unit/predicate/test_campaign.py": "the same, for how filters are read",
    "tests/unit/core/strategy/test_overlap.py": "lowers a bound, above which a plan would take minutes",
    "tests/unit/sql/test_linear.py": "counts the steps of a statement one by one",
    "tests/browser/hostile.py": "Streamlit's own tree of a page has a name that the library uses too",
}
PATCHES = {"setattr", "setitem", "delattr", "getattr", "hasattr"}


def sources(folder: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_repr_html_"  # Jupyter's name


def defined(module: ast.Module) -> Iterator[str]:
    """Private names that a module of the library gives to something."""
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                yield name


def reached(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Where a test names something private that is not its own: line and name."""
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name):
                yield node.lineno, name
            case ast.ImportFrom(module=str(origin)) if origin.split(".")[0] == "lakehouse":
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.Call(func=ast.Attribute(attr=call) | ast.Name(id=call)) if call in PATCHES:
                named = [one.value for one in node.args if isinstance(one, ast.Constant)]
                yield from ((node.lineno, one.split(".")[-1]) for one in named if isinstance(one, str))


def test_no_test_reaches_for_what_the_library_keeps_to_itself() -> None:
    private = {name for _, module in sources("lakehouse") for name in defined(module) if is_private(name)}
    found = {
        f"{path}:{line}: {name}"
        for path, module in sources("tests")
        if path not in REACH_IN
        for line, name in reached(module)
        if name in private
    }
    assert sorted(found) == []


def test_those_that_may_reach_in_do() -> None:
    modules = dict(sources("tests"))
    assert [path for path in REACH_IN if not any(is_private(name) for _, name in reached(modules[path]))] == []

"""What an editor can show of the public classes: every argument by name, a docstring, and the errors."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import lakehouse
from lakehouse.operations.operation import Operation
from lakehouse.reading.changes import Changes
from lakehouse.table.table import Table
from lakehouse.table.transaction import Transaction, TransactionTable

CLASSES = [lakehouse.Lake, Table, lakehouse.Scan, Changes, Transaction, TransactionTable, Operation, lakehouse.Segment]
MUST_SAY_WHAT_THEY_RAISE = {
    Table: ["append", "replace", "delete", "update", "merge", "upsert", "delete_keys", "erase", "compact", "restore"],
    lakehouse.Lake: ["create_table", "table", "sql", "query", "duckdb", "rename_table", "tag", "expire"],
    lakehouse.Scan: ["to_dataset"],
}


def members(of: type) -> Iterator[tuple[str, Any]]:
    for name in dir(of):
        if not name.startswith("_"):
            yield name, inspect.getattr_static(of, name)


@pytest.mark.parametrize("of", CLASSES, ids=lambda one: one.__name__)
def test_no_argument_hides_behind_others(of: type) -> None:
    hidden = []
    for name, member in members(of):
        if inspect.isfunction(member):
            kinds = {one.kind for one in inspect.signature(member).parameters.values()}
            hidden += [name] if kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL} else []
    assert hidden == []


OF_ANY_TYPE = {"value", "default", "default_for_new", "values", "keys", "bounds", "rules", "storage_options"}
"""Arguments that are values of columns, or settings: their types are known only when they are used."""
ANY_RETURNED = {"sql", "fit"}
"""A statement decides what `sql` returns; `fit` returns what it was given."""


@pytest.mark.parametrize("of", [*CLASSES, lakehouse.connect, lakehouse.register], ids=lambda one: one.__name__)
def test_what_is_known_of_a_type_is_said(of: Any) -> None:
    vague = []
    for name, member in members(of) if inspect.isclass(of) else [(of.__name__, of)]:
        function = member.fget if isinstance(member, property) else member
        for argument, said in getattr(function, "__annotations__", {}).items():
            is_meant = name in ANY_RETURNED if argument == "return" else argument in OF_ANY_TYPE
            vague += [f"{name}: {argument}"] if re.search(r"\bAny\b", str(said)) and not is_meant else []
    assert vague == []


@pytest.mark.parametrize("of", CLASSES, ids=lambda one: one.__name__)
def test_everything_public_says_what_it_is(of: type) -> None:
    silent = [
        name
        for name, member in members(of)
        if isinstance(member, property) or inspect.isfunction(member)
        if not inspect.getdoc(member)
    ]
    assert silent == []


@pytest.mark.parametrize("of", MUST_SAY_WHAT_THEY_RAISE, ids=lambda one: one.__name__)
def test_what_can_fail_says_how_and_shows_an_example(of: type) -> None:
    for name in MUST_SAY_WHAT_THEY_RAISE[of]:
        text = inspect.getdoc(getattr(of, name)) or ""
        assert "Raises `" in text, name
        assert ">>> " in text, name

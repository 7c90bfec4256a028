"""A slice of the campaign: random statements beside plain DuckDB, and proof that a wrong one is noticed."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.predicate import parse
from lakehouse.sql import translation as module
from lakehouse.testing.campaign import constructs, relations
from lakehouse.testing.campaign.statements import run


def test_random_statements_give_what_plain_tables_give() -> None:
    found = run(40, seed=7)
    assert found.wrong == []
    assert (found.tried, found.refused) == (40, 0)


def test_a_condition_that_is_pushed_wrongly_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.pushed

    def wrong(tree: Any, references: Any, schemas: Any) -> Any:
        return {
            name: type(one)(one.columns, one.where or parse("`k` > 1000", schemas[name]))
            for name, one in right(tree, references, schemas).items()
        }

    monkeypatch.setattr(module, "pushed", wrong)
    assert run(30, seed=7).wrong != []


def test_random_constructs_give_what_loops_over_lists_give(monkeypatch: pytest.MonkeyPatch) -> None:
    found = constructs.run(40, seed=7)
    assert found.wrong == []
    assert found.tried == 40
    monkeypatch.setattr(relations, "among", lambda found: True)  # an IN that is always true
    assert constructs.run(60, seed=7).wrong != []

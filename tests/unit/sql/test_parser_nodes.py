"""A new version of the parser brings nothing that nobody decided about."""

from __future__ import annotations

from tests.unit.sql.parser_nodes import DECISIONS, LISTED, decisions, kinds


def test_every_kind_of_node_and_every_part_of_a_listed_one_is_decided_about() -> None:
    decided = DECISIONS.read_text(encoding="utf-8").splitlines()
    assert sorted(set(decisions()) - set(decided)) == []
    assert sorted(set(decided) - set(decisions())) == []


def test_the_decisions_are_about_the_whole_parser() -> None:
    found = kinds()
    assert len(found) > 900
    assert set(LISTED) <= set(found.values())
    assert {"Select", "Like", "Lambda", "Command", "JSONPathKey"} <= set(found)

"""A slice of the campaign of filters, and that it would find what is wrong."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import pytest
from sqlglot import exp

from lakehouse.predicate import translate
from lakehouse.predicate.parsing import parse_condition
from lakehouse.predicate.parts import READ
from lakehouse.testing.campaign.evaluator import Node, OutOfRangeError, evaluate, written
from lakehouse.testing.campaign.filters import Filters, run


def of(value: object) -> Node:
    return Node("literal", "any", (value, "?"))


def test_filters_mean_what_an_evaluator_of_their_own_says() -> None:
    found = run(160, seed=7)
    assert found.wrong == []
    assert (found.tried, found.refused) == (160, 0)


def test_the_campaign_finds_a_part_that_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    right = translate.Translator._like

    def like(self: translate.Translator, node: exp.Expr) -> object:
        unsaid = node.copy()
        for one in unsaid.find_all(exp.Like):
            one.set("negate", None)
        return right(self, unsaid)

    monkeypatch.setitem(translate._NODES, exp.Like, like)
    monkeypatch.setitem(translate._NODES, exp.Escape, like)
    monkeypatch.setattr(Filters, "condition", lambda self, depth=3: self._of_text(depth))
    assert any("NOT LIKE" in one for one in run(40, seed=7).wrong)


def test_the_campaign_finds_a_segment_that_is_pruned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehouse.testing.campaign.filters.matching", lambda _, segments: [False] * len(segments))
    assert any("pruned away" in one for one in run(40, seed=7).wrong)


def test_the_campaign_draws_every_kind_of_node_that_a_filter_may_have() -> None:
    drawn, unmet = Filters(random.Random(7)), set(READ) - {exp.RawString, exp.Anonymous}
    for _ in range(3000):
        unmet -= {type(node) for node in parse_condition(written(drawn.condition())).walk()}
        if not unmet:
            break
    assert unmet == set()


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Node("compare", "bool", (of(math.nan), "=", of(math.nan))), True),
        (Node("compare", "bool", (of(math.nan), ">", of(math.inf))), True),
        (Node("compare", "bool", (of(0.0), "=", of(-0.0))), True),
        (Node("compare", "bool", (of((1 << 53) + 1), "=", of(float(1 << 53)))), True),
        (Node("compare", "bool", (of((1 << 53) + 1), "=", of(Decimal(1 << 53)))), False),
        (Node("compare", "bool", (of(None), "=", of(None))), None),
        (Node("same", "bool", (of(None), of(None))), True),
        (Node("in", "bool", (of(1), False, False, of(2), of(None))), None),
        (Node("in", "bool", (of(1), True, False, of(1), of(None))), False),
        (Node("and", "bool", (of(None), of(False))), False),
        (Node("or", "bool", (of(None), of(False))), None),
        (Node("is", "bool", (of(None), True, True)), True),
        (Node("calculate", "int", (of(-7), "div", of(2))), -3),
        (Node("calculate", "int", (of(-7), "%", of(2))), -1),
        (Node("calculate", "int", (of(-7), "%", of(0))), None),
        (Node("part", "int", (of(-1), "second", False)), 59),
        (Node("case", "double", ([of(False)], [of(0.5)], of((1 << 53) + 1))), float(1 << 53)),
        (Node("case", "int", ([of(False)], [of(1)], of((1 << 53) + 1))), (1 << 53) + 1),
        (Node("like", "bool", (of("a\nb"), ("a", "any", "b"), "\\", False)), True),
        (Node("like", "bool", (of("\U0001d4b3"), ("one",), "\\", True)), False),
        (Node("like", "bool", (of(None), ("any",), "\\", True)), None),
    ],
)
def test_the_evaluator_knows_what_is_known(node: Node, expected: object) -> None:
    assert evaluate(node, {}) is expected if isinstance(expected, bool | None) else evaluate(node, {}) == expected


def test_the_evaluator_says_when_a_whole_number_leaves_64_bits() -> None:
    for node in (
        Node("calculate", "int", (of((1 << 63) - 1), "+", of(1))),
        Node("calculate", "int", (of(-(1 << 63)), "div", of(-1))),
        Node("negative", "int", (of(-(1 << 63)),)),
        Node("abs", "int", (of(-(1 << 63)),)),
    ):
        with pytest.raises(OutOfRangeError):
            evaluate(node, {})

"""Patterns mean in process what Python's own engine, which tries again as Java's does, makes of them."""

from __future__ import annotations

import random
import re
import time

import duckdb
import pytest

from lakehouse.errors import InvalidInput
from lakehouse.sql.patterns import read_pattern, read_replacement

TEXTS = ("", "a", "b", "ab", "aab", "abab", "A-b", "a.b", "1a_", "ü😀a", "a b\tc", "b]a", "(a)", "x" * 50)


def _pattern(chance: random.Random, depth: int = 0) -> str:
    """A pattern of what is taken, and now and then of what is not."""
    parts = []
    for _ in range(chance.randrange(1, 4)):
        kind = chance.randrange(8 if depth < 2 else 6)
        part = chance.choice(["a", "b", ".", r"\.", r"\d", r"\w", r"\s", "[ab]", "[^a]", "[a-c_]", "ü", "😀", "-", " "])
        if kind >= 6:
            part = f"({'?:' if kind == 7 else ''}{_pattern(chance, depth + 1)})"
        parts.append(part + chance.choice(["", "", "", "?", "*", "+", "+?", "{1,2}", "{2}"]))
    text = "".join(parts)
    return f"{text}|{_pattern(chance, depth + 1)}" if depth < 2 and chance.random() < 0.2 else text


def test_random_patterns_find_what_python_finds() -> None:
    chance, taken = random.Random(7), 0
    database = duckdb.connect(":memory:")
    for _ in range(1500):
        text = chance.choice(["", "", "(?i)", "^"]) + _pattern(chance) + chance.choice(["", "", r"$"])
        try:
            pattern = read_pattern(text)
        except InvalidInput:
            continue
        taken += 1
        group = chance.randrange(pattern.groups + 1)
        found = database.execute(
            "SELECT list_transform($1, lambda t: regexp_extract(t, $2, $3))".replace("$2", f"'{pattern.re2}'").replace(
                "$3", str(group)
            ),
            [list(TEXTS)],
        ).fetchall()[0][0]
        python = re.compile(text, re.ASCII)
        wanted = [(held[group] or "") if (held := python.search(one)) else "" for one in TEXTS]
        assert found == wanted, (text, pattern.re2)
    assert taken > 500


@pytest.mark.parametrize(
    "text",
    ["(", ")", "a)", "(?=a)", "(?!a)", "(?<=a)", "(?<n>a)", r"(a)\1", r"\bab", r"\p{L}", r"\Qa\E", r"\x41", r"\u0041",
     "a++", "a?+", "a{2}+", "a**", "*a", "^*", "a{,2}", "a{", "a}", "]", "[", "[]", "[]a]", "[a[b]]", "[a&&b]", "[z-a]",
     r"[\D]", "[[:alpha:]]", "a{1001}", "a{2,1}", "a{0}", "(a+)+", "(a*)*", "(a|b)*", "(a|aa)+$", "((a?)b)+",
     "(?x)a", "a(?i)b", "(?i:a)", "a?" * 13 + "a" * 13, ".*.*.*.*.*.*a", "(a|b)" * 13, "a" * 1001, "\\", r"\_", r"\é"],
)  # fmt: skip
def test_what_the_engines_differ_in_or_could_take_without_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_pattern(text)


def test_the_worst_pattern_that_is_taken_is_soon_done_by_an_engine_that_tries_every_way() -> None:
    for text in ("a?" * 12 + "a{12}b", "(a|a)" * 11 + "b", "a*a*b", "(?:a{20})?" * 12 + "b"):
        read_pattern(text)
        begun = time.monotonic()
        assert re.search(text, "a" * 60) is None
        assert time.monotonic() - begun < 5


def test_a_replacement_names_groups_and_nothing_else() -> None:
    assert read_replacement(r"[$1]\$\\", 1) == r"[\1]$\\"
    for text in ("$2", "$", "$a", r"\1", "\\", "$12"):
        with pytest.raises(InvalidInput):
            read_replacement(text, 1)

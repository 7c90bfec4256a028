"""Nested types that grow from batch to batch, and what rows of one are in another, in plain Python.

A type is an integer (its bits), ``text``, a mapping (a struct's fields), or a pair of ``list`` or ``map`` and a type.
"""

from __future__ import annotations

import pyarrow as pa

BITS = (8, 16, 32, 64)
NAMES = ("p", "q", "r", "s", "größe", "a b")


def arrow(kind):
    """The type as Arrow has it."""
    match kind:
        case int():
            return getattr(pa, f"int{kind}")()
        case "text":
            return pa.string()
        case dict():
            return pa.struct([(name, arrow(part)) for name, part in kind.items()])
        case ("list", part):
            return pa.list_(arrow(part))
        case (_, part):
            return pa.map_(pa.string(), arrow(part))


def made(chance, depth=3):
    """A random type."""
    match chance.choice(["int", "text", "struct", "struct", "list", "map"] if depth else ["int", "text"]):
        case "int":
            return chance.choice(BITS[:2])
        case "text":
            return "text"
        case "struct":
            return {name: made(chance, depth - 1) for name in chance.sample(NAMES, chance.randrange(1, 3))}
        case nesting:
            return (nesting, made(chance, depth - 1))


def changed(chance, kind, *, is_wider, depth=3):
    """A type of other rows for the same column: fields gone, new or in another order, and wider integers if wanted."""
    match kind:
        case int():
            return chance.choice(BITS) if is_wider else kind
        case dict():
            kept = chance.sample(list(kind), chance.randrange(1, len(kind) + 1))
            parts = {name: changed(chance, kind[name], is_wider=is_wider, depth=depth - 1) for name in kept}
            new = [name for name in NAMES if name not in kind]
            if new and chance.random() < 0.4:
                parts[chance.choice(new)] = made(chance, min(depth, 1))
            return dict(chance.sample(list(parts.items()), len(parts)))
        case (nesting, part):
            return (nesting, changed(chance, part, is_wider=is_wider, depth=depth - 1))
    return kind


def merged(kind, found):
    """The type that holds values of both."""
    match kind, found:
        case int(), int():
            return max(kind, found)
        case dict(), dict():
            known = {name: merged(part, found[name]) if name in found else part for name, part in kind.items()}
            return {**known, **{name: part for name, part in found.items() if name not in kind}}
        case (nesting, part), (_, other):
            return (nesting, merged(part, other))
    return kind


def value(chance, kind):
    """A random value of a type: as Arrow takes it."""
    if chance.random() < 0.15:
        return None
    match kind:
        case int():
            return chance.choice([-(1 << (kind - 1)), (1 << (kind - 1)) - 1, 0, 7])
        case "text":
            return chance.choice(["", "x", "é"])
        case dict():
            return {name: value(chance, part) for name, part in kind.items()}
        case ("list", part):
            return [value(chance, part) for _ in range(chance.randrange(3))]
        case (_, part):
            return [(key, value(chance, part)) for key in sorted(chance.sample("klm", chance.randrange(3)))]


def fitted(held, kind):
    """A value in a type: fields that it lacks are null, others are left out."""
    match kind:
        case _ if held is None:
            return None
        case dict():
            return {name: fitted(held.get(name), part) for name, part in kind.items()}
        case ("list", part):
            return [fitted(one, part) for one in held]
        case ("map", part):
            return [(key, fitted(one, part)) for key, one in held]
    return held

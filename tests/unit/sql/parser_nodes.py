"""What was decided about every kind of node that the parser has, and about every part of the kinds that are listed.

``python -m tests.unit.sql.parser_nodes`` writes the decisions anew from the closed lists; read what it changes.
"""

from __future__ import annotations

from pathlib import Path

from sqlglot import exp

from lakehouse.sql.allowed import NODES
from lakehouse.sql.functions import FUNCTIONS

DECISIONS = Path(__file__).with_name("parser_nodes.txt")
LISTED = {**NODES, **FUNCTIONS}


def kinds() -> dict[str, type[exp.Expr]]:
    """Every kind of node, by the name of its class."""
    found: dict[str, type[exp.Expr]] = {}
    waiting: list[type[exp.Expr]] = [exp.Expr]
    while waiting:
        kind = waiting.pop()
        if kind.__module__.startswith("sqlglot.") and kind.__name__ not in found:
            found[kind.__name__] = kind
            waiting += kind.__subclasses__()
    return dict(sorted(found.items()))


def decisions() -> list[str]:
    """A line for each kind: refused, or its parts, those that are refused with a minus."""
    lines = []
    for name, kind in kinds().items():
        if kind not in LISTED:
            lines.append(f"{name}: refused")
            continue
        parts = (part if part in LISTED[kind] else f"-{part}" for part in kind.arg_types)
        lines.append(f"{name}: taken {' '.join(parts)}".rstrip())
    return lines


if __name__ == "__main__":
    DECISIONS.write_text("\n".join(decisions()) + "\n", encoding="utf-8")

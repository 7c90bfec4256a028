"""Where values of erased rows may remain after an erasure, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog.commit.leftover import Leftovers
from lakehouse.core.erased import Residue
from lakehouse.core.interval import MAX_TIME, MIN_TIME
from lakehouse.core.predicate import And, Compare, In, Or, Predicate
from lakehouse.core.prune import matching
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments

_SHOWN = 5
"""The most names of one kind that are listed."""


def residue(found: Leftovers, tree: Predicate, exports: tuple[int, int] | None) -> Iterator[Residue]:
    """Where values of rows that a condition chose may remain.

    ``exports``: how many are finished and how many are not, None if those from before could not be replaced.
    """
    if found.garbage or found.ended:
        files = [f"{found.garbage} files that no version has any more"] if found.garbage else []
        folders = [f"{found.ended} folders of operations that did not commit"] if found.ended else []
        yield Residue(" and ".join([*files, *folders]), "the warehouse", "run collect; they go after its grace")
    if found.running:
        where = _listed("operations that run, or are registered ahead:", found.running)
        yield Residue("what they write and lock", where, "if they bring such rows, wait for them and erase again")
    scopes = [one for one in found.scopes if _may_name(one, tree)]
    if scopes:
        what = f"keys of {len(scopes)} replaces of keys"
        yield Residue(what, "tombstones", "erase by a whole key (column = value)")
    if found.key_sets:
        what = f"primary keys of {found.key_sets} upserts, merges or deletes by key"
        yield Residue(what, "tombstones", "run resolve, then expire the versions before it")
    yield from _words(found, _Words.of(tree))
    if exports is None:
        yield Residue("exports from before it", "the warehouse", "export again; the store could not be asked now")
    finished, unfinished = exports or (0, 0)
    if unfinished:
        yield Residue(f"{unfinished} unfinished exports", "the warehouse", "export again a day after they began")
    if finished > 1:
        yield Residue(
            f"{finished - 1} exports of other catalogs", "the warehouse", "delete them if they are not needed"
        )
    yield Residue("free pages", "the catalog's database", "run VACUUM; it keeps what was deleted until then")


def _words(found: Leftovers, words: _Words) -> Iterator[Residue]:
    """Users' texts beside rows, which may name rows."""
    may = "" if words.are_all else " that may name them"
    versions = words.among(found.texts)
    if versions:
        yield Residue(f"words of users{may}", _listed("commits", versions), "expire these versions")
    marked = words.among(found.marks)
    if marked:
        remedy = "they stay, so that no pair commits twice; name what writes, and nobody, in a txn"
        yield Residue(f"marks (txn){may}", _listed("commits", marked), remedy)
    tagged = words.among(found.tags)
    if tagged:
        yield Residue(f"names of tags{may}", _listed("versions", tagged), "untag them")


@dataclass(frozen=True, slots=True)
class _Words:
    """What a text must contain to name chosen rows; where a condition is more than a list of values, any text may."""

    patterns: tuple[re.Pattern[str], ...]
    are_all: bool

    @classmethod
    def of(cls, tree: Predicate) -> _Words:
        values = list(_values(tree))
        patterns = tuple(re.compile(_pattern(one)) for one in values if one is not None)
        return cls(patterns, all(one is not None for one in values))

    def among(self, texts: Iterable[tuple[int, str]]) -> list[int]:
        """Versions with a text that may name chosen rows."""
        return sorted(
            {version for version, text in texts if not self.are_all or any(one.search(text) for one in self.patterns)}
        )


def _pattern(value: Any) -> str:
    """A text anywhere; a number only if no letter or digit adjoins it."""
    return re.escape(value) if isinstance(value, str) else rf"(?<!\w){re.escape(str(value))}(?!\w)"


def _may_name(scope: Any, tree: Predicate) -> bool:
    """Whether a value of a key scope may match the condition."""
    bounds = [{} if value is None else {name: value} for name, values in scope.items() for value in values]
    alike = [Segment(id=0, start=MIN_TIME, end=MAX_TIME, ordinal=0, min=bound, max=bound) for bound in bounds]
    return bool(matching(tree, Segments.of(alike)).any())


def _values(tree: Predicate) -> Iterator[Any]:
    """Values that a condition lists; None for a part that chooses others too."""
    match tree:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _values(part)
        case Compare(operator="=", value=value):
            yield value
        case In(values=values):
            yield from values
        case _:
            yield None


def _listed(what: str, names: Any) -> str:
    shown = ", ".join(str(one) for one in list(names)[:_SHOWN])
    return f"{what} {shown}" + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")

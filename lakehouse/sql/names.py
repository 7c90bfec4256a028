"""Which names of a query are the lake's tables, at which version, and which are its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlglot import exp

from lakehouse.arguments import nearest, nearest_table
from lakehouse.core.beside import is_beside
from lakehouse.core.interval import to_utc
from lakehouse.errors import InvalidStatement, TableNotFound
from lakehouse.predicate.moments import read_time
from lakehouse.predicate.written import shown
from lakehouse.sql.system import CHANGES, INFORMATION, OF_LAKE, OF_TABLES, SCHEMA, WITH_VERSIONS

_Names = Mapping[str, str]
_MOST_TABLES = 200
"""Each is planned and looked at beside the others."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A table of the lake where a query names it: ``node`` in its tree, which now names ``relation``.

    ``as_of`` is the version, tag or time that stands with it, or None. ``system`` names a system table of the table, or
    of the lake (``table`` is empty then), where its rows are not meant.
    """

    node: exp.Table
    table: str
    relation: str
    as_of: Any
    system: str = ""


IN_VIEW = "lake_view"
"""Marks the query of a view, in which the names around it mean nothing; a copy keeps it."""


def find_table(name: str, tables: Sequence[str], others: Iterable[str] = ()) -> str:
    """A table's own name; case does not count where one table answers to it. Raises `TableNotFound`.

    ``others`` are names of views and queries, one of which may have been meant.
    """
    if name in tables:
        return name
    found = [one for one in tables if one.casefold() == name.casefold()]
    if len(found) != 1:
        known = [one for one in tables if not is_beside(one)]
        raise TableNotFound(
            "no such table in the lake; SHOW TABLES lists those there are",
            table=name[:200],
            **nearest_table(name, known, others),
        )
    return found[0]


def table_name(node: exp.Expr, tables: Sequence[str], others: Iterable[str] = ()) -> str:
    """The table of the lake that a name in a statement means. Raises `TableNotFound`."""
    parts = plain_parts(node)
    if len(parts) != 1 or not isinstance(parts[0], exp.Identifier):
        raise TableNotFound(
            "no such table in the lake; its tables have plain names, without a prefix but default",
            table=".".join(part.name for part in parts)[:200] or shown(node),
        )
    return find_table(parts[0].name, tables, others)


def plain_parts(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a table's name, without that of the schema."""
    parts = list(node.parts) if isinstance(node, exp.Table) else []
    return parts[1:] if len(parts) in (2, 3) and parts[0].name.casefold() == SCHEMA else parts


def resolve(tree: exp.Expr, tables: Sequence[str], prefix: str, views: Iterable[str] = ()) -> list[Reference]:
    """Find every table that a query names, and rename it, and each WITH query, to names that are nobody else's.

    A name means the nearest query of a WITH that came before it, or with RECURSIVE the one that it stands in, else a
    table of the lake. Aliases keep what columns are called. Raises `TableNotFound`, which names the nearest of tables
    and ``views``, and `InvalidInput` for a version that no table stands with.
    """
    found: list[Reference] = []
    renamed = 0
    waiting: list[tuple[exp.Expr, _Names]] = [(tree, {})]
    while waiting:
        node, known = waiting.pop()
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            if len(found) == _MOST_TABLES:
                raise InvalidStatement("a statement names too many tables; split it", most=_MOST_TABLES)
            waiting += [(pivot, known) for pivot in node.args.get("pivots") or ()]
            reference = _resolved(node, known, tables, f"{prefix}{len(found)}", views)
            found += [reference] if reference is not None else []
            continue
        if node.meta_get(IN_VIEW):
            known = {}
        with_ = node.args.get("with_")
        if with_ is not None:
            for query in with_.expressions:
                alias = query.args["alias"].this
                new = f"{prefix}with{renamed}"
                after = {**known, alias.name.casefold(): new}
                waiting.append((query.this, after if with_.args.get("recursive") else known))
                known = after
                alias.replace(exp.to_identifier(new, quoted=True))
                renamed += 1
        waiting += [(child, known) for child in node.iter_expressions(reverse=True) if child is not with_]
    return found


def _resolved(
    node: exp.Table, known: _Names, tables: Sequence[str], relation: str, views: Iterable[str]
) -> Reference | None:
    version = node.args.get("version")
    own = known.get(node.name.casefold()) if len(node.parts) == 1 else None
    table, system = _found(node, tables, [*views, *known]) if own is None else ("", "")
    if own is not None and version is not None:
        raise InvalidStatement("only a table of the lake has versions, not a query of WITH", name=node.name)
    if node.args.get("sample") is not None and (own is not None or system):
        raise InvalidStatement("TABLESAMPLE stands after a table of the lake", name=node.name)
    alias = node.args.get("alias") or exp.TableAlias()
    if alias.args.get("this") is None:
        alias.set("this", exp.to_identifier(node.name, quoted=True))
    node.set("alias", alias)
    node.set("version", None)
    node.set("db", None)
    node.set("catalog", None)
    node.set("this", exp.to_identifier(own or relation, quoted=True))
    return None if own is not None else Reference(node, table, relation, point_of(version), system)


def _found(node: exp.Table, tables: Sequence[str], others: Iterable[str]) -> tuple[str, str]:
    """The table that a name means, and the system table of it, if any."""
    parts = plain_parts(node)
    if len(parts) != 2 or not all(isinstance(one, exp.Identifier) for one in parts):
        return table_name(node, tables, others), ""
    first, last = (one.name for one in parts)
    system = last.casefold()
    is_of_lake = first.casefold() == INFORMATION and system in OF_LAKE
    if not is_of_lake and system not in OF_TABLES and system != CHANGES:
        raise TableNotFound(
            "no such table in the lake; after a table's name and a point stands a system table",
            table=f"{first}.{last}"[:200],
            **nearest(last, OF_LAKE if first.casefold() == INFORMATION else (*OF_TABLES, CHANGES)),
            system=",".join((*OF_TABLES, CHANGES)),
            of_lake=",".join(f"{INFORMATION}.{one}" for one in OF_LAKE),
        )
    if node.args.get("version") is not None and (is_of_lake or system not in WITH_VERSIONS):
        raise InvalidStatement("this system table has no versions", table=f"{first}.{last}"[:200])
    return ("", f"{INFORMATION}.{system}") if is_of_lake else (find_table(first, tables), system)


def point_of(version: exp.Expr | None) -> Any:
    """What ``VERSION AS OF`` or ``TIMESTAMP AS OF`` says: a number, a tag, or a time (UTC where it says no offset)."""
    if version is None:
        return None
    value = version.args.get("expression")
    said = value.name if isinstance(value, exp.Literal) else ""
    if version.args.get("kind") == "AS OF" and version.name == "VERSION" and said:
        if isinstance(value, exp.Literal) and value.is_string:
            return said
        if said.isdecimal():
            return int(said) if len(said) < 20 else said  # beyond 64 bits: no version, and no number to Python either
    if version.args.get("kind") == "AS OF" and version.name == "TIMESTAMP":
        written = value.this if isinstance(value, exp.Cast) else value
        if isinstance(written, exp.Literal) and written.is_string:
            return _time(written.name)
    raise InvalidStatement("write VERSION AS OF 7, VERSION AS OF 'tag' or TIMESTAMP AS OF '2013-01-05 07:00'")


def _time(text: str) -> datetime:
    try:
        found: datetime | date = read_time(text)
        return to_utc(found)
    except ValueError as error:
        raise InvalidStatement("not a time; write TIMESTAMP AS OF '2013-01-05 07:00'", found=text[:100]) from error

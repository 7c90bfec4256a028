"""BEGIN; statements; COMMIT: changes of any number of tables that become one version, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from lakehouse.core.commit import Commit
from lakehouse.core.operation import Kind
from lakehouse.errors import InvalidStatement
from lakehouse.session.session import Session
from lakehouse.sql.change import delete, merge, update
from lakehouse.sql.insert import insert, truncate
from lakehouse.sql.target import find_target
from lakehouse.sql.view import under_views
from lakehouse.table.transaction import Transaction, may_follow

_HELD = "INSERT, DELETE, UPDATE, MERGE, TRUNCATE TABLE"


def run_script(session: Session, steps: Sequence[exp.Expr], *, as_of: Any, engine: str | None) -> Commit | None:
    """Run statements as one transaction: its queries read one version, the head when it begins.

    No statement sees what another one of the same transaction wrote; one that would have to is refused before anything
    is begun, as is all that a transaction cannot hold. Raises `WriteConflict` where others changed rows meanwhile.
    """
    if as_of is not None:
        raise InvalidStatement("a transaction reads the head when it begins; leave as_of out", as_of=as_of)
    _check(session, steps)
    head = session.catalog.head()
    with Transaction(session, message=None, properties=None) as tx:
        for step in steps:
            _run(session, step, tx, head, engine)
    return tx.commit()


def _check(session: Session, steps: Sequence[exp.Expr]) -> None:
    """Refuse what would not see what it should, before anything is begun."""
    changed: dict[str, set[Kind]] = {}
    for place, step in enumerate(steps, 1):
        kind, node = _change(step, place)
        table = find_target(session, node).name
        others = changed.get(table, set())
        if others and not may_follow(kind, others):
            raise InvalidStatement(
                "a statement would not see what the transaction wrote to its table; put it first, or run it alone",
                statement=place,
                table=table,
            )
        read = {one.name.casefold() for one in step.find_all(exp.Table) if one is not node}
        unseen = {one.casefold() for one in changed} | ({table.casefold()} if kind is Kind.REPLACE else set())
        read = under_views(session, read)
        if read & unseen:
            raise InvalidStatement(
                "a statement reads a table that the transaction changes, and would not see that; run it alone",
                statement=place,
                tables=",".join(sorted(read & unseen)),
            )
        changed.setdefault(table, set()).add(kind)


def _change(step: exp.Expr, place: int) -> tuple[Kind, exp.Expr]:
    """What a statement does, and the node that names its table."""
    match step:
        case exp.Insert():
            node = step.this.this if isinstance(step.this, exp.Schema) else step.this
            is_replace = step.args.get("overwrite") or step.args.get("where") is not None
            return Kind.REPLACE if is_replace else Kind.APPEND, node
        case exp.TruncateTable() if len(step.expressions) == 1:
            return Kind.REPLACE, step.expressions[0]
        case exp.Delete():
            return Kind.DELETE, step.this
        case exp.Update():
            return Kind.UPDATE, step.this
        case exp.Merge():
            return Kind.MERGE, step.this
    raise InvalidStatement("a transaction cannot hold this", statement=place, found=step.key.upper(), held=_HELD)


def _run(session: Session, step: exp.Expr, tx: Transaction, head: int, engine: str | None) -> None:
    match step:
        case exp.Insert():
            insert(session, step, as_of=head, engine=engine, tx=tx)
        case exp.TruncateTable():
            truncate(session, step, tx=tx)
        case exp.Delete():
            delete(session, step, tx=tx)
        case exp.Update():
            update(session, step, tx=tx)
        case exp.Merge():
            merge(session, step, as_of=head, engine=engine, tx=tx)

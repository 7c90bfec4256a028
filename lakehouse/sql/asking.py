"""A look by SQL as its asker sees it: a question to a query process, and the answer that comes back."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakehouse.apart.wire import write_point
from lakehouse.arguments import read_limit, read_seconds
from lakehouse.engine.duckdb import most_memory, spill_place
from lakehouse.errors import InvalidArgument, QueryLimitExceeded
from lakehouse.session.session import Session
from lakehouse.sql.looking import Answer, TableRead
from lakehouse.sql.parse import check_text, is_query
from lakehouse.sql.values import read_values

_MOST_SECONDS = 7 * 86_400.0
_MOST_ROWS = 1 << 62
_LEAST_MEMORY = 400_000_000
"""A process that has loaded everything has 250 MB."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a query may cost its asker: ``rows`` and ``bytes`` of the result, ``seconds``, and bytes of ``memory``."""

    rows: int
    bytes: int
    seconds: float
    memory: int
    spills: bool = False
    """Whether what memory does not hold may wait on the disk."""

    @classmethod
    def of(cls, *, rows: Any, bytes: Any, seconds: Any, memory: Any) -> Allowed:
        """Limits as a caller gives them. Raises `InvalidInput` for what is none."""
        numbers = (read_limit(rows, "most_rows"), read_limit(bytes, "most_bytes"), read_limit(memory, "most_memory"))
        if any(one is None for one in numbers):
            raise InvalidArgument("a limit is a whole number", most_rows=rows, most_bytes=bytes, most_memory=memory)
        most = read_seconds(seconds, "most_seconds")
        if most > _MOST_SECONDS:
            raise InvalidArgument("most_seconds is a week at most", most_seconds=seconds, most=_MOST_SECONDS)
        if (numbers[2] or 0) < _LEAST_MEMORY:
            raise InvalidArgument("most_memory is too little to run any query", most_memory=memory, least=_LEAST_MEMORY)
        return cls(numbers[0] or 0, numbers[1] or 0, most, numbers[2] or 0)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query of `Lake.sql` may need: bytes of ``memory``, ``seconds``, and ``rows`` of its result.

    One that needs more fails: its result is never cut. None: what there is.
    """

    memory: int | None
    seconds: float | None
    rows: int | None

    @classmethod
    def of(cls, *, memory_bytes: Any, seconds: Any, rows: Any) -> Limits | None:
        """Limits as a caller gives them; None for none at all. Raises `InvalidInput` for what is none."""
        if memory_bytes is None and seconds is None and rows is None:
            return None
        memory, most_rows = read_limit(memory_bytes, "memory_bytes"), read_limit(rows, "rows")
        most = None if seconds is None else read_seconds(seconds, "seconds")
        if memory is not None and memory < _LEAST_MEMORY:
            raise InvalidArgument("too little memory to run any query", memory_bytes=memory, least=_LEAST_MEMORY)
        if most_rows is not None and not 0 < most_rows <= _MOST_ROWS:
            raise InvalidArgument("a limit of rows is at least 1", rows=most_rows, most=_MOST_ROWS)
        if most is not None and not 0 < most <= _MOST_SECONDS:
            raise InvalidArgument("a limit of seconds is more than 0, and a week at most", seconds=most)
        return cls(memory, most, most_rows)

    def allowed(self) -> Allowed:
        """The same for a query process, with what there is where nothing was said."""
        memory = max(most_memory(), _LEAST_MEMORY) if self.memory is None else self.memory
        return Allowed(
            _MOST_ROWS if self.rows is None else self.rows,
            memory,
            _MOST_SECONDS if self.seconds is None else self.seconds,
            memory,
            spills=True,
        )


def query_within(session: Session, text: Any, *, as_of: Any, engine: str | None, args: Any, limits: Limits) -> Any:
    """A query's whole result, calculated within limits: a relation over rows in memory, or the text of an EXPLAIN.

    Raises `QueryLimitExceeded` where it has more rows, or needs more memory or time.
    """
    if engine == "spark":
        raise InvalidArgument(
            "limits are kept in process only; leave them out, or the engine, and limit Spark in its own settings"
        )
    if not is_query(text):
        raise InvalidArgument(
            "limits are for queries and EXPLAIN of one; leave them out, and end another statement by lake.cancel()"
        )
    allowed = limits.allowed()
    found = ask_apart(session, text, as_of, allowed, args)
    if found.is_cut:
        raise QueryLimitExceeded(
            "the result has more rows than its limit; ask for fewer, or allow more", limit="rows", most_rows=limits.rows
        )
    return "\n".join(found.rows["plan"].to_pylist()) if found.is_plan else session.statements.of_rows(found.rows)


def ask_apart(session: Session, text: Any, as_of: Any, allowed: Allowed, args: Any = None) -> Answer:
    """Have a query process answer a statement that only looks. See `Lake.query`."""
    check_text(text)
    values = read_values(args)
    with session.works.runs(), spill_place() if allowed.spills else nullcontext() as spill:
        header, body = session.query_processes.ask(
            {
                "text": text,
                "values": values,
                "as_of": write_point(as_of),
                "most_rows": allowed.rows,
                "most_bytes": allowed.bytes,
                "most_memory": allowed.memory,
                "most_seconds": allowed.seconds,
                "spill": None if spill is None else str(spill),
            },
            most_bytes=allowed.bytes,
            most_memory=allowed.memory,
            most_seconds=allowed.seconds,
        )
    with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
        rows = stream.read_all()
    reads = (
        TableRead(table, version, tuple(columns), where, session) for table, version, columns, where in header["reads"]
    )
    return Answer(rows, header["is_cut"], tuple(reads), header["is_plan"])

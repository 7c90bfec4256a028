"""A look by SQL as its asker sees it: a question to a query process, and the answer that comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakehouse.apart.wire import write_point
from lakehouse.arguments import read_limit, read_seconds
from lakehouse.errors import InvalidArgument
from lakehouse.session.session import Session
from lakehouse.sql.looking import Answer, TableRead
from lakehouse.sql.parse import check_text
from lakehouse.sql.values import read_values

_MOST_SECONDS = 7 * 86_400.0
_LEAST_MEMORY = 400_000_000
"""A process that has loaded everything has 250 MB."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a query may cost its asker: ``rows`` and ``bytes`` of the result, ``seconds``, and bytes of ``memory``."""

    rows: int
    bytes: int
    seconds: float
    memory: int

    @classmethod
    def of(cls, *, rows: Any, bytes: Any, seconds: Any, memory: Any) -> Allowed:
        """Limits as a caller gives them. Raises `InvalidInput` for what is none."""
        numbers = (read_limit(rows), read_limit(bytes), read_limit(memory))
        if any(one is None for one in numbers):
            raise InvalidArgument("a limit is a whole number", most_rows=rows, most_bytes=bytes, most_memory=memory)
        most = read_seconds(seconds, "most_seconds")
        if most > _MOST_SECONDS:
            raise InvalidArgument("most_seconds is a week at most", most_seconds=seconds, most=_MOST_SECONDS)
        if (numbers[2] or 0) < _LEAST_MEMORY:
            raise InvalidArgument("most_memory is too little to run any query", most_memory=memory, least=_LEAST_MEMORY)
        return cls(numbers[0] or 0, numbers[1] or 0, most, numbers[2] or 0)


def ask_apart(session: Session, text: Any, as_of: Any, allowed: Allowed, args: Any = None) -> Answer:
    """Have a query process answer a statement that only looks. See `Lake.query`."""
    check_text(text)
    values = read_values(args)
    told, body = session.query_processes.ask(
        {
            "text": text,
            "values": values,
            "as_of": write_point(as_of),
            "most_rows": allowed.rows,
            "most_bytes": allowed.bytes,
            "most_memory": allowed.memory,
            "most_seconds": allowed.seconds,
        },
        most_bytes=allowed.bytes,
        most_memory=allowed.memory,
        most_seconds=allowed.seconds,
    )
    with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
        rows = stream.read_all()
    reads = (
        TableRead(table, version, tuple(columns), where, session) for table, version, columns, where in told["reads"]
    )
    return Answer(rows, told["is_cut"], tuple(reads), told["is_plan"])

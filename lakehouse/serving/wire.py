"""What clients and query nodes say to each other: a question in JSON, an answer in Arrow or JSON, errors by status."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse import errors
from lakehouse.core.serving.coverage import Coverage
from lakehouse.engine.cells import cells_of
from lakehouse.errors import InvalidArgument, LakehouseError

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
KEY = b"lakehouse"
"""Under which the schema of an answer's rows has what else the answer says, as JSON."""
_JSON_ROWS = 1000
"""So many rows are in memory as objects of Python at a time."""

_STATUS: tuple[tuple[type[LakehouseError], int], ...] = (
    (errors.QueryLimitExceeded, 422),
    (errors.InvalidInput, 400),
    (errors.Forbidden, 401),
    (errors.TableNotFound, 404),
    (errors.VersionNotFound, 410),
    (errors.VersionNotServed, 409),
    (errors.OtherLake, 421),
    (errors.StatementCancelled, 499),
    (errors.SegmentUnreadable, 503),
    (errors.StorageUnavailable, 503),
    (errors.CatalogUnavailable, 503),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A statement, and the version that it is to be answered at.

    ``args`` are values of any type, sent as ``values``: pairs of a kind and its text. ``versions`` names a version of
    the lake, or of some tables; ``at_least`` one that is to be waited for, for ``wait_seconds`` at most. ``seen`` is
    the newest version of an earlier answer, and ``lake`` what that said of the catalog.
    """

    sql: str
    args: Any = None
    versions: int | Mapping[str, int] | None = None
    at_least: int | Mapping[str, int] | None = None
    best_effort: bool = False
    wait_seconds: float = 10.0
    lake: str | None = None
    seen: int = 0
    values: Any = None

    def to_json(self) -> dict[str, Any]:
        """The form in which it is sent; `read_question` reads it."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value is not None and value is not False}


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says beside its rows.

    ``version`` is that of the lake, ``versions`` of the tables in it, all of them. ``age_seconds`` is how long ago the
    node last reached its catalog: more than a moment, and there may be newer versions than it knows.
    """

    version: int
    versions: Mapping[str, int]
    coverage: tuple[Coverage, ...]
    node: str
    lake: str
    seconds: float
    age_seconds: float
    from_results: bool = False

    def to_json(self) -> dict[str, Any]:
        """The form in which an answer carries it."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {**found, "versions": dict(self.versions), "coverage": [one.to_json() for one in self.coverage]}

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> Said:
        """The inverse of `to_json`."""
        return cls(**{**held, "coverage": tuple(map(Coverage.from_json, held["coverage"]))})


def read_question(body: bytes, content_type: str) -> Question:
    """A question as it came. Raises `InvalidArgument` for what is none."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument("a question is text in UTF-8") from error
    if kind != JSON:
        return Question(text)
    try:
        held = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument('a question is JSON such as {"sql": "SELECT 1"}', cause=str(error)[:200]) from error
    if not isinstance(held, dict) or not set(held) <= set(Question.__slots__) or not isinstance(held.get("sql"), str):
        raise InvalidArgument(
            'a question is JSON such as {"sql": "SELECT 1"}', known=", ".join(Question.__slots__), found=text[:100]
        )
    return _checked(held)


def _checked(held: dict[str, Any]) -> Question:
    for name in ("versions", "at_least"):
        held[name] = read_point(held.get(name), name)
    if not isinstance(held.setdefault("best_effort", False), bool):
        raise InvalidArgument("best_effort is true or false", best_effort=repr(held["best_effort"])[:100])
    wait = held.get("wait_seconds", 10.0)
    if isinstance(wait, bool) or not isinstance(wait, int | Decimal | float) or not 0 <= wait <= MOST_WAIT_SECONDS:
        raise InvalidArgument("wait_seconds is a number from 0", wait_seconds=repr(wait)[:100], most=MOST_WAIT_SECONDS)
    lake = held.get("lake")
    if lake is not None and not isinstance(lake, str):
        raise InvalidArgument("lake is a text that an answer said", lake=repr(lake)[:100])
    seen = held.get("seen", 0)
    if type(seen) is not int or seen < 0:
        raise InvalidArgument("seen is a version of the lake", seen=repr(seen)[:100])
    values = held.pop("values", None)
    if values is not None:
        held["args"] = _read_values(values)
    return Question(**{**held, "wait_seconds": float(wait)})


def _read_values(values: Any) -> Any:
    """Values of pairs as the values that they are of: what comes from outside is read anew."""
    try:
        if isinstance(values, dict):
            return {name: _VALUES[kind](text) for name, (kind, text) in values.items()}
        return [_VALUES[kind](text) for kind, text in values]
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(
            'values are pairs of a kind and its text, as in {"day": ["date", "2013-01-05"]}', found=repr(values)[:100]
        ) from error


_VALUES: Mapping[str, Callable[[str], Any]] = {
    "null": lambda _: None,
    "bool": lambda text: {"true": True, "false": False}[text],
    "int": int,
    "float": float,
    "decimal": Decimal,
    "str": str,
    "bytes": bytes.fromhex,
    "date": date.fromisoformat,
    "time": datetime.fromisoformat,
    "instant": datetime.fromisoformat,
}
"""By the kinds of `lakehouse.sql.values`."""
MOST_WAIT_SECONDS = 600.0
"""How long one question may wait for a version."""


def read_token(token: Any) -> str:
    """A token that a header can hold. Raises `InvalidArgument`, which does not repeat it."""
    if (
        not isinstance(token, str)
        or not token
        or not (token.isascii() and token.isprintable())
        or token != token.strip()
    ):
        raise InvalidArgument(
            "a token is some visible ASCII characters; leave out spaces around it, and line ends, such as a file's last"
        )
    return token


def read_point(given: Any, name: str) -> int | dict[str, int] | None:
    """A version of the lake, or versions by table. Raises `InvalidArgument`."""
    match given:
        case None:
            return None
        case bool():
            pass
        case int() if given >= 0:
            return given
        case Mapping() if all(isinstance(key, str) and type(value) is int for key, value in given.items()):
            return dict(given)
    raise InvalidArgument(
        f"{name} is a version of the lake, or a dict of versions by table", **{name: repr(given)[:200]}
    )


def status_of(error: LakehouseError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, errors.QueryLimitExceeded) and error.facts.get("limit") in ("waiting", "sending"):
        return 429
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def write_error(error: LakehouseError) -> dict[str, Any]:
    """An error as a document."""
    facts = {name: value if isinstance(value, int | float) else str(value) for name, value in error.facts.items()}
    return {"error": error.kind, "code": error.code, "message": error.args[0], "facts": facts}


def read_error(held: Mapping[str, Any]) -> LakehouseError:
    """An error of a document: of its class, if this release has one of its code.

    >>> read_error(write_error(errors.TableNotFound("no such table", table="trips")))
    TableNotFound('no such table (table=trips)')
    """
    name = "".join(part.capitalize() for part in str(held.get("code", "")).split("_"))
    kind = getattr(errors, name, None)
    chosen = kind if isinstance(kind, type) and issubclass(kind, LakehouseError) else LakehouseError
    error = chosen.__new__(chosen)
    Exception.__init__(error, str(held.get("message", "")))
    facts = held.get("facts")
    error.facts = dict(facts) if isinstance(facts, Mapping) else {}
    return error


def write_rows(rows: pa.Table, said: Said) -> memoryview:
    """An answer as an Arrow IPC stream."""
    metadata = {**(rows.schema.metadata or {}), KEY: json.dumps(said.to_json(), ensure_ascii=False).encode()}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema.with_metadata(metadata)) as writer:
        writer.write_table(rows)
    return memoryview(sink.getvalue())


def read_rows(body: bytes) -> tuple[pa.Table, Said]:
    """The inverse of `write_rows`. Raises `ArrowInvalid` for a stream that is cut short."""
    with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
        rows = stream.read_all()
    metadata = dict(rows.schema.metadata)
    said = Said.from_json(json.loads(metadata.pop(KEY)))
    return rows.replace_schema_metadata(metadata or None), said


def write_json(rows: pa.Table, said: Said, go_on: Callable[[int], object]) -> memoryview:
    """An answer as a JSON document: columns with their types, rows as lists.

    ``go_on`` gets the bytes that there are, after some rows each, and may raise to end it: as text, rows may have many
    times the bytes that they have in Arrow.
    """
    columns = [{"name": one.name, "type": str(one.type)} for one in rows.schema]
    head = json.dumps({**said.to_json(), "columns": columns}, ensure_ascii=False)
    found = bytearray(f'{head[:-1]}, "rows": ['.encode())
    before = ""
    for batch in rows.to_batches(_JSON_ROWS):
        if not batch.num_rows:
            continue
        cells = zip(*map(cells_of, batch.columns), strict=True)
        text = json.dumps([[_plain(cell) for cell in row] for row in cells], ensure_ascii=False)
        found += f"{before}{text[1:-1]}".encode()
        before = ", "
        go_on(len(found))
    found += b"]}"
    return memoryview(found)


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            return {str(name): _plain(held) for name, held in value.items()}
        case list() | tuple():
            return [_plain(held) for held in value]
        case _:
            return str(value)

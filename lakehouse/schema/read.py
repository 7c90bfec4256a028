"""Read a schema from Arrow, Spark's StructType (without importing Spark) or DDL text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakehouse.arguments import nearest, read_text, refuse_surrogates
from lakehouse.core.column import COMMENT, DEFAULT, ColumnHistory, is_uuid_column
from lakehouse.core.kinds import is_uuid
from lakehouse.errors import InvalidSchema
from lakehouse.schema.json_values import decode_value, encode_value
from lakehouse.schema.names import check_column_name, check_distinct
from lakehouse.schema.refused import refused
from lakehouse.schema.types import TIME, normal_type, table_column
from lakehouse.schema.values import typed_value

_PARSER_ERRORS = (
    SqlglotError, ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""Errors of the parser on invalid text: its own, and others for text that it did not foresee."""
_SPARK_TYPES: dict[str, pa.DataType] = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIME,
    "timestamp_ntz": pa.timestamp("us"),
    "decimal": pa.decimal128(10, 0),
}
_SPARK_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_SPARK_TEXT = re.compile(r"(?:var)?char\(\d+\)|string collate \w+")
_TYPE_NAMES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "BINARY", "DATE",
    "TIMESTAMP", "TIMESTAMP_NTZ", "UUID", "ARRAY", "MAP", "STRUCT", "VECTOR",
)  # fmt: skip
_NESTED = {
    exp.DType.ARRAY: "ARRAY<INT>",
    exp.DType.MAP: "MAP<STRING, INT>",
    exp.DType.STRUCT: "STRUCT<a: INT>",
    exp.DType.VECTOR: "VECTOR(FLOAT, 768)",
}
"""What to write for types that have others in them."""
_DDL_TYPES: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.CHAR: pa.string(),
    exp.DType.UUID: pa.uuid(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: TIME,
    exp.DType.TIMESTAMPTZ: TIME,
    exp.DType.TIMESTAMPLTZ: TIME,
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
}

_MOMENTS = frozenset({kind for kind, held in _DDL_TYPES.items() if pa.types.is_timestamp(held)})


def to_schema(schema: Any, time: str | None) -> pa.Schema:
    """Read a table's schema from a `pyarrow.Schema`, a Spark ``StructType`` or a DDL string, in the table's own form.

    Types become those that both engines share, the time column becomes non-null UTC microseconds, and every column gets
    its Parquet field id. ``time`` is None for a timeless table. Raises `InvalidInput` for bad names, types and time
    columns.

    >>> to_schema("ts TIMESTAMP, client BIGINT, name STRING", "ts").field("ts")
    pyarrow.Field<ts: timestamp[us, tz=UTC] not null>
    """
    return read_columns(schema, time)[0]


def read_columns(schema: Any, time: str | None) -> tuple[pa.Schema, dict[int, ColumnHistory]]:
    """The same, and by field id what is said of columns beside: comments, and defaults of rows without them.

    >>> read_columns("id INT, gate STRING DEFAULT 'A1' COMMENT 'departure'", None)[1][2].default_for_new
    'A1'
    """
    fields = _fields(schema)
    if not fields:
        raise InvalidSchema("a schema needs columns; name at least one", schema=repr(schema))
    for field in fields:
        check_column_name(field.name)
    check_distinct(field.name for field in fields)
    names = [field.name for field in fields]
    if time is not None and time not in names:
        raise InvalidSchema(
            "the time column is not in the schema; name one that is", time=time, columns=",".join(names)
        )
    numbered = list(enumerate(fields, start=1))
    columns = pa.schema([_normal_field(field, number, field.name == time) for number, field in numbered])
    return columns, {number: _told(field) for number, field in numbered if _told(field) != ColumnHistory(field.name)}


def _told(field: pa.Field) -> ColumnHistory:
    """A new column as it is described: with its comment and its default."""
    held = field.metadata or {}
    default = json.loads(held[DEFAULT]) if DEFAULT in held else None
    comment = read_text(held.get(COMMENT, b"").decode(), "a column's comment")
    return ColumnHistory(field.name, default_for_new=decode_value(default), comment=comment)


def read_type(kind: Any, column: str) -> pa.DataType:
    """A column's type from Arrow, Spark's or text in DDL, as a table stores it. Raises `InvalidInput`.

    >>> read_type("DECIMAL(10, 2)", "price"), read_type(pa.large_string(), "carrier")
    (Decimal128Type(decimal128(10, 2)), DataType(string))
    """
    match kind:
        case pa.DataType():
            return normal_type(kind, column)
        case str():
            found = _from_ddl(f"`{column.replace('`', '``')}` {kind}")
            if len(found) == 1 and found[0].nullable:
                return normal_type(found[0].type, column)
            raise InvalidSchema("not the type of one column that may be null", column=column, type=kind[:200])
    json_value: Callable[[], Any] | None = getattr(kind, "jsonValue", None)
    if callable(json_value):
        return normal_type(from_spark_type(json_value(), column), column)
    raise InvalidSchema("not a type; pass one of pyarrow, of Spark, or DDL such as 'BIGINT'", column=column, type=kind)


def _normal_field(field: pa.Field, number: int, is_time: bool) -> pa.Field:
    kind = normal_type(field.type, field.name)
    if is_time:
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise InvalidSchema("the time column must be a timestamp or date", time=field.name, type=field.type)
        kind = TIME
    if pa.types.is_nested(kind) and not field.nullable:
        raise InvalidSchema("a nested column can always be null; leave NOT NULL out", column=field.name)
    is_text = is_uuid_column(field)
    return table_column(field.name, kind, field.nullable and not is_time, number, is_uuid_text=is_text)


def _fields(schema: Any) -> list[pa.Field]:
    match schema:
        case pa.Schema():
            return list(schema)
        case str():
            return _from_ddl(schema)
    json_value: Callable[[], Any] | None = getattr(schema, "jsonValue", None)
    if callable(json_value):
        found = json_value()
        if isinstance(found, Mapping) and found.get("type") == "struct":
            return [_from_spark_field(one) for one in found["fields"]]
    raise InvalidSchema(
        "not a schema; pass a pyarrow.Schema, a Spark StructType or DDL text such as 'ts TIMESTAMP, client BIGINT'",
        schema=type(schema).__name__,
    )


def _from_spark_field(field: Mapping[str, Any]) -> pa.Field:
    refuse_surrogates(field["name"], "a column's name")
    comment = (field.get("metadata") or {}).get("comment")
    metadata = {COMMENT: comment.encode()} if isinstance(comment, str) and comment else None
    kind = from_spark_type(field["type"], field["name"])
    return pa.field(field["name"], kind, bool(field.get("nullable", True)), metadata)


def from_spark_schema(schema: Any) -> pa.Schema:
    """The columns of Spark's StructType, by Arrow's types. Raises `InvalidInput` as `from_spark_type`."""
    fields = json.loads(schema.json())["fields"]
    return pa.schema([pa.field(one["name"], from_spark_type(one["type"], one["name"])) for one in fields])


def from_spark_type(kind: Any, column: str) -> pa.DataType:
    """The Arrow type of a Spark type's JSON form. Raises `InvalidInput` for one that no table can hold.

    >>> from_spark_type({"type": "array", "elementType": "long", "containsNull": True}, "delays")
    ListType(list<item: int64>)
    """
    if isinstance(kind, Mapping):
        match kind.get("type"):
            case "array":
                return pa.list_(from_spark_type(kind["elementType"], column))
            case "map":
                return pa.map_(from_spark_type(kind["keyType"], column), from_spark_type(kind["valueType"], column))
            case "struct":
                return pa.struct([_from_spark_field(one).with_nullable(True) for one in kind["fields"]])
    if isinstance(kind, str):
        if kind in _SPARK_TYPES:
            return _SPARK_TYPES[kind]
        if found := _SPARK_DECIMAL.fullmatch(kind):
            return pa.decimal128(int(found[1]), int(found[2]))
        if _SPARK_TEXT.fullmatch(kind):
            return pa.string()
    raise refused(kind, column)


def _from_ddl(text: str) -> list[pa.Field]:
    refuse_surrogates(text, "a schema in DDL")
    try:
        statements = sqlglot.parse(f"CREATE TABLE t ({text})", dialect="spark")
    except _PARSER_ERRORS as error:
        raise _no_ddl(text) from error
    match statements:
        case [exp.Create(this=exp.Schema(this=exp.Table(), expressions=columns)) as create] if not create.args.get(
            "properties"
        ) and not create.args.get("expression"):
            return [_from_ddl_column(column, text) for column in columns]
    raise _no_ddl(text)


def _no_ddl(text: str) -> InvalidSchema:
    """The error for text that is no DDL: it names the first column whose type is none, and the nearest type."""
    for column in _columns_of(text):
        name, _, kind = column.strip().partition(" ")
        word = re.match(r"[A-Za-z_]\w*", kind.strip())
        if word is not None and word[0].upper() not in _TYPE_NAMES:
            return InvalidSchema(
                "no such type; use one of these",
                column=name,
                type=word[0],
                **nearest(word[0], _TYPE_NAMES),
                types=",".join(_TYPE_NAMES),
            )
    return InvalidSchema("not a schema in DDL; write 'ts TIMESTAMP, client BIGINT'", schema=text[:200])


def _columns_of(text: str) -> Iterator[str]:
    """What stands between the commas of a schema that are in no brackets."""
    depth = start = 0
    for place, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def _from_ddl_column(column: exp.Expression, text: str) -> pa.Field:
    if not isinstance(column, exp.ColumnDef) or not isinstance(column.args.get("kind"), exp.DataType):
        raise InvalidSchema("a column needs a name and a type, as in 'client BIGINT'", schema=text[:200])
    nullable = True
    kind = _from_ddl_type(column.args["kind"], column.name)
    if pa.types.is_nested(kind) and _has_uuid(kind):
        raise InvalidSchema("only whole columns hold UUIDs; inside others use STRING", column=column.name)
    metadata: dict[bytes, bytes] = {}
    for constraint in column.args.get("constraints") or ():
        match constraint.kind:
            case exp.NotNullColumnConstraint():
                nullable = bool(constraint.kind.args.get("allow_null"))
            case exp.CommentColumnConstraint(this=exp.Literal() as comment):
                metadata |= {COMMENT: comment.name.encode()} if comment.name else {}
            case exp.DefaultColumnConstraint(this=value) if not isinstance(column.parent, exp.DataType):
                default = _default(value, table_column(column.name, normal_type(kind, column.name), True, 1))
                metadata |= {} if default is None else {DEFAULT: json.dumps(encode_value(default)).encode()}
            case _:
                raise InvalidSchema("only NOT NULL, DEFAULT and COMMENT may follow a column's type", column=column.name)
    return pa.field(column.name, kind, nullable, metadata or None)


def _default(node: exp.Expr, column: pa.Field) -> Any:
    """A literal as a column holds it. Raises `InvalidSchema` for what is none, `InvalidRows` if it cannot."""
    sign, found = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
    if pa.types.is_nested(column.type) and not isinstance(node, exp.Null):
        raise InvalidSchema("a nested column has no default but null", column=column.name)
    match found:
        case exp.Null() if not sign:
            return None
        case exp.Boolean() if not sign:
            return typed_value(bool(found.this), column)
        case exp.HexString() if not sign:
            return typed_value(bytes.fromhex(found.name), column)
        case exp.Cast(this=exp.Literal(is_string=True) as text) if not sign:  # DATE '2013-01-05'
            return typed_value(text.name, column)
        case exp.Literal(is_string=True) if not sign:
            return typed_value(found.name, column)
        case exp.Literal(is_string=False):
            return typed_value(_number(sign + found.name, column), column)
    raise InvalidSchema("a default is a literal, as in DEFAULT 0; alter the table for another one", column=column.name)


def _number(text: str, column: pa.Field) -> int | float | Decimal:
    if pa.types.is_floating(column.type):
        return float(text)
    return int(text) if text.lstrip("-").isdecimal() else Decimal(text)


def _has_uuid(kind: pa.DataType) -> bool:
    return is_uuid(kind) or any(_has_uuid(kind.field(place).type) for place in range(kind.num_fields))


def _from_ddl_type(kind: exp.DataType, column: str) -> pa.DataType:
    parts = kind.expressions
    refuse_finer_times(kind, column)
    if kind.args.get("values"):
        raise InvalidSchema("no list has its size in brackets; write VECTOR(FLOAT, n) or ARRAY<type>", column=column)
    match kind.this:
        case exp.DType.ARRAY if len(parts) == 1:
            return pa.list_(_from_ddl_type(parts[0], column))
        case exp.DType.MAP if len(parts) == 2:
            return pa.map_(_from_ddl_type(parts[0], column), _from_ddl_type(parts[1], column))
        case exp.DType.STRUCT if parts:
            return pa.struct([_from_ddl_column(part, column).with_nullable(True) for part in parts])
        case exp.DType.VECTOR if len(parts) == 2 and parts[1].name.isdecimal():
            floats = _from_ddl_type(exp.DataType.build(parts[0].name or parts[0].this.value), column)
            if not pa.types.is_floating(floats):
                raise InvalidSchema("a vector holds FLOAT or DOUBLE; use ARRAY for others", column=column, type=floats)
            return pa.list_(floats, int(parts[1].name))
        case exp.DType.DECIMAL if parts:
            precision, scale = (int(part.name) for part in (*parts, exp.DataTypeParam(this=exp.Literal.number(0)))[:2])
            if not 1 <= precision <= 38:
                raise InvalidSchema("a decimal holds 1 to 38 digits", column=column, precision=precision)
            return pa.decimal128(precision, scale)
        case exp.DType.DECIMAL:
            return pa.decimal128(10, 0)
        case _ if kind.this in _DDL_TYPES:
            return _DDL_TYPES[kind.this]
    if kind.this in _NESTED:
        raise InvalidSchema(
            "a nested type has others in it", column=column, type=kind.sql("spark"), write=_NESTED[kind.this]
        )
    raise refused(kind.this.value if isinstance(kind.this, exp.DType) else kind.this, column)


def refuse_finer_times(kind: exp.DataType, column: str) -> None:
    """Raise `InvalidInput` for a type of times with more digits than microseconds have, as in ``TIMESTAMP(9)``."""
    sizes = [part.name for part in kind.expressions]
    if kind.this in _MOMENTS and sizes and not re.fullmatch("[0-6]", sizes[0]):
        raise refused(f"{kind.this.value}({sizes[0]})", column)

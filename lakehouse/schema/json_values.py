"""Values of columns in JSON, each with its type kept."""

from __future__ import annotations

import base64
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakehouse.core.interval import from_us, to_us, to_utc
from lakehouse.errors import InternalError, InvalidKeys


def encode_value(value: Any) -> Any:
    """A JSON form of a column's value: numbers, text, booleans and null unchanged, others as ``[type, text]``."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else ["float", repr(value)]
        case datetime():
            return ["naive" if value.tzinfo is None else "utc", to_us(to_utc(value))]
        case date():
            return ["date", value.isoformat()]
        case Decimal():
            return ["decimal", str(value)]
        case bytes():
            return ["bytes", base64.b64encode(value).decode()]
        case _:
            if hasattr(value, "item"):  # a numpy scalar
                return encode_value(value.item())
            raise InvalidKeys("a value of this type cannot be a key", type=type(value).__name__)


def decode_value(stored: Any) -> Any:
    """The inverse of `encode_value`."""
    match stored:
        case ["float", str(text)]:
            return float(text)
        case ["utc", int(us)]:
            return from_us(us)
        case ["naive", int(us)]:
            return from_us(us).replace(tzinfo=None)
        case ["date", str(text)]:
            return date.fromisoformat(text)
        case ["decimal", str(text)]:
            return Decimal(text)
        case ["bytes", str(text)]:
            return base64.b64decode(text)
        case None | bool() | int() | float() | str():
            return stored
        case _:
            raise InternalError("a value of the catalog has an unknown form", value=stored)

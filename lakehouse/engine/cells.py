"""Values of Arrow as those of Python, also where Python's calendar ends."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def cells_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column; a date or time outside the years 1 to 9999, which a calculation may give, as its text.

    >>> cells_of(pa.array([0, 2932897], pa.date32()))
    [datetime.date(1970, 1, 1), '10000-01-01']
    >>> cells_of(pa.array([[253402300800000000, None]], pa.list_(pa.timestamp("us", "UTC"))))
    [['10000-01-01T00:00:00.000000+00:00', None]]
    """
    try:
        held: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        return [_cell(one) for one in column]
    return held


def _cell(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        pass
    match scalar:
        case pa.MapScalar():
            return [(_cell(one["key"]), _cell(one["value"])) for one in scalar.values]
        case pa.ListScalar() | pa.LargeListScalar() | pa.FixedSizeListScalar():
            return [_cell(one) for one in scalar.values]
        case pa.StructScalar():
            return {field.name: _cell(scalar[place]) for place, field in enumerate(scalar.type)}
        case _:
            return str(scalar.cast(pa.string())).replace(" ", "T").replace("Z", "+00:00")

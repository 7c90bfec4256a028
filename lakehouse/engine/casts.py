"""How to cast a column, in the words of what most rows come from."""

from __future__ import annotations

import pyarrow as pa

_NAMES = {
    pa.bool_(): ("BOOLEAN", "boolean", "Boolean"),
    pa.int8(): ("TINYINT", "Int8", "Int8"),
    pa.int16(): ("SMALLINT", "Int16", "Int16"),
    pa.int32(): ("INT", "Int32", "Int32"),
    pa.int64(): ("BIGINT", "Int64", "Int64"),
    pa.float32(): ("FLOAT", "float32", "Float32"),
    pa.float64(): ("DOUBLE", "float64", "Float64"),
    pa.string(): ("STRING", "string", "String"),
}
"""By type, its names in SQL, pandas and polars."""


def how_to_cast(name: str, kind: pa.DataType, found: object) -> str:
    """What to write for a column to have a type, to follow ``cast it first``; nothing for types that need more.

    >>> how_to_cast("x", pa.float64(), pa.string())
    ': CAST(x AS DOUBLE) in SQL, df["x"].astype("float64") in pandas, pl.col("x").cast(pl.Float64) in polars'
    >>> how_to_cast("at", pa.timestamp("us", "UTC"), pa.string())
    ': CAST(at AS TIMESTAMP) in SQL, pd.to_datetime(df["at"], utc=True) in pandas, \
pl.col("at").str.to_datetime(time_zone="UTC") in polars'
    """
    if pa.types.is_timestamp(kind):
        sql, utc = ("TIMESTAMP", True) if kind.tz else ("TIMESTAMP_NTZ", False)
        pandas = f'pd.to_datetime(df["{name}"]{", utc=True" if utc else ""})'
        zone = 'time_zone="UTC"' if utc else ""
        whole = f'.cast(pl.Datetime("us"{", " + zone if utc else ""}))'
        polars = f".str.to_datetime({zone})" if str(found) in ("string", "large_string", "string_view") else whole
    elif kind in _NAMES:
        sql, pandas_name, polars_name = _NAMES[kind]
        pandas, polars = f'df["{name}"].astype("{pandas_name}")', f".cast(pl.{polars_name})"
    else:
        return ""
    return f': CAST({name} AS {sql}) in SQL, {pandas} in pandas, pl.col("{name}"){polars} in polars'

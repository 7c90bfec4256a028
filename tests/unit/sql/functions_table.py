# ruff: noqa: E501 - rows of a table
"""Hostile arguments of every function, cast and operator that a statement may use; what Spark says is in a file beside.

``python -m tests.spark.write_functions`` writes the file. Expressions are over `ROWS`, one answer a row, but for those
that have no column or aggregate, which give one.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

ANSWERS = Path(__file__).with_name("functions.json")
ROWS = pa.table(
    {
        "at": pa.array([datetime(2013, 1, 5, tzinfo=UTC)] * 7, pa.timestamp("us", "UTC")),
        "o": pa.array([1, 2, 3, 4, 5, 6, 7], pa.int64()),
        "i": pa.array([None, 0, 1, -1, 2, 3, -3], pa.int32()),
        "l": pa.array([None, 0, 1, -1, 9, 100, -7], pa.int64()),
        "x": pa.array([None, 0.0, -0.5, 1.5, 2.5, float("nan"), -2.5], pa.float64()),
        "f": pa.array([None, 0.0, -0.25, 1.5, 2.5, 1e10, -7.0], pa.float64()),
        "n": pa.array([None, *map(Decimal, ("0.00", "1.00", "-1.25", "3.33", "1.50", "2.50"))], pa.decimal128(10, 2)),
        "s": pa.array([None, "", "abc", "a😀b", "ünïÄ", " a b ", "x%_\\y"], pa.string()),
        "w": pa.array([None, "a", "", "😀", "Ä", "b ", "%"], pa.string()),
        "b": pa.array([None, True, False, True, False, True, None], pa.bool_()),
        "d": pa.array([None, *map(date.fromisoformat, ("2012-02-29", "2013-01-01", "1970-01-01", "1582-10-15",
                       "9999-12-31", "2013-12-31"))], pa.date32()),
        "t": pa.array([None, *(datetime.fromisoformat(one).replace(tzinfo=UTC) for one in (
            "2012-02-29 23:59:59.999999", "2013-01-01 00:00:00", "1969-12-31 23:59:59.5", "1900-01-01 12:30:00",
            "9999-12-31 23:59:59", "2013-03-31 01:30:00.000001"))], pa.timestamp("us", "UTC")),
    }
)  # fmt: skip
_TEXTS = ("''", "' 1 '", "'1.5'", "'-1.9'", "'abc'", "'0x1F'", "'1_000'", "'1e2'", "'+7'", "'2147483648'", "'1.'",
          "'.5'", "'NaN'", "'infinity'", "'-inf'", "'1d'", "'1 2'", "'true'", "'t'", "'yes'", "'1'", "'no'", "'Y'",
          "'2013-01-05'", "'2013-1-5'", "'2013'", "'2013-01'", "'2013-01-05 07:00'", "'2013-01-05T07:00:00Z'",
          "'2013-02-30'", "' 2013-01-05 '", "'2013-01-05 07:00:00+02:00'", "'0001-01-01'", "'epoch'", "'1.2345'",
          "'9999-12-31'", "'10000-01-01'", "'-1'", "'128'", "'1e400'", "'1e-400'", "'\t1\n'")  # fmt: skip
_TYPES = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DATE", "TIMESTAMP",
          "TIMESTAMP_NTZ")  # fmt: skip
_PARTS = ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear", "hour", "minute",
          "second")  # fmt: skip
_TIMES = ("hour", "minute", "second")
CASTS = (
    *(f"CAST({text} AS {kind})" for text in _TEXTS for kind in ("INT", "BOOLEAN", "DATE")),
    *(f"TRY_CAST({text} AS {kind})" for text in _TEXTS for kind in _TYPES),
    *(f"CAST({column} AS STRING)" for column in ("i", "l", "x", "f", "n", "s", "b", "d", "t")),
    *(f"CAST({column} AS {kind})" for column in ("i", "b", "n") for kind in ("INT", "BIGINT", "DOUBLE", "BOOLEAN")),
    *(f"TRY_CAST({column} AS {kind})" for column in ("f", "x") for kind in ("TINYINT", "INT", "BIGINT", "FLOAT",
                                                                            "DECIMAL(5, 1)", "BOOLEAN")),
    "CAST(f AS BIGINT)", "CAST(l AS SMALLINT)", "CAST(n AS DECIMAL(5, 1))", "CAST(n AS DECIMAL(3, 2))", "CAST(1e20 AS BIGINT)",
    "CAST(300 AS TINYINT)", "CAST(1e20 AS STRING)", "CAST(1e-7 AS STRING)", "CAST(CAST(1 AS DOUBLE) AS STRING)",
    "CAST(CAST(123456789.125 AS DOUBLE) AS STRING)", "CAST(CAST('NaN' AS DOUBLE) AS INT)", "CAST(2.5 AS INT)",
    "CAST(-2.5 AS INT)", "CAST(CAST(-0.9 AS DOUBLE) AS INT)", "CAST(t AS DATE)", "CAST(d AS TIMESTAMP)", "CAST(t AS BIGINT)",
    "CAST(1357369200 AS TIMESTAMP)", "CAST(s AS BINARY)", "CAST(X'C3BC' AS STRING)", "CAST(d AS STRING)",
    "CAST(TIMESTAMP '2013-01-05 07:00:00' AS STRING)", "CAST(TIMESTAMP_NTZ '2013-01-05 07:00:00' AS STRING)",
    "CAST(CAST(1.5 AS FLOAT) AS STRING)", "CAST(CAST(0.1 AS FLOAT) AS DOUBLE)", "CAST(true AS STRING)", "CAST(1 AS BOOLEAN)",
    "CAST(NULL AS INT)", "DATE '2013-01-05'", "TIMESTAMP '2013-01-05 07:00:00'", "TIMESTAMP '2013-01-05T07:00:00+02:00'",
    "CAST(1.005 AS DECIMAL(5, 2))", "CAST(CAST(1.005 AS DOUBLE) AS DECIMAL(5, 2))", "CAST(12345.6 AS DECIMAL(5, 2))",
)  # fmt: skip
OPERATORS = (
    "1.0 / 3", "1 / 3", "1 / 0", "1.0 / 0", "CAST(1 AS DOUBLE) / 0", "i / l", "n / n", "n / 3", "n / f", "f / n", "1.5D / 3",
    "1 / 3.0", "10 / 2", "i % 2", "l % 3", "-7 % 3", "7 % -3", "7 % 0", "f % 2", "n % 2", "-7 div 2", "7 div -2", "7 div 0",
    "l div 2", "n div 2", "2147483647 + 1", "CAST(2147483647 AS INT) + CAST(1 AS INT)", "9223372036854775807 + 1", "i + l",
    "i * 1.5", "n + 1", "n - 0.001", "n * n", "n * 2", "0.1 + 0.2", "1.10 * 2.20", "-n", "-i", "-f", "- CAST(-128 AS TINYINT)",
    "99999999999999999999999999999999999999 + 1", "123456789012345678901234567890.12 * 10", "2 * 3.5", "3 - 5.25", "f + 0.1",
    "l & 3", "l | 4", "l ^ 5", "~l", "i = l", "i <=> l", "i <=> NULL", "x = x", "x > 1", "x < 1", "x <=> x", "n = 1", "n = 1.0",
    "i <> 1", "i IN (1, NULL)", "i NOT IN (1, NULL)", "i NOT IN (1, 2)", "x IN (CAST('NaN' AS DOUBLE))", "i BETWEEN 0 AND 2",
    "s = ''", "s < w", "s || w", "s || NULL", "s LIKE '%b%'", "s LIKE 'x\\\\%\\\\_%'", "s LIKE 'a_b'", "s LIKE '_bc'", "s LIKE ''",
    "s LIKE '%\\\\\\\\y'", "s LIKE 'a!%' ESCAPE '!'", "s NOT LIKE 'a%'", "s ILIKE 'A%'", "s ILIKE 'ÜNÏä'", "s LIKE w", "s ILIKE NULL",
    "'a' LIKE 'a\\\\'", "'ab' LIKE 'a\\\\b'", "b AND NULL", "b OR NULL", "NOT b", "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS NULL",
    "s IS NOT NULL", "d = '2013-01-01'", "d < t", "t >= '2013-01-01'", "d + INTERVAL 1 DAY", "d - INTERVAL 1 MONTH",
    "t + INTERVAL 1 MONTH", "t - INTERVAL '2' HOUR", "t + INTERVAL 1 YEAR", "d + 1", "d - 1", "d - DATE '2013-01-01'",
    "CASE i WHEN NULL THEN 1 WHEN 0 THEN 2 END", "CASE WHEN b THEN 1 ELSE 2.5 END", "CASE WHEN b THEN i ELSE f END",
    "i IS DISTINCT FROM l", "i IS NOT DISTINCT FROM l", "'1' = 1", "i = '1'", "s = 1", "x = -0.0", "0.0 = -0.0", "1e3", "1.5D", "2L",
    "'it''s'", "\"dq\"", "'tab\\t'", "X'00FF'", "array(1, 2)[0]", "array(1, 2)[2]", "array(1, 2)[-1]",
    "named_struct('a', 1).a", "i > 'a'", "b = 1", "true > false",
    "x <= 1", "(i + 1) * 2", "(o, l) = (3L, 1L)", "(o, l) = (1L, CAST(NULL AS BIGINT))", "(o, s) <> (3L, 'abc')",
    "(o, l) IN ((3L, 1L), (1L, CAST(NULL AS BIGINT)))", "(o, s) NOT IN ((3L, 'abc'), (4L, NULL))",
)  # fmt: skip
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "abs": ("abs(i)", "abs(x)", "abs(f)", "abs(n)", "abs(NULL)", "abs(-2147483648)", "abs(CAST(-128 AS TINYINT))", "abs('-1')"),
    "acos": (
        "acos(x)", "acos(1)", "acos(2)", "acos(NULL)",
    ),
    "acosh": (
        "acosh(x)", "acosh(1)", "acosh(f)",
    ),
    "add_months": ("add_months(d, 1)", "add_months(d, -1)", "add_months(DATE '2013-01-31', 1)", "add_months(DATE '2012-02-29', 12)",
                   "add_months(t, 1)", "add_months(d, NULL)", "add_months(DATE '2013-02-28', 1)", "add_months('2013-01-31', 1)"),
    "aggregate": (
        "aggregate(array(1, 2, 3), 0, (a, e) -> a + e)", "aggregate(array(1, NULL, 3), 0, (a, e) -> a + e)",
        "aggregate(array(1, 2), 5, (a, e) -> a + e, a -> a * 10)", "aggregate(array('a', 'bb'), 0, (n, e) -> n + length(e))",
        "aggregate(array(i, 1), 0, (a, e) -> a + coalesce(e, 0) + coalesce(i, 0))",
        "aggregate(array(1, 2), '', (a, e) -> concat(a, CAST(e AS STRING)))",
    ),
    "any_value": ("any_value(o) FILTER (WHERE o = 3)", "any_value(i) FILTER (WHERE false)"),
    "approx_count_distinct": ("approx_count_distinct(i)", "approx_count_distinct(s)", "approx_count_distinct(NULL)"),
    "array": ("array(1, NULL)", "array()", "array(1, 2.5)", "array('a', 'b')", "array(array(1))", "array(i, l)"),
    "array_agg": ("array_agg(o) FILTER (WHERE o = 2)", "array_agg(i) FILTER (WHERE i IS NULL)", "size(array_agg(i))"),
    "array_append": (
        "array_append(array(1), NULL)", "array_append(array(i), i)", "array_append(array('a'), 'b')",
    ),
    "array_compact": (
        "array_compact(array(1, NULL))", "array_compact(array(i))", "array_compact(array('a', NULL, ''))",
    ),
    "array_contains": ("array_contains(array(1, NULL), 1)", "array_contains(array(1, NULL), 2)", "array_contains(array(1), NULL)",
                       "array_contains(NULL, 1)", "array_contains(array(1, 2), i)", "array_contains(array(i, l), 1)",
                       "array_contains(array(1.5D, CAST('NaN' AS DOUBLE)), CAST('NaN' AS DOUBLE))"),
    "array_distinct": ("size(array_distinct(array(1, 1, NULL, NULL)))", "array_distinct(array(1))", "array_distinct(NULL)",
                       "array_distinct(array(1, 2, 1))", "array_distinct(array(3, 1, 3, 2, NULL, NULL, 0))"),
    "array_except": (
        "array_except(array(3, 1, 1, NULL), array(1))", "array_except(array(3, NULL, NULL), array(1, NULL))",
        "array_except(array(1, i), array(1))", "array_except(array('b', 'a', 'b'), array('c'))",
    ),
    "array_intersect": (
        "array_intersect(array(3, 1, 1, NULL), array(1, 3, NULL))", "array_intersect(array(1), array(2))",
        "array_intersect(array(i, 1), array(i))",
    ),
    "array_join": (
        "array_join(array('a', NULL, 'b'), ',')", "array_join(array('a', NULL, 'b'), ',', 'n')",
        "array_join(array(NULL), ',')", "array_join(array('a'), NULL)", "array_join(array(s, w), '-')",
        "array_join(array(1, 2), ',')", "array_join(array('a', NULL), ',', NULL)", "array_join(array(s, w), '', '😀')",
    ),
    "array_max": ("array_max(array(1, NULL, 3))", "array_max(array())", "array_max(NULL)", "array_max(array(i, l))",
                  "array_max(array(1.5D, CAST('NaN' AS DOUBLE)))", "array_max(array(CAST(NULL AS INT)))"),
    "array_min": ("array_min(array(1, NULL, 3))", "array_min(array('b', 'a'))", "array_min(array(i, l))",
                  "array_min(array(1.5D, CAST('NaN' AS DOUBLE)))"),
    "array_position": (
        "array_position(array(1, NULL, 1), 1)", "array_position(array(1), 2)", "array_position(array(1, NULL), NULL)",
        "array_position(array(i, 1), 1)", "array_position(array(1.5D, CAST('NaN' AS DOUBLE)), CAST('NaN' AS DOUBLE))",
    ),
    "array_prepend": (
        "array_prepend(array(1), 2)", "array_prepend(array(i), i)",
    ),
    "array_remove": (
        "array_remove(array(1, NULL, 1, 2), 1)", "array_remove(array(1), NULL)", "array_remove(array(i, 1), i)",
    ),
    "array_repeat": (
        "array_repeat(i, 2)", "array_repeat(s, 3)", "array_repeat(NULL, 2)", "array_repeat('a', 0)",
        "array_repeat('a', -1)", "array_repeat(array(1, NULL), 2)", "array_repeat(1, i)",
    ),
    "array_size": ("array_size(array(1, NULL))", "array_size(array())", "array_size(NULL)"),
    "array_sort": (
        "array_sort(array(3, NULL, 1))", "array_sort(array('b', 'a', 'Ä', '😀', ''))", "array_sort(array(x, f))",
        "array_sort(array(3, 1), (p, q) -> q - p)",
    ),
    "array_union": (
        "array_union(array(1, 2, NULL), array(2, 3, NULL))", "array_union(array(i, 1), array(i, 2))",
        "array_union(array('b'), array('a', 'b'))",
    ),
    "arrays_overlap": (
        "arrays_overlap(array(1, NULL), array(2))", "arrays_overlap(array(1, NULL), array(1))",
        "arrays_overlap(array(NULL, 1), array(NULL, 2))", "arrays_overlap(array(1), array(2))",
        "arrays_overlap(array(i), array(1))", "arrays_overlap(array(), array(NULL))",
    ),
    "arrays_zip": (
        "arrays_zip(array(1, 2), array('a'))",
    ),
    "ascii": (
        "ascii(s)", "ascii('')", "ascii('😀')", "ascii(w)",
    ),
    "asin": (
        "asin(x)", "asin(-1)", "asin(2)",
    ),
    "asinh": (
        "asinh(x)", "asinh(0)", "asinh(f)",
    ),
    "atan": (
        "atan(x)", "atan(1)", "atan(CAST('inf' AS DOUBLE))",
    ),
    "atan2": (
        "atan2(x, f)", "atan2(0, 0)", "atan2(1, -1)", "atan2(i, NULL)",
    ),
    "atanh": (
        "atanh(x)", "atanh(1)", "atanh(-0.5)",
    ),
    "avg": ("avg(i)", "avg(x)", "avg(n)", "avg(f)", "avg(i) FILTER (WHERE false)", "avg(DISTINCT i)", "avg(NULL)", "avg(1.5)", "avg(l)"),
    "base64": (
        "base64(s)", "base64(X'00FF10')", "base64('')", "base64(NULL)", "base64(i)",
        "base64('abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz')",
    ),
    "bit_and": (
        "bit_and(i)", "bit_and(o)", "bit_and(i) FILTER (WHERE false)", "bit_and(x)", "bit_and(CAST(i AS TINYINT))",
        "bit_and(l) OVER (ORDER BY o)",
    ),
    "bit_count": (
        "bit_count(i)", "bit_count(l)", "bit_count(b)", "bit_count(NULL)", "bit_count(CAST(-1 AS TINYINT))", "bit_count(x)",
    ),
    "bit_length": (
        "bit_length(s)", "bit_length('😀')", "bit_length(X'00FF')", "bit_length('')",
    ),
    "bit_or": (
        "bit_or(i)", "bit_or(l) FILTER (WHERE o > 5)", "bit_or(NULL)",
    ),
    "bit_xor": (
        "bit_xor(i)", "bit_xor(o)", "bit_xor(i) FILTER (WHERE false)",
    ),
    "bool_and": ("bool_and(b)", "bool_and(b) FILTER (WHERE b)", "bool_and(NULL)"),
    "bool_or": ("bool_or(b)", "bool_or(b) FILTER (WHERE b IS NULL)", "bool_or(NOT b) FILTER (WHERE b)"),
    "btrim": ("btrim(s)", "btrim('\t a \n')", "btrim('')", "btrim(NULL)", "concat('[', btrim('  x '), ']')"),
    "cardinality": (
        "cardinality(array(1, NULL))", "cardinality(NULL)", "cardinality(map('a', 1))",
    ),
    "cbrt": ("cbrt(27)", "cbrt(-8)", "cbrt(x)", "cbrt(NULL)", "cbrt(f)"),
    "ceil": ("ceil(f)", "ceil(n)", "ceil(-0.5)", "ceil(2.000001)", "ceil(i)", "ceil(CAST(1e18 AS DOUBLE))", "ceil(1.55, 1)",
             "ceil(CAST('NaN' AS DOUBLE))", "ceil(x)", "ceil(155, -1)"),
    "char_length": ("char_length(s)", "char_length('')", "char_length(' a ')", "char_length('😀')"),
    "character_length": (
        "character_length(s)", "character_length('😀')",
    ),
    "chr": (
        "chr(65)", "chr(0)", "chr(256)", "chr(-1)", "chr(255)", "chr(8364)", "chr(321)", "chr(l)", "chr(i)",
    ),
    "coalesce": ("coalesce(i, l, 7)", "coalesce(NULL, NULL)", "coalesce(s, 'none')", "coalesce(i, 1.5)", "coalesce(x, 0)"),
    "collect_list": ("size(collect_list(i))", "collect_list(o) FILTER (WHERE o = 2)", "collect_list(i) FILTER (WHERE false)"),
    "collect_set": ("size(collect_set(i))", "size(collect_set(b))", "collect_set(o) FILTER (WHERE o = 2)",
                    "collect_set(i) FILTER (WHERE false)"),
    "concat": ("concat(s, w)", "concat(s, NULL)", "concat(s, i)", "concat(1, 2)", "concat(b, 'x')", "concat(f, '')"),
    "concat_ws": ("concat_ws('-', s, w)", "concat_ws('-', NULL, 'a', NULL)", "concat_ws(NULL, 'a', 'b')", "concat_ws('-')",
                  "concat_ws('', 'a', 'b')", "concat_ws(',', 1, 2)", "concat_ws(',', array('a', 'b'), 'c')"),
    "contains": ("contains(s, w)", "contains(s, '')", "contains('', '')", "contains(s, NULL)", "contains('Abc', 'a')"),
    "conv": (
        "conv('100', 2, 10)",
    ),
    "corr": ("corr(l, o)", "corr(i, i)", "corr(i, l) FILTER (WHERE o < 2)", "corr(o, 1)", "corr(x, o)"),
    "cos": (
        "cos(x)", "cos(0)", "cos(f)",
    ),
    "cosh": (
        "cosh(x)", "cosh(1000)",
    ),
    "cot": (
        "cot(x)", "cot(0)", "cot(1)",
    ),
    "count": ("count(*)", "count(i)", "count(DISTINCT b)", "count(DISTINCT x)", "count(i, b)", "count(DISTINCT i, b)", "count(NULL)", "count(1)"),
    "count_if": ("count_if(i > 0)", "count_if(NULL)", "count_if(b)", "count_if(b) FILTER (WHERE false)"),
    "covar_pop": ("covar_pop(l, o)", "covar_pop(i, l) FILTER (WHERE o = 2)", "covar_pop(i, l) FILTER (WHERE o = 1)"),
    "covar_samp": ("covar_samp(l, o)", "covar_samp(i, l) FILTER (WHERE o = 2)"),
    "cume_dist": ("cume_dist() OVER (ORDER BY i)", "cume_dist() OVER (PARTITION BY b ORDER BY o)"),
    "current_date": ("current_date() > DATE '2020-01-01'", "current_date() = CAST(current_timestamp() AS DATE)"),
    "current_timestamp": ("current_timestamp() > TIMESTAMP '2020-01-01 00:00:00'",),
    "date": ("date(t)", "date('2013-01-05')", "date(d)", "date('x')", "date(NULL)", "date('2013-1-5')"),
    "date_add": ("date_add(d, i)", "date_add(d, -1)", "date_add(DATE '2013-02-28', 1)", "date_add(t, 1)", "date_add(d, NULL)",
                 "date_add('2013-01-05', 1)", "date_add(DATE '9999-12-30', 1)"),
    "date_format": ("date_format(t, 'yyyy-MM-dd HH:mm:ss')", "date_format(d, 'dd/MM/yyyy')", "date_format(t, 'yy')", "date_format(t, 'M/d')",
                    "date_format(t, 'EEEE')", "date_format(t, 'MMM')", "date_format(t, 'hh a')", "date_format(t, 'D')",
                    "date_format(t, 'SSS')", "date_format(t, 'E')", "date_format(NULL, 'yyyy')", "date_format(t, 'H:m:s')",
                    "date_format(t, 'MMMM')", "date_format(t, 'yyyy Q')"),
    "date_from_unix_date": (
        "date_from_unix_date(i)", "date_from_unix_date(-719162)", "date_from_unix_date(15000)",
    ),
    "date_sub": ("date_sub(d, i)", "date_sub(d, -1)", "date_sub(DATE '2013-01-01', 1)", "date_sub(t, 1)", "date_sub('2013-01-05', 1)"),
    "date_trunc": ("date_trunc('hour', t)", "date_trunc('DAY', t)", "date_trunc('week', t)", "date_trunc('month', d)",
                   "date_trunc('quarter', t)", "date_trunc('year', t)", "date_trunc('minute', t)", "date_trunc('second', t)",
                   "date_trunc('MM', t)", "date_trunc('nothing', t)", "date_trunc('millisecond', t)", "date_trunc('microsecond', t)",
                   "date_trunc('day', NULL)", "date_trunc('yyyy', t)", "date_trunc('dd', t)"),
    "datediff": ("datediff(d, DATE '2013-01-01')", "datediff(DATE '2013-01-01', d)", "datediff(t, d)", "datediff('2013-01-05', '2013-01-01')",
                 "datediff(d, NULL)"),
    **{part: (f"{part}(t)", f"{part}(d)", f"{part}(NULL)", f"{part}('2013-05-06')")
       for part in _PARTS if part not in _TIMES},
    **{part: (f"{part}(t)", f"{part}('2013-05-06 07:08:09')", f"{part}(NULL)") for part in _TIMES},
    "dayname": (
        "dayname(d)", "dayname(t)",
    ),
    "degrees": (
        "degrees(x)", "degrees(3.14)",
    ),
    "dense_rank": ("dense_rank() OVER (ORDER BY b)", "dense_rank() OVER (ORDER BY x DESC)"),
    "element_at": (
        "element_at(array(1, 2), 1)", "element_at(array(1, 2), -1)", "element_at(array(1, 2), 3)",
        "element_at(array(1, 2), 0)", "element_at(map('a', 1), 'a')", "element_at(map('a', 1), 'b')",
        "element_at(map(1, 'x'), 1)", "element_at(map(0, 'x', 1, 'y'), 0)", "element_at(split('a,b', ','), 2)",
    ),
    "endswith": ("endswith(s, w)", "endswith(s, '')", "endswith(s, NULL)", "endswith('', '')"),
    "equal_null": (
        "equal_null(i, l)", "equal_null(NULL, NULL)", "equal_null(x, x)", "equal_null(s, '')",
    ),
    "every": ("every(b)", "every(i > -5)", "every(NULL)"),
    "exists": (
        "exists(array(1, NULL, 3), e -> e > 1)", "exists(array(1, NULL), e -> e > 1)", "exists(array(1), e -> e > 1)",
        "exists(array(i, l), e -> e > 1)", "exists(array(1, 2), e -> e = i)", "exists(array(1), (a, b) -> true)",
    ),
    "exp": ("exp(0)", "exp(x)", "exp(1)", "exp(710)", "exp(-800)", "exp(NULL)"),
    "extract": (
        *(f"extract({part} FROM t)" for part in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE", "SECOND")),
        "extract(YEAR FROM d)", "extract(MONTH FROM NULL)",
    ),
    "factorial": (
        "factorial(i)", "factorial(20)", "factorial(21)", "factorial(0)", "factorial(NULL)", "factorial(l)",
        "factorial(f)", "factorial('5')", "factorial(CAST(3 AS TINYINT))",
    ),
    "filter": (
        "filter(array(1, NULL, 3), e -> e > 1)", "filter(array(1, NULL, 3), (e, k) -> k > 0)",
        "filter(array(i, l), e -> e IS NOT NULL)", "filter(array(5, 6, 7), (e, k) -> e > 5 AND k < 2)",
        "filter(array(1), e -> NULL)",
        "filter(array(5, 6, 7), (e, k) -> k IN (0, 2))", "filter(array(5, 6, 7), (e, k) -> coalesce(NULL, k) = 1)"),
    "first": ("first(o) FILTER (WHERE o = 2)", "first(i) FILTER (WHERE o = 1)", "first(o) FILTER (WHERE false)"),
    "first_value": ("first_value(i) OVER (ORDER BY o)", "first_value(i) OVER (PARTITION BY b ORDER BY o DESC)",
        "first_value(i) IGNORE NULLS OVER (ORDER BY o)", "first_value(i, true) OVER (ORDER BY o)"),
    "flatten": (
        "flatten(array(array(1, 2), array(3)))", "flatten(array(array(1, 2), NULL))", "flatten(array(array(i), array(l)))",
        "flatten(array(array(NULL), array(1)))",
    ),
    "floor": ("floor(f)", "floor(n)", "floor(-0.5)", "floor(i)", "floor(x)", "floor(1.55, 1)", "floor(CAST('NaN' AS DOUBLE))", "floor(155, -1)"),
    "forall": (
        "forall(array(1, NULL, 3), e -> e > 1)", "forall(array(2, NULL), e -> e > 1)", "forall(array(2, 3), e -> e > 1)",
        "forall(array(i, l), e -> e > 1)",
    ),
    "from_json": (
        "from_json('{\"a\": 1}', 'a INT').a",
    ),
    "from_unixtime": ("from_unixtime(0)", "from_unixtime(l)", "from_unixtime(1357369200)", "from_unixtime(NULL)", "from_unixtime(0, 'yyyy')",
                      "from_unixtime(-1)"),
    "get_json_object": (
        "get_json_object('{\"a\": 1}', '$.a')", "get_json_object('{\"a\": 1.50}', '$.a')",
        "get_json_object('{\"a\": 1e3}', '$.a')", "get_json_object('{\"a\": null}', '$.a')",
        "get_json_object('{\"a\": {\"b\":  [1,  2]}}', '$.a')", "get_json_object('{\"a\": {\"b\":  [1,  2]}}', '$.a.b[1]')",
        "get_json_object('{\"a\": {\"b\":  [1,  2]}}', '$.a.b[9]')", "get_json_object('{\"a\": \"x\\\\ny\\\\u00e9\"}', '$.a')",
        "get_json_object('{\"a\": ', '$.a')", "get_json_object('no json', '$.a')",
        "get_json_object('{\"a\": 1, \"a\": 2}', '$.a')", "get_json_object('[{\"a\": 1}, {\"a\": 2}]', '$[1].a')",
        "get_json_object('[{\"a\": 1}, {\"a\": 2}]', '$.a')", "get_json_object('{\"a\": true}', '$.a')",
        "get_json_object('{\"a\": 12345678901234567890123}', '$.a')", "get_json_object('{\"a\": 1} x', '$.a')",
        "get_json_object('', '$.a')", "get_json_object(NULL, '$.a')", "get_json_object(s, '$.a')",
        "get_json_object(concat('{\"k\":\"', w, '\"}'), '$.k')", "get_json_object('{\"a\": 1}', '$.b')",
        "get_json_object('{\"a\": 1}', '$')", "get_json_object('{\"A\": 1}', '$.a')",
        "get_json_object('{\"a\": \"x\"}', '$.a[0]')",
    ),
    "greatest": ("greatest(i, l)", "greatest(i, NULL)", "greatest(x, f)", "greatest(s, w)", "greatest(NULL, NULL)", "greatest(1, 2.5)",
                 "greatest(d, DATE '2013-01-01')", "greatest(CAST('NaN' AS DOUBLE), 1.0D)"),
    "grouping": (
        "grouping(i)",
    ),
    "grouping_id": (
        "grouping_id(i)",
    ),
    "hex": (
        "hex(i)", "hex(l)", "hex(s)", "hex(X'00FF')", "hex('')", "hex(NULL)", "hex(-9223372036854775807 - 1)",
        "hex(CAST(-1 AS TINYINT))", "hex(f)", "hex(b)", "hex('ünï😀')", "hex(n)",
    ),
    "hypot": (
        "hypot(i, l)", "hypot(3, 4)", "hypot(x, 1)", "hypot(f, x)", "hypot(NULL, 1)", "hypot(0, 0)",
        "hypot(CAST('inf' AS DOUBLE), CAST('NaN' AS DOUBLE))", "hypot(1e200, 1e200)", "hypot(n, 1)",
        "hypot(-1e-200, 1e-200)",
    ),
    "if": ("if(b, 1, 2)", "if(NULL, 1, 2)", "if(i > 0, s, w)", "if(b, 1, 2.5)"),
    "ifnull": ("ifnull(i, 7)", "ifnull(NULL, NULL)", "ifnull(s, 'none')"),
    "initcap": ("initcap(s)", "initcap('hELLO wORLD')", "initcap('')"),
    "instr": ("instr(s, w)", "instr(s, 'b')", "instr(s, '')", "instr('', 'a')", "instr(NULL, 'a')", "instr('😀b', 'b')"),
    "isnan": ("isnan(x)", "isnan(f)", "isnan(NULL)", "isnan(i)"),
    "isnotnull": ("isnotnull(i)", "isnotnull(NULL)", "isnotnull(x)"),
    "isnull": ("isnull(i)", "isnull(NULL)", "isnull(x)"),
    "json_array_length": (
        "json_array_length('[1, [2, 3], {\"a\": [4]}]')", "json_array_length('[]')",
        "json_array_length('{\"a\": 1}')", "json_array_length('')", "json_array_length(NULL)", "json_array_length(s)",
        "json_array_length('1')", "json_array_length('[1,]')", "json_array_length('[NaN]')",
        "json_array_length('[1')", "json_array_length('[1] x')", "json_array_length(' [1, \"]\", \"\\\\\"N\"] ')",
        "json_array_length('[\"a\\tb\"]')", "json_array_length('null')", "json_array_length('[null, true]')",
        "json_array_length('x[')", "json_array_length('[\"ü😀\"]')",
    ),
    "kurtosis": (
        "kurtosis(i)", "kurtosis(l)", "kurtosis(f)", "kurtosis(1)", "kurtosis(i) FILTER (WHERE o < 4)",
        "kurtosis(i) FILTER (WHERE o = 2)", "kurtosis(x)", "kurtosis(n)",
    ),
    "lag": ("lag(i) OVER (ORDER BY o)", "lag(i, 2, -9) OVER (ORDER BY o)", "lag(o, 1) OVER (PARTITION BY b ORDER BY o)", "lag(i, 0) OVER (ORDER BY o)",
            "lag(i, -1) OVER (ORDER BY o)", "lag(o) OVER (ORDER BY x)",
        "lag(i) IGNORE NULLS OVER (ORDER BY o)", "lag(i, 2, -9) IGNORE NULLS OVER (ORDER BY o)"),
    "last": ("last(o) FILTER (WHERE o = 2)", "last(i) FILTER (WHERE o = 1)"),
    "last_day": ("last_day(d)", "last_day(t)", "last_day(DATE '2012-02-01')", "last_day('2013-02-01')", "last_day(NULL)"),
    "last_value": ("last_value(i) OVER (ORDER BY o)", "last_value(i) OVER (ORDER BY o ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "last_value(i) IGNORE NULLS OVER (ORDER BY o)"),
    "lcase": (
        "lcase(s)",
    ),
    "lead": ("lead(i) OVER (ORDER BY o)", "lead(i, 2, -9) OVER (ORDER BY o)", "lead(o) OVER (ORDER BY s)",
        "lead(i, 2) IGNORE NULLS OVER (ORDER BY o)"),
    "least": ("least(i, l)", "least(i, NULL)", "least(x, f)", "least(s, w)", "least(1, 2.5)", "least(CAST('NaN' AS DOUBLE), 1.0D)"),
    "left": ("left(s, 1)", "left(s, 0)", "left(s, -1)", "left(s, i)", "left(s, 100)", "left(NULL, 1)", "left(s, NULL)", "left('abc', 2)"),
    "length": ("length(s)", "length('')", "length(' a ')", "length('😀')", "length(NULL)", "length(X'00FF')", "length(123)"),
    "levenshtein": (
        "levenshtein(s, w)", "levenshtein('kitten', 'sitting')", "levenshtein('', 'abc')", "levenshtein(NULL, 'a')",
        "levenshtein('a', NULL)", "levenshtein('', '')", "levenshtein('é', 'e')",
        "levenshtein('kitten', 'sitting', 2)",
    ),
    "listagg": (
        "listagg(s) WITHIN GROUP (ORDER BY o)", "listagg(s, ',') WITHIN GROUP (ORDER BY o DESC)",
        "listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s)", "listagg(i, ',') WITHIN GROUP (ORDER BY o)",
        "listagg(s, ',') WITHIN GROUP (ORDER BY o) FILTER (WHERE false)", "listagg(s, ',') WITHIN GROUP (ORDER BY b, o DESC)",
        "listagg(s, ', ') WITHIN GROUP (ORDER BY o) FILTER (WHERE b)", "listagg(w) FILTER (WHERE o = 2)", "listagg(s, w)",
        "listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY o)",
    ),
    "ln": ("ln(f)", "ln(0)", "ln(-1)", "ln(x)", "ln(NULL)", "ln(1)"),
    "locate": ("locate('b', s)", "locate('', s)", "locate(w, s)", "locate('b', s, 2)", "locate('b', 'abcb', 3)", "locate('a', 'aaa', 0)",
               "locate('a', 'aaa', -1)", "locate('', 'abc', 2)", "locate('a', 'abc', NULL)", "locate('a', 'aaa', 5)"),
    "log": ("log(2, 8)", "log(f)", "log(10, 0)", "log(0, 10)", "log(1, 10)", "log(-1, 10)", "log(2, NULL)", "log(x, 2)"),
    "log10": ("log10(100)", "log10(0)", "log10(f)", "log10(NULL)"),
    "log2": ("log2(8)", "log2(0)", "log2(f)"),
    "lower": ("lower(s)", "lower('ÀÉ')", "lower('İ')", "lower('ΑΣ')", "lower(NULL)", "lower('ẞ')"),
    "lpad": (
        "lpad(s, 4, '*')", "lpad(s, 2, '*')", "lpad(s, 0, '*')", "lpad(s, -1, '*')", "lpad(s, 4, '')", "lpad(s, 2, '')",
        "lpad(s, 5, 'ab')", "lpad(s, 4)", "lpad(s, 4, NULL)", "lpad(s, 3, w)", "lpad(i, 3, '0')", "lpad(s, 5, '😀')",
    ),
    "ltrim": ("ltrim(s)", "concat('[', ltrim('\t a'), ']')", "ltrim('  a ')", "ltrim(NULL)", "ltrim('x', 'xxa')"),
    "make_date": ("make_date(2013, 2, 28)", "make_date(2013, 2, 30)", "make_date(2013, i, 1)", "make_date(NULL, 1, 1)", "make_date(9999, 12, 31)",
                  "make_date(0, 1, 1)"),
    "map": (
        "map('a', 1)['a']", "map('a', 1)['b']", "map(1, 'x')[1]", "map(0, 'x', 1, 'y')[0]", "map('a', 1, 'a', 2)['a']",
        "map(NULL, 1)[1]", "map('a', i)['a']",
    ),
    "map_contains_key": (
        "map_contains_key(map('a', 1), 'a')", "map_contains_key(map('a', 1), 'b')", "map_contains_key(map(o, 1), 3L)",
    ),
    "map_entries": (
        "size(map_entries(map('a', 1, 'b', NULL)))", "map_entries(map('a', i))[0].value",
    ),
    "map_filter": (
        "map_filter(map('a', 1, 'b', 2), (k, v) -> v > 1)", "map_filter(map('a', 1, 'b', NULL), (k, v) -> v > 0)",
        "map_filter(map(1, 'x', 2, 'y'), (k, v) -> k = i)", "map_filter(map('a', s), (k, v) -> v <> '' AND k = 'a')",
        "map_filter(CAST(NULL AS STRING), (k, v) -> true)",
        "map_filter(map('a', array(1, 2)), (k, v) -> exists(v, e -> e = i))",
    ),
    "map_from_arrays": (
        "map_from_arrays(array('a'), array(1))['a']", "map_from_arrays(array('a'), array(i))['b']",
        "map_from_arrays(array('a', 'b'), array(1))['a']",
    ),
    "map_from_entries": (
        "map_from_entries(array(struct(1, 'a'), struct(2, 'b')))", "map_from_entries(array(struct(i, s)))",
        "map_from_entries(array(struct('k', i)))", "map_from_entries(array(struct(1, 'a'), struct(1, 'b')))",
        "map_from_entries(array(struct(1, 'a'), NULL))", "map_from_entries(map_entries(map('a', 1, 'b', NULL)))",
    ),
    "map_keys": ("map_keys(NULL)",
        "map_keys(map('b', 1, 'a', 2))"),
    "map_values": (
        "map_values(map('a', 1, 'b', NULL))", "map_values(map('a', i))",
    ),
    "max": ("max(i)", "max(x)", "max(s)", "max(b)", "max(n)", "max(d)", "max(i) FILTER (WHERE false)", "max(NULL)", "max(DISTINCT i)"),
    "max_by": ("max_by(o, i)", "max_by(o, x)", "max_by(i, o)", "max_by(i, l)", "max_by(o, NULL)", "max_by(NULL, o)", "max_by(i, -o)", "max_by(s, s)",
               "max_by(o, i) FILTER (WHERE false)", "max_by(s, n)"),
    "md5": ("md5(s)", "md5('')", "md5(NULL)", "md5(X'00')"),
    "median": ("median(i)", "median(f)", "median(x)", "median(n)", "median(i) FILTER (WHERE o < 5)", "median(NULL)", "median(o)"),
    "min": ("min(i)", "min(x)", "min(s)", "min(b)", "min(n)", "min(d)", "min(NULL)"),
    "min_by": ("min_by(o, i)", "min_by(o, x)", "min_by(i, o)", "min_by(o, NULL)", "min_by(i, -o)", "min_by(NULL, o)"),
    "mod": (
        "mod(i, 2)", "mod(l, -3)", "mod(f, 2)", "mod(n, 2)", "mod(7, 0)", "mod(i, NULL)",
    ),
    "mode": ("mode(b) FILTER (WHERE o < 5)", "mode(i) FILTER (WHERE o = 3)", "mode(i) FILTER (WHERE i IS NULL)"),
    "monthname": (
        "monthname(d)", "monthname(t)",
    ),
    "months_between": ("months_between(d, DATE '2013-01-01')", "months_between(t, d)"),
    "named_struct": ("named_struct('a', 1, 'b', NULL).a", "named_struct('a', s).a"),
    "next_day": (
        "next_day(d, 'MO')", "next_day(d, 'sunday')", "next_day(d, 'Tue')", "next_day(t, 'FR')",
        "next_day(DATE '2013-01-05', 'SA')", "next_day('2013-01-05', 'WED')", "next_day(NULL, 'MO')",
        "next_day(d, 'XX')", "next_day(d, NULL)", "next_day('x', 'MO')",
    ),
    "now": ("now() > TIMESTAMP '2020-01-01 00:00:00'",),
    "nth_value": ("nth_value(i, 2) OVER (ORDER BY o)", "nth_value(o, 1) OVER (ORDER BY o)", "nth_value(o, 9) OVER (ORDER BY o)",
        "nth_value(i, 2) IGNORE NULLS OVER (ORDER BY o)"),
    "ntile": ("ntile(3) OVER (ORDER BY o)", "ntile(100) OVER (ORDER BY o)"),
    "nullif": ("nullif(i, 1)", "nullif(NULL, 1)", "nullif(x, x)", "nullif(s, '')", "nullif(1, NULL)"),
    "nullifzero": (
        "nullifzero(i)", "nullifzero(f)", "nullifzero(NULL)",
    ),
    "nvl": ("nvl(i, 7)", "nvl(NULL, NULL)", "nvl(s, w)"),
    "nvl2": ("nvl2(i, 1, 2)", "nvl2(NULL, 'a', 'b')", "nvl2(x, x, f)"),
    "octet_length": (
        "octet_length(s)", "octet_length('😀')", "octet_length(X'00FF')", "octet_length('')",
    ),
    "percent_rank": ("percent_rank() OVER (ORDER BY i)", "percent_rank() OVER (PARTITION BY b ORDER BY o)"),
    "percentile": ("percentile(i, 0.25)", "percentile(f, 0.5)", "percentile(x, 1.0)", "percentile(i, 0)", "percentile(NULL, 0.5)",
                   "percentile(n, 0.3)", "percentile(o, 2.0)"),
    "percentile_approx": ("percentile_approx(o, 0.5)",),
    "percentile_cont": (
        "percentile_cont(0.25) WITHIN GROUP (ORDER BY l)", "percentile_cont(0.25) WITHIN GROUP (ORDER BY l DESC)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY n)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        "percentile_cont(0) WITHIN GROUP (ORDER BY f)", "percentile_cont(1.0) WITHIN GROUP (ORDER BY f)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY l) FILTER (WHERE false)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY o) FILTER (WHERE o < 4)",
        "percentile_cont(1.5) WITHIN GROUP (ORDER BY o)", "percentile_cont(NULL) WITHIN GROUP (ORDER BY o)",
    ),
    "percentile_disc": (
        "percentile_disc(0.25) WITHIN GROUP (ORDER BY l)", "percentile_disc(0.26) WITHIN GROUP (ORDER BY l DESC)",
        "percentile_disc(0.34) WITHIN GROUP (ORDER BY l)", "percentile_disc(0) WITHIN GROUP (ORDER BY l)",
        "percentile_disc(1) WITHIN GROUP (ORDER BY l)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY x)",
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY n)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY i) FILTER (WHERE b)",
    ),
    "pi": (
        "pi()",
    ),
    "pmod": (
        "pmod(i, 2)", "pmod(l, 3)", "pmod(-7, -3)", "pmod(7, -3)", "pmod(-7, 3)", "pmod(f, 2)", "pmod(n, 2)", "pmod(7, 0)",
        "pmod(NULL, 2)", "pmod(-7.5, 2)",
    ),
    "position": ("position('b' IN s)", "position('' IN s)", "position(w IN s)", "position('b', s)", "position('b', 'abcb', 3)"),
    "power": ("power(2, 3)", "power(0, 0)", "power(-8, 1.0 / 3)", "power(x, 2)", "power(f, i)", "power(0, -1)", "power(2, 0.5)", "power(NULL, 1)"),
    "radians": (
        "radians(x)", "radians(180)",
    ),
    "rank": ("rank() OVER (ORDER BY b)", "rank() OVER (ORDER BY x)", "rank() OVER (ORDER BY s DESC)"),
    "reduce": (
        "reduce(array(1, 2, 3), 0, (a, e) -> a + e)",
    ),
    "regexp_count": (
        "regexp_count(s, 'b')", "regexp_count('aaa', 'aa')", "regexp_count(s, '')", "regexp_count(s, '.')",
        "regexp_count(s, w)", "regexp_count('😀😀', '.')",
    ),
    "regexp_extract": (
        "regexp_extract('abc', '(b)(x)?', 2)", "regexp_extract(s, '([a-z])', 1)", "regexp_extract(s, '.', 0)",
        "regexp_extract('a\\nb', 'a.b', 0)", "regexp_extract('a\\rb', 'a.b', 0)",
        "regexp_extract(concat('a', chr(133), 'b'), 'a.b', 0)", "regexp_extract('a\\rb', '(?s)a.b', 0)",
        "regexp_extract('foobar', 'foo|foobar', 0)", "regexp_extract('aaa', 'a+?', 0)", "regexp_extract('aaa', 'a{2,}', 0)",
        "regexp_extract('http://www.a.b/c', '^https?://(?:www\\\\.)?([^/]+)/.*$', 1)", "regexp_extract(s, 'a', 1)",
        "regexp_extract(s, '(a)')", "regexp_extract('ab', '(a)|(b)', 2)", "regexp_extract('b', '(a)|(b)', 2)",
        "regexp_extract('a-b]', '[a\\\\-]+', 0)", "regexp_extract(concat(chr(11), 'x'), '\\\\s', 0)",
        "regexp_extract('٣1', '\\\\d', 0)", "regexp_extract('ü_', '\\\\w', 0)", "regexp_extract('xYz', '(?i)y[A-Z]', 0)",
        "regexp_extract(NULL, 'a', 0)", "regexp_extract('x@', '(?i)[Z-a]', 0)", "regexp_extract('_x`', '(?i)[Z-b]+', 0)",
        "regexp_extract('a=1&b=2', 'b=([^&]+)', 1)", "regexp_extract('aab', '(a|ab)(b)?', 0)",
        "regexp_extract('😀x', '[^x]', 0)", "regexp_extract('a{', 'a\\\\{', 0)",
    ),
    "regexp_extract_all": (
        "regexp_extract_all('a1b22c', '([a-z])([0-9]+)')", "regexp_extract_all('a1b22c', '([a-z])([0-9]+)', 2)",
        "regexp_extract_all('a1b22c', '[0-9]+', 0)", "regexp_extract_all(s, '[a-c]', 0)",
        "regexp_extract_all('ab a', 'a(b)?', 1)", "regexp_extract_all(NULL, 'a', 0)",
        "regexp_extract_all(s, '([😀ü])')", "regexp_extract_all('abc', 'b', 1)", "regexp_extract_all('', 'a', 0)",
        "regexp_extract_all('aaa', '^a', 0)", "regexp_extract_all('abc', 'x*', 0)",
    ),
    "regexp_instr": (
        "regexp_instr(s, '[b-z]')", "regexp_instr('abcabc', 'c')", "regexp_instr('abc', '^b')",
        "regexp_instr('a😀b', 'b')", "regexp_instr(NULL, 'a')", "regexp_instr('', 'a')",
        "regexp_instr('abc', '(b)(c)')", "regexp_instr('aab', 'b$')", "regexp_instr('abc', 'x*')",
    ),
    "regexp_like": (
        "regexp_like(s, 'b')", "regexp_like(s, '')", "regexp_like(s, '^[a-z]')", "regexp_like(NULL, 'a')",
        "regexp_like('K', '(?i)k')", "regexp_like('ſ', '(?i)s')", "regexp_like('ÜN', '(?i)ün')",
        "regexp_like('s', '(?i)[^S]')", "regexp_like(s, w)", "regexp_like(s, '\\\\\\\\')", "regexp_like('a\\n', 'a$')",
        "regexp_like(concat('x', chr(133)), '.$')",
    ),
    "regexp_replace": (
        "regexp_replace(s, '[ab]', 'z')", "regexp_replace('abc', '(b)', '<$1>')", "regexp_replace(s, 'x*', '-')",
        "regexp_replace('http://www.a.b/c', '^https?://(?:www\\\\.)?([^/]+)/.*$', '$1')",
        "regexp_replace('ab', '(a)|(b)', '[$1]')", "regexp_replace('aaa', '^a', 'b')", "regexp_replace('abc', 'b', '\\\\$')",
        "regexp_replace('a\\\\b', '\\\\\\\\', '\\\\\\\\\\\\\\\\')", "regexp_replace(s, '😀', 'x')",
        "regexp_replace(s, '[^a-z]', '')", "regexp_replace(NULL, 'a', 'b')", "regexp_replace('aXbxc', '(?i)x', '$0$0')",
        "regexp_replace('aaaa', 'a{2}', 'b')", "regexp_replace(s, 'a', NULL)", "regexp_replace(s, 'a', '$2')",
    ),
    "regr_avgx": (
        "regr_avgx(l, o)", "regr_avgx(i, l) FILTER (WHERE o = 1)", "regr_avgx(o, i)",
    ),
    "regr_avgy": (
        "regr_avgy(l, o)", "regr_avgy(o, i)",
    ),
    "regr_count": (
        "regr_count(l, o)", "regr_count(i, l) FILTER (WHERE o = 1)", "regr_count(NULL, o)",
    ),
    "regr_intercept": (
        "regr_intercept(l, o)", "regr_intercept(o, 1)", "regr_intercept(i, l) FILTER (WHERE o = 2)",
    ),
    "regr_r2": (
        "regr_r2(l, o)", "regr_r2(o, 1)", "regr_r2(1, o)", "regr_r2(i, l) FILTER (WHERE o = 2)",
    ),
    "regr_slope": (
        "regr_slope(l, o)", "regr_slope(x, o)", "regr_slope(o, 1)", "regr_slope(i, l) FILTER (WHERE o = 2)",
        "regr_slope(i, l) FILTER (WHERE o = 1)",
    ),
    "regr_sxx": (
        "regr_sxx(l, o)", "regr_sxx(i, l) FILTER (WHERE o = 2)", "regr_sxx(i, l) FILTER (WHERE o = 1)",
    ),
    "regr_sxy": (
        "regr_sxy(l, o)", "regr_sxy(i, l) FILTER (WHERE o = 1)",
    ),
    "regr_syy": (
        "regr_syy(l, o)", "regr_syy(i, l) FILTER (WHERE o = 2)",
    ),
    "repeat": (
        "repeat(s, 2)", "repeat(s, 0)", "repeat(s, -1)", "repeat('ab', 3)", "repeat(s, 1001)", "repeat(s, i)", "repeat(i, 2)",
    ),
    "replace": ("replace(s, 'a', 'z')", "replace(s, '', 'z')", "replace(s, w, '-')", "replace(s, 'a', '')", "replace('aaa', 'aa', 'b')",
                "replace(NULL, 'a', 'b')", "replace(s, NULL, 'b')", "replace('abc', 'b')"),
    "reverse": ("reverse(s)", "reverse('')", "reverse('a😀b')", "reverse('e\u0301a')", "reverse(NULL)", "reverse(array(1, 2))"),
    "right": ("right(s, 1)", "right(s, 0)", "right(s, -1)", "right(s, i)", "right(s, 100)", "right(NULL, 1)", "right('abc', 2)"),
    "rlike": (
        "s RLIKE 'b'", "s NOT RLIKE 'b'", "s RLIKE '(a+)+'", "s RLIKE '%_'", "rlike(s, '^$')",
    ),
    "round": ("round(f)", "round(2.5)", "round(-2.5)", "round(3.5)", "round(f, 1)", "round(n, 1)", "round(n)", "round(1.005, 2)",
              "round(CAST(1.005 AS DOUBLE), 2)", "round(125, -1)", "round(CAST(0.285 AS DOUBLE), 2)", "round(x, 0)", "round(i)", "round(NULL)",
              "round(CAST(2.5 AS DOUBLE))", "round(-125, -1)", "round(l, -1)", "round(CAST('NaN' AS DOUBLE), 1)", "round(CAST(-0.4 AS DOUBLE))"),
    "row_number": ("row_number() OVER (ORDER BY o DESC)", "row_number() OVER (PARTITION BY b ORDER BY o)"),
    "rpad": (
        "rpad(s, 4, '😀')", "rpad(s, 2, '*')", "rpad(s, -1, '*')", "rpad(s, 4, '')", "rpad(s, 1, '')", "rpad(s, 4)",
    ),
    "rtrim": ("rtrim(s)", "concat('[', rtrim('a \t'), ']')", "rtrim('x', 'axx')"),
    "sequence": (
        "sequence(1, 5)", "sequence(5, 1)", "sequence(1, 5, 2)", "sequence(1, 5, -1)", "sequence(1, 1)", "sequence(-3, 3, 3)",
        "sequence(5, -5, -4)", "sequence(DATE '2012-02-28', DATE '2012-03-01')",
        "sequence(DATE '2013-01-01', DATE '2013-01-20', INTERVAL 1 WEEK)",
        "sequence(DATE '1970-01-02', DATE '1969-12-30', INTERVAL '-1' DAY)",
        "sequence(DATE '2013-01-31', DATE '2013-04-30', INTERVAL 1 MONTH)", "sequence(1, i)",
        "sequence(DATE '1970-01-02', DATE '1969-12-30')",
    ),
    "sha": (
        "sha(s)", "sha('')",
    ),
    "sha1": (
        "sha1(s)", "sha1(X'00FF')", "sha1(NULL)", "sha1(i)",
    ),
    "sha2": (
        "sha2(s, 256)", "sha2(s, 0)", "sha2(X'00FF', 256)", "sha2(NULL, 256)", "sha2('a', 512)", "sha2('a', 224)",
        "sha2('a', 1)", "sha2('a', NULL)",
    ),
    "shiftleft": (
        "shiftleft(i, 1)", "shiftleft(l, 3)", "shiftleft(1, 31)", "shiftleft(1, 33)", "shiftleft(1L, 63)",
        "shiftleft(1L, 64)", "shiftleft(1, -1)", "shiftleft(i, NULL)", "shiftleft(-3, 30)", "shiftleft(i, i)",
        "shiftleft(f, 1)", "l << 2", "1 << 2 + 1", "shiftleft(CAST(100 AS TINYINT), 4)",
    ),
    "shiftright": (
        "shiftright(i, 1)", "shiftright(l, 1)", "shiftright(-8, 33)", "shiftright(-1L, 63)",
        "shiftright(-9223372036854775807 - 1, 63)", "shiftright(8, -1)", "shiftright(l, i)", "l >> 1",
        "shiftright(NULL, 1)",
    ),
    "sign": ("sign(i)", "sign(x)", "sign(f)", "sign(n)", "sign(NULL)", "sign(-0.0D)"),
    "sin": (
        "sin(x)", "sin(0)", "sin(f)", "sin(CAST('inf' AS DOUBLE))",
    ),
    "sinh": (
        "sinh(x)", "sinh(-1)",
    ),
    "size": ("size(array(1, NULL))", "size(array())", "size(NULL)", "size(array(NULL))",
        "size(map('a', 1))", "size(filter(array(1, 2), e -> e > i))"),
    "skewness": (
        "skewness(i)",
    ),
    "slice": (
        "slice(array(1, 2, 3), 2, 1)", "slice(array(1, 2, 3), -2, 2)", "slice(array(1, 2, 3), 2, 10)",
        "slice(array(1, 2, 3), -5, 2)", "slice(array(1, 2, 3), 2, 0)", "slice(array(1, 2, 3), 9, 1)",
        "slice(array(1, 2, 3), 0, 1)", "slice(array(1, 2, 3), 1, -1)", "slice(array(1, 2, 3), -1, 5)",
        "slice(array(1, 2, 3), i, 1)", "slice(array(i), 1, NULL)", "slice(array(1, 2, 3), -3, 2)",
    ),
    "some": ("some(b)", "some(i > 5)", "some(NULL)"),
    "sort_array": (
        "sort_array(array(3, NULL, 1))", "sort_array(array(3, NULL, 1), false)", "sort_array(array(3, NULL, 1), true)",
        "sort_array(array(x, f))", "sort_array(array('b', 'a', 'Ä', '😀', ''))", "sort_array(array(i, l), b)",
    ),
    "split": (
        "split(s, 'b')", "split('bab', 'b')", "split('', ',')", "split('a,,', ',')", "split('abc', '')",
        "split('a1b22c', '[0-9]+')", "split('a.b', '\\\\.')", "split(NULL, 'a')", "split('a,b', ',', 1)", "split(s, w)",
        "split('a😀b', '😀')",
    ),
    "split_part": (
        "split_part(s, 'b', 1)", "split_part(s, 'b', 2)", "split_part('a,b,c', ',', -1)", "split_part('a,b,c', ',', -4)",
        "split_part('a,b,c', ',', 4)", "split_part('a,b,c', ',', 0)", "split_part('abc', '', 1)", "split_part('abc', '', -1)",
        "split_part('abc', '', 2)", "split_part('', ',', 1)", "split_part(s, NULL, 1)", "split_part('abc', 'abc', 1)",
        "split_part(s, w, 1)", "split_part(s, 'b', i)",
    ),
    "sqrt": ("sqrt(4)", "sqrt(-1)", "sqrt(x)", "sqrt(f)", "sqrt(n)", "sqrt(NULL)"),
    "startswith": ("startswith(s, w)", "startswith(s, '')", "startswith(s, NULL)", "startswith('Abc', 'a')"),
    "std": (
        "std(i)", "std(x)", "std(i) FILTER (WHERE o = 2)",
    ),
    "stddev": ("stddev(i)", "stddev(f)", "stddev(x)", "stddev(i) FILTER (WHERE o = 2)", "stddev(i) FILTER (WHERE false)", "stddev(n)", "stddev(1)"),
    "stddev_pop": ("stddev_pop(i)", "stddev_pop(i) FILTER (WHERE o = 2)", "stddev_pop(x)"),
    "stddev_samp": (
        "stddev_samp(i)", "stddev_samp(i) FILTER (WHERE o = 2)",
    ),
    "string_agg": (
        "string_agg(s, ',') WITHIN GROUP (ORDER BY o)", "string_agg(s) WITHIN GROUP (ORDER BY o DESC)",
    ),
    "struct": ("struct(1, 'a').col1", "struct(i AS a).a", "struct(i).i"),
    "substr": (
        "substr(s, 2)", "substr(s, 2, 1)", "substr(s, -1)",
    ),
    "substring": ("substring(s, 1, 2)", "substring('hello', 0, 2)", "substring('hello', 0)", "substring('hello', -2)", "substring('hello', -10, 7)",
                  "substring('hello', 2, -1)", "substring('hello', 2, 0)", "substring(s, i)", "substring(s, i, 2)", "substring('hello', 10)",
                  "substring(s, NULL)", "substring('a😀b', 2, 1)", "substring('hello' FROM 2 FOR 3)", "substring('hello' FROM 2)",
                  "substring('hello', -3, 2)", "substring(s, 2, i)", "substring('hello', -10)", "substring('hello', 1, 2147483647)"),
    "substring_index": (
        "substring_index('a.b.c.d', '.', 2)", "substring_index('a.b.c.d', '.', -2)",
        "substring_index('a.b.c', '.', 9)", "substring_index('a.b.c', '.', -9)", "substring_index('a.b.c', '.', 0)",
        "substring_index(s, 'b', 1)", "substring_index(s, '', 1)", "substring_index(s, '😀', i)",
        "substring_index('a--b--c', '--', 1)", "substring_index('a-xb-xc', '-x', -1)",
        "substring_index(NULL, '.', 1)", "substring_index('a.b', NULL, 1)", "substring_index('', '.', 1)",
        "substring_index('.a.', '.', 1)", "substring_index('.a.', '.', -1)", "substring_index('aB', 'b', 1)",
        "substring_index(s, w, 1)", "substring_index('a.b', '.', -2147483648)",
    ),
    "sum": ("sum(i)", "sum(x)", "sum(f)", "sum(n)", "sum(l)", "sum(i) FILTER (WHERE false)", "sum(DISTINCT i)", "sum(NULL)", "sum(o) OVER (ORDER BY o)",
            "sum(1.5)", "sum(l + 9223372036854775800)"),
    "tan": (
        "tan(x)", "tan(0)",
    ),
    "tanh": (
        "tanh(x)", "tanh(f)",
    ),
    "timestampadd": ("timestampadd(HOUR, 1, t)",),
    "timestampdiff": ("timestampdiff(DAY, t, t)",),
    "to_date": ("to_date('2013-01-05')", "to_date('2013-1-5')", "to_date(t)", "to_date('x')", "to_date(NULL)", "to_date('05/01/2013', 'dd/MM/yyyy')",
                "to_date(d)", "to_date('')", "to_date('2013-01-05 23:59:59')"),
    "to_json": (
        "to_json(named_struct('a', 1))",
    ),
    "to_timestamp": ("to_timestamp('2013-01-05 07:08:09')", "to_timestamp('2013-01-05')", "to_timestamp('x')", "to_timestamp(d)", "to_timestamp(t)",
                     "to_timestamp('2013-01-05T07:08:09+02:00')", "to_timestamp(NULL)", "to_timestamp('2013-1-5 7:8:9')"),
    "transform": (
        "transform(array(1, NULL, 3), e -> e + 1)", "transform(array(1, NULL, 3), (e, k) -> k)",
        "transform(array(i, l), e -> e * 2)", "transform(array(1, 2), e -> e + i)",
        "transform(array(5, 6), (e, k) -> e * k + k)",
        "transform(array(array(1, 2), array(3)), e -> size(filter(e, g -> g > 1)))", "transform(array('a', s), e -> upper(e))",
        "transform(array(named_struct('k', 1)), e -> e.k)", "transform(array(1), E -> e)",
        "transform(array('ab'), e -> substring(e, i, 1))",
        "transform(array(array(1), array(2)), (e, k) -> transform(e, (g, h) -> g + k + h))",
        "transform(array('a', 'b'), (e, k) -> concat(e, k))", "transform(array(named_struct('k', 7)), (e, k) -> e.k + k)", "transform(array(1, 2), (e, k) -> named_struct('k', e).k + k)", "transform(array(1, 2), (e, k) -> array(e, k))", "transform(array(5, 6), (e, k) -> CASE WHEN k = 0 THEN e ELSE k END)", "transform(array('ab', 'cd'), (e, k) -> substring(e, k + 1, 1))", "transform(array(1, 2), (e, k) -> CAST(k AS STRING))"),
    "transform_keys": (
        "transform_keys(map('a', 1, 'b', 2), (k, v) -> concat(k, '!'))",
        "transform_keys(map(1, 2, 2, 3), (k, v) -> k + v)", "transform_keys(map('a', 1, 'b', 2), (k, v) -> 'x')",
        "transform_keys(map('a', i), (k, v) -> v)", "transform_keys(map('a', i), (k, v) -> coalesce(v, 0))",
    ),
    "transform_values": (
        "transform_values(map('a', 1, 'b', NULL), (k, v) -> v + 1)", "transform_values(map('a', i), (k, v) -> k)",
        "transform_values(map('a', array(1, 2)), (k, v) -> transform(v, e -> e + length(k)))",
        "transform_values(map('a', map('x', 1, 'a', 2)), (k, v) -> map_filter(v, (p, q) -> p <> k))",
        "transform_values(map('a', named_struct('k', 1)), (k, v) -> v.k)",
        "transform_values(map(1, 2), (k, v) -> named_struct('k', v).k + k)",
    ),
    "translate": (
        "translate(s, 'ab', 'xy')", "translate(s, 'ab', 'x')", "translate(s, 'aa', 'xy')", "translate(s, '', 'x')",
        "translate(s, NULL, 'x')", "translate(s, '😀', 'x')", "translate(s, 'a', '😀')", "translate(s, w, 'z')",
        "translate(s, 'a', '')",
    ),
    "trim": ("trim(s)", "concat('[', trim('\t a \n'), ']')", "trim(BOTH 'x' FROM 'xax')", "trim(LEADING 'x' FROM 'xax')", "trim(TRAILING 'x' FROM 'xax')",
             "trim(BOTH 'xy' FROM 'yxaxy')", "trim(BOTH '' FROM 'a')", "trim(BOTH FROM ' a ')", "trim(BOTH NULL FROM 'a')"),
    "trunc": ("trunc(d, 'month')", "trunc(d, 'year')", "trunc(d, 'week')", "trunc(d, 'quarter')", "trunc(d, 'MM')", "trunc(d, 'nothing')", "trunc(t, 'month')",
              "trunc(NULL, 'month')", "trunc('2013-05-06', 'month')", "trunc(d, 'day')"),
    "try_add": (
        "try_add(i, l)", "try_add(2147483647, 1)", "try_add(9223372036854775807, 1)", "try_add(i, NULL)",
        "try_add(f, 1.5D)", "try_add(n, 1)", "try_add(DATE '2013-01-05', 1)", "try_add(l, 9223372036854775800)",
        "try_add(CAST(127 AS TINYINT), CAST(1 AS TINYINT))", "try_add(CAST(127 AS TINYINT), 1)", "try_add(1, 1) + 1",
        "try_add(-2147483648, -1)",
    ),
    "try_element_at": (
        "try_element_at(array(1, 2), 3)", "try_element_at(array(1, 2), 1)", "try_element_at(map('a', 1), 'b')",
        "try_element_at(array(1, 2), 0)",
    ),
    "try_multiply": (
        "try_multiply(i, l)", "try_multiply(2147483647, 2)", "try_multiply(9223372036854775807, 2)",
        "try_multiply(l, 4611686018427387904)", "try_multiply(n, 2)", "try_multiply(1e300, 1e300)",
        "try_multiply(-1, -9223372036854775807 - 1)", "try_multiply(f, i)",
    ),
    "try_subtract": (
        "try_subtract(i, l)", "try_subtract(-2147483648, 1)", "try_subtract(-9223372036854775807, 2)",
        "try_subtract(n, 0.5)", "try_subtract(l, NULL)", "try_subtract(CAST(-128 AS TINYINT), CAST(1 AS TINYINT))",
        "try_subtract(f, x)", "try_mod(i, l)", "try_mod(l, 0)", "try_mod(-7, 3)", "try_mod(7, -3)",
        "try_mod(NULL, 1)", "try_mod(f, 2)",
    ),
    "typeof": (
        "typeof(i)",
    ),
    "ucase": (
        "ucase(s)",
    ),
    "unbase64": (
        "unbase64('w6k=')", "unbase64('')", "unbase64(NULL)", "unbase64('YWI=')", "unbase64('YQ==')",
        "unbase64('YWJj')", "unbase64(base64(s))", "unbase64('YQ')", "unbase64('Y!Q==')",
        "CAST(unbase64('w6k=') AS STRING)", "length(base64(repeat('ab', 57)))", "CAST(unbase64(base64(repeat('ab', 58))) AS STRING)",
    ),
    "unhex": (
        "unhex('616263')", "unhex('aBc')", "unhex('')", "unhex('GG')", "unhex(NULL)", "unhex(hex(s))", "unhex('é')",
        "unhex('F')", "CAST(unhex(hex(s)) AS STRING)",
    ),
    "unix_date": (
        "unix_date(d)", "unix_date(DATE '0001-01-01')", "unix_date(t)",
    ),
    "unix_micros": ("unix_micros(t)", "unix_micros(NULL)"),
    "unix_millis": ("unix_millis(t)",),
    "unix_seconds": ("unix_seconds(t)",),
    "unix_timestamp": (
        "unix_timestamp(t)", "unix_timestamp(d)", "unix_timestamp('2013-01-05 07:08:09')",
        "unix_timestamp('2013-01-05')", "unix_timestamp('2013-1-5 07:08:09')", "unix_timestamp(NULL)",
        "unix_timestamp(TIMESTAMP_NTZ '2013-01-05 07:08:09')", "unix_timestamp('05/01/2013', 'dd/MM/yyyy')",
        "unix_timestamp('2013-02-30 00:00:00')", "unix_timestamp(i)", "to_unix_timestamp(t)",
        "unix_timestamp(t, 'yyyy')",
    ),
    "upper": ("upper(s)", "upper('straße')", "upper('ŉ')", "upper('ǆ')", "upper(NULL)", "upper('ﬁ')"),
    "var_pop": ("var_pop(i)", "var_pop(i) FILTER (WHERE o = 2)"),
    "var_samp": (
        "var_samp(i)", "var_samp(i) FILTER (WHERE o = 2)",
    ),
    "variance": ("variance(i)", "variance(i) FILTER (WHERE o = 2)", "variance(x)"),
    "weekday": (
        "weekday(d)", "weekday(t)", "weekday(NULL)", "weekday('2013-05-06')",
    ),
    "zeroifnull": (
        "zeroifnull(i)", "zeroifnull(f)", "zeroifnull(NULL)",
    ),
    "zip_with": (
        "zip_with(array(1, 2), array(3), (p, q) -> p + q)",
    ),
}  # fmt: skip
ALL = tuple(dict.fromkeys([*CASTS, *OPERATORS, *(one for held in FUNCTIONS.values() for one in held)]))


def statement(expression: str) -> str:
    """The statement that gives an expression's answers, in order."""
    return f"SELECT {expression} AS answer FROM r"

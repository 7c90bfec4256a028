"""The functions that a query may call."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

_ONE = ("this",)
_TWO = ("this", "expression")
_LIST = ("expressions",)
_EXPLODE_OUTER: type[exp.Expr] = exp.FUNCTION_BY_NAME["EXPLODE_OUTER"]
_AGGREGATES: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys(
        (
            exp.AnyValue, exp.ArrayUniqueAgg, exp.Avg, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg,
            exp.CountIf, exp.First, exp.Kurtosis, exp.Last, exp.LogicalAnd, exp.LogicalOr, exp.Max, exp.Median, exp.Min,
            exp.Mode, exp.PercentileCont, exp.PercentileDisc, exp.Skewness, exp.Stddev, exp.StddevPop, exp.StddevSamp,
            exp.Sum, exp.Variance, exp.VariancePop,
        ),
        _ONE,
    ),
    **dict.fromkeys(
        (
            exp.ArgMax, exp.ArgMin, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrAvgx, exp.RegrAvgy, exp.RegrCount,
            exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
        ),
        _TWO,
    ),
    **dict.fromkeys((exp.Grouping, exp.GroupingId), _LIST),
    exp.GroupConcat: ("this", "separator"),
    exp.ApproxDistinct: ("this", "accuracy"),
    exp.ApproxQuantile: ("this", "quantile", "accuracy"),
    exp.ArrayAgg: ("this", "nulls_excluded"),
    exp.Count: ("this", "expressions", "big_int"),
    exp.Quantile: ("this", "quantile"),
}  # fmt: skip
_WINDOWS: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.CumeDist, exp.DenseRank, exp.PercentRank, exp.Rank, exp.RowNumber), ()),
    **dict.fromkeys((exp.FirstValue, exp.LastValue, exp.Ntile), _ONE),
    **dict.fromkeys((exp.Lag, exp.Lead), ("this", "offset", "default")),
    exp.NthValue: ("this", "offset"),
}
_TEXT: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys(
        (
            exp.Ascii, exp.BitLength, exp.FromBase64, exp.Hex, exp.JSONFormat, exp.Length, exp.Lower, exp.MD5,
            exp.Reverse, exp.SHA, exp.ToBase64, exp.Typeof, exp.Unhex, exp.Upper,
        ),
        _ONE,
    ),
    **dict.fromkeys(
        (
            exp.Contains, exp.EndsWith, exp.FromJson, exp.Initcap, exp.Left, exp.Levenshtein, exp.RegexpInstr,
            exp.Right, exp.StartsWith,
        ),
        _TWO,
    ),
    exp.Chr: _LIST,
    exp.Concat: ("expressions", "safe"),
    exp.ConcatWs: ("expressions", "safe", "coalesce", "flatten"),
    exp.Pad: ("this", "expression", "fill_pattern", "is_left"),
    **dict.fromkeys((exp.RegexpCount, exp.RegexpLike, exp.RegexpSplit), _TWO),
    exp.JSONExtractScalar: _TWO,
    exp.RegexpExtract: ("this", "expression", "group", "null_if_pos_overflow"),
    exp.RegexpExtractAll: ("this", "expression", "group"),
    exp.RegexpReplace: ("this", "expression", "replacement"),
    exp.Repeat: ("this", "times"),
    exp.Replace: ("this", "expression", "replacement"),
    exp.SHA2: ("this", "length"),
    exp.SplitPart: ("this", "delimiter", "part_index"),
    exp.SubstringIndex: ("this", "delimiter", "count"),
    exp.StrPosition: ("this", "substr", "position"),
    exp.Substring: ("this", "start", "length"),
    exp.Translate: ("this", "from_", "to"),
    exp.Trim: ("this", "position", "expression"),
}  # fmt: skip
_NUMBERS: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys(
        (
            exp.Abs, exp.Acos, exp.Acosh, exp.Asin, exp.Asinh, exp.Atan, exp.Atanh, exp.BitwiseCount, exp.Cbrt, exp.Cos,
            exp.Cosh, exp.Cot, exp.Degrees, exp.Exp, exp.Factorial, exp.IsNan, exp.Ln, exp.Radians, exp.Sign, exp.Sin,
            exp.Sinh, exp.Sqrt, exp.Tan, exp.Tanh,
        ),
        _ONE,
    ),
    **dict.fromkeys(
        (
            exp.Atan2, exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.EqualNull, exp.Log, exp.Pow, exp.SafeAdd,
            exp.SafeMultiply, exp.SafeSubtract,
        ),
        _TWO,
    ),
    exp.Pi: (),
    **dict.fromkeys((exp.Ceil, exp.Floor, exp.Round), ("this", "decimals")),
    **dict.fromkeys((exp.Greatest, exp.Least), ("this", "expressions", "ignore_nulls")),
}  # fmt: skip
_CHOICES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Coalesce: ("this", "expressions"),
    exp.Nullif: _TWO,
    exp.Nvl2: ("this", "true", "false"),
}
_TIMES: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys(
        (
            exp.DateFromUnixDate, exp.Day, exp.Dayname, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Hour,
            exp.LastDay, exp.Minute, exp.Month, exp.Monthname, exp.Quarter, exp.Second, exp.TimeStrToTime, exp.UnixDate,
            exp.UnixMicros, exp.UnixMillis, exp.UnixSeconds, exp.WeekOfYear, exp.Year,
        ),
        _ONE,
    ),
    **dict.fromkeys((exp.CurrentDate, exp.CurrentTimestamp), ()),
    **dict.fromkeys((exp.AddMonths, exp.Extract, exp.MonthsBetween, exp.NextDay), _TWO),
    **dict.fromkeys((exp.DateDiff, exp.TimestampAdd, exp.TimestampDiff, exp.TsOrDsAdd), ("this", "expression", "unit")),
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc), ("unit", "this")),
    **dict.fromkeys((exp.StrToUnix, exp.TimeToStr, exp.UnixToStr), ("this", "format")),
    exp.TsOrDsToDate: ("this", "safe", "format"),
}  # fmt: skip
_LISTS: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.Array, exp.ArraysZip, exp.Struct), _LIST),
    **dict.fromkeys(
        (
            exp.ArrayCompact, exp.ArrayDistinct, exp.ArrayMax, exp.ArrayMin, exp.ArraySize, exp.Flatten,
            exp.MapFromEntries, exp.MapKeys,
        ),
        _ONE,
    ),
    **dict.fromkeys(
        (exp.ArrayContains, exp.ArrayExcept, exp.ArrayFilter, exp.ArrayPosition, exp.PropertyEQ, exp.Transform), _TWO
    ),
    **dict.fromkeys((exp.ArrayAppend, exp.ArrayPrepend, exp.ArrayRemove), ("this", "expression", "null_propagation")),
    **dict.fromkeys((exp.Explode, _EXPLODE_OUTER, exp.Inline, exp.Posexplode, exp.PosexplodeOuter), _ONE),
    exp.ArrayIntersect: _LIST,
    exp.ArraySlice: ("this", "start", "end", "is_length"),
    exp.ArraySort: ("this", "asc", "nulls_first"),
    exp.ArrayToString: ("this", "expression", "null"),
    exp.GenerateSeries: ("start", "end", "step"),
    exp.MapContainsKey: ("this", "key"),
    **dict.fromkeys((exp.Map, exp.VarMap), ("keys", "values")),
    exp.Reduce: ("this", "initial", "merge", "finish"),
}  # fmt: skip
FUNCTIONS: dict[type[exp.Expr], tuple[str, ...]] = {
    **_AGGREGATES, **_WINDOWS, **_TEXT, **_NUMBERS, **_CHOICES, **_TIMES, **_LISTS,
}  # fmt: skip
"""Functions by the parser's class for them, and the parts of each: its arguments, and marks that the parser sets.

An argument that is not listed is one that Spark's function does not have, or another function's of the same class.
"""
SPARK_ONLY: frozenset[type[exp.Expr]] = frozenset({
    exp.ApproxQuantile, exp.ArraysZip, exp.FromJson, exp.Initcap, exp.JSONFormat, exp.MonthsBetween, exp.Skewness,
    exp.TimestampAdd, exp.TimestampDiff, exp.Typeof, exp.UnixMillis, exp.UnixSeconds,
})  # fmt: skip
"""Functions of which DuckDB has none that gives the same answers."""
SPARK_ONLY_NAMED = frozenset({"conv", "zip_with"})
"""The same of those that the parser keeps by name."""
NAMED: Mapping[str, tuple[int, int]] = {
    "array_repeat": (2, 2),
    "array_union": (2, 2),
    "arrays_overlap": (2, 2),
    "btrim": (1, 1),
    "cardinality": (1, 1),
    "conv": (3, 3),
    "every": (1, 1),
    "forall": (2, 2),
    "hypot": (2, 2),
    "isnotnull": (1, 1),
    "isnull": (1, 1),
    "json_array_length": (1, 1),
    "make_date": (3, 3),
    "map_entries": (1, 1),
    "map_filter": (2, 2),
    "map_values": (1, 1),
    "now": (0, 0),
    "nullifzero": (1, 1),
    "octet_length": (1, 1),
    "pmod": (2, 2),
    "some": (1, 1),
    "std": (1, 1),
    "transform_keys": (2, 2),
    "transform_values": (2, 2),
    "weekday": (1, 1),
    "zeroifnull": (1, 1),
    "zip_with": (3, 3),
}
"""Functions that the parser keeps by name, with the least and most of their arguments."""

NAMES = (
    "abs acos acosh add_months aggregate any_value approx_count_distinct array array_agg array_append array_compact "
    "array_contains array_distinct array_except array_intersect array_join array_max array_min array_position "
    "array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin "
    "asinh atan atan2 atanh avg base64 bit_and bit_count bit_length bit_or bit_xor bool_and bool_or btrim cardinality "
    "cbrt ceil char_length character_length chr coalesce collect_list collect_set concat concat_ws contains conv corr "
    "cos cosh cot count count_if covar_pop covar_samp cume_dist current_date current_timestamp date date_add "
    "date_format date_from_unix_date date_sub date_trunc datediff day dayname dayofmonth dayofweek dayofyear degrees "
    "dense_rank element_at endswith equal_null every exists exp extract factorial filter first first_value flatten "
    "floor forall from_json from_unixtime get_json_object greatest grouping grouping_id hex hour hypot if ifnull "
    "initcap instr isnan isnotnull isnull json_array_length kurtosis lag last last_day last_value lcase lead least "
    "left length levenshtein listagg ln locate log log10 log2 lower lpad ltrim make_date map map_contains_key "
    "map_entries map_filter map_from_arrays map_from_entries map_keys map_values max max_by md5 median min min_by "
    "minute mod mode month monthname months_between named_struct next_day now nth_value ntile nullif nullifzero nvl "
    "nvl2 octet_length percent_rank percentile percentile_approx percentile_cont percentile_disc pi pmod position "
    "power quarter radians rank reduce regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like "
    "regexp_replace regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat "
    "replace reverse right rlike round row_number rpad rtrim second sequence sha sha1 sha2 shiftleft shiftright sign "
    "sin sinh size skewness slice some sort_array split split_part sqrt startswith std stddev stddev_pop stddev_samp "
    "string_agg struct substr substring substring_index sum tan tanh timestampadd timestampdiff to_date to_json "
    "to_timestamp transform transform_keys transform_values translate trim trunc try_add try_element_at try_multiply "
    "try_subtract typeof ucase unbase64 unhex unix_date unix_micros unix_millis unix_seconds unix_timestamp upper "
    "var_pop var_samp variance weekday weekofyear year zeroifnull zip_with"
)
"""What users may call, in Spark's names, for errors and for docs/sql.md."""

"""The functions that a query may call."""

from __future__ import annotations

from sqlglot import exp

_ONE = ("this",)
_TWO = ("this", "expression")
_LIST = ("expressions",)
_AGGREGATES: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys(
        (
            exp.AnyValue, exp.ArrayUniqueAgg, exp.Avg, exp.CountIf, exp.First, exp.Last, exp.LogicalAnd, exp.LogicalOr,
            exp.Max, exp.Median, exp.Min, exp.Mode, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Sum, exp.Variance,
            exp.VariancePop,
        ),
        _ONE,
    ),
    **dict.fromkeys((exp.ArgMax, exp.ArgMin, exp.Corr, exp.CovarPop, exp.CovarSamp), _TWO),
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
    **dict.fromkeys((exp.Length, exp.Lower, exp.MD5, exp.Reverse, exp.Upper), _ONE),
    **dict.fromkeys((exp.Contains, exp.EndsWith, exp.Initcap, exp.Left, exp.Right, exp.StartsWith), _TWO),
    exp.Concat: ("expressions", "safe"),
    exp.ConcatWs: ("expressions", "safe", "coalesce", "flatten"),
    exp.Replace: ("this", "expression", "replacement"),
    exp.StrPosition: ("this", "substr", "position"),
    exp.Substring: ("this", "start", "length"),
    exp.Trim: ("this", "position", "expression"),
}
_NUMBERS: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.Abs, exp.Cbrt, exp.Exp, exp.IsNan, exp.Ln, exp.Sign, exp.Sqrt), _ONE),
    **dict.fromkeys((exp.Log, exp.Pow), _TWO),
    **dict.fromkeys((exp.Ceil, exp.Floor, exp.Round), ("this", "decimals")),
    **dict.fromkeys((exp.Greatest, exp.Least), ("this", "expressions", "ignore_nulls")),
}
_CHOICES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Coalesce: ("this", "expressions"),
    exp.Nullif: _TWO,
    exp.Nvl2: ("this", "true", "false"),
}
_TIMES: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys(
        (
            exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Hour, exp.LastDay, exp.Minute, exp.Month,
            exp.Quarter, exp.Second, exp.TimeStrToTime, exp.UnixMicros, exp.UnixMillis, exp.UnixSeconds, exp.WeekOfYear,
            exp.Year,
        ),
        _ONE,
    ),
    **dict.fromkeys((exp.CurrentDate, exp.CurrentTimestamp), ()),
    **dict.fromkeys((exp.AddMonths, exp.Extract, exp.MonthsBetween), _TWO),
    **dict.fromkeys((exp.DateDiff, exp.TimestampAdd, exp.TimestampDiff, exp.TsOrDsAdd), ("this", "expression", "unit")),
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc), ("unit", "this")),
    **dict.fromkeys((exp.TimeToStr, exp.UnixToStr), ("this", "format")),
    exp.TsOrDsToDate: ("this", "safe", "format"),
}  # fmt: skip
_LISTS: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.Array, exp.Struct), _LIST),
    **dict.fromkeys((exp.ArrayDistinct, exp.ArrayMax, exp.ArrayMin, exp.ArraySize, exp.MapKeys), _ONE),
    **dict.fromkeys((exp.ArrayContains, exp.PropertyEQ), _TWO),
}
FUNCTIONS: dict[type[exp.Expr], tuple[str, ...]] = {
    **_AGGREGATES, **_WINDOWS, **_TEXT, **_NUMBERS, **_CHOICES, **_TIMES, **_LISTS,
}  # fmt: skip
"""Functions by the parser's class for them, and the parts of each: its arguments, and marks that the parser sets.

An argument that is not listed is one that Spark's function does not have, or another function's of the same class.
"""
SPARK_ONLY: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.ApproxQuantile,
        exp.Initcap,
        exp.MonthsBetween,
        exp.TimestampAdd,
        exp.TimestampDiff,
        exp.UnixMillis,
        exp.UnixSeconds,
    }
)
"""Functions of which DuckDB has none that gives the same answers."""
NAMED = frozenset({"every", "some", "isnull", "isnotnull", "now", "btrim", "make_date"})
"""Functions that the parser keeps by name; `lakehouse.sql.normal` turns those into others that both engines have."""

NAMES = (
    "abs add_months any_value approx_count_distinct array array_agg array_contains array_distinct array_max array_min "
    "array_size avg bool_and bool_or btrim cbrt ceil char_length coalesce collect_list collect_set concat concat_ws "
    "contains corr count count_if covar_pop covar_samp cume_dist current_date current_timestamp date date_add "
    "date_format date_sub date_trunc datediff day dayofmonth dayofweek dayofyear dense_rank endswith every exp extract "
    "first first_value floor from_unixtime greatest hour if ifnull initcap instr isnan isnotnull isnull lag last "
    "last_day last_value lead least left length ln locate log log10 log2 lower ltrim make_date map_keys max max_by md5 "
    "median min min_by minute mode month months_between named_struct now nth_value ntile nullif nvl nvl2 percent_rank "
    "percentile percentile_approx position power quarter rank replace reverse right round row_number rtrim second sign "
    "size some sqrt startswith stddev stddev_pop struct substring sum timestampadd timestampdiff to_date to_timestamp "
    "trim trunc unix_micros unix_millis unix_seconds upper var_pop variance weekofyear year"
)
"""What users may call, in Spark's names, for errors and for docs/sql.md."""

"""The functions that a query may call."""

from __future__ import annotations

from sqlglot import exp

_AGGREGATES: tuple[type[exp.Expr], ...] = (
    exp.AnyValue, exp.ApproxDistinct, exp.ArgMax, exp.ArgMin, exp.ArrayAgg, exp.ArrayUniqueAgg, exp.Avg, exp.Corr,
    exp.Count, exp.CountIf, exp.CovarPop, exp.CovarSamp, exp.First, exp.Last, exp.LogicalAnd, exp.LogicalOr, exp.Max,
    exp.Median, exp.Min, exp.Mode, exp.Quantile, exp.ApproxQuantile, exp.Stddev, exp.StddevPop, exp.StddevSamp,
    exp.Sum, exp.Variance, exp.VariancePop,
)  # fmt: skip
_WINDOWS: tuple[type[exp.Expr], ...] = (
    exp.CumeDist, exp.DenseRank, exp.FirstValue, exp.Lag, exp.LastValue, exp.Lead, exp.NthValue, exp.Ntile,
    exp.PercentRank, exp.Rank, exp.RowNumber,
)  # fmt: skip
_TEXT: tuple[type[exp.Expr], ...] = (
    exp.Concat, exp.ConcatWs, exp.Contains, exp.EndsWith, exp.Initcap, exp.Left, exp.Length, exp.Lower, exp.MD5,
    exp.Replace, exp.Reverse, exp.Right, exp.StartsWith, exp.StrPosition, exp.Substring, exp.Trim, exp.Upper,
)  # fmt: skip
_NUMBERS: tuple[type[exp.Expr], ...] = (
    exp.Abs, exp.Ceil, exp.Cbrt, exp.Exp, exp.Floor, exp.Greatest, exp.IsNan, exp.Least, exp.Ln, exp.Log, exp.Pow,
    exp.Round, exp.Sign, exp.Sqrt,
)  # fmt: skip
_CHOICES: tuple[type[exp.Expr], ...] = (exp.Coalesce, exp.Nullif, exp.Nvl2)
_TIMES: tuple[type[exp.Expr], ...] = (
    exp.AddMonths, exp.CurrentDate, exp.CurrentTimestamp, exp.DateDiff, exp.DateTrunc, exp.Day, exp.DayOfMonth,
    exp.DayOfWeek, exp.DayOfYear, exp.Extract, exp.Hour, exp.LastDay, exp.Minute, exp.Month, exp.MonthsBetween,
    exp.Quarter, exp.Second, exp.TimeToStr, exp.TimestampAdd, exp.TimestampDiff, exp.TimestampTrunc,
    exp.TimeStrToTime, exp.TsOrDsAdd, exp.TsOrDsToDate, exp.UnixMicros, exp.UnixMillis, exp.UnixSeconds,
    exp.UnixToStr, exp.WeekOfYear, exp.Year,
)  # fmt: skip
_LISTS: tuple[type[exp.Expr], ...] = (
    exp.Array, exp.ArrayContains, exp.ArrayDistinct, exp.ArrayMax, exp.ArrayMin, exp.ArraySize, exp.MapKeys, exp.Struct,
    exp.PropertyEQ,
)  # fmt: skip
FUNCTIONS: frozenset[type[exp.Expr]] = frozenset(
    (*_AGGREGATES, *_WINDOWS, *_TEXT, *_NUMBERS, *_CHOICES, *_TIMES, *_LISTS)
)
"""Functions by the parser's class for them."""
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

"""The functions that a query may call."""

from __future__ import annotations

from functools import cache

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


@cache
def function_names() -> tuple[str, ...]:
    """Names for errors, sorted: as Spark calls them, as far as the parser knows."""
    names = {name.lower() for kind in FUNCTIONS if issubclass(kind, exp.Func) for name in kind.sql_names()[:1]}
    return tuple(sorted(names | NAMED))

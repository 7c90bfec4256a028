"""Codecs by age: what the property may say, and which codec a file has; against rules in plain Python."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakehouse.core.chunk import DIVIDING, Grain
from lakehouse.core.codec import CODECS, Codecs, codec_name, codec_number
from lakehouse.core.interval import MAX_TIME, to_us
from lakehouse.core.policy import Threshold
from lakehouse.errors import InvalidProperty
from lakehouse.schema import define_table

REFUSED = (
    "", " ", "gzip", "LZ4", "lz4, zstd", "zstd after 7d", "lz4, zstd after -1d", "lz4, zstd after",
    "lz4, snappy after 2d, zstd after 1d", "lz4, snappy after 1d, zstd after 1d", "lz4, zstd after 7d, lz4 after 9d",
    "lz4, lz4 after 1d", "lz4, gzip after 7d", "lz4, after 7d", "lz4,", ", zstd after 7d", "lz4 zstd after 7d",
    "lz4, zstd after soon", "lz4; zstd after 7d", "lz4, zstd after 7d after 9d", "lz4, zstd AFTER 7d", "8, 2 after 1h",
    "lz4, zstd after 1e3d", "lz4, zstd after nan", "lz4, zstd after 0d",
)  # fmt: skip
DAYS = {
    Grain.HOUR: timedelta(hours=1), Grain.DAY: timedelta(days=1), Grain.WEEK: timedelta(days=7)
}  # fmt: skip
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - bounds have none
AGES = st.lists(st.sampled_from([1, 3600, 86_400, 7 * 86_400, 400 * 86_400]), unique=True, max_size=3).map(sorted)
ORDERS = st.permutations(CODECS)


@pytest.mark.parametrize("text", REFUSED)
def test_other_texts_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidProperty, match="property compression is one of zstd, lz4, snappy, none, or several"):
        define_table("t", "ts TIMESTAMP", time="ts", properties={"compression": text})


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("zstd", [(0, "zstd")]),
        ("lz4,zstd  after  7d", [(0, "lz4"), (604_800, "zstd")]),
        (" none, lz4 after 90s, zstd after 1.5h ", [(0, "none"), (90, "lz4"), (5_400, "zstd")]),
        ("lz4, zstd after 99999999w", [(0, "lz4"), (1e10, "zstd")]),
    ],
)
def test_steps_are_read_and_written(text: str, steps: list[tuple[float, str]]) -> None:
    assert list(Codecs.of(text).steps) == steps
    assert Codecs.of(str(Codecs.of(text))) == Codecs.of(text)
    assert define_table("t", "ts TIMESTAMP", time="ts", properties={"compression": text}).codecs == Codecs.of(text)


def test_thresholds_are_read_as_before() -> None:
    assert Threshold.of("8 after 0s, 2 after 1d").steps == ((0.0, 8.0), (86_400.0, 2.0))


def test_the_default_is_one_codec_and_numbers_stay() -> None:
    assert define_table("t", "ts TIMESTAMP", time="ts").codecs.steps == ((0.0, "zstd"),)
    # Catalogs store them.
    assert [codec_number(one) for one in ("", "zstd", "lz4", "snappy", "none", "brotli")] == [0, 1, 2, 3, 4, 0]
    assert [codec_name(one) for one in (None, -1, 0, 1, 4, 5)] == ["", "", "", "zstd", "none", ""]


def chunk_end(grain: Grain, time: datetime) -> datetime:
    """By counting: chunks are as long as `DAYS` says, from a Monday, or end at the first of a month or year."""
    if grain in DAYS:
        first = datetime(1, 1, 1, tzinfo=UTC)
        whole = (time - first) // DAYS[grain] + 1
        return first + whole * DAYS[grain] if MAX_TIME - first > whole * DAYS[grain] else MAX_TIME
    month = 12 if grain is Grain.YEAR else time.month
    if (time.year, month) == (9999, 12):
        return MAX_TIME
    return datetime(time.year + month // 12, month % 12 + 1, 1, tzinfo=UTC)


def expected(grain: Grain, steps: list[tuple[float, str]], last: datetime, now: datetime) -> str:
    age = (now - chunk_end(grain, last)).total_seconds()
    codec = steps[0][1]
    for least, other in steps[1:]:
        if age >= least:
            codec = other
    return codec


@given(st.sampled_from(DIVIDING), AGES, ORDERS, TIMES, TIMES | st.integers(-10, 10 * 86_400), st.sampled_from(CODECS))
@example(Grain.DAY, [86_400], ["lz4", "zstd"], datetime(2013, 1, 1, 23, tzinfo=UTC), 86_400 + 3_600, "lz4")
@example(Grain.YEAR, [1], ["lz4", "zstd"], datetime(9999, 12, 31, tzinfo=UTC), 0, "lz4")
def test_a_file_has_the_codec_of_the_age_of_its_chunk(
    grain: Grain, ages: list[int], order: list[str], last: datetime, later: datetime | int, held: str
) -> None:
    try:
        now = last + timedelta(seconds=later) if isinstance(later, int) else later
    except OverflowError:
        now = last
    steps = list(zip([0.0, *map(float, ages)], order, strict=False))
    text = ", ".join(codec if not age else f"{codec} after {age:.0f}s" for age, codec in steps)
    spec = define_table("t", "ts TIMESTAMP", time="ts", grain=grain.value, properties={"compression": text})
    wanted = expected(grain, steps, last, now)
    assert spec.codec_of(to_us(last), to_us(now)) == wanted
    assert spec.codec_of(to_us(last), None) == steps[0][1]

    # Another codec is rewritten if it is of an earlier step, or of none in the last step; what was written is not.
    names = [codec for _, codec in steps]
    bounds = spec.codecs.bounds(grain, to_us(now))
    is_last = len(names) > 1 and wanted == names[-1]
    outgrown = is_last if held not in names else names.index(held) < names.index(wanted)
    listed = np.array([codec_number(held), codec_number(wanted), 0, 99, -1])
    found = spec.codecs.outgrown(listed, np.full(5, to_us(last)), bounds)
    assert found.tolist() == [outgrown, False, False, False, False]

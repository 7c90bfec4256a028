"""The demo's own arithmetic: what must be visible, and what it says when something else is."""

import numpy as np
import pandas as pd
import pytest

from lakehouse.core.interval import Interval
from lakehouse.demo.source import FLIGHTS, LATE, QUARTER, Flights, WrongCount, comparable, require_equal, tally_rows


@pytest.fixture(scope="module")
def flights() -> Flights:
    return Flights()


def test_the_quarter_and_the_evening_after_it_are_the_quarter_on_new_yorks_clock(flights: Flights) -> None:
    quarter, late = flights.within(QUARTER), flights.within(LATE)
    assert (quarter.sum(), late.sum()) == (80_687, 102)
    assert ((flights.rows["month"] <= 3).to_numpy() == (quarter | late)).all()


def test_a_tally_counts_each_copy_of_a_flight_by_day_and_carrier(flights: Flights) -> None:
    flights.copies[:] = 0
    flights.copies[flights.within(Interval.of("2013-02-08"))] = 2
    flights.copies[flights.within(Interval.of("2013-02-08")) & flights.cancelled()] = 1
    tally = flights.tally()
    assert set(tally.index.get_level_values(0)) == {15_744}
    rows = flights.rows[flights.within(Interval.of("2013-02-08"))]
    left = rows[rows["dep_time"].notna()].groupby("carrier").size()
    never = rows[rows["dep_time"].isna()].groupby("carrier").size()
    assert tally["rows"].droplevel(0).to_dict() == left.mul(2).add(never, fill_value=0).astype(int).to_dict()
    assert tally["values"].sum() == 2 * left.sum()


@pytest.mark.parametrize("off", [-1, 1])
def test_one_row_too_many_or_too_few_is_named_by_day_and_carrier(flights: Flights, off: int) -> None:
    flights.copies[:] = flights.within(QUARTER)
    must = flights.tally()
    victim = int(np.flatnonzero(flights.within(Interval.of("2013-02-09")) & flights.of("UA"))[0])
    flights.copies[victim] += off
    with pytest.raises(WrongCount, match=rf"step: 1 of .* on 2013-02-09 for UA rows are off by \{off:+d}"):
        require_equal(must, flights.tally(), "step")
    require_equal(must, must.sample(frac=1, random_state=1), "step")


def test_a_day_that_is_missing_or_should_not_be_there_is_named(flights: Flights) -> None:
    flights.copies[:] = flights.within(QUARTER)
    must = flights.tally()
    none = tally_rows(flights.rows.iloc[:0], FLIGHTS)
    for expected, found, sign in ((must, none, "-"), (none, must, r"\+")):
        with pytest.raises(WrongCount, match=rf"on 2013-01-01 for 9E rows are off by {sign}"):
            require_equal(expected, found, "step")
    require_equal(none, none, "step")


def test_rows_compare_by_value_whatever_their_order_and_their_types(flights: Flights) -> None:
    rows = flights.rows[flights.within(Interval.of("2013-02-08"))]
    other = rows.sample(frac=1, random_state=1).assign(
        dep_time=lambda frame: frame["dep_time"].astype("Int32"),
        tailnum=lambda frame: frame["tailnum"].astype("string"),
        time_hour=lambda frame: pd.to_datetime(frame["time_hour"], utc=True),
    )
    assert comparable(rows).equals(comparable(other))
    changed = rows.assign(arr_delay=rows["arr_delay"].fillna(0))
    assert not comparable(rows).equals(comparable(changed))

"""What a query of the console may cost, by role."""

from itertools import pairwise

import pytest

from lakehouse.actions.roles import Role
from queries.query import LEAST, LIMITS, MOST, Limits


@pytest.mark.parametrize("role", Role)
def test_nobody_sets_more_than_their_role_may(role: Role) -> None:
    most = MOST[role]
    asked = Limits(rows=10**9, seconds=10**9, megabytes=10**9)
    assert asked.within(most) == most
    assert LEAST.within(most) == LEAST
    assert Limits(rows=7, seconds=10**9).within(most) == Limits(rows=7, seconds=most.seconds)


def test_what_is_set_at_first_is_what_every_reader_may_and_greater_roles_may_more() -> None:
    assert MOST[Role.READER] == LIMITS
    for less, more in pairwise(MOST[role] for role in Role):
        assert less.within(more) == less != more

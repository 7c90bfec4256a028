"""The suite is spread over processes as it says: tests of one group, such as Spark's, share one."""

from __future__ import annotations

import os

import pytest


@pytest.mark.xdist_group("groups")
def test_tests_of_a_group_are_kept_together(request):
    # pytest-xdist tells the group of a test by the end of its name, and spreads tests that lack it.
    assert request.node.nodeid.endswith("@groups") is ("PYTEST_XDIST_WORKER" in os.environ)

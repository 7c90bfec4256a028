"""The process that victims are forked from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakehouse.testing.victim import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as found:
        yield found

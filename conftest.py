"""How the suite is spread over processes, and what doctest may not import."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from _pytest.doctest import DoctestItem

import lakehouse

collect_ignore_glob = ["lakehouse/catalog/migrations/*", ".venv", ".tools", "build", "dist"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep every test that needs Spark on one worker: a session costs seconds and gigabytes, so there is one."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or "/tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(autouse=True)
def _names_of_examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> Iterator[None]:
    """Give examples that name it a lake of their own, with a table of three flights."""
    item = request.node
    text = "".join(one.source for one in item.dtest.examples) if isinstance(item, DoctestItem) else ""
    if not re.search(r"\b(?:flights|lake|late)\b", text) or "connect(" in text:
        yield
        return
    folder: Path = request.getfixturevalue("tmp_path")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        flights = lake.create_table(
            "flights", "at TIMESTAMP, id BIGINT, carrier STRING, delay BIGINT", time="at", primary_key=["id"],
            cluster_by=["carrier"],
        )  # fmt: skip
        lake.sql(
            "INSERT INTO flights VALUES ('2013-01-05 08:00', 1, 'UA', 3), ('2013-01-05 09:00', 2, 'DL', 30), "
            "('2013-01-06 08:00', 3, 'UA', 0)"
        )
        at = pa.array([datetime(2013, 1, 5, hour, tzinfo=UTC) for hour in (8, 10)], pa.timestamp("us", "UTC"))
        late = pa.table({"at": at, "id": [1, 4], "carrier": ["UA", "UA"], "delay": [42, 7]})
        names = {"lake": lake, "flights": flights, "late": late}
        doctest_namespace.update(names)
        yield
    for name in names:
        del doctest_namespace[name]

"""How the suite is spread over processes, and what doctest may not import."""

import pytest

collect_ignore_glob = ["lakehouse/catalog/migrations/*", ".venv", ".tools", "build", "dist"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep every test that needs Spark on one worker: a session costs seconds and gigabytes, so there is one."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or "/tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("spark"))

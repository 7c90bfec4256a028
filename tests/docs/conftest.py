"""The site, built once for all tests that look at it, which share a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.chromium import browser, page
from tests.docs.prepared import ROOT

__all__ = ["browser", "page", "site"]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("docs"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "tools.docs_site", "--into", str(into)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return into / "site"

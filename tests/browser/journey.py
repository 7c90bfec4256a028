"""A stranger's first five minutes, outside this tree: `make journey`.

The wheel is installed into an environment of its own, `lakehouse new` makes a project of a CSV file, its test is run,
its table is loaded by Dagster and looked at in a real Chromium, a row is changed, and the console and the command line
say why. It prints how long each step took, and fails where one does not do what the pages promise.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.chromium import ARGUMENTS, CHROMIUM_COMMANDS, PATIENCE_MS, START_SECONDS, free_port

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / ".tools/uv/bin/uv"
MOST_SECONDS = 300
CSV = "at,client,price\n2026-01-05T07:00:00Z,12,1.5\n2026-01-06T07:15:00Z,77,2.0\n2026-01-06T09:00:00Z,12,7.25\n"
WHY = "fares were halved by mistake"


class Traveller:
    """An environment and a project in a folder, and what is run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv/bin"
        self.project = folder / "shop"
        (folder / "dagster").mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LAKEHOUSE_", "PYTHON"))},
            "DAGSTER_HOME": str(folder / "dagster"),
            "VIRTUAL_ENV": str(folder / "venv"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }

    def run(self, *command: str, where: Path | None = None) -> str:
        """Run a command of the environment, and return what it printed; fails if it does."""
        done = subprocess.run(
            command, cwd=where or self.project, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def serving(self, *command: str, answers: str) -> Iterator[None]:
        """Run a server until the end of the block, which begins when it answers."""
        with (self.folder / f"{command[0]}.log").open("w+b") as log:
            server = subprocess.Popen(
                command, cwd=self.project, env=self.environment, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                deadline = time.monotonic() + START_SECONDS
                while not _answers(answers):
                    log.seek(0)
                    assert server.poll() is None, log.read().decode()
                    assert time.monotonic() < deadline, f"{command[0]} does not answer"
                    time.sleep(0.2)
                yield
            finally:
                server.terminate()
                server.wait(timeout=30)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def step(name: str, seconds: dict[str, float]) -> Iterator[None]:
    """Time a step, and print it."""
    started = time.monotonic()
    yield
    seconds[name] = time.monotonic() - started
    print(f"{seconds[name]:6.1f} s  {name}", flush=True)


def main() -> int:
    """Walk it; 0 if it took less than five minutes of a processor, whatever else this machine does."""
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        (found, *_) = [path for path in map(shutil.which, CHROMIUM_COMMANDS) if path]
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        walk(Traveller(Path(folder)), browser, seconds)
        browser.close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = used.ru_utime + used.ru_stime
    print(f"{sum(seconds.values()):6.1f} s  in all, {worked:.1f} s of them on a processor")
    return 0 if worked < MOST_SECONDS else 1


def walk(traveller: Traveller, browser: Browser, seconds: dict[str, float]) -> None:
    """From the wheel to the reason of a change."""
    with step("the wheel is built and installed, with Dagster and the console", seconds):
        install(traveller)
    (traveller.folder / "trips.csv").write_text(CSV)
    with step("a project is made of a CSV file", seconds):
        traveller.run("lakehouse", "new", "shop", "--data", "trips.csv", where=traveller.folder)
    lake = traveller.project / ".lakehouse"
    traveller.environment |= {
        "LAKEHOUSE_CATALOG": f"sqlite:///{lake}/catalog.db",
        "LAKEHOUSE_WAREHOUSE": f"{lake}/warehouse",
    }
    with step("its test passes, and it loads", seconds):
        assert "2 passed" in traveller.run("pytest", "-q")
        traveller.run("dagster", "definitions", "validate")
        assert "LakehouseMaintenanceComponent" in traveller.run("dg", "list", "components", "--json")
    with step("Dagster loads the CSV", seconds):
        days = "2026-01-05...2026-01-06"
        traveller.run(
            *("dagster", "asset", "materialize", "-m", "shop.definitions", "--select", "trips"),
            *("--partition-range", days),
        )
        assert queried(traveller, "SELECT count(*) AS n FROM trips") == [{"n": 3}]
    with step("the table is seen in Dagster", seconds):
        see_in_dagster(traveller, browser)
    with step("a row is changed", seconds):
        traveller.run("lakehouse", "update", "trips", "price=price * 2", "--where", "client = 77", "-m", WHY)
    with step("the command line says why", seconds):
        assert why(traveller) == {"message": WHY, "was": 2.0, "now": 4.0}
    with step("the console says why", seconds):
        see_in_console(traveller, browser)


def install(traveller: Traveller) -> None:
    """Build the wheel and install it, in the versions that this tree is tested with."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(traveller.folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = traveller.folder.glob("*.whl")
    python = str(traveller.bin / "python")
    subprocess.run([UV, "venv", "-q", "--python", sys.executable, str(traveller.folder / "venv")], check=True)
    packages = [f"{wheel}[console,dagster]", "dagster-webserver", "dagster-dg-cli", "pytest"]
    locked = str(ROOT / "requirements-tests.txt")
    subprocess.run([UV, "pip", "install", "-q", "--python", python, "-c", locked, *packages], check=True)


def queried(traveller: Traveller, text: str) -> list[dict[str, object]]:
    """Rows of a query, by the command line."""
    printed = json.loads(traveller.run("lakehouse", "sql", text, "--json"))
    return [dict(zip(printed["columns"], row, strict=True)) for row in printed["rows"]]


def why(traveller: Traveller) -> Mapping[str, object]:
    """What became of the row, and the reason that is stored with the commit that changed it."""
    changes = "SELECT _commit_version AS version, _change_type AS kind, price FROM trips.changes WHERE client = 77"
    rows = queried(traveller, changes)
    (was,) = [row for row in rows if row["kind"] == "update_before"]
    (now,) = [row for row in rows if row["kind"] == "update_after"]
    log = json.loads(traveller.run("lakehouse", "log", "trips", "--json"))
    (commit,) = [one for one in log if one["version"] == now["version"]]
    return {"message": commit["message"], "was": was["price"], "now": now["price"]}


def see_in_dagster(traveller: Traveller, browser: Browser) -> None:
    """The asset's page shows that its partitions are materialized."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with traveller.serving(
        "dagster-webserver", "-m", "shop.definitions", "-h", "127.0.0.1", "-p", str(port), answers=address
    ):
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}/assets/trips?view=partitions&partition=2026-01-06")
        expect(page.get_by_text("2026-01-06").first).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_text("Materialized").first).to_be_visible(timeout=PATIENCE_MS)
        page.close()


def see_in_console(traveller: Traveller, browser: Browser) -> None:
    """The page of versions shows the change with its reason."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with traveller.serving("lakehouse", "console", "--port", str(port), answers=f"{address}/_stcore/health"):
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}/versions?table=trips")
        expect(page.get_by_text(WHY).first).to_be_visible(timeout=PATIENCE_MS)
        page.close()


if __name__ == "__main__":
    sys.exit(main())

"""Side by side with peers on the same work in the same run, in turn: ``make bench-peers``, or

    python -m benchmarks.peers [--systems lakehouse,delta] [--work W2,W8] [--rows N] [--repeats N] [--quick] [--page]

Every system runs in a process and an environment of its own. Results go to ``--out`` as JSON; with ``--page`` the
tables go into benchmarks/README.md and the plots beside the results. ``--page-of FILE`` does that with stored ones.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.environments import CannotInstall
from benchmarks.peers import report
from benchmarks.peers.bench import Size
from benchmarks.peers.driving import Worker, run
from benchmarks.peers.environment import install, plot_command
from benchmarks.peers.systems import ENTRIES, Place
from benchmarks.processes import WorkerGone

WORKS = ("W1", "W2", "W3", "W4", "W5", "W6", "W8", "W9", "W10", "W12", "W7")
HERE = Path(__file__).parent
PAGE = HERE.parent / "README.md"


def arguments() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", default="", help=f"of {','.join(ENTRIES)}; default: all")
    parser.add_argument("--work", default="", help=f"of {','.join(WORKS)}; default: all")
    parser.add_argument("--rows", type=int, default=0, help="of the large tables; default 5,000,000")
    parser.add_argument("--repeats", type=int, default=0, choices=range(1, 5), help="default 3")
    parser.add_argument("--quick", action="store_true", help="500,000 rows, once")
    parser.add_argument("--full", action="store_true", help="metadata of 1,000,000 files too")
    parser.add_argument("--limit-seconds", type=float, default=300.0, help="for one work of one system")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    parser.add_argument("--dir", type=Path, help="where tables are made; default: a temporary folder")
    parser.add_argument("--add", action="store_true", help="keep what --out holds of other works and systems")
    parser.add_argument("--page", action="store_true", help="put the tables into benchmarks/README.md")
    parser.add_argument("--page-of", type=Path, help="the same with stored results, nothing is run")
    return parser


def chosen(text: str, known: tuple[str, ...], what: str) -> list[str]:
    """Names of a list with commas, all if it is empty."""
    names = [one for one in text.split(",") if one] or list(known)
    unknown = [one for one in names if one not in known]
    if unknown:
        sys.exit(f"peers: no such {what}: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def measure(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run, and keep what is known after each step, so that a run that is cut short leaves it."""
    names = chosen(asked.systems, tuple(ENTRIES), "system")
    works = chosen(asked.work, WORKS, "work")
    size = Size(
        rows=asked.rows or (500_000 if asked.quick else 5_000_000),
        repeats=asked.repeats or (1 if asked.quick else 3),
        metadata_files=(10_000, 100_000, *([1_000_000] if asked.full else [])),
        races=1 if asked.quick else 2,
    )
    results: dict[str, Any] = {
        "when": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 2),
        "rows": size.rows,
        "repeats": size.repeats,
        "versions": {},
        "records": [],
    }
    if asked.add and asked.out.exists():
        held = report.read(asked.out)
        kept = [one for one in held["records"] if one["work"] not in works or one["system"] not in names]
        results |= {"records": kept, "versions": held["versions"], "rows": held["rows"], "repeats": held["repeats"]}
    workers = [Worker(ENTRIES[name], folder, size) for name in names]
    repeats = dict.fromkeys(works, size.repeats) | {"W7": size.races, "W12": 1}
    try:
        for worker in workers:
            try:
                worker.start()
            except WorkerGone as error:
                print(f"peers: {worker.entry.name} does not start: {error}", file=sys.stderr, flush=True)
        for record in run(workers, ["warm", *works], {"warm": 1, **repeats}, asked.limit_seconds):
            results["records"].append(record)
            results["versions"] |= {worker.entry.name: worker.versions for worker in workers}
            asked.out.write_text(json.dumps(results, indent=1) + "\n")
    except SystemExit:  # asked to end
        for worker in workers:
            worker.kill()
        raise
    finally:
        for worker in workers:
            worker.leave()
        for worker in workers:
            worker.close()
    return results


def publish(results: dict[str, Any], stored: Path) -> None:
    """The tables into the page, the plots beside the results."""
    report.put_into(PAGE, report.page(results))
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
    subprocess.run(plot_command(str(stored)), check=True, env=environment, cwd=HERE.parent.parent)


def main() -> int:
    """Install what is needed, measure, print."""
    asked = arguments().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # workers are ended on the way out
    if asked.page_of:
        install()
        publish(report.read(asked.page_of), asked.page_of)
        return 0
    names = chosen(asked.systems, tuple(ENTRIES), "system")
    try:
        if asked.page or any(ENTRIES[name].place is not Place.OURS for name in names):
            install()
    except CannotInstall as error:
        print(f"peers: {error}", file=sys.stderr)
        return 1
    folder = (asked.dir or Path(tempfile.mkdtemp(prefix="peers-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        results = measure(asked, folder)
    finally:
        if asked.dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(report.page(results))
    if asked.page:
        publish(results, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

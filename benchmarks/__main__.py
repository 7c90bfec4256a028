"""Every measurement, one after the other, and how each figure stands to those of `baseline.json`.

``python benchmarks`` runs them; ``--store`` makes their figures the new baseline. Names choose scripts. Nothing is
asserted: a ratio shows where to look, on the machine that the baseline was made on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import FOLDER
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "baseline.json"
NOT_RUN = {"__main__", "environments", "figures", "processes"}
WORTH_A_LOOK = 1.25

Held = dict[str, dict[str, float]]
"""Figures by name, by script."""


def main() -> int:
    """Run, print, compare."""
    scripts = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_RUN)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="script", help=f"some of {', '.join(scripts)}")
    parser.add_argument("--store", action="store_true", help="keep the figures as the baseline")
    asked = parser.parse_args()
    unknown = sorted(set(asked.scripts) - set(scripts))
    if unknown:
        parser.error(f"no such script: {', '.join(unknown)}; there are {', '.join(scripts)}")
    baseline: Held = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    found: Held = {}
    for script in asked.scripts or scripts:
        found[script] = run(script)
        Console().print(compared(found[script], baseline.get(script, {})))
    if asked.store:
        BASELINE.write_text(json.dumps(dict(sorted({**baseline, **found}.items())), indent=1) + "\n")
    return 0


def run(script: str) -> dict[str, float]:
    """The figures of one script, which prints its own tables. Raises `CalledProcessError` if it fails."""
    print(f"== {script}", flush=True)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(HERE / f"{script}.py")], env={**os.environ, FOLDER: folder}, check=True)
        kept = Path(folder, f"{script}.json")
        figures: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    print(f"== {script} took {time.perf_counter() - began:.0f} s", flush=True)
    return figures


def compared(figures: dict[str, float], before: dict[str, float]) -> Table:
    """Each figure beside its baseline; a ratio far from one stands out."""
    table = Table("figure", "baseline", "now", "now / baseline")
    for name, value in figures.items():
        ratio = value / before[name] if before.get(name) else None
        is_far = ratio is not None and not 1 / WORTH_A_LOOK <= ratio <= WORTH_A_LOOK
        shown = "" if ratio is None else f"{ratio:.2f}"
        was = f"{before[name]:g}" if name in before else ""
        table.add_row(name, was, f"{value:g}", f"[bold]{shown}[/bold]" if is_far else shown)
    return table


if __name__ == "__main__":
    sys.exit(main())

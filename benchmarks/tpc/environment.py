"""The generators' own packages, in .tools/tpc, and what they made, in .tools/tpc/data: both on first use."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environments import ROOT, make_environment, python_of, run

FOLDER = ROOT / ".tools" / "tpc"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
GENERATOR = Path(__file__).with_name("generate.py")


@dataclass(frozen=True, slots=True)
class Suite:
    """Rows and texts of one suite at one scale: ``files`` by table, ``texts`` by number, in DuckDB's SQL."""

    name: str
    scale: float
    files: dict[str, Path]
    texts: dict[int, str]


def generated(suite: str, scale: float) -> Suite:
    """The suite at a scale, made if it is not there. Raises `CannotInstall`."""
    _install()
    folder = FOLDER / "data" / f"{suite}-{scale:g}"
    if not folder.exists():
        print(f"tpc: making the rows of {suite} at scale {scale:g}", file=sys.stderr, flush=True)
        being_made = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(being_made, ignore_errors=True)
        run([str(python_of(FOLDER)), str(GENERATOR), suite, f"{scale:g}", str(being_made)], dict(os.environ))
        being_made.rename(folder)
    texts = {int(number): text for number, text in json.loads((folder / "queries.json").read_text()).items()}
    return Suite(suite, scale, {path.stem: path for path in sorted(folder.glob("*.parquet"))}, texts)


def _install() -> None:
    stamp = FOLDER / "installed"
    wanted = hashlib.sha256(f"{sys.executable} {sys.version}".encode())
    wanted.update(REQUIREMENTS.read_bytes() + GENERATOR.read_bytes())
    if stamp.exists() and stamp.read_text() == wanted.hexdigest():
        return
    print("tpc: installing Python packages into .tools/tpc", file=sys.stderr, flush=True)
    make_environment(FOLDER, REQUIREMENTS, "--require-hashes")
    stamp.write_text(wanted.hexdigest())

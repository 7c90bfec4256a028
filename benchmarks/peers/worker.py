"""One system in one process: a work and a repeat come in as a line of JSON, figures go out as another."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import pandas as pd  # pyarrow imports it at its first conversion: imported here, it is in no figure

from benchmarks.peers.bench import Bench, Size, named_error
from benchmarks.peers.systems import open_system
from benchmarks.peers.systems.base import System, Unsupported
from benchmarks.peers.works import WORKS

_ = pd


def serve(bench: Bench, requests: TextIO, answers: TextIO) -> None:
    """Answer until there are no more requests."""
    for line in requests:
        asked = json.loads(line)
        answers.write(json.dumps(answer(bench, asked)) + "\n")
        answers.flush()


def answer(bench: Bench, asked: dict[str, Any]) -> dict[str, Any]:
    """One work done once."""
    bench.begin(asked["repeat"])
    began = time.perf_counter()
    said: dict[str, Any] = {}
    try:
        WORKS[asked["work"]](bench)
    except Unsupported:
        said["unsupported"] = True
    except Exception as error:  # noqa: BLE001 - reported to the driver, and shown in the table
        said["error"] = named_error(error)
        sys.excepthook(type(error), error, error.__traceback__)
    said |= {"figures": bench.figures, "facts": bench.facts, "wrong": bench.wrong}
    return {**said, "seconds": round(time.perf_counter() - began, 3)}


def opened(name: str, root: Path, shared: Path, size: Size) -> tuple[System, Bench]:
    """The system in a new folder."""
    root.mkdir(parents=True)
    shared.mkdir(parents=True, exist_ok=True)
    system = open_system(name, root, shared)
    return system, Bench(system, shared, size)


def main() -> None:
    """Serve one system on standard input and output; what its packages print goes to standard error."""
    faulthandler.register(signal.SIGUSR1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system")
    parser.add_argument("root", type=Path)
    parser.add_argument("shared", type=Path)
    parser.add_argument("size", type=json.loads)
    asked = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    size = Size(**{**asked.size, "metadata_files": tuple(asked.size["metadata_files"])})
    system, bench = opened(asked.system, asked.root, asked.shared, size)
    answers.write(json.dumps({"versions": system.versions()}) + "\n")
    answers.flush()
    try:
        serve(bench, sys.stdin, answers)
    finally:
        system.close()


if __name__ == "__main__":
    main()

"""Figures kept alike by every script here, so that two runs can be compared."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = "BENCH_FIGURES"
"""The environment's name of the folder in which scripts keep their figures; without it they only print them."""


def keep(script: str, figures: Mapping[Any, Any]) -> None:
    """Write the figures of a script (its ``__file__``) as ``{name: number}``; names of nested ones are joined."""
    folder = os.environ.get(FOLDER)
    if folder:
        held = dict(_flat(figures))
        Path(folder, f"{Path(script).stem}.json").write_text(json.dumps(held, indent=1) + "\n")


def _flat(figures: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for name, value in figures.items():
        whole = f"{before}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{whole}: ")
        else:
            yield whole, float(f"{float(value):.4g}")

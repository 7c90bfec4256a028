"""Makes files and folders durable against power cuts."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Flush one file or folder to the disk. Raises `OSError` if the disk refuses; never retry it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, each entry durable. A folder that exists is left alone."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        sync(one.parent)

"""Python environments of a benchmark's own, beside this tree's, made by the uv that installs this tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


class CannotInstall(Exception):
    """Packages cannot be had."""


def python_of(folder: Path) -> Path:
    """The interpreter of the environment in a folder."""
    return folder / "venv" / "bin" / "python"


def make_environment(folder: Path, requirements: Path, *options: str) -> None:
    """Make the folder anew, with an environment of exactly these packages in it. Raises `CannotInstall`."""
    folder.parent.mkdir(exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    uv = _bootstrap().private_uv()
    if uv is None:
        raise CannotInstall("could not install uv; is the package index in reach?")
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "UV_HTTP_TIMEOUT": "180"}
    environment.pop("VIRTUAL_ENV", None)
    run([uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")], environment)
    pins = ["--quiet", "--no-deps", *options, "--python", str(python_of(folder)), "--requirement", str(requirements)]
    run([uv, "pip", "install", *pins], environment)


def run(arguments: Sequence[str], environment: dict[str, str]) -> None:
    """Run one step. Raises `CannotInstall` with what it said."""
    done = subprocess.run(arguments, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise CannotInstall(f"{arguments[0]} failed: {done.stderr[-2000:]}")


def _bootstrap() -> ModuleType:
    """The script that installs this tree, which has a uv of its own."""
    loader = SourceFileLoader("bootstrap", str(ROOT / "tools" / "bootstrap"))
    spec = spec_from_loader("bootstrap", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module

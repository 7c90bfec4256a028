"""Programs of object stores, built or installed once into a folder of their own: ``python -m`` this module for all.

They are pinned by version. Go checks what it downloads against its checksum database; npm takes no package that is
newer than the pinned one. A test asks for a program by its function here and gets its path, or `Unavailable`.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

VERSITYGW = ("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")
AZURITE = "3.37.0"
_AZURITE_BEFORE = "2026-11-24"
_INSTALL_SECONDS = 900


class Unavailable(RuntimeError):
    """A server cannot be had on this machine; the message says why, and what to install."""


def versitygw(*, install: bool = True) -> Path:
    """The program of versitygw, built by Go on first need (a minute). Raises `Unavailable`."""
    return _go_program(*VERSITYGW, install=install)


def azurite(*, install: bool = True) -> Path:
    """The script of Azurite's blob service, installed by npm on first need. Raises `Unavailable`."""
    script = Path("node_modules/azurite/dist/src/blob/main.js")
    folder = _folder() / f"azurite-{AZURITE}"
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Unavailable("azurite needs Node and npm: install nodejs and npm, and put them on PATH")
    if not (folder / script).exists():
        with made_once(folder, install=install) as making:
            command = [npm, "install", "--prefix", str(making), "--ignore-scripts", "--no-audit", "--no-fund"]
            _run([*command, "--omit=dev", f"--before={_AZURITE_BEFORE}", f"azurite@{AZURITE}"], {})
    return folder / script


PROGRAMS: Mapping[str, Callable[..., Path]] = {"versitygw": versitygw, "azurite": azurite}
"""Every program by its name."""


def main(arguments: list[str] | None = None) -> int:
    """Install every program, or those that are named; a line for each that cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m lakehouse.testing.store_programs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(PROGRAMS)}; all by default")
    names = parser.parse_args(arguments).names or list(PROGRAMS)
    if unknown := sorted(set(names) - set(PROGRAMS)):
        parser.error(f"no such program: {' '.join(unknown)}; there are {' '.join(PROGRAMS)}")
    for name in names:
        try:
            line = str(PROGRAMS[name]())
        except Unavailable as why:
            line = f"skipped: {why}"
        sys.stdout.write(f"{name}: {line}\n")
    return 0


def _go_program(module: str, version: str, *, install: bool) -> Path:
    name = module.rsplit("/", 1)[-1]
    folder = _folder() / f"{name}-{version}"
    if not (folder / name).exists():
        go = shutil.which("go")
        if go is None:
            raise Unavailable(f"{name} is built by Go: install Go, and put `go` on PATH")
        with made_once(folder, install=install) as making:
            own = {"GOBIN": str(making), "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": ""}
            _run([go, "install", f"{module}@{version}"], own)
    return folder / name


def kept_folder(name: str) -> Path:
    """Where something that was fetched once is kept: with the tools of a checkout, else with the user's caches."""
    root = Path(__file__).resolve().parents[2]
    kept = root / ".tools" if (root / "pyproject.toml").is_file() else Path.home() / ".cache" / "lakehouse"
    return kept / name


def _folder() -> Path:
    return kept_folder("object-stores")


@contextmanager
def made_once(folder: Path, *, install: bool) -> Iterator[Path]:
    """An empty folder which becomes this one when the block ends well; one process makes it, the others wait."""
    if not install:
        raise Unavailable(f"{folder.name} is not installed: run `python -m lakehouse.testing.store_programs`")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with tempfile.TemporaryDirectory(dir=folder.parent) as making:
            made = Path(making) / folder.name
            made.mkdir()
            yield made
            if not folder.exists():
                made.rename(folder)


def _run(command: list[str], environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command,
            check=False,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_INSTALL_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{command[-1]} cannot be had: {type(error).__name__}") from error
    if done.returncode:
        lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
        raise Unavailable(f"{command[-1]} cannot be had: {lines[-1].strip()[:300] if lines else done.returncode}")


if __name__ == "__main__":
    sys.exit(main())

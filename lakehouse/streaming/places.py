"""Where a checkpoint lies: a folder of this machine, or what Spark's Hadoop file systems reach."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from lakehouse.arguments import read_text
from lakehouse.durable import make_folder, sync
from lakehouse.errors import InvalidArgument, writing_to


class Place(Protocol):
    """A folder. Names are relative to it, with ``/``."""

    @property
    def address(self) -> str:
        """The folder as Spark takes it."""

    def read(self, name: str) -> str | None:
        """A file's text; None if there is none."""

    def write(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""

    def names(self, folder: str = "") -> list[str]:
        """Names of what lies in a folder; empty if it is not there."""

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with everything in it, if it is there."""


class LocalPlace:
    """A folder of this machine. Hadoop's checksums beside files are removed with what they are about."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def address(self) -> str:
        """The folder's path."""
        return str(self._root)

    def read(self, name: str) -> str | None:
        """A file's text; None if there is none."""
        try:
            return (self._root / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        """Write a file, durably, whole or not at all."""
        path = self._root / name
        with writing_to(path, then="start the stream again"):
            make_folder(path.parent)
            waiting = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            with waiting.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            waiting.replace(path)
            sync(path.parent)

    def names(self, folder: str = "") -> list[str]:
        """Names of what lies in a folder; empty if it is not there."""
        try:
            return sorted(one.name for one in (self._root / folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with everything in it, if it is there."""
        path = self._root / name
        with writing_to(path, then="start the stream again"):
            if path.is_dir():
                for one in self.names(name):
                    self.delete(f"{name}/{one}")
                path.rmdir()
                return
            path.unlink(missing_ok=True)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


class HadoopPlace:
    """A folder in one of Hadoop's file systems, by the JVM of a classic session."""

    def __init__(self, spark: Any, address: str) -> None:
        self._jvm = spark._jvm
        self.address = address
        root = self._path(address)
        self._files = root.getFileSystem(spark._jsc.hadoopConfiguration())

    def _path(self, text: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(text)

    def _at(self, name: str) -> Any:
        return self._path(f"{self.address.rstrip('/')}/{name}" if name else self.address)

    def read(self, name: str) -> str | None:
        """A file's text; None if there is none."""
        path = self._at(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file in one go."""
        stream = self._files.create(self._at(name), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def names(self, folder: str = "") -> list[str]:
        """Names of what lies in a folder; empty if it is not there."""
        path = self._at(folder)
        if not self._files.exists(path):
            return []
        return sorted(one.getPath().getName() for one in self._files.listStatus(path))

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with everything in it, if it is there."""
        self._files.delete(self._at(name), True)


def open_place(spark: Any, checkpoint: Any) -> Place:
    """The folder of a checkpoint. Raises `InvalidArgument` for one that only a JVM reaches, in a Connect session."""
    address = read_text(os.fspath(checkpoint) if isinstance(checkpoint, os.PathLike) else checkpoint, "checkpoint")
    if not address:
        raise InvalidArgument("name the folder of the stream's checkpoint", checkpoint=address)
    parts = urlsplit(address)
    if parts.scheme == "file":
        return LocalPlace(Path(unquote(parts.path)).absolute())
    if not hasattr(spark, "_jvm"):
        if parts.scheme:
            raise InvalidArgument(
                "over Spark Connect a checkpoint is a path of the server's machine; use one, or a classic session",
                checkpoint=address,
            )
        return LocalPlace(Path(address).absolute())
    home = spark._jvm.org.apache.hadoop.fs.Path(address).getFileSystem(spark._jsc.hadoopConfiguration())
    if home.getUri().getScheme() == "file":
        return LocalPlace(Path(address).absolute())
    return HadoopPlace(spark, address)

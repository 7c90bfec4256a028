"""A private PostgreSQL server from the system's packages, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

import psycopg
from psycopg import sql

from lakehouse.testing.processes import dies_with_parent, free_port, pause

REMEDY = "PostgreSQL is not installed: run apt-get install postgresql, or put its programs on PATH"
_START_SECONDS = 30.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "full_page_writes": "off",
    "logging_collector": "off",
}


class PostgresMissing(RuntimeError):
    """PostgreSQL's programs are not on this machine; the message says what to install."""


def find_programs() -> Path:
    """Folder with ``initdb`` and ``postgres``: the newest of the system's packages, else what PATH has."""
    packaged = sorted(
        (path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")),
        key=lambda path: float(path.parent.name),
    )
    if packaged:
        return packaged[-1]
    found = shutil.which("initdb")
    if found is None:
        raise PostgresMissing(REMEDY)
    return Path(found).resolve().parent


class PostgresServer:
    """A server on a loopback port that ends with the ``with`` block; ``fsync`` off suits all but power-loss tests.

    A superuser may not run PostgreSQL, so under root it runs as user ``postgres``, whom the packages create.
    """

    def __init__(self, *, fsync: bool = False) -> None:
        self.programs = find_programs()
        self.fsync = fsync
        self._run_as = "postgres" if os.getuid() == 0 else None
        self.home = Path(tempfile.mkdtemp(prefix="lakehouse-postgres-"))
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        if self._run_as is not None:
            owner = pwd.getpwnam(self._run_as)
            os.chown(self.home, owner.pw_uid, owner.pw_gid)

    def __enter__(self) -> PostgresServer:
        try:
            self._run(
                "initdb",
                "-D",
                str(self.data),
                "-U",
                "postgres",
                "--auth=trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            )
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def data(self) -> Path:
        """The server's data folder."""
        return self.home / "data"

    def start(self) -> None:
        """Start the server, again on its port if it had one, and wait until it answers."""
        self.port = self.port or free_port()
        settings = {**_SETTINGS, "port": str(self.port), "unix_socket_directories": str(self.home)}
        settings["fsync"] = "on" if self.fsync else "off"
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*dies_with_parent("INT"), str(self.programs / "postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                cwd=self.home,
                start_new_session=True,
                user=self._run_as,
                group=self._run_as,
            )
        give_up = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > give_up:
                    raise RuntimeError(f"PostgreSQL did not start: {(self.home / 'log').read_text()[-2000:]}") from None
                pause(self._process)

    def stop(self, *, at_once: bool = False) -> None:
        """Stop the server, cutting every connection; ``at_once`` as a crash does."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
        try:
            self._process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def dsn(self, database: str) -> str:
        """Connection text of a database, as libpq reads it."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    def url(self, database: str, *, port: int | None = None) -> str:
        """The catalog URL of a database, through another port (a proxy's) where given."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{port or self.port}/{database}"

    def create_database(self, template: str | None = None) -> str:
        """Create an empty database, or a copy of another without connections; return its name."""
        self._databases += 1
        name = f"lake_{self._databases}"
        self._execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template or "template1")
            )
        )
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database, cutting its connections."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            check=False,
            capture_output=True,
            cwd=self.home,
            user=self._run_as,
            group=self._run_as,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr.decode()[-2000:]}")

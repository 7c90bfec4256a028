"""A proxy in front of a PostgreSQL server that loses the answer to a COMMIT, as a network does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

BEGIN, READ_ONLY, COMMIT = b"BEGIN", b"READ ONLY", b"COMMIT\x00"


class CommitLosingProxy:
    """Forwards a loopback port to a server, except for answers to COMMIT that a test wants lost.

    The COMMIT reaches the server, which obeys; then the connection breaks before its answer returns. ``losses`` counts
    the answers lost, up to ``limit``. Transactions that only read are left alone unless ``reads`` is set.
    """

    def __init__(self, server_port: int) -> None:
        self.losses = 0
        self.limit = 0
        self.reads = False
        self._server_port = server_port
        self._guard = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CommitLosingProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            for one in self._sockets:
                _close(one)

    def lose(self, answers: int, *, reads: bool = False) -> None:
        """Lose the answers to the next COMMITs of transactions that write, or that only read."""
        with self._guard:
            self.losses, self.limit, self.reads = 0, answers, reads

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                _close(client)
                continue
            with self._guard:
                self._sockets += [client, server]
            cut = threading.Event()
            threading.Thread(target=self._to_server, args=(client, server, cut), daemon=True).start()
            threading.Thread(target=self._to_client, args=(server, client, cut), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        only_reads = False
        with suppress(OSError):
            while data := client.recv(65536):
                if BEGIN in data:
                    only_reads = READ_ONLY in data
                if COMMIT in data and self._is_lost(only_reads):
                    cut.set()
                server.sendall(data)
        _close(server)

    def _to_client(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if cut.is_set():  # the server has answered, so the commit stands
                    break
                client.sendall(data)
        _close(client)
        _close(server)

    def _is_lost(self, only_reads: bool) -> bool:
        with self._guard:
            if self.losses >= self.limit or only_reads is not self.reads:
                return False
            self.losses += 1
            return True


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()

"""Proxies on loopback that break connections as a network does; one loses answers to PostgreSQL's COMMIT."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

BEGIN, READ_ONLY, COMMIT = b"BEGIN", b"READ ONLY", b"COMMIT\x00"


class LoopbackProxy:
    """Accepts connections on a loopback port of its own, in front of a server's, until the ``with`` block ends.

    Each connection is served by `serve`, in a thread. The end of the block cuts every connection.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._guard = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._sockets: set[socket.socket] = {self._listener}
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        with self._guard:
            for one in self._sockets:
                close(one)

    def serve(self, client: socket.socket) -> None:
        """Serve one connection until it ends; an `OSError` ends it too."""
        raise NotImplementedError

    def connect(self) -> socket.socket:
        """A connection to the server, which the end of the block cuts."""
        server = socket.create_connection(("127.0.0.1", self._server_port))
        self._keep(server)
        return server

    def drop(self, one: socket.socket) -> None:
        """Close a connection, and keep it no more."""
        with self._guard:
            self._sockets.discard(one)
        close(one)

    def _keep(self, one: socket.socket) -> None:
        with self._guard:
            self._sockets.add(one)
        if self._closed.is_set():
            close(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._keep(client)
            threading.Thread(target=self._serve_until_it_ends, args=(client,), daemon=True).start()

    def _serve_until_it_ends(self, client: socket.socket) -> None:
        with suppress(OSError):
            self.serve(client)
        self.drop(client)


class CommitLosingProxy(LoopbackProxy):
    """Forwards a loopback port to a server, except for answers to COMMIT that a test wants lost.

    The COMMIT reaches the server, which obeys; then the connection breaks before its answer returns. ``losses`` counts
    the answers lost, up to ``limit``. Transactions that only read are left alone unless ``reads`` is set.
    """

    def __init__(self, server_port: int) -> None:
        self.losses = 0
        self.limit = 0
        self.reads = False
        super().__init__(server_port)

    def lose(self, answers: int, *, reads: bool = False) -> None:
        """Lose the answers to the next COMMITs of transactions that write, or that only read."""
        with self._guard:
            self.losses, self.limit, self.reads = 0, answers, reads

    def serve(self, client: socket.socket) -> None:
        """Forward both ways until either side ends."""
        server = self.connect()
        cut = threading.Event()
        threading.Thread(target=self._to_client, args=(server, client, cut), daemon=True).start()
        only_reads = False
        with suppress(OSError):
            while data := client.recv(65536):
                if BEGIN in data:
                    only_reads = READ_ONLY in data
                if COMMIT in data and self._is_lost(only_reads):
                    cut.set()
                server.sendall(data)
        self.drop(server)

    def _to_client(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if cut.is_set():  # the server has answered, so the commit stands
                    break
                client.sendall(data)
        close(client)
        close(server)

    def _is_lost(self, only_reads: bool) -> bool:
        with self._guard:
            if self.losses >= self.limit or only_reads is not self.reads:
                return False
            self.losses += 1
            return True


def close(one: socket.socket) -> None:
    """Close a connection both ways, and wake who waits for it."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()

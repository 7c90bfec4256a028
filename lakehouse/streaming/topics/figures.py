"""Topics as figures in Prometheus's text format, and a small server of them on this machine alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lakehouse.core.topic import Health, Topic
from lakehouse.errors import InvalidArgument

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LOOPBACK = "127.0.0.1"
_NAMES = (_LOOPBACK, "localhost")
_Figure = tuple[str, str, str, Callable[[Topic], float | int | None]]
_FIGURES: tuple[_Figure, ...] = (
    ("up", "gauge", "Whether the topic's query runs.", lambda one: int(one.state == "running")),
    (
        "stalled",
        "gauge",
        "Whether it is to run and makes no progress.",
        lambda one: int(one.health() is Health.STALLED),
    ),
    ("rows_total", "counter", "Rows read since its process began.", lambda one: one.progress.rows),
    ("batches_total", "counter", "Batches that have ended since its process began.", lambda one: one.progress.batches),
    ("restarts_total", "counter", "How often it was started again.", lambda one: one.progress.restarts),
    ("rows_per_second", "gauge", "Rows read in a second, lately.", lambda one: one.progress.rows_per_second),
    ("batch_seconds", "gauge", "How long its last batch took.", lambda one: one.progress.batch_seconds),
    ("batch_age_seconds", "gauge", "How long ago its last batch ended.", lambda one: _age(one, one.progress.batch_ago)),
    ("lag", "gauge", "What of its source was not read yet, in the source's unit.", lambda one: one.progress.lag),
    ("last_version", "gauge", "Version of its last commit.", lambda one: one.progress.version),
)


def _age(topic: Topic, ago: float | None) -> float | None:
    return None if ago is None else ago + topic.silent_seconds


def exposition(topics: Iterable[Topic], *, with_tables: bool = True) -> str:
    r"""Figures of topics as text: a line for each topic that has the figure, with the name of its table or without.

    >>> from datetime import UTC, datetime
    >>> from lakehouse.core.topic import Progress, TopicState
    >>> told = Progress('a "b"', "rate", rows=7)
    >>> text = exposition([Topic("ticks", TopicState.RUNNING, "me", datetime.now(UTC), 0.0, told)])
    >>> [line for line in text.splitlines() if line.startswith("lakehouse_topic_rows_total")]
    ['lakehouse_topic_rows_total{topic="ticks",table="a \\"b\\""} 7']
    """
    held = list(topics)
    lines: list[str] = []
    for name, kind, meaning, of in _FIGURES:
        found = [(one, value) for one in held if (value := of(one)) is not None]
        if found:
            lines += [f"# HELP lakehouse_topic_{name} {meaning}", f"# TYPE lakehouse_topic_{name} {kind}"]
            lines += [f"lakehouse_topic_{name}{_labels(one, with_tables)} {value}" for one, value in found]
    return "".join(f"{line}\n" for line in lines)


def _labels(topic: Topic, with_table: bool) -> str:
    table = f',table="{_escaped(topic.table)}"' if with_table else ""
    return f'{{topic="{_escaped(topic.name)}"{table}}}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@contextmanager
def serving(port: int, text: Callable[[], str]) -> Iterator[int]:
    """Serve ``/metrics`` on this machine's loopback address while the block lasts; the port, chosen for 0.

    Raises `InvalidArgument` for a port that is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics" or (self.headers.get("Host") or "").rpartition(":")[0] not in _NAMES:
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: it is asked every few seconds."""

    try:
        server = ThreadingHTTPServer((_LOOPBACK, port), Handler)
    except OSError as error:
        raise InvalidArgument("the port for metrics cannot be used", port=port, cause=error.strerror) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

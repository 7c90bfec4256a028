"""Clients of query nodes: each answer is of one version, whole, and never of an older one than the answer before."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pyarrow as pa

from lakehouse.arguments import read_seconds, read_wait
from lakehouse.core.serving.coverage import Coverage
from lakehouse.errors import (
    CatalogUnavailable,
    InternalError,
    InvalidAddress,
    LakehouseError,
    NodeUnavailable,
    OtherLake,
    SegmentUnreadable,
    StorageUnavailable,
    VersionNotServed,
)
from lakehouse.serving.wire import (
    ARROW,
    JSON,
    MOST_WAIT_SECONDS,
    Question,
    Said,
    read_error,
    read_point,
    read_rows,
    read_token,
)
from lakehouse.sql.values import read_values

_TRY_NEXT = (
    CatalogUnavailable,
    InternalError,
    NodeUnavailable,
    SegmentUnreadable,
    StorageUnavailable,
    VersionNotServed,
)
"""What another node may do better."""
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """The rows of a statement, and what they are of.

    ``rows``: an Arrow table. ``version``: of the lake. ``versions``: of each table in it. ``coverage``: by table, where
    the rows of those that were read came from; nothing is missing, unless ``best_effort`` was asked for. ``node``: the
    one that answered. ``seconds``: how long it took there. ``age_seconds``: how long ago the node last reached its
    catalog, 0 if it does. ``from_results``: whether the node had calculated the same before.
    """

    rows: pa.Table
    version: int
    versions: Mapping[str, int]
    coverage: Mapping[str, Coverage]
    node: str
    seconds: float
    age_seconds: float = 0.0
    from_results: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return all(one.is_complete for one in self.coverage.values())


@dataclass
class _Node:
    """A node's address, and connections to it that nobody uses now."""

    url: str
    timeout: float
    idle: queue.LifoQueue[http.client.HTTPConnection] = field(default_factory=queue.LifoQueue)

    def connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        with suppress(queue.Empty):
            return self.idle.get_nowait(), True
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=self.timeout), False


class ServingClient:
    """Asks the query nodes of a group: the one that answered last, and if it cannot, the next. Thread-safe.

    Versions never go back for one client, whichever node answers.
    """

    def __init__(self, urls: Sequence[str], token: str | None, *, wait_seconds: float, timeout_seconds: float) -> None:
        self._nodes = [_Node(url, timeout_seconds) for url in urls]
        self._token = token
        self._wait_seconds = wait_seconds
        self._guard = threading.Lock()
        self._first = 0
        self._seen = 0
        self._lake: str | None = None

    @property
    def urls(self) -> list[str]:
        """Addresses of the nodes."""
        return [one.url for one in self._nodes]

    @property
    def version(self) -> int:
        """The newest version of the lake that an answer was of; 0 before the first."""
        return self._seen

    def sql(
        self,
        text: str,
        *,
        args: Sequence[Any] | Mapping[str, Any] | None = None,
        versions: int | Mapping[str, int] | None = None,
        at_least: int | Mapping[str, int] | None = None,
        best_effort: bool = False,
    ) -> ServedAnswer:
        """Ask one query of Spark's SQL, over all tables at one version; the whole result, or an error.

        ``at_least``: a version of the lake, such as that of a commit, or of tables, that is waited for: read your
        write. ``versions``: those of an earlier answer, while they are served; a version of the lake, or of tables.
        ``best_effort``: without files that are missing or damaged; ``coverage`` says what is missing. ``args``: as of
        `lakehouse.Lake.sql`.

        Raises `InvalidInput` for what is refused, `TableNotFound`, `QueryLimitExceeded`, `VersionNotServed`,
        `VersionNotFound` for one that has expired, `Forbidden` for a wrong token, `OtherLake`, and `NodeUnavailable`
        where no node answers.

        Examples
        --------
        >>> from lakehouse.testing.serving_nodes import served
        >>> with served(lake) as node, connect_serving(node.url) as client:
        ...     answer = client.sql("SELECT count(*) AS n FROM flights")
        ...     answer.rows.to_pylist(), answer.versions, answer.is_complete
        ([{'n': 3}], {'flights': 2}, True)
        """
        question = Question(
            text,
            values=None if args is None else _wired(read_values(args)),
            versions=read_point(versions, "versions"),
            at_least=read_point(at_least, "at_least"),
            best_effort=best_effort,
        )
        return self._asked(question)

    def _asked(self, question: Question) -> ServedAnswer:
        until = time.monotonic() + self._wait_seconds
        while True:
            causes: dict[str, LakehouseError] = {}
            for place in self._order():
                node = self._nodes[place]
                left = min(MOST_WAIT_SECONDS, max(0.0, until - time.monotonic()))  # then it asks again
                patience = left if len(self._nodes) == 1 else min(left, max(left / 4, 0.5))
                try:
                    answer = self._ask(node, question, patience)
                except _TRY_NEXT as error:
                    causes[node.url] = error
                    continue
                with self._guard:
                    self._first = place
                return answer
            if time.monotonic() >= until or not any(_may_pass(one) for one in causes.values()):
                raise _failed(causes)
            threading.Event().wait(min(_PAUSE_SECONDS, max(0.0, until - time.monotonic())))

    def _order(self) -> list[int]:
        with self._guard:
            return [(self._first + one) % len(self._nodes) for one in range(len(self._nodes))]

    def _ask(self, node: _Node, question: Question, wait: float) -> ServedAnswer:
        with self._guard:
            seen, lake = self._seen, self._lake
        document = replace(
            question, wait_seconds=wait, lake=lake, seen=seen if question.versions is None else 0
        ).to_json()
        status, body = self._post(node, json.dumps(document).encode())
        if status != http.client.OK:
            raise _error_of(node.url, status, body)
        try:
            rows, said = read_rows(body)
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise NodeUnavailable(
                "the node's answer is cut short or none", node=node.url, cause=str(error)[:200]
            ) from (error)
        return self._accepted(node, rows, said, is_current=question.versions is None)

    def _accepted(self, node: _Node, rows: pa.Table, said: Said, *, is_current: bool) -> ServedAnswer:
        with self._guard:
            if self._lake not in (None, said.lake):
                raise OtherLake(
                    "the node serves another catalog than those that answered before; correct the list of addresses",
                    node=node.url,
                    lake=said.lake,
                    expected=self._lake,
                )
            self._lake = said.lake
            if is_current:
                self._seen = max(self._seen, said.version)
        return ServedAnswer(
            rows,
            said.version,
            said.versions,
            {one.table: one for one in said.coverage},
            said.node,
            said.seconds,
            said.age_seconds,
            said.from_results,
        )

    def _post(self, node: _Node, body: bytes) -> tuple[int, bytes]:
        headers = {"content-type": JSON, "accept": ARROW}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        while True:
            connection, is_used = node.connection()
            try:
                connection.request("POST", "/sql", body, headers)
                response = connection.getresponse()
                found = response.status, response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if is_used and not isinstance(error, TimeoutError):
                    continue  # the node closed a connection that nobody used
                cause = f"{type(error).__name__}: {error}"
                raise NodeUnavailable("the node does not answer", node=node.url, cause=cause[:200]) from error
            except BaseException:
                connection.close()
                raise
            if response.will_close:
                connection.close()
            else:
                node.idle.put(connection)
            return found

    def close(self) -> None:
        """Close the connections that nobody uses."""
        for node in self._nodes:
            with suppress(queue.Empty):
                while True:
                    node.idle.get_nowait().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<client of {', '.join(one.url for one in self._nodes)}>"


def connect_serving(
    urls: str | Sequence[str],
    token: str | None = None,
    *,
    wait_seconds: float = 10.0,
    timeout_seconds: float = 60.0,
) -> ServingClient:
    """A client of the query nodes at some addresses, such as ``http://127.0.0.1:8100``. Nothing is asked yet.

    ``token``: what the nodes were started with. ``wait_seconds``: how long a statement waits for a version that is not
    served yet, and for a node that answers. ``timeout_seconds``: how long one node may take to answer. Raises
    `InvalidAddress`, and `InvalidArgument` for a token that no header can hold.

    >>> connect_serving("http://127.0.0.1:8100")
    <client of http://127.0.0.1:8100>
    """
    listed = [urls] if isinstance(urls, str) else list(urls)
    if not listed:
        raise InvalidAddress("a client needs the address of a query node at least, as in http://127.0.0.1:8100")
    read = [_read_url(one) for one in listed]
    return ServingClient(
        read,
        None if token is None else read_token(token),
        wait_seconds=read_wait(wait_seconds),
        timeout_seconds=read_seconds(timeout_seconds, "timeout_seconds"),
    )


def _read_url(url: Any) -> str:
    if isinstance(url, str):
        with suppress(ValueError):
            parts = urlsplit(url)
            is_plain = not (parts.query or parts.fragment or parts.username or parts.path.strip("/"))
            if parts.scheme in ("http", "https") and parts.hostname and is_plain and parts.port != 0:
                return url.rstrip("/")
    raise InvalidAddress("a query node is at an address such as http://127.0.0.1:8100", url=repr(url)[:200])


def _wired(values: Any) -> Any:
    """Values of `read_values` as JSON: those of names as an object, others as a list."""
    return (
        {name: list(one) for name, one in values.items()} if isinstance(values, Mapping) else [list(v) for v in values]
    )


def _error_of(url: str, status: int, body: bytes) -> LakehouseError:
    try:
        held = json.loads(body)
        if isinstance(held, dict) and "code" in held:
            return read_error(held)
    except ValueError:
        pass
    return NodeUnavailable("what answers there is no query node; correct the address", node=url, status=status)


def _may_pass(error: LakehouseError) -> bool:
    """Whether the same node may do better in a moment."""
    if isinstance(error, VersionNotServed):
        return "at_least" in error.facts
    return isinstance(error, NodeUnavailable | CatalogUnavailable) and "status" not in error.facts


def _failed(causes: Mapping[str, LakehouseError]) -> LakehouseError:
    """The error of a statement that no node has answered: what all of them say, if that is one thing."""
    first = next(iter(causes.values()))
    if all(type(one) is type(first) for one in causes.values()) and not isinstance(first, NodeUnavailable):
        return first
    said = [one for one in causes.values() if not isinstance(one, NodeUnavailable)]
    if said:
        return said[0]
    return NodeUnavailable(
        "no query node answers; start one by `lakehouse serve`, or correct the addresses",
        causes="; ".join(str(one) for one in causes.values()),
    )

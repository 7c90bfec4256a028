"""Commands of query nodes: serve, and serving."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import warnings
from importlib import import_module
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse.arguments import read_called
from lakehouse.cli.options import CatalogOption, JsonOption, WarehouseOption, open_existing, open_lake
from lakehouse.cli.output import print_json, print_line, print_table, show_bytes
from lakehouse.core.policy import read_size
from lakehouse.errors import InvalidArgument, InvalidProperty, PartialRead

if TYPE_CHECKING:
    from lakehouse.core.serving.group import Group, Node

TOKEN = "LAKEHOUSE_SERVING_TOKEN"  # noqa: S105 - the name of a variable
_MOST_SLOW = 5
_MOST_SHOWN = 100
"""Letters of a slow statement: a line of a terminal, not a page."""
_SWITCH_SECONDS = 0.001
"""How long a thread may keep others from Python: queries that take milliseconds wait for each other."""
_LOCAL = ("127.0.0.1", "localhost", "::1")


def serve(
    group: Annotated[str, typer.Option(help="the nodes of one group answer at one version", show_default=False)],
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="0 chooses a free one")] = 8100,
    host: Annotated[
        str, typer.Option(help="where to listen; others can reach 0.0.0.0, which needs a token")
    ] = "127.0.0.1",
    url: Annotated[
        str | None, typer.Option(help="what clients call it; default: by host and port", show_default=False)
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="the node's name in its group; default: host, port and chance", show_default=False),
    ] = None,
    cache_dir: Annotated[
        str | None,
        typer.Option(help="where copies lie; default: files of a folder are read there", show_default=False),
    ] = None,
    cache_bytes: Annotated[
        str | None, typer.Option(help="what copies may take, such as 10GiB", show_default=False)
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="how many nodes of the group hold a segment; 0: all", show_default=False),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar=TOKEN, help="what clients must say to be answered", show_default=False)
    ] = None,
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="the most rows of an answer")] = 1_000_000,
    size: Annotated[str, typer.Option("--bytes", help="the most bytes of an answer")] = "256MB",
    seconds: Annotated[float, typer.Option(help="how long a query may run")] = 30.0,
    memory: Annotated[str, typer.Option(help="memory of a query")] = "1GB",
    at_once: Annotated[int, typer.Option(min=1, max=64, metavar="N", help="how many queries run at a time")] = 4,
    lease_seconds: Annotated[
        float, typer.Option(min=0.5, metavar="SECONDS", help="how long a handoff waits for a node that does not answer")
    ] = 3.0,
    result_bytes: Annotated[str, typer.Option(help="what known answers may take in memory")] = "64MB",
    send_bytes: Annotated[
        str, typer.Option(help="what answers that clients have yet to take may have; queries wait meanwhile")
    ] = "1GB",
    send_seconds: Annotated[float, typer.Option(help="in which a client has to take a mebibyte of its answer")] = 30.0,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Run a query node: it answers statements by HTTP, at the version of its group, until SIGTERM or Ctrl-C."""
    if host not in _LOCAL and token is None:
        raise InvalidArgument(f"a node that others can reach needs a token; give --token, or {TOKEN}", host=host)
    if token is not None:
        import_module("lakehouse.serving.wire").read_token(token)
    read_called(group, "group")
    if name is not None:
        read_called(name, "node")
    warnings.simplefilter("ignore", PartialRead)  # an answer says what is missing
    sys.setswitchinterval(_SWITCH_SECONDS)
    nodes, answering = import_module("lakehouse.serving.node"), import_module("lakehouse.serving.answering")
    server = import_module("lakehouse.serving.server")
    settings = nodes.NodeSettings(
        cache_dir=cache_dir,
        cache_bytes=None if cache_bytes is None else _size(cache_bytes, "cache-bytes"),
        bounds=answering.QueryBounds(rows, _size(size, "bytes"), seconds, _size(memory, "memory")),
        at_once=at_once,
        lease_seconds=lease_seconds,
        result_bytes=_size(result_bytes, "result-bytes"),
        send_bytes=_size(send_bytes, "send-bytes"),
        send_seconds=send_seconds,
        replicas=replicas,
    )
    with open_lake(catalog, warehouse) as lake, server.listening_socket(host, port) as listener:
        at = listener.getsockname()[1]
        shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()  # noqa: S104
        address = url or f"http://{f'[{shown}]' if ':' in shown else shown}:{at}"
        own = name or f"{socket.gethostname()}-{at}-{os.getpid()}-{secrets.token_hex(2)}"
        node = nodes.ServingNode(lake, group, own, address, settings)
        try:
            print_line(f"node {own} of group {group} answers at {address}, version {node.live}; Ctrl-C stops it")
            sys.stdout.flush()
            server.run_server(node, listener, token)
        finally:
            node.close()


def _size(text: str, option: str) -> int:
    try:
        return read_size(text)
    except InvalidProperty as error:
        raise InvalidArgument(
            f"--{option} is a size of at least a byte, as in 64MiB, 1GB or 4096", found=text
        ) from error


def serving(
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List groups of query nodes: versions, the handoff that goes on and what it waits for, hit rates, slow queries."""
    with open_existing(catalog, warehouse) as lake:
        found = lake.serving()
    if as_json:
        return print_json([_document(one) for one in found])
    if not found:
        return print_line("no query nodes; start one: lakehouse serve --group NAME")
    for group in found:
        print_line(_headline(group))
        print_table(
            ["node", "url", "state", "live", "loaded", "held", "queries", "hit rate", "known"],
            [_row(one) for one in group.nodes],
        )
        for node in group.nodes:
            for version, cause in node.report.failed.items():
                print_line(f"{node.id} cannot load version {version}: {cause}")
        if slow := group.slowest[:_MOST_SLOW]:
            print_table(
                ["seconds", "version", "slowest queries"],
                [[f"{one.seconds:.3f}", one.version, shorten(one.statement, _MOST_SHOWN)] for one in slow],
                are_values=True,
            )
    return None


def _headline(group: Group) -> str:
    text = f"group {group.name}: live version {group.live}, {group.flips} flips, the last at {group.flipped_at:%F %T}"
    if group.target is not None:
        waits = ", ".join(group.waits_for) or "nobody"
        text += f"; version {group.target} is being loaded, which waits for {waits}"
    return text


def _row(node: Node) -> list[Any]:
    report, rate = node.report, node.hit_rate
    loaded = ", ".join(map(str, report.loaded)) or "nothing"
    if report.loading_of:
        loaded += f" ({report.loading_bytes / report.loading_of:.0%} of the next)"
    return [
        node.id,
        node.url,
        node.word,
        str(node.live),
        loaded,
        show_bytes(report.held_bytes),
        report.queries,
        "" if rate is None else f"{rate:.0%}",
        report.result_hits,
    ]


def _document(group: Group) -> dict[str, Any]:
    return {
        "group": group.name,
        "lake": group.lake,
        "live": group.live,
        "target": group.target,
        "waits_for": list(group.waits_for),
        "flips": group.flips,
        "flipped_at": group.flipped_at,
        "replicas": group.replicas,
        "nodes": [{**_flat(one), "state": one.word, "hit_rate": one.hit_rate} for one in group.nodes],
    }


def _flat(node: Node) -> dict[str, Any]:
    report = {name: getattr(node.report, name) for name in node.report.__slots__}
    return {"node": node.id, "url": node.url, "live": node.live, "lease_seconds": node.lease_seconds, **report}

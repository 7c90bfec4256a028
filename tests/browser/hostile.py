"""Values that try to be more than text, a lake full of them, and where a page renders text as markdown."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

import lakehouse

TOKEN = "h0st1le"
"""Stands in every such value: where it is found, data got to."""
SCRIPT = f"<img src=x onerror=\"window.{TOKEN}=1;alert('{TOKEN}')\"><script>window.{TOKEN}=1</script>"
MARKDOWN = f"# {TOKEN} **b** [a](javascript:window.{TOKEN}=1) :red[x] ![i](http://192.0.2.1/{TOKEN}.png) $$x$$ |a|b|"
TURNED = f"\u202egnp.{TOKEN}\u2066\u200b"
NULL = f"nul\0{TOKEN}\x1b[31m"
LONG = (TOKEN + " ") * 125_000
SAFE_TO_STORE = (SCRIPT, MARKDOWN, TURNED)
"""Those that a catalog takes in messages and properties."""
VALUES = (*SAFE_TO_STORE, NULL, LONG, f'=HYPERLINK("http://192.0.2.1/{TOKEN}")', f"'; DROP TABLE hostile; -- {TOKEN}")
COLUMN = f"b{TOKEN} <b>b</b> **col** <img src=x onerror=alert(1)>"


def fill(lake: lakehouse.Lake) -> lakehouse.Table:
    """A table of hostile values: rows, a column's name, key scopes, messages and properties."""
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("what", pa.string()), (COLUMN, pa.string())])
    table = lake.create_table("hostile", schema, time="at", cluster_by=["what"], properties={"owner": SCRIPT})
    start = datetime(2013, 1, 1, tzinfo=UTC)
    for number, value in enumerate(VALUES):
        times = [start + timedelta(days=number, hours=hour) for hour in range(3)]
        rows = pa.table([times, [value] * 3, [value[:50]] * 3], schema=schema)
        text = SAFE_TO_STORE[number % 3]
        table.append(rows, message=f"{text} {'long ' * 200_000 if number == 3 else ''}"[:900_000], properties={
            "by": text, "dagster_run_id": f"javascript:window.{TOKEN}=1", SCRIPT: MARKDOWN,
        })  # fmt: skip
    for text in (SCRIPT, MARKDOWN, TURNED):
        table.replace(None, "2013-01-02", keys={"what": text}, message=text)
    lake.tag("hostile-tag", table.version)
    _fail_a_task(lake)
    return table


def _fail_a_task(lake: lakehouse.Lake) -> None:
    """Leave a task that waits for another try, and says why in hostile words."""
    queue = lake.catalog.tasks()
    queue.ask_for_plans()
    claim = queue.claim()
    assert claim is not None
    queue.put_back(claim, f"{SCRIPT}{MARKDOWN}{TURNED}")


def rendered(app: Any) -> Iterator[tuple[str, str]]:
    """What a page renders as markdown or HTML, or as a label: each part's kind and its content."""
    for node in app._tree:
        proto = getattr(node, "proto", None)
        if proto is None:
            continue
        kind = type(proto).__name__
        for name in ("label", "help", "body", "title", "placeholder"):
            held = getattr(proto, name, "")
            if isinstance(held, str) and kind not in TEXT:
                yield f"{kind}.{name}", held
        for part in ("expandable", "popover", "tab", "dialog", "form"):
            if kind == "Block" and proto.HasField(part):
                yield f"Block.{part}", str(getattr(proto, part))


TEXT = ("Text", "Code")
"""Kinds whose body is text and nothing else."""

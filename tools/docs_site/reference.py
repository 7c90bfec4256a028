"""Pages of the Python interface: what to show of it on which page. Docstrings say the rest when the site is built."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lakehouse

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Page:
    """A page of names that belong together."""

    title: str
    says: str
    names: tuple[str, ...]


PAGES = {
    "lake": Page("Lake", "A lake is opened by `connect`; everything starts there.", ("connect", "Lake")),
    "table": Page("Table", "What `lake.table(name)` and `lake.create_table(...)` return.", ("Table",)),
    "reading": Page("Reading", "Rows at a version, and the plan of how they are read.", ("Scan", "Plan")),
    "writing": Page("Writing", "What writes return, and operations in three steps.", ("Commit", "Operation")),
    "values": Page(
        "Values and arguments",
        "What tables are made of, and the names of what arguments take.",
        (
            "Interval",
            "IntervalLike",
            "AsOf",
            "Rows",
            "Where",
            "SchemaLike",
            "TypeLike",
            "Args",
            "Age",
            "Grain",
            "Segment",
            "Tombstone",
        ),
    ),
    "errors": Page("Errors as classes", "[Errors](../errors.md) lists their codes, and what to do.", ()),
    "spark": Page("Spark", "Any Spark code may read and append.", ("register",)),
    "serving": Page(
        "Clients of query nodes",
        "[Serving](../serving.md) says what a query node is.",
        ("connect_serving", "ServingClient", "ServedAnswer"),
    ),
    "actions": Page("Actions and roles", "What the console may do, for whom.", ("Actions", "Action", "Role")),
    "recovery": Page(
        "Recovery",
        "[Recovery](../recovery.md) says what comes back.",
        ("recover", "Recovered", "Exported"),
    ),
}
_TESTING = {
    "lakehouse.testing.model": ["ModelLake"],
    "lakehouse.testing.strategies": [],
    "lakehouse.testing.faults": [],
    "lakehouse.testing.postgres": ["PostgresServer", "PostgresMissing"],
    "lakehouse.testing.object_stores": ["Store", "moto_server", "versitygw_server", "azurite_server", "google_server"],
}
"""What tests of other packages may use; of a module without names, all that it has."""


def reference_pages() -> dict[str, str]:
    """The pages by their paths in the site; every public name is on one of them."""
    pages = {f"reference/{name}.md": _page(page, name) for name, page in PAGES.items()}
    core = _exported("lakehouse/core/__init__.py")
    pages["reference/core.md"] = _listed("The pure core", "lakehouse.core", core, "Plain values in, plain values out.")
    pages["reference/streaming.md"] = _listed(
        "Streams", "lakehouse.streaming", ["read", "write", "apply_changes"], "[Streams](../streaming.md) says how."
    )
    pages["reference/dagster.md"] = _listed(
        "Dagster", "lakehouse.dagster", _exported("lakehouse/dagster/__init__.py"), "What any code location needs."
    )
    testing = "\n".join(_directive(module, module, names) for module, names in _TESTING.items())
    pages["reference/testing.md"] = (
        "# Testing\n\nFor tests of code that uses a lake: a model to compare with, strategies for Hypothesis, faults, "
        f"and servers. Other modules of `lakehouse.testing` are for this library's own tests.\n\n{testing}"
    )
    pages["reference/index.md"] = _index()
    return pages


def public_names() -> list[str]:
    """What `lakehouse` has for its users."""
    names: list[str] = lakehouse.__all__
    return names


def _page(page: Page, name: str) -> str:
    names = page.names or tuple(_errors())
    shown = "\n".join(_directive(f"lakehouse.{one}", f"lakehouse.{one}") for one in names)
    return f"# {page.title}\n\n{page.says}\n\n{shown}"


def _listed(title: str, module: str, names: list[str], says: str) -> str:
    shown = "\n".join(_directive(f"{module}.{one}", f"{module}.{one}") for one in names)
    return f"# {title}\n\n{says}\n\n{shown}"


def _directive(identifier: str, heading: str, members: list[str] | None = None) -> str:
    lines = [f"::: {identifier}", "    options:", f"      heading: {heading}", f"      toc_label: {heading}"]
    if members:
        lines += [f"      members: {members}"]
    return "\n".join(lines) + "\n"


def _index() -> str:
    rows = [f"| `lakehouse.{name}` | [{page.title}]({place}.md) |" for name, place, page in sorted(_places())]
    more = "\n".join(
        f"- [{title}]({place}.md): `{module}`"
        for title, place, module in (
            ("Streams", "streaming", "lakehouse.streaming"),
            ("Dagster", "dagster", "lakehouse.dagster"),
            ("The pure core", "core", "lakehouse.core"),
            ("Testing", "testing", "lakehouse.testing"),
        )
    )
    return (
        "# Python\n\nWhat `import lakehouse` gives, made of its docstrings. Examples start with a lake and a table of "
        "three flights, as `lake` and `flights`; every one of them is run by a test. Names that begin with an "
        "underscore, and modules that are not listed here, may change.\n\n"
        f"| name | page |\n|---|---|\n{chr(10).join(rows)}\n\n{more}\n"
    )


def _places() -> Iterator[tuple[str, str, Page]]:
    for place, page in PAGES.items():
        for name in page.names or _errors():
            yield name, place, page


def _errors() -> list[str]:
    """The public names that are errors, which is seen without loading what the others need."""
    tree = ast.parse((ROOT / "lakehouse/errors.py").read_text(encoding="utf-8"))
    classes = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
    return [name for name in public_names() if name in classes]


def _exported(path: str) -> list[str]:
    """What a module lists in `__all__`, without importing it."""
    for statement in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            listed: list[str] = ast.literal_eval(statement.value)
            return listed
    raise ValueError(f"{path} has no __all__")

"""Packages whose names are loaded when they are first used: a command then loads only what it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any


def names_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: ``homes`` tells in which of its modules each of its names lies.

    No name may be that of a module of the package: whoever imports the module would replace it. What a name needs and
    is not installed raises `ExtraMissing`.

    >>> find = names_of("lakehouse.core", {"tasks_of": "task"})
    >>> find("nothing")
    Traceback (most recent call last):
    AttributeError: module 'lakehouse.core' has no attribute 'nothing'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from lakehouse.extras import load  # noqa: PLC0415 - importing a package alone loads the standard library alone

        value = getattr(load(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find

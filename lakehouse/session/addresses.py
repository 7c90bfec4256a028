"""Addresses of catalog and warehouse."""

from __future__ import annotations

import os

DEFAULT_FOLDER = ".lakehouse"


def addresses(
    catalog: str | None = None, warehouse: str | os.PathLike[str] | None = None
) -> tuple[str, str | os.PathLike[str]]:
    """Addresses of catalog and warehouse: as given, else from the environment, else in ``./.lakehouse``."""
    return (
        catalog or os.environ.get("LAKEHOUSE_CATALOG") or f"sqlite:///{DEFAULT_FOLDER}/catalog.db",
        warehouse or os.environ.get("LAKEHOUSE_WAREHOUSE") or f"{DEFAULT_FOLDER}/warehouse",
    )

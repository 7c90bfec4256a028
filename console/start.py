"""Streamlit's command line, with the pages' imports loaded first so that the first visitor need not wait."""

import sys
from importlib import import_module

SLOW_TO_LOAD = ("duckdb", "lakehouse", "lakehouse.lake", "lakehouse.service", "lakehouse.sql", "picture", "strip")


def main() -> None:
    """Run ``streamlit`` with this process's arguments."""
    for name in SLOW_TO_LOAD:
        import_module(name)
    sys.argv[0] = "streamlit"
    import_module("streamlit.web.cli").main()


if __name__ == "__main__":
    main()

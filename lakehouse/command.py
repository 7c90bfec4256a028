"""Entry point of the command ``lakehouse``: handles interrupts even while the rest is still loading."""

from importlib import import_module

from lakehouse.interrupts import listening


def main() -> None:
    """Load the command line and run it."""
    with listening(ends=True):
        import_module("lakehouse.cli").main()

"""Where the command ``lakehouse`` begins: an interrupt is met in order while the rest is still being loaded."""

from importlib import import_module

from lakehouse.interrupts import listening


def main() -> None:
    """Load the command line and run it."""
    with listening(ends=True):
        import_module("lakehouse.cli").main()

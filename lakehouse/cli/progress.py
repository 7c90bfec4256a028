"""Progress on a terminal: what takes over a second has a line on standard error, with a bar if its total is known."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from lakehouse import progress

DELAY_SECONDS = 1.0
"""What is done sooner shows nothing."""
_BAR = 20
_REFRESH_PER_SECOND = 4


@contextmanager
def shown() -> Iterator[None]:
    """Show the progress of what runs in the block, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    lines = Lines(DELAY_SECONDS)
    with progress.listening(lines):
        try:
            yield
        finally:
            lines.close()


def hush(is_asked: bool) -> bool:
    """Show no progress: the callback of the options ``--json`` and ``--quiet``."""
    if is_asked:
        progress.ignore()
    return is_asked


class Lines:
    """A line of the terminal for each step that has begun and not ended, from a delay on; none is left behind."""

    def __init__(self, delay_seconds: float) -> None:
        self._delay_seconds = delay_seconds
        self._guard = threading.Lock()
        self._steps: list[progress.Step] = []
        self._timer: threading.Timer | None = None
        self._live: Any = None

    def step_began(self, step: progress.Step) -> None:
        """Show it soon."""
        with self._guard:
            self._steps.append(step)
            if self._timer is None:
                self._timer = threading.Timer(self._delay_seconds, self._show)
                self._timer.daemon = True
                self._timer.start()

    def step_ended(self, step: progress.Step) -> None:
        """Show it no longer."""
        with self._guard:
            self._steps.remove(step)
            if not self._steps:
                self._stop()

    def close(self) -> None:
        """Leave the terminal as it was."""
        with self._guard:
            self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self) -> None:
        with self._guard:
            if not self._steps or self._live is not None:
                return
            # Rich is loaded in parts: what draws over and over is only needed here.
            self._live = import_module("rich.live").Live(
                get_renderable=self.drawn,
                console=import_module("lakehouse.cli.output").console(stderr=True),
                transient=True,
                refresh_per_second=_REFRESH_PER_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)
            self._live.console.show_cursor(True)  # a second Ctrl-C ends the process without any clean-up

    def drawn(self) -> Any:
        """The lines as they are now: a table that fits the terminal. Called by a thread that draws."""
        grid = import_module("rich.table").Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True, overflow="ellipsis")
        for _ in range(3):
            grid.add_column(no_wrap=True)
        bar = import_module("rich.progress_bar").ProgressBar
        for step in list(self._steps):
            step.look()
            shown_bar = "" if not step.total else bar(step.total, min(step.done, step.total), width=_BAR)
            grid.add_row(step.what, shown_bar, step.counts.replace(" of ", "/"), step.rate)
        return grid

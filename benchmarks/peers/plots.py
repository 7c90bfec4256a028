"""Two small plots of stored results: how many times better ours is, on a logarithmic axis."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

from benchmarks.peers.report import FIGURES, UPSERTS, advantage, medians, ours_of, read, systems_in

COLORS = ("#4269d0", "#efb118", "#ff725c", "#3ca951")
MARKS = ("o", "s", "^", "D")


def draw(results: dict[str, Any], path: Path, *, by_spark: bool) -> None:
    """One plot: a line a figure, a mark a peer; right of 1 ours is ahead."""
    found = medians(results["records"])
    peers = [one for one in systems_in(results["records"], by_spark=by_spark) if not one.is_floor]
    peers = [one for one in peers if not one.name.startswith("lakehouse")]
    compared = {
        figure.label: [
            advantage(
                figure,
                found.get((ours_of(one), figure.name)),
                found.get((one.name, UPSERTS.get(figure.name, figure.name))),
            )
            for one in peers
        ]
        for figure in FIGURES
    }
    compared = {label: values for label, values in compared.items() if any(values)}
    if not compared:
        return
    figure, axes = pyplot.subplots(figsize=(7.5, 0.8 + 0.24 * len(compared)), layout="constrained")
    for place, peer in enumerate(peers):
        points = [(values[place], line) for line, values in enumerate(compared.values()) if values[place]]
        axes.plot(
            [x for x, _ in points], [y for _, y in points], MARKS[place], color=COLORS[place], label=peer.label, ms=5
        )
    axes.set_xscale("log")
    axes.axvline(1, color="#888888", lw=1)
    axes.set_yticks(range(len(compared)), list(compared), fontsize=7)
    axes.invert_yaxis()
    axes.grid(visible=True, axis="x", color="#dddddd", lw=0.5)
    axes.set_xlabel("times better than the peer" + (", by Spark" if by_spark else ", in process"), fontsize=8)
    axes.legend(fontsize=7, loc="best")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Draw both beside the results."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "peers"
    mpl.rcParams["svg.fonttype"] = "none"  # letters stay letters
    stored = Path(sys.argv[1])
    results = read(stored)
    for name, by_spark in (("in_process", False), ("by_spark", True)):
        draw(results, stored.with_name(f"{name}.svg"), by_spark=by_spark)


if __name__ == "__main__":
    main()

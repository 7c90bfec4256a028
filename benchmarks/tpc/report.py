"""Lines, sums and lists of what a run found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from benchmarks.tpc.running import SIDES, Outcome

WORST = 10
_MIB = 1 << 20


def line(outcome: Outcome, *, with_memory: bool = False) -> str:
    """One query.

    >>> line(Outcome("duckdb", "tpch", 6, 1, {"ours": 0.02, "plain": 0.01}))
    'duckdb tpch   6  ours   0.0200 s  plain   0.0100 s    2.00  rows 1'
    """
    parts = [f"{outcome.engine} {outcome.suite:5} {outcome.number:2}"]
    for side in SIDES:
        parts.append(f"{side} {outcome.seconds[side]:8.4f} s" if side in outcome.seconds else f"{side}        -  ")
    parts.append("     -" if outcome.ratio is None else f"{outcome.ratio:6.2f}")
    if outcome.cpu_ratio is not None:
        parts.append(f"processors {outcome.cpu_ratio:.2f}")
    parts.append(f"rows {'-' if outcome.rows is None else outcome.rows}")
    if with_memory:
        parts += [f"{side} {bytes_ / _MIB:.0f} MiB" for side, bytes_ in outcome.memory.items()]
    if outcome.note:
        parts.append(outcome.note)
    if outcome.wrong:
        parts.append(f"WRONG {outcome.wrong}")
    parts += [f"{side.upper()} FAILED {message}" for side, message in outcome.errors.items()]
    return "  ".join(parts)


def summary(outcomes: Sequence[Outcome], *, with_memory: bool = False) -> Iterator[str]:
    """Sums, the worst, the refused and the wrong, of each engine and suite."""
    for engine, suite in dict.fromkeys((one.engine, one.suite) for one in outcomes):
        chosen = [one for one in outcomes if (one.engine, one.suite) == (engine, suite)]
        yield f"-- {suite} by {engine}: {len(chosen)} queries"
        yield from _figures(chosen, with_memory=with_memory)
        for title, listed in (
            ("failed by ours alone", [one for one in chosen if set(one.errors) == {"ours"}]),
            ("failed by plain", [one for one in chosen if "plain" in one.errors]),
            ("wrong", [one for one in chosen if one.wrong]),
        ):
            numbers = ", ".join(str(one.number) for one in listed)
            yield f"{title}: {len(listed)}{f' ({numbers})' if listed else ''}"
            for one in listed:
                said = one.wrong or "; ".join(f"{side}: {message}" for side, message in one.errors.items())
                yield f"  {one.number}: {said}"


def _figures(chosen: Sequence[Outcome], *, with_memory: bool) -> Iterator[str]:
    both = [(one, one.ratio) for one in chosen if one.ratio is not None and not one.wrong]
    if not both:
        return
    ours, plain = (sum(one.seconds[side] for one, _ in both) for side in SIDES)
    middle = math.exp(sum(math.log(ratio) for _, ratio in both) / len(both))
    yield f"sum of {len(both)}: ours {ours:.2f} s, plain {plain:.2f} s, {ours / plain:.2f}; geometric mean {middle:.2f}"
    if all(len(one.cpu_seconds) == len(SIDES) for one, _ in both):
        used = {side: sum(one.cpu_seconds[side] for one, _ in both) for side in SIDES}
        share = used["ours"] / max(used["plain"], 0.01)
        yield f"of processors: ours {used['ours']:.2f} s, plain {used['plain']:.2f} s, {share:.2f}"
    worst = sorted(both, key=lambda one: -one[1])[:WORST]
    yield "worst: " + ", ".join(f"{one.number} {ratio:.2f}" for one, ratio in worst)
    if with_memory:
        held = [one for one, _ in both if len(one.memory) == 2]
        peaks = [max(one.memory[side] for one in held) / _MIB for side in SIDES]
        sums = [sum(one.memory[side] for one in held) for side in SIDES]
        yield f"peak MiB: ours {peaks[0]:.0f}, plain {peaks[1]:.0f}; of all queries' peaks {sums[0] / sums[1]:.2f}"
        most = sorted(held, key=lambda one: one.memory["plain"] - one.memory["ours"])[:WORST]
        listed = (f"{one.number} {one.memory['ours'] / _MIB:.0f} and {one.memory['plain'] / _MIB:.0f}" for one in most)
        yield f"most MiB beyond plain: {', '.join(listed)}"

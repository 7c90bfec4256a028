"""The pictures of docs/concepts.md, of one small table: `python -m tools.docs_site.pictures` draws them.

What is visible in them is not drawn by hand but asked of `lakehouse.core`, so a picture cannot show another rule than
the one that is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from lakehouse.core import Interval, Segment, Tombstone, timeline
from lakehouse.core.bars import bars
from lakehouse.core.visibility import is_visible, matches
from tools.docs_site.canvas import BEAM, FRAME, GRID, HIDDEN, INK, MUTED, PAPER, SEEN, TOMBSTONE, Canvas

FOLDER = Path(__file__).resolve().parents[2] / "docs/pictures"
WINDOW = Interval("2013-01-05", "2013-01-09")
SEGMENTS = [
    Segment(id="A", start="2013-01-05", end="2013-01-07", ordinal=1),
    Segment(id="B", start="2013-01-07", end="2013-01-09", ordinal=2),
    Segment(id="C", start="2013-01-06T06:00", end="2013-01-06T20:00", ordinal=3),
    Segment(id="D", start="2013-01-06T12:00", end="2013-01-07T12:00", ordinal=5),
    Segment(id="E", start="2013-01-08T06:00", end="2013-01-08T14:00", ordinal=6),
]
TOMBSTONES = [
    Tombstone(id="t1", start="2013-01-06T12:00", end="2013-01-07", ordinal=5),
    Tombstone(id="t2", start="2013-01-07", end="2013-01-07T12:00", ordinal=5),
]
WRITES = {1: "append A", 2: "append B", 3: "append C, late rows", 5: "replace by D", 6: "append E"}
_LEFT, _ROW = 170, 40


def draw_all() -> dict[str, str]:
    """The pictures by their file names."""
    return {
        "timeline.svg": _timeline(),
        "laser.svg": _laser(),
        "tombstones.svg": _tombstones(),
        "key-frames.svg": _key_frames(),
    }


def _timeline() -> str:
    canvas = Canvas(
        840,
        350,
        "A table as a timeline",
        "Time runs across in four daily chunks, writes stack upwards by their ordinals. A replace from 6 January noon "
        "to 7 January noon hides what lies under it; the slices at the bottom are what can be seen.",
    )
    top = 44
    bottom = top + _ROW * len(WRITES)
    for day in range(5):
        x = _x(datetime(2013, 1, 5 + day, tzinfo=UTC), 640)
        canvas.line([(x, top - 12), (x, bottom + 52)], GRID, dashed=True)
        if day < 4:
            canvas.text(x + 80, top - 18, f"chunk of {5 + day} January", colour=MUTED, size=13, at="middle")
    _stack(canvas, top, SEGMENTS, TOMBSTONES, width=640)
    canvas.text(16, bottom + 38, "slices", bold=True)
    for one in timeline(SEGMENTS, TOMBSTONES, WINDOW):
        left, right = _x(one.start, 640), _x(one.end, 640)
        canvas.box(left + 1, bottom + 18, right - left - 2, 30, PAPER, line=SEEN)
        canvas.text(
            (left + right) / 2, bottom + 38, " ".join(str(part.id) for part in one.segments), at="middle", size=13
        )
    _legend(canvas, bottom + 84)
    return canvas.save()


def _laser() -> str:
    canvas = Canvas(
        840,
        580,
        "A read cuts through a table like a laser from above",
        "Three beams at three instants, once at version 6 and once at version 3. A beam passes every segment that has "
        "rows of its instant and ends at the first interval tombstone.",
    )
    beams = [
        datetime(2013, 1, 6, 7, tzinfo=UTC),
        datetime(2013, 1, 6, 16, tzinfo=UTC),
        datetime(2013, 1, 8, 7, tzinfo=UTC),
    ]
    top = 56.0
    for version in (6, 3):
        segments = [one for one in SEGMENTS if one.ordinal <= version]
        tombstones = [one for one in TOMBSTONES if one.ordinal <= version]
        canvas.text(16, top - 28, f"as_of={version}", bold=True, size=16)
        bottom = _stack(canvas, top, segments, tombstones, width=640)
        for instant in beams:
            x = _x(instant, 640)
            here = Interval(instant, instant.replace(minute=1))
            (seen,) = timeline(segments, tombstones, here).slices
            stops = [one.ordinal for one in tombstones if one.start <= instant < one.end]
            end = _y(max(stops), segments, top) + _ROW - 4 if stops else bottom + 12
            canvas.line([(x, top - 12), (x, end)], BEAM, width=5)
            for part in seen.segments:
                canvas.dot(x, _y(part.ordinal, segments, top) + 16, 7, BEAM, line=INK)
            canvas.text(x, bottom + 32, "+".join(str(part.id) for part in seen.segments), at="middle", bold=True)
        canvas.text(16, bottom + 32, "what is read", bold=True)
        top = bottom + 110
    _legend(canvas, top - 40)
    return canvas.save()


def _tombstones() -> str:
    rows = [
        (1, "05 Jan 08:00", 12, 0),
        (1, "05 Jan 09:00", 77, 1),
        (1, "06 Jan 08:00", 77, 2),
        (1, "06 Jan 09:00", 12, 3),
        (3, "05 Jan 10:00", 12, 4),
        (6, "06 Jan 11:00", 77, 5),
    ]
    masks = [
        (Tombstone(id=1, start="2013-01-05", end="2013-01-06", ordinal=2), "interval", "all of 5 January"),
        (Tombstone(id=2, kind="key", ordinal=4, primary_keys={(77,)}), "key", "client 77"),
        (Tombstone(id=3, kind="row", ordinal=5, row_ids={3}), "row", "_row_id 3"),
    ]
    canvas = Canvas(
        840,
        470,
        "Three kinds of tombstones, one rule",
        "Six rows of three segments against an interval, a key and a row tombstone. A tombstone hides a row that it "
        "matches if its ordinal is greater than that of the row's segment.",
    )
    for x, title in ((20, "ordinal of"), (120, "time"), (240, "client"), (310, "_row_id")):
        canvas.text(x, 46, title, colour=MUTED, size=13)
    canvas.text(20, 62, "the segment", colour=MUTED, size=13)
    for place, (mask, kind, what) in enumerate(masks):
        canvas.box(372 + place * 122, 14, 118, 66, TOMBSTONE)
        for line, text in enumerate((f"{kind} tombstone", f"ordinal {mask.ordinal}", what)):
            canvas.text(
                431 + place * 122,
                34 + line * 19,
                text,
                colour=PAPER,
                size=12 - 2 * (line == 0),
                at="middle",
                bold=line == 0,
            )
    for number, (ordinal, time, client, row_id) in enumerate(rows):
        y = 96 + number * 46
        at = datetime.strptime(f"2013 {time}", "%Y %d %b %H:%M").replace(tzinfo=UTC)
        shown = is_visible(at, {}, row_id, (client,), ordinal, [mask for mask, _, _ in masks])
        canvas.box(10, y, 820, 40, "#e6f2f1" if shown else "#f1f3f5")
        for x, text in ((20, str(ordinal)), (120, time), (240, str(client)), (310, str(row_id))):
            canvas.text(x, y + 25, text)
        for place, (mask, _, _) in enumerate(masks):
            hit = matches(mask, at, {}, row_id, (client,))
            says = ("hides it" if mask.ordinal > ordinal else "older: cannot") if hit else "no match"
            colour = TOMBSTONE if says == "hides it" else MUTED
            canvas.text(431 + place * 122, y + 25, says, colour=colour, size=13, at="middle", bold=says == "hides it")
        canvas.text(
            784, y + 25, "visible" if shown else "hidden", colour=SEEN if shown else MUTED, at="middle", bold=True
        )
    says = "A row is hidden if a tombstone matches it and has a greater ordinal than the row's segment."
    canvas.text(20, 96 + len(rows) * 46 + 34, says, size=15)
    canvas.text(
        20, 96 + len(rows) * 46 + 58, "The last two rows came after the tombstones that match them.", colour=MUTED
    )
    return canvas.save()


def _key_frames() -> str:
    touched = {"5 January": [1, 2, 4, 5, 7, 9], "6 January": [2, 3, 7, 8], "7 January": [6]}
    frames = {"5 January": [1, 5], "6 January": [2], "7 January": [6]}
    asked = 8
    canvas = Canvas(
        840,
        330,
        "Key frames and deltas",
        "Three chunks over nine versions. The state of a chunk at version 8 is its nearest key frame at or before 8, "
        "and the deltas after it.",
    )
    step, left, top = 70, 190, 70
    for version in range(1, 10):
        x = left + (version - 1) * step
        canvas.line([(x, top - 20), (x, top + 170)], GRID, dashed=True)
        canvas.text(
            x, top - 28, str(version), colour=INK if version == asked else MUTED, at="middle", bold=version == asked
        )
    canvas.text(16, top - 28, "version", colour=MUTED)
    canvas.line([(left + (asked - 1) * step, top - 20), (left + (asked - 1) * step, top + 170)], BEAM, width=5)
    for lane, (chunk, versions) in enumerate(touched.items()):
        y = top + 20 + lane * 60
        canvas.text(16, y + 5, f"chunk of {chunk}")
        canvas.line([(left, y), (left + 8 * step + 20, y)], GRID)
        frame = max(version for version in frames[chunk] if version <= asked)
        read = [version for version in versions if frame <= version <= asked]
        canvas.line([(left + (frame - 1) * step, y), (left + (asked - 1) * step, y)], SEEN, width=6)
        for version in versions:
            x = left + (version - 1) * step
            if version in frames[chunk]:
                canvas.box(x - 14, y - 14, 28, 28, FRAME if version in read else HIDDEN, line=FRAME)
            else:
                canvas.dot(x, y, 10, SEEN if version in read else HIDDEN, line=SEEN)
    y = top + 205
    canvas.box(16, y - 12, 18, 18, FRAME)
    canvas.text(42, y + 3, "key frame: a chunk's whole state", size=13)
    canvas.dot(274, y - 3, 9, SEEN)
    canvas.text(292, y + 3, "delta: what one version added and dropped", size=13)
    canvas.box(596, y - 12, 18, 18, HIDDEN, line=MUTED)
    canvas.text(622, y + 3, "not needed for version 8", size=13)
    says = "Version 9 touched 5 January only: the other chunks are shared with version 8, nothing is copied."
    canvas.text(16, y + 38, says, size=14)
    return canvas.save()


def _stack(
    canvas: Canvas, top: float, segments: Sequence[Segment], tombstones: Sequence[Tombstone], width: int
) -> float:
    """Draw segments and tombstones over time, the newest on top; where the drawing ends."""
    names = {one.ordinal: WRITES[one.ordinal] for one in segments}
    for ordinal, says in names.items():
        canvas.text(16, _y(ordinal, segments, top) + 15, f"ordinal {ordinal}", size=13, bold=True)
        canvas.text(16, _y(ordinal, segments, top) + 30, says, colour=MUTED, size=13)
    drawn = bars(segments, tombstones, WINDOW)
    for bar in sorted(drawn, key=lambda one: one.kind != "tombstone"):
        left, right, y = _x(bar.start, width), _x(bar.end, width), _y(bar.ordinal, segments, top)
        if bar.kind == "tombstone":
            canvas.box(left, y + 26, right - left, 7, TOMBSTONE, corner=0)
            continue
        seen = bar.kind == "visible"
        canvas.box(
            left, y + 2, right - left, 24, SEEN if seen else HIDDEN, line=SEEN if seen else MUTED, dashed=not seen
        )
        if right - left > 20:
            canvas.text(
                (left + right) / 2, y + 19, str(bar.of.id), colour=PAPER if seen else INK, at="middle", bold=True
            )
    return top + _ROW * len(names)


def _y(ordinal: int, segments: Sequence[Segment], top: float) -> float:
    newest_first = sorted({one.ordinal for one in segments}, reverse=True)
    return top + _ROW * newest_first.index(ordinal)


def _x(instant: datetime, width: int) -> float:
    return _LEFT + width * ((instant - WINDOW.start) / (WINDOW.end - WINDOW.start))


def _legend(canvas: Canvas, y: float) -> None:
    for x, fill, says in ((170, SEEN, "can be seen"), (310, HIDDEN, "hidden"), (420, TOMBSTONE, "interval tombstone")):
        line = MUTED if fill == HIDDEN else "none"
        canvas.box(x, y - 12, 18, 14, fill, line=line, dashed=fill == HIDDEN)
        canvas.text(x + 26, y, says, size=13)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in draw_all().items():
        (FOLDER / name).write_text(picture, encoding="utf-8")

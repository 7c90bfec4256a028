"""A small drawing surface whose pictures are text that can be compared: no clock, no chance, no fonts."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

INK = "#1f2933"
MUTED = "#52606d"
GRID = "#b8c2cc"
SEEN = "#0f6e68"
HIDDEN = "#c9d3d9"
TOMBSTONE = "#b8400a"
FRAME = "#1d4ed8"
BEAM = "#d9a400"
PAPER = "#ffffff"


class Canvas:
    """Shapes in the order in which they are drawn; `save` makes one SVG of them."""

    def __init__(self, width: int, height: int, title: str, says: str) -> None:
        self.width, self.height, self.title, self.says = width, height, title, says
        self._parts: list[str] = []

    def box(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        fill: str,
        *,
        line: str = "none",
        dashed: bool = False,
        corner: float = 3,
    ) -> None:
        """A rectangle."""
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(
            f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{corner:g}" '
            f'fill="{fill}" stroke="{line}"{dash}/>'
        )

    def line(self, points: list[tuple[float, float]], colour: str, *, width: float = 1.5, dashed: bool = False) -> None:
        """A line through points."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dash}/>')

    def dot(self, x: float, y: float, radius: float, fill: str, *, line: str = "none") -> None:
        """A circle."""
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{line}"/>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        colour: str = INK,
        size: int = 14,
        at: str = "start",
        bold: bool = False,
    ) -> None:
        """A line of text; ``at`` says which of its ends is at x: start, middle or end."""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{colour}" font-size="{size}" text-anchor="{at}"{weight}>'
            f"{escape(text)}</text>"
        )

    def save(self) -> str:
        """The picture."""
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(self.title)} '
            'font-family="system-ui, sans-serif">'
        )
        paper = f'<rect width="{self.width}" height="{self.height}" rx="6" fill="{PAPER}"/>'
        said = f"<title>{escape(self.title)}</title>\n<desc>{escape(self.says)}</desc>"
        return "\n".join([head, said, paper, *self._parts, "</svg>", ""])

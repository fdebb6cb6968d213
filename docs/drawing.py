"""Drawings as SVG text: boxes, arrows, words, lanes of time, and a house; they are light or dark as the reader's screen is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["Drawing", "lanes", "storeys"]

_STYLE = """
.d{--ink:#1b1f24;--soft:#57606a;--line:#8c959f;--paper:#ffffff;--a:#0072b2;--b:#c44f00;--c:#00795a;--d:#b0508a;--e:#a86f00;--f:#56b4e9}
@media (prefers-color-scheme:dark){.d{--ink:#e6edf3;--soft:#9da7b3;--line:#6e7681;--paper:#0d1117;
--a:#58a6e0;--b:#ff8a4c;--c:#35c79a;--d:#e39ac6;--e:#f0b429}}
.d text{font:13px system-ui,sans-serif;fill:var(--ink)} .d .soft{fill:var(--soft)} .d .head{font-weight:600}
"""
_CHARACTER = 7.0
"""Pixels of an average letter: what decides whether a label fits its box."""


class Drawing:
    """Coordinates are pixels, from the left upper corner."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._size, self._title = (width, height), title
        self._parts: list[str] = []

    def box(
        self,
        place: tuple[float, float],
        size: tuple[float, float],
        colour: str = "line",
        label: str = "",
        *,
        dashed: bool = False,
    ) -> None:
        """A box of a colour (a to f, or line) with a label in its middle."""
        (x, y), (width, height) = place, size
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="var(--{colour})" fill-opacity="0.22" '
            f'stroke="var(--{colour})"{dash}/>'
        )
        if label:
            self.text((x + width / 2, y + height / 2 + 4.5), label, "middle")

    def text(self, place: tuple[float, float], words: str, anchor: str = "start", style: str = "") -> None:
        named = f' class="{style}"' if style else ""
        self._parts.append(
            f'<text x="{place[0]:g}" y="{place[1]:g}" text-anchor="{anchor}"{named}>{escape(words)}</text>'
        )

    def line(
        self, begin: tuple[float, float], end: tuple[float, float], colour: str = "line", *, arrow: bool = False
    ) -> None:
        head = ' marker-end="url(#arrow)"' if arrow else ""
        place = f'x1="{begin[0]:g}" y1="{begin[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}"'
        self._parts.append(f'<line {place} stroke="var(--{colour})" stroke-width="1.2"{head}/>')

    def legend(self, place: tuple[float, float], entries: Mapping[str, str]) -> None:
        """Colour -> what it stands for, in a line."""
        x, y = place
        for colour, words in entries.items():
            self.box((x, y - 11), (14, 14), colour)
            self.text((x + 20, y + 1), words, style="soft")
            x += len(words) * _CHARACTER + 44

    def svg(self) -> str:
        width, height = self._size
        marker = (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="var(--line)"/></marker></defs>'
        )
        body, title = "\n".join(self._parts), escape(self._title)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="d" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">\n'
            f"<title>{title}</title><style>{_STYLE}</style>{marker}\n"
            f'<rect width="{width}" height="{height}" fill="var(--paper)"/>\n{body}\n</svg>\n'
        )


def lanes(
    title: str,
    rows: Sequence[tuple[str, Sequence[tuple[float, float, str, str]]]],
    marks: Sequence[tuple[float, str]] = (),
    arrows: Sequence[tuple[float, int, float, int]] = (),
    legend: Mapping[str, str] | None = None,
) -> str:
    """Time runs to the right.

    rows: (name, [(begin, end, colour, label)]), in units of time; marks: (time, words); arrows: (time, row, time, row).
    """
    left, top, high, width = 150, 34, 46, 760
    last = max(end for _, bars in rows for _, end, _, _ in bars)
    scale = (width - left - 16) / last
    drawing = Drawing(width, top + high * len(rows) + 56, title)
    drawing.text((16, 20), title, style="head")
    bottom = top + high * len(rows)
    for time, words in marks:
        drawing.line((left + time * scale, top), (left + time * scale, bottom + 6), "soft")
        drawing.text((left + time * scale, bottom + 21), words, "end" if time > last / 2 else "start", "soft")
    for i, (name, bars) in enumerate(rows):
        drawing.text((16, top + high * i + 27), name)
        drawing.line((left, top + high * i + 38), (width - 16, top + high * i + 38))
        for begin, end, colour, label in bars:
            if label and len(label) * _CHARACTER > (end - begin) * scale + 4:
                raise ValueError(f"{title}: '{label}' does not fit its bar")
            drawing.box((left + begin * scale, top + high * i + 8), ((end - begin) * scale, 30), colour, label)
    drawing.legend((16, bottom + 44), legend or {})
    for begin, upper, end, lower in arrows:
        down = (38, 8) if lower > upper else (8, 38)
        drawing.line(
            (left + begin * scale, top + high * upper + down[0]),
            (left + end * scale, top + high * lower + down[1]),
            "line",
            arrow=True,
        )
    return drawing.svg()


def storeys(title: str, floors: Sequence[tuple[str, str, Sequence[str]]]) -> str:
    """Layers: (name, what it is for, packages) from top to bottom, packages of a layer side by side."""
    left, high, width, most = 250, 40, 960, 7
    rows = [math.ceil(len(rooms) / most) for _, _, rooms in floors]
    drawing, top = Drawing(width, sum(rows) * high + 10 * len(floors) + 16, title), 8
    for k, (name, what, rooms) in enumerate(floors):
        drawing.box((8, top), (width - 16, rows[k] * high + 6), "abcdef"[k % 6])
        drawing.text((20, top + rows[k] * high / 2 - 1), name, style="head")
        drawing.text((20, top + rows[k] * high / 2 + 16), what, style="soft")
        each = math.ceil(len(rooms) / rows[k])
        for row in range(rows[k]):
            beside = rooms[row * each : (row + 1) * each]
            wide = (width - 16 - left) / len(beside)
            for place, label in enumerate(beside):
                if len(label) * _CHARACTER > wide - 6:
                    raise ValueError(f"{title}: '{label}' does not fit its room")
                drawing.box((left + place * wide, top + 6 + row * high), (wide - 8, high - 6), "line", label)
        top += rows[k] * high + 10
    return drawing.svg()

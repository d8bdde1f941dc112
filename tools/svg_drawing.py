"""An SVG of boxes, arrows and words, for tools/draw_diagrams.py.

It has a background, light or dark as the reader's browser is set, so that it
can be read on a page of either kind.
"""

import html
import pathlib

STYLE = """\
svg{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.page{fill:#fff;stroke:#d1d9e0}.ink{fill:#1f2328}.soft{fill:#59636e}
.line{stroke:#59636e;fill:none;stroke-width:1.6}.head{fill:#59636e}
.area{fill:none;stroke:#8c959f;stroke-dasharray:5 4}
.server{fill:#ddf4ff;stroke:#0969da}.client{fill:#dafbe1;stroke:#1a7f37}
.sum{fill:#fff8c5;stroke:#9a6700}.plain{fill:#f6f8fa;stroke:#8c959f}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117;stroke:#3d444d}.ink{fill:#f0f6fc}.soft{fill:#b1bac4}
.line{stroke:#b1bac4}.head{fill:#b1bac4}.area{stroke:#6e7681}
.server{fill:#0c2d6b;stroke:#388bfd}.client{fill:#04381b;stroke:#2ea043}
.sum{fill:#3b2300;stroke:#bb8009}.plain{fill:#212830;stroke:#6e7681}}
"""


class Drawing:
    """An SVG of boxes, arrows and words; all lengths are in pixels."""

    def __init__(self, width, height, title, description):
        self._open = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">\n'
            f"<title>{html.escape(title)}</title>\n"
            f"<desc>{html.escape(description)}</desc>\n<style>\n{STYLE}</style>\n"
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" '
            'markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
            '<path class="head" d="M0 0L10 5L0 10z"/></marker></defs>\n'
            f'<rect class="page" x=".5" y=".5" width="{width - 1}" '
            f'height="{height - 1}" rx="10"/>\n'
        )
        self._parts = []

    def words(self, x, y, text, kind="ink", size=14, anchor="middle", weight=400):
        """Writes one line; x, y is its middle, start or end on the base line."""
        self._parts.append(
            f'<text class="{kind}" x="{x}" y="{y}" font-size="{size}" '
            f'font-weight="{weight}" text-anchor="{anchor}">{html.escape(text)}</text>'
        )

    def box(self, x, y, width, height, kind, title, *lines):
        """Draws a box with a title and lines under it, in its middle."""
        self._parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" '
            f'height="{height}" rx="8" stroke-width="1.4"/>'
        )
        top = y + (height - 19 * len(lines)) / 2 + 5
        middle = x + width / 2
        self.words(middle, top, title, weight=600)
        for k, line in enumerate(lines, 1):
            self.words(middle, top + 19 * k, line, size=13)

    def area(self, x, y, width, height, title):
        """Draws a dashed frame around what belongs together."""
        self._parts.append(
            f'<rect class="area" x="{x}" y="{y}" width="{width}" '
            f'height="{height}" rx="10" stroke-width="1.4"/>'
        )
        self.words(x + 14, y + 22, title, "soft", 13, "start", 600)

    def arrow(self, *points, label=None, at=None, both=False, anchor="middle"):
        """Draws a line through points with a head at its end, and a label."""
        path = "M" + "L".join(f"{x} {y}" for x, y in points)
        start = ' marker-start="url(#head)"' if both else ""
        self._parts.append(
            f'<path class="line" d="{path}" marker-end="url(#head)"{start}/>'
        )
        if label:
            for k, line in enumerate(label.split("\n")):
                self.words(at[0], at[1] + 17 * k, line, "soft", 13, anchor)

    def write(self, path):
        """Writes the file."""
        text = self._open + "\n".join(self._parts) + "\n</svg>\n"
        pathlib.Path(path).write_text(text, "utf-8")

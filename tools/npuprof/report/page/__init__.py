# SPDX-License-Identifier: MIT
"""Writes a trace as one self-contained page: page.html with its style, its script and the trace's figures in
it.

The page loads nothing and asks nothing of the network. All figures are made here, by the functions that make
the tables of `report`. They are cut to what a screen can show: the longest 20,000 spans one by one, the
others as density, at most 240 points for a curve. The script only draws them. It uses textContent, so a name
is never markup.
"""

import html
import json
import pathlib

from ...base.files import whole_file
from ...base.messages import Progress
from .figures import figures

# The parts of the script, in the order in which they stand in the page.
SCRIPT = ("base", "time", "head", "verdict", "timeline", "find", "timeline_draw", "timeline_curves",
          "timeline_idle", "timeline_input", "latency", "tables", "flame", "device", "pictures",
          "curves", "replay", "what_if", "about", "start")


def write_page(trace, out, facts=None):
    """Writes the page to the path `out`, completely or not at all. facts: of the part that the verdict is
    about; None: the whole trace."""
    bar = Progress(f"drawing {len(trace)} spans", 3)
    with whole_file(out) as file:
        file.write(page(trace, bar.at, facts).encode("utf-8", "replace"))
    bar.done()


def page(trace, at=lambda part: None, facts=None):
    """The page as text. at(n) is called when part n of 3 is done."""
    here = pathlib.Path(__file__).resolve().parent
    text, style = ((here / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css"))
    parts = [(here / f"{part}.js").read_text(encoding="utf-8") for part in SCRIPT]
    # Each part begins with the licence line; the page needs it once.
    script = parts[0] + "".join(part.partition("\n")[2] for part in parts[1:])
    data = figures(trace, at, facts)
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # Why: no text of the trace can end the script element around it.
    packed = packed.replace("<", "\\u003c")
    values = {"title": html.escape(data["title"]), "style": style, "script": script, "data": packed}
    for mark, value in values.items():
        before, _, after = text.partition("{{%s}}" % mark)
        text = before + value + after
    return text

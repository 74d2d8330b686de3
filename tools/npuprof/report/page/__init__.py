# SPDX-License-Identifier: MIT
"""Writes a trace as one self-contained page: report.html with its style, script and the trace's figures in it.

The page asks nothing of the network and loads nothing. All figures are made here, from the same functions as the tables of
`report`, and cut to what a screen can show: the longest 20,000 spans one by one and the others as density, at most 240 points
a curve. The script draws them, with textContent only, so a name is never markup.
"""

import html
import json
import pathlib

from ...base.files import whole_file
from ...base.messages import Progress
from .figures import figures

# The parts of the script, in the order in which they stand in the page.
SCRIPT = ("base", "time", "head", "timeline", "timeline_draw", "timeline_input", "latency", "tables",
          "device", "curves",
          "what_if", "about", "start")


def write_page(trace, out):
    """Writes the page to the path `out`, whole or not at all."""
    bar = Progress(f"drawing {len(trace)} spans", 3)
    with whole_file(out) as file:
        file.write(page(trace, bar.at).encode("utf-8", "replace"))
    bar.done()


def page(trace, at=lambda part: None):
    here = pathlib.Path(__file__).resolve().parent
    text, style = ((here / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css"))
    parts = [(here / f"{part}.js").read_text(encoding="utf-8") for part in SCRIPT]
    # one licence line is enough
    script = parts[0] + "".join(part.partition("\n")[2] for part in parts[1:])
    data = figures(trace, at)
    # Why <: no text of the trace can end the script element that holds it.
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False,
                        allow_nan=False).replace("<", "\\u003c")
    for mark, value in (("title", html.escape(data["title"])), ("style", style), ("script", script),
                        ("data", packed)):
        before, _, after = text.partition("{{%s}}" % mark)
        text = before + value + after
    return text

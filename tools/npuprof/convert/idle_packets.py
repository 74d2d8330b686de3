# SPDX-License-Identifier: MIT
"""Writes when devices were idle and why as packets of Perfetto's format, behind a trace of ours: a track
"DEVICE idle", and below it one for each queue if there are several. Its slices have the names of the classes
of the table idle (analysis/idle.py), and sum up to it. It is a sequence of its own, as of another file.
"""

from ..analysis.facts import Facts
from ..analysis.idle import confidence_of
from .pftrace import BEGIN, BY_RANK, END, NEVER, Writer, clocks_of, number, text


def write_idle(trace, file):
    """The window is that of the verdict without options."""
    idle, about = Facts(trace).idle, trace.metadata
    writer = Writer(file, clocks_of(trace), {}, ("idle", about.get("pid")))
    for device, name in enumerate(idle.jobs.devices):
        own = idle.jobs.queues_of[device]
        whole = writer.track(text(2, f"{name} idle") + number(11, BY_RANK) + number(15, NEVER))
        draw(writer, whole, idle, own)
        for rank, q in enumerate(own if len(own) > 1 else (), 1):
            label = text(2, f"{idle.jobs.queues[q].label} idle")
            draw(writer, writer.track(label + number(12, rank) + number(15, NEVER), whole), idle, [q])


def draw(writer, track, idle, queues):
    """The pieces of all gaps of these queues."""
    trace = idle.trace
    writer.use(track)
    for start, end, label, row, certain, capped in idle.all_pieces(queues):
        said = {"span": trace.names[trace.name[row]]} if row >= 0 else {}
        if trace.tool:
            certain, capped = 0, True
        said["confidence"] = confidence_of(certain, end - start, capped)
        writer.event(track, BEGIN, start, writer.names(label, "idle") + writer.arguments(said))
        writer.event(track, END, end, b"")

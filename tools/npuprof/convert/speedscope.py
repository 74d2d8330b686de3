# SPDX-License-Identifier: MIT
"""Writes a trace in speedscope's own format: a profile for each track, in whole nanoseconds.

Why not the Chrome JSON, which speedscope reads, too: there it adds ts and dur as floating-point numbers. A
span that begins where another ends, or ends with its parent, may then seem to cross it and stay open to the
end of the track.
"""

from json.encoder import encode_basestring as quoted

from ..base.messages import Progress


def lanes(trace, rows):
    """Yields lists of a track's rows by start. It takes several if spans overlap: those of a list nest."""
    rows = sorted(rows, key=lambda i: (trace.start[i], -trace.dur[i], i))
    while rows:
        lane, rest, ends = [], [], []
        for i in rows:
            begin, end = trace.start[i], trace.start[i] + trace.dur[i]
            while ends and ends[-1] <= begin:
                ends.pop()
            if ends and end > ends[-1]:
                rest.append(i)
            else:
                ends.append(end)
                lane.append(i)
        yield lane
        rows = rest


def marks(trace, lane, frame_of):
    """Yields the begins and ends of a lane as JSON texts, in order."""
    stack = []
    for i in lane:
        begin = trace.start[i]
        while stack and stack[-1][0] <= begin:
            yield '{"type":"C","at":%d,"frame":%d}' % stack.pop()
        frame = frame_of[trace.name[i], trace.cat[i]]
        yield '{"type":"O","at":%d,"frame":%d}' % (begin, frame)
        stack.append((begin + trace.dur[i], frame))
    while stack:
        yield '{"type":"C","at":%d,"frame":%d}' % stack.pop()


def write_speedscope(trace, file):
    """Writes to a binary file."""
    rows, frame_of = {}, {}
    for i, track in enumerate(trace.track):
        rows.setdefault(track, []).append(i)
        frame_of.setdefault((trace.name[i], trace.cat[i]), len(frame_of))

    def write(text):
        file.write(text.encode("utf-8", "replace"))
    program = quoted(trace.metadata.get("program") or "npuprof")
    write('{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"npuprof",')
    write('"name":%s,"activeProfileIndex":0,"shared":{"frames":[' % program)
    write(",\n".join('{"name":%s%s}' % (quoted(trace.names[name]),
                                        ',"file":' + quoted(trace.names[cat]) if cat else "")
                     for name, cat in frame_of))
    write(']},"profiles":[')
    bar, separator, done = Progress(f"writing {len(trace)} spans", len(trace)), "", 0
    for track, members in rows.items():
        for number, lane in enumerate(lanes(trace, members), 1):
            name = trace.tracks[track].name or f"tid {trace.tracks[track].tid}"
            name += f" ({number})" if number > 1 else ""
            end = max(trace.start[i] + trace.dur[i] for i in lane)
            write('%s{"type":"evented","name":%s,"unit":"nanoseconds",' % (separator, quoted(name)))
            write('"startValue":%d,"endValue":%d,"events":[\n' % (trace.start[lane[0]], end))
            write(",\n".join(marks(trace, lane, frame_of)))
            write("]}")
            separator, done = ",\n", done + len(lane)
            bar.at(done)
    write("]}\n")
    bar.done()

# SPDX-License-Identifier: MIT
"""Writes a trace as a file of speedscope's own format: a profile for each track, in whole nanoseconds.

Why not the Chrome JSON, which speedscope opens, too: it adds ts and dur as floating-point numbers there, so
that a span that begins where another ends, or ends with its parent, may come out as crossing it, and stays
open to the end of the track.
"""

from json.encoder import encode_basestring as quoted

from ..base.messages import Progress


def lanes(trace, rows):
    """The rows of a track in the order of their begin, split so that spans of a lane nest."""
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
    """The lane's begins and ends as JSON texts, in order."""
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
    rows, frame_of = {}, {}
    for i, track in enumerate(trace.track):
        rows.setdefault(track, []).append(i)
        frame_of.setdefault((trace.name[i], trace.cat[i]), len(frame_of))
    program = trace.metadata.get("program") or "npuprof"
    write = lambda text: file.write(text.encode("utf-8", "replace"))  # noqa: E731
    write('{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"npuprof","name":%s,"activeProfileIndex":0,'
          '"shared":{"frames":[' % quoted(program))
    write(",\n".join('{"name":%s%s}' % (quoted(trace.names[name]),
                                        ',"file":%s' % quoted(trace.names[cat]) if cat else "")
                     for name, cat in frame_of))
    write(']},"profiles":[')
    bar, separator = Progress(f"writing {len(trace)} spans", len(trace)), ""
    done = 0
    for track, members in rows.items():
        for number, lane in enumerate(lanes(trace, members), 1):
            name = (trace.tracks[track].name
                    or f"tid {trace.tracks[track].tid}") + (f" ({number})" if number > 1 else "")
            write('%s{"type":"evented","name":%s,"unit":"nanoseconds","startValue":%d,"endValue":%d,"events":[\n' % (
                separator, quoted(name), trace.start[lane[0]],
                max(trace.start[i] + trace.dur[i] for i in lane)))
            write(",\n".join(marks(trace, lane, frame_of)))
            write("]}")
            separator, done = ",\n", done + len(lane)
            bar.at(done)
    write("]}\n")
    bar.done()

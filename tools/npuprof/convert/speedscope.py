# SPDX-License-Identifier: MIT
"""Writes a trace in speedscope's own format: a profile for each track, in whole nanoseconds.

Why not the Chrome JSON, which speedscope reads, too: there it adds ts and dur as floating-point numbers. A
span that begins where another ends, or ends with its parent, may then seem to cross it and stay open to the
end of the track.
"""

from json.encoder import encode_basestring as quoted

from .scene import Output, draw, left_out


class Profiles:
    """The profiles of a file, a lane each."""

    def __init__(self, trace, file):
        self.trace, self.file, self.events, self.separator = trace, file, [], ""
        self.frame_of = {}
        for key in zip(trace.name, trace.cat):
            self.frame_of.setdefault(key, len(self.frame_of))

    def write(self, text):
        self.file.write(text.encode("utf-8", "replace"))

    def begin(self):
        names = self.trace.names
        program = quoted(self.trace.metadata.get("program") or "npuprof")
        self.write('{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"npuprof",')
        self.write('"name":%s,"activeProfileIndex":0,"shared":{"frames":[' % program)
        self.write(",\n".join('{"name":%s%s}' % (quoted(names[name]),
                                                 ',"file":' + quoted(names[cat]) if cat else "")
                              for name, cat in self.frame_of))
        self.write(']},"profiles":[')

    def track(self, track, lane, rows):
        self.finish()
        if rows:
            name = (track.name or f"tid {track.tid}") + (f" ({lane + 1})" if lane else "")
            end = max(self.trace.start[i] + self.trace.dur[i] for i in rows)
            self.write('%s{"type":"evented","name":%s,"unit":"nanoseconds",' % (self.separator, quoted(name)))
            self.write('"startValue":%d,"endValue":%d,"events":[\n' % (self.trace.start[rows[0]], end))
            self.separator = ",\n"

    def finish(self):
        """Ends the profile at hand."""
        if self.events:
            self.write(",\n".join(self.events) + "]}")
            self.events = []

    def event(self, kind, ns, i):
        frame = self.frame_of[self.trace.name[i], self.trace.cat[i]]
        self.events.append('{"type":"%s","at":%d,"frame":%d}' % (kind, ns, frame))

    def span(self, i):
        self.event("O", self.trace.start[i], i)

    def close(self, i):
        self.event("C", self.trace.start[i] + self.trace.dur[i], i)

    def end(self):
        self.finish()
        self.write("]}\n")


def write_speedscope(trace, file):
    """Writes to a binary file."""
    p = Profiles(trace, file)
    draw(trace, Output(begin=p.begin, arrow=left_out, track=p.track, span=p.span, close=p.close,
                       instant=left_out, counter=left_out, end=p.end))

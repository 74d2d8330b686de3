# SPDX-License-Identifier: MIT
"""Whole blocks of lines of npuprof's own JSON writer, into a Trace."""

import json
import re
from array import array

from .. import loops
from ..base.contract import COUNTED, DEVICE, IN_WARM_UP, INDEXES, KINDS, SAMPLED, SPAN, UNFINISHED, UNWOUND, VIOLATED
from ..base.numbers import leading_integer
from .events import EventReader
from .own_layout import FLOW_LINE, LABEL, X_LINE
from .trace import Numbered

# Why no pattern: inside a string the quotes of such a key would have backslashes, so its bytes are the key and nothing else.
QUOTED = {key: f'"{key}":'.encode() for key in INDEXES}
IDS = re.compile(rb'"trace_id":"([0-9a-f]{32})","span_id":"([0-9a-f]{16})"')


class LineReader(EventReader):
    """Reads lines by pattern, many at a time, and any other event one by one."""

    def __init__(self, trace):
        super().__init__(trace)
        self.id_texts = Numbered(self.parse_ids)      # b'1,"tid":2' -> number
        self.texts = Numbered(lambda text: trace._numbers[json.loads(text)])     # of strings as quoted in the file
        self.labels = Numbered(self.parse_label)      # b'"name","cat":"cat"' -> a place in the next two
        self.label_names, self.label_cats, self.ids_tracks = array("I"), array("I"), array("I")
        self.native = loops.Reader() if loops.native.library() else None
        self.values = Numbered(leading_integer)


    def parse_ids(self, text):
        return self.tracks[tuple(map(int, re.findall(rb"\d+", text)))]

    def parse_label(self, text):
        name, cat = LABEL.fullmatch(text).groups()
        self.label_names.append(self.texts[name])
        self.label_cats.append(self.texts[cat] if cat else 0)
        return len(self.label_names) - 1

    def block(self, offset, block):
        """Reads whole lines, each ending in },\n. False: some line is not of the own writer's form."""
        trace, lines = self.trace, block.count(b"\n")
        if self.native:
            return self.native_block(offset, block, lines)
        if block.count(b"},\n") != lines:
            return False
        spans = X_LINE.findall(block)
        flows = FLOW_LINE.findall(block) if b'{"ph":"s"' in block or b'{"ph":"f"' in block else ()
        others = []
        if len(spans) + len(flows) != lines:
            others = [line for line in block.split(b"\n") if not line.startswith((b'{"ph":"X"', b'{"ph":"s"', b'{"ph":"f"')) and line]
            if len(spans) + len(flows) + len(others) != lines:
                return False
        events = [json.loads(line[:-1]) for line in others]
        if spans:
            first = len(trace)
            labels, ids, starts, durations, rests = zip(*spans)
            rich = [i for i, rest in enumerate(rests) if rest != b"},"]
            if rich:
                texts = [rests[i] for i in rich]
                # Why at the ends only: what is between them is looked at when it is asked for.
                if {rest[:9] for rest in texts} != {b',"args":{'} or {rest[-3:] for rest in texts} != {b"}},"}:
                    return False
                trace._blocks.append((first, offset, len(block)))
            numbers = list(map(self.labels.__getitem__, labels))
            trace.name.extend(map(self.label_names.__getitem__, numbers))
            trace.cat.extend(map(self.label_cats.__getitem__, numbers))
            trace.track.extend(map(self.id_texts.__getitem__, ids))
            # Why a limit by digits: sums of two stamps fit 64 bits then. Larger ones are for the strict reader to refuse.
            if max(map(len, starts)) > 19 or max(map(len, durations)) > 19:
                return False
            trace.start.extend(map(int, b",".join(starts).replace(b".", b"").split(b",")))
            trace.dur.extend(map(int, b",".join(durations).replace(b".", b"").split(b",")))
            trace.kind += bytes(len(spans))
            trace.flags += bytes(len(spans))
            if rich:
                self.arguments(first, rich, texts, block)
        for phase, name, ids, flow, ts in flows:
            self.flow(phase == b"s", self.texts[name], flow, self.id_texts[ids], int(ts.replace(b".", b"")))
        for event in events:
            self.event(event, None)
        return True

    def native_block(self, offset, block, lines):
        """The same in C."""
        trace, native = self.trace, self.native
        first, count = len(trace), native.read("json", block, lines)
        if count < 0:
            return False
        for label in native.texts(0, len(self.label_names)):
            self.parse_label(label)
        for text in native.texts(1, len(self.ids_tracks)):
            self.ids_tracks.append(self.parse_ids(text))
        native.into(trace, count, self.label_names, self.label_cats, self.ids_tracks)
        if native.block.rich:
            trace._blocks.append((first, offset, len(block)))
        given = native.block.given_count
        trace._given[0].extend(map(first.__add__, native.column("given", 4 * given).cast("I")))
        trace._given[1].extend(native.column("given_ids", 24 * given))
        for k, key in enumerate(INDEXES):
            if native.block.indexes >> k & 1:
                self.column(key, first).frombytes(native.column(k, 8 * count))
        places = native.column("others", 16 * native.block.others_count).cast("Q")
        others = [block[at:at + length] for at, length in zip(places[::2], places[1::2])]
        arrows = [line for line in others if line.startswith((b'{"ph":"s"', b'{"ph":"f"'))]
        found = FLOW_LINE.findall(b"\n".join(arrows) + b"\n")
        if len(found) != len(arrows):
            return False
        half, flows = self.half, trace.flows
        for phase, name, ids, flow, ts in found:
            key = name + flow
            if phase == b"s":
                half[key] = ids, ts
            elif key in half:
                ids_from, from_ts = half.pop(key)
                flows.add(self.texts[name], self.id_texts[ids_from], int(from_ts.replace(b".", b"")), self.id_texts[ids], int(ts.replace(b".", b"")))
        for line in others if len(arrows) < len(others) else ():
            if not line.startswith((b'{"ph":"s"', b'{"ph":"f"')):
                self.event(json.loads(line[:-1]), None)
        return True

    def arguments(self, first, rows, texts, block):
        """What of the arguments has a column of its own. rows: places in the block; texts: the arguments there."""
        trace, kind, flags = self.trace, self.trace.kind, self.trace.flags
        rows_given, ids_given = trace._given
        if b'"args":{"kind":"' in block:
            for i, text in zip(rows, texts):
                if text.startswith(b'"kind":"', 9):
                    kind[first + i] = KINDS.get(text[17:text.index(b'"', 17)], SPAN)
        if b'"args":{"stamp":"' in block:
            for i, text in zip(rows, texts):
                if text.startswith(b'"stamp":"', 9):
                    kind[first + i] = DEVICE
                    flags[first + i] |= SAMPLED * text.startswith(b'sampled"', 18) | COUNTED * (b'"busy_ticks":' in text)
        if b'"trace_id":"' in block:
            for i, text in zip(rows, texts):
                at = text.find(b'"trace_id":"')
                # Why the kind: in other spans the key is the user's own.
                found = IDS.match(text, at) if at > 0 and kind[first + i] != SPAN else None
                if found:
                    ids_given += bytes.fromhex((found[1] + found[2]).decode())
                    rows_given.append(first + i)
        if b'"causality":"violated"' in block or b'"unfinished":' in block or b'"warm_up":true' in block:
            for i, text in zip(rows, texts):
                flags[first + i] |= (VIOLATED * (b'"causality":"violated"' in text) | UNFINISHED * (b'"unfinished":true' in text) |
                                    UNWOUND * (b'"unfinished":"unwound"' in text) | IN_WARM_UP * (b'"warm_up":true' in text))
        value = self.values.__getitem__
        for key, quoted in QUOTED.items():
            if quoted in block:
                column = self.column(key, len(trace))
                for i, text in zip(rows, texts):
                    column[first + i] = value(text.partition(quoted)[2].partition(b",")[0])
        if len(self.values) > 100_000:
            self.values.clear()

# SPDX-License-Identifier: MIT
"""Reads whole blocks of lines of npuprof's own JSON writer into a Trace."""

import json
import re
from array import array

from .. import loops
from ..base.contract import (COUNTED, DEVICE, IN_WARM_UP, INDEXES, KINDS, SAMPLED, SPAN, UNFINISHED, UNWOUND,
                             VIOLATED)
from ..base.numbers import leading_integer
from .events import EventReader
from .own_layout import FLOW_LINE, FLOWS, LABEL, X_LINE
from .trace import ASKED, Numbered

# Why no pattern: inside a string the quotes would have backslashes, so these bytes are the key.
QUOTED = {key: f'"{key}":'.encode() for key in INDEXES}
ASKED_TEXTS = [(key, (f'"{key[0]}":' + (f'"{key[1]}"' if key[1] else "")).encode()) for key in ASKED]
IDS = re.compile(rb'"trace_id":"([0-9a-f]{32})","span_id":"([0-9a-f]{16})"')


class LineReader(EventReader):
    """Reads lines by pattern, many at a time, and any other event one by one."""

    def __init__(self, trace):
        super().__init__(trace)
        self.id_texts = Numbered(self.parse_ids)      # b'1,"tid":2' -> number
        self.texts = Numbered(lambda text: trace._numbers[json.loads(text)])      # b'"name"' -> number
        # b'"name","cat":"cat"' -> place in label_names and label_cats
        self.labels = Numbered(self.parse_label)
        self.label_names, self.label_cats, self.ids_tracks = array("I"), array("I"), array("I")
        self.native = loops.Reader() if loops.native.library() else None
        self.values = Numbered(leading_integer)
        self.half = {}                # name and id -> phase, ids and time of the end that came first

    def parse_ids(self, text):
        return self.tracks[tuple(map(int, re.findall(rb"\d+", text)))]

    def parse_label(self, text):
        name, cat = LABEL.fullmatch(text).groups()
        self.label_names.append(self.texts[name])
        self.label_cats.append(self.texts[cat] if cat else 0)
        return len(self.label_names) - 1

    def block(self, offset, block):
        """Reads whole lines, each of which ends in a comma. False: some line has another layout."""
        lines = block.count(b"\n")
        if self.native:
            return self.native_block(offset, block, lines)
        if block.count(b"},\n") != lines:
            return False
        spans = X_LINE.findall(block)
        flows = FLOW_LINE.findall(block) if any(begin in block for begin in FLOWS) else ()
        others = []
        if len(spans) + len(flows) != lines:
            others = [line for line in block.split(b"\n") if line
                      and not line.startswith((b'{"ph":"X"', *FLOWS))]
            if len(spans) + len(flows) + len(others) != lines:
                return False
        events = [json.loads(line[:-1]) for line in others]
        if spans and not self.spans(offset, block, spans):
            return False
        if flows and not self.arrows(flows):
            return False
        for event in events:
            self.event(event, None)
        return True

    def spans(self, offset, block, spans):
        """Takes the matches of X_LINE in a block. False: some span needs the strict reader."""
        trace, first = self.trace, len(self.trace)
        labels, ids, starts, durations, rests = zip(*spans)
        rich = [i for i, rest in enumerate(rests) if rest != b"},"]
        if rich:
            texts = [rests[i] for i in rich]
            # Why only both ends: the text between them is decoded when it is asked for.
            if {rest[:9] for rest in texts} != {b',"args":{'} or {rest[-3:] for rest in texts} != {b"}},"}:
                return False
            trace._blocks.append((first, offset, len(block)))
            trace._mentioned |= {key for key, text in ASKED_TEXTS if text in block}
        numbers = list(map(self.labels.__getitem__, labels))
        trace.name.extend(map(self.label_names.__getitem__, numbers))
        trace.cat.extend(map(self.label_cats.__getitem__, numbers))
        trace.track.extend(map(self.id_texts.__getitem__, ids))
        # Why: 64 bits hold the sum of two times of so many digits. The strict reader refuses longer ones.
        if max(map(len, starts)) > 19 or max(map(len, durations)) > 19:
            return False
        trace.start.extend(map(int, b",".join(starts).replace(b".", b"").split(b",")))
        trace.dur.extend(map(int, b",".join(durations).replace(b".", b"").split(b",")))
        trace.kind += bytes(len(spans))
        trace.flags += bytes(len(spans))
        if rich:
            self.arguments(first, rich, texts, block)
        return True

    def native_block(self, offset, block, lines):
        """block() in C: spans there, all other lines here."""
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
            trace._mentioned |= {key for bit, key in enumerate(ASKED) if native.block.asked >> bit & 1}
        given = native.block.given_count
        trace._given[0].extend(map(first.__add__, native.column("given", 4 * given).cast("I")))
        trace._given[1].extend(native.column("given_ids", 24 * given))
        for k, key in enumerate(INDEXES):
            if native.block.indexes >> k & 1:
                self.column(key, first).frombytes(native.column(k, 8 * count))
        places = native.column("others", 16 * native.block.others_count).cast("Q")
        others = [block[at:at + length] for at, length in zip(places[::2], places[1::2])]
        arrows = [line for line in others if line.startswith(FLOWS)]
        found = FLOW_LINE.findall(b"\n".join(arrows) + b"\n")
        if len(found) != len(arrows) or not self.arrows(found):
            return False
        for line in others if len(arrows) < len(others) else ():
            if not line.startswith(FLOWS):
                self.event(json.loads(line[:-1]), None)
        return True

    def arrows(self, found):
        """Takes the matches of FLOW_LINE. False: one end comes twice, and needs the strict reader. Why not
        flow(): npuprof's own arrows have two ends, and the first is decoded when the second comes."""
        half = self.half
        for phase, name, ids, flow, ts in found:
            key = name + flow
            other = half.pop(key, None)
            if other is None:
                half[key] = phase, ids, ts
                continue
            if other[0] == phase:
                return False
            (_, from_ids, from_ts), (_, ids, ts) = sorted((other, (phase, ids, ts)), reverse=True)
            self.trace.flows.add(self.texts[name], self.id_texts[from_ids], without_point(from_ts),
                                 self.id_texts[ids], without_point(ts))
        return True

    def arguments(self, first, rows, texts, block):
        """Sets kinds, flags, ids and index columns from the arguments of the spans in a block.

        rows: the spans with arguments, from `first` on; texts: their arguments. Why `block` is searched
        first: most blocks do not hold most of the keys."""
        rows = [first + i for i in rows]
        kind, flags = self.trace.kind, self.trace.flags
        if b'"args":{"kind":"' in block:
            for i, text in zip(rows, texts):
                if text.startswith(b'"kind":"', 9):
                    kind[i] = KINDS.get(text[17:text.index(b'"', 17)], SPAN)
        if b'"args":{"stamp":"' in block:
            for i, text in zip(rows, texts):
                if text.startswith(b'"stamp":"', 9):
                    kind[i] = DEVICE
                    flags[i] |= (SAMPLED * text.startswith(b'sampled"', 18)
                                 | COUNTED * (b'"busy_ticks":' in text))
        if b'"trace_id":"' in block:
            self.given_ids(rows, texts)
        if b'"causality":"violated"' in block or b'"unfinished":' in block or b'"warm_up":true' in block:
            for i, text in zip(rows, texts):
                flags[i] |= (VIOLATED * (b'"causality":"violated"' in text)
                             | UNFINISHED * (b'"unfinished":true' in text)
                             | UNWOUND * (b'"unfinished":"unwound"' in text)
                             | IN_WARM_UP * (b'"warm_up":true' in text))
        self.indexes(rows, texts, block)

    def given_ids(self, rows, texts):
        """The ids that the arguments state."""
        given, ids = self.trace._given
        for i, text in zip(rows, texts):
            at = text.find(b'"trace_id":"')
            # Why the kind: in other spans the key is the user's own.
            found = IDS.match(text, at) if at > 0 and self.trace.kind[i] != SPAN else None
            if found:
                ids += bytes.fromhex((found[1] + found[2]).decode())
                given.append(i)

    def indexes(self, rows, texts, block):
        """The index columns."""
        value = self.values.__getitem__
        for key, quoted in QUOTED.items():
            if quoted in block:
                column = self.column(key, len(self.trace))
                for i, text in zip(rows, texts):
                    column[i] = value(text.partition(quoted)[2].partition(b",")[0])
        if len(self.values) > 100_000:
            self.values.clear()


def without_point(time):
    """µs with three decimals as ns."""
    return int(time.replace(b".", b""))

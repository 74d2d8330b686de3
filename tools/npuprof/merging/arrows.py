# SPDX-License-Identifier: MIT
"""Arrows from one process to another: ends of PROF_FLOW_OUT and PROF_FLOW_IN that have no partner in their
own trace, and have the same id.

As in one process, an in comes from the newest out before it; an out may lead to many. Clocks of two traces
differ by at most an error. So an in is joined only if this error leaves one choice: there is one out that may
be before it; or the newest is before it for sure, and all others before that one. An effect that seems to be
before its cause by less than the error is drawn at one moment with it.
"""

import os
import subprocess
import tempfile
from bisect import bisect_right
from collections import Counter, defaultdict
from typing import NamedTuple

from ..base.files import plain_path
from ..base.messages import Refused
from ..convert.image import is_image
from ..read.image import converter

NAME = b"flow"
ALONE, AMBIGUOUS, BACKWARDS = ("without a partner in another process",
                               "ambiguous within the error of the clocks",
                               "backwards in time by more than that error")


class End(NamedTuple):
    ns: int            # of the common timeline, as what follows
    first: int         # of the span around it
    last: int
    part: object
    tid: int


def loose_ends(part, base):
    """Yields (arrives, id, End) of an image's ends without a partner."""
    if not is_image(part.path):
        return
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder, plain_path(part.path) as plain:
        out = os.path.join(folder, "ends.flows")
        subprocess.run([converter(), "-o", out, "--", plain], stdin=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        try:
            with open(out, encoding="ascii") as file:
                lines = file.read().splitlines()
        except OSError:
            raise Refused(f"{part.path}: npuprof-convert finds no arrows in it: make tools") from None
    for line in lines:
        arrives, flow, tid, *times = map(int, line.split(","))
        ns, start, end = (time + part.start - base for time in times)
        yield arrives, flow, End(ns, start, end - 1, part, tid + part.tid_shift)


def error_between(a, b):
    """How far the clocks of two parts may differ."""
    if a is b:
        return 0
    if a.lead and a.lead is b.lead and "offset" not in a.how + b.how:
        return a.anchor_error + b.anchor_error
    return a.error + b.error


def choice(outs, end):
    """(the newest outs that may be before an end, at most two of each part; why it comes from none or None).
    outs: {part: sorted Ends}. The first one is where it comes from."""
    others = [part for part in outs if part is not end.part]
    before = []
    for part in others:
        k = bisect_right(outs[part], (end.ns + error_between(part, end.part), 2**63))
        before += outs[part][max(0, k - 2):k]
    if not before:
        return before, BACKWARDS if others else ALONE
    newest = max(before, key=lambda out: out.ns)
    before.remove(newest)
    sure = not before or newest.ns <= end.ns - error_between(newest.part, end.part)
    sure = sure and all(newest.ns - out.ns > error_between(newest.part, out.part) or out.part is newest.part
                        and out.ns < newest.ns for out in before)
    return [newest, *before], None if sure else AMBIGUOUS


class Arrows:
    """drawn    [((pid, tid, ns), (pid, tid, ns))] of arrows between these parts, from and to
    why      why ends are not joined -> how many
    blind    parts that cannot tell: JSON has only whole arrows"""

    def __init__(self, parts, base):
        self.drawn, self.why = [], Counter()
        many = len(parts) > 1
        self.blind = [part for part in parts if many and not is_image(part.path) and has_flows(part)]
        outs, ins = defaultdict(lambda: defaultdict(list)), defaultdict(list)
        for part in parts if many else ():
            for arrives, flow, end in loose_ends(part, base):
                (ins[flow] if arrives else outs[flow][part]).append(end)
        for flow in outs.keys() | ins.keys():
            self.join({part: sorted(own, key=lambda end: end[:3]) for part, own in outs[flow].items()},
                      ins[flow])
        self.drawn.sort()

    def join(self, outs, ins):
        """Joins the ends of one id."""
        seen = set()
        for end in ins:
            found, why = choice(outs, end)
            if not why:
                seen.add(found[0])
                source = min(found[0].ns, max(end.ns, found[0].first))
                target = min(max(end.ns, source), end.last)
                why = BACKWARDS if target < source else None      # one span ends before the other begins
                if not why:
                    self.drawn.append(((found[0].part.pid, found[0].tid, source),
                                       (end.part.pid, end.tid, target)))
            if why:
                self.why[why] += 1
                seen.update(found)
                if why == BACKWARDS:
                    seen.update(out for part, own in outs.items() if part is not end.part for out in own)
        self.why[ALONE] += sum(out not in seen for own in outs.values() for out in own)

    def lines(self, number):
        """Yields the lines of them; number: the last id of an arrow so far."""
        for ends in self.drawn:
            number += 1
            for phase, bind, (pid, tid, ns) in zip((b"s", b"f"), (b"", b',"bp":"e"'), ends):
                yield (b'{"ph":"%s","name":"%s","pid":%d,"tid":%d%s,"cat":"%s","id":%d,"ts":%d.%03d}' % (
                    phase, NAME, pid, tid, bind, NAME, number, *divmod(ns, 1000)))

    def sentences(self):
        why = [f"{count} {'end is' if count == 1 else 'ends are'} {reason}"
               for reason, count in self.why.items() if count]
        if self.drawn or why:
            yield f"arrows between processes: {len(self.drawn)} joined" + "".join(f"; {one}" for one in why)
        for part in self.blind:
            yield f"{part.path}: JSON has no arrows to other processes: merge its image (.npuprof)"


def has_flows(part):
    """True: the program has PROF_FLOW_OUT or PROF_FLOW_IN."""
    return any(site.get("name") == "flow" and "cat" not in site for site in part.about.get("sites", ()))

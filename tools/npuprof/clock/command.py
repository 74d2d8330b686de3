# SPDX-License-Identifier: MIT
"""How far the clocks of host and device are apart, as the arrows between them tell; the trace set right.

An arrow from a launch to its kernel, or from a job to who waited for it, leads from cause to effect. Where
the effect comes first, a clock is wrong. A device's time is set right by a shift in ns and a drift in ppm:

  right = stamp + shift + drift * (stamp - first stamp of an arrow of that device)

This prints how many arrows go backwards, and all shifts and drifts after which none does: as the intervals
that hold the true ones. They are exact, by linear programming in whole numbers. Stamps are rounded, and the
intervals allow for that: by the unit of the trace and 1 ns. Arrows in one direction leave one end open. If no
shift and drift repairs all, it says which arrows contradict, by how much, and writes nothing.

The least change is a shift alone if that can do, else the least drift, then the least shift. --output writes
the trace with it, as JSON, and leaves everything else as it was.

The trace may be of any tool: Chrome JSON with flow events. The tracks of a device are those of npuprof's
device spans, or by their names: GPU, NPU, stream, ... --device says it for others. One process is one clock,
if none of the host's threads is in it; of --device, all are one.

Exit code 0: no arrow goes backwards, or in what --output wrote only by rounding; 1: some do; 2: the trace
cannot be used.
"""

import json
from fractions import Fraction
from math import ceil, floor

from ..base.files import check_output, whole_file
from ..base.messages import Refused, tell
from ..read import load
from .arrows import devices_of
from .corrected import write_corrected
from .line import Lines

SHOWN = 3              # arrows in a sentence


def add_arguments(parser):
    parser.add_argument("trace", metavar="TRACE", help="a .json or .npuprof file")
    parser.add_argument("-o", "--output", metavar="FILE", help="the trace with the least change, .json")
    parser.add_argument("--device", metavar="REGEX",
                        help="tracks or processes of such a name have the device's clock")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of sentences")


def run(arguments):
    if arguments.output:
        check_output(arguments.output, (".json", ".json.gz"), arguments.trace)
    trace = load(arguments.trace, progress=True)
    if trace.format == "csv":
        raise Refused(f"{arguments.trace}: a CSV has no arrows: give the JSON or the image")
    unit = unit_of(trace)
    found = [Answer(device, unit) for device in devices_of(trace, arguments.device)]
    if arguments.output and all(answer.drifts for answer in found):
        with whole_file(arguments.output) as file:
            write_corrected(trace, found, file)
    if arguments.json:
        said = {"trace": arguments.trace, "unit_ns": unit, "devices": [one.as_json() for one in found]}
        print(json.dumps(said))
    else:
        for line in (line for answer in found for line in answer.lines()):
            tell(f"{arguments.trace}: {line}")
    wrong = [answer.is_left if arguments.output else answer.back for answer in found]
    return 1 if any(wrong) else 0


def unit_of(trace):
    """In how many ns the trace counts: 1, 1000 or 10^6."""
    for unit in 10**6, 1000:
        if not any(ns % unit for column in (trace.start, *trace.flows.columns[1::2]) for ns in column):
            return unit
    return 1


class Answer:
    """What the arrows tell of one device. shift, drift: the least change; right(ns): a stamp set right."""

    def __init__(self, device, unit):
        self.device, self.start = device, device.start
        self.back = [arrow for arrow in device.arrows if arrow.back]
        self.lines_ = Lines(*device.points(unit + 1))
        self.drifts = self.lines_.drifts
        self.alone = self.lines_.low(Fraction(0)), self.lines_.high(Fraction(0))
        if None not in self.alone and self.alone[0] > self.alone[1]:
            self.alone = None
        best = self.exact = Lines(*device.points())
        if not best.drifts and self.drifts:        # what is left is rounding
            best = Lines(*device.points(ceil(best.contradiction()[0] / 2)))
        self.shift, self.drift = best.smallest() if self.drifts else (Fraction(0), Fraction(0))
        self.left = [left for left in map(self.moved, device.arrows) if left.back]
        self.is_left = any(arrow.back > unit + 1 for arrow in self.left)

    def right(self, ns):
        """Why rounded up: what lies at or after a whole number of ns still does, and so does what lies
        before."""
        return ceil(ns + self.shift + self.drift * (ns - self.start))

    def moved(self, arrow):
        return arrow._replace(device=self.right(arrow.device))

    @property
    def shifts(self):
        return self.lines_.shifts(self.drifts)

    def contradiction(self):
        """(the excess in ns, the arrows of it)."""
        excess, lower, upper = self.exact.contradiction()
        wanted = {(point[0], to_device) for to_device, points in ((True, lower), (False, upper))
                  for point in points}
        arrows = sorted({(a.device - self.start, a.to_device): a for a in sorted(
            self.device.arrows, key=lambda a: a.host if a.to_device else -a.host)
            if (a.device - self.start, a.to_device) in wanted}.values(), key=lambda a: a.device)
        return excess, arrows

    def as_json(self):
        to_device = sum(arrow.to_device for arrow in self.device.arrows)
        said = {"device": self.device.name, "arrows_to": to_device,
                "arrows_from": len(self.device.arrows) - to_device, "backwards": len(self.back),
                "worst_ns": max((arrow.back for arrow in self.back), default=0), "from_ns": self.start,
                "shift_alone_ns": self.alone and outward(self.alone, 1),
                "shift_ns": self.drifts and outward(self.shifts, 1),
                "drift_ppm": self.drifts and outward(self.drifts, 10**12, 10**6),
                "least": {"shift_ns": float(self.shift), "drift_ppm": float(self.drift * 10**6)},
                "backwards_after": len(self.left),
                "worst_after_ns": max((arrow.back for arrow in self.left), default=0), "contradict": None}
        if self.drifts is None:
            excess, arrows = self.contradiction()
            said["contradict"] = {"by_ns": ceil(excess), "arrows": [arrow._asdict() for arrow in arrows]}
        return said

    def lines(self):
        said = self.as_json()
        where = f"device {self.device.name!a}: {len(self.device.arrows)} arrows"
        if not self.back:
            yield f"{where}, none goes backwards: ok"
        else:
            worst = max(self.back, key=lambda arrow: arrow.back)
            yield (f"warning: {where}, {len(self.back)} go backwards, by up to {worst.back} ns, "
                   f"{worst.name!a} at {worst.host} ns")
        if self.drifts is None:
            yield f"fault: no shift and drift repairs all: {self.contradicting(said['contradict'])}"
            return
        if self.alone:
            yield f"a shift alone repairs all: {interval(said['shift_alone_ns'], 'ns')}"
        else:
            yield "no shift alone repairs all: the clocks drift apart"
        if not (said["arrows_to"] and said["arrows_from"]):
            way = "from" if said["arrows_to"] else "to"
            yield f"shift and drift: arrows {way} the device would limit both"
        else:
            yield (f"shift and drift: {interval(said['shift_ns'], 'ns')} at {self.start} ns, "
                   f"{interval(said['drift_ppm'], 'ppm')}")
        if self.back:
            yield (f"the least change: a shift of {float(self.shift):.1f} ns"
                   + f" and a drift of {float(self.drift * 10**6):.6f} ppm" * bool(self.drift)
                   + f"; {said['backwards_after']} are left, by up to {said['worst_after_ns']} ns: rounding"
                   * bool(self.left))

    @staticmethod
    def contradicting(said):
        texts = [f"{a['name']!a} from {a['host']} to {a['device']}" if a["to_device"] else
                 f"{a['name']!a} from {a['device']} back to {a['host']}" for a in said["arrows"][:SHOWN]]
        return f"{', '.join(texts)} (ns) contradict each other, by {said['by_ns']} ns"


def outward(bounds, parts, times=1):
    """Numbers around an exact interval: whole ones of the unit by `parts`."""
    least, greatest = bounds
    return [None if least is None else floor(least * parts) * times / parts,
            None if greatest is None else ceil(greatest * parts) * times / parts]


def interval(bounds, unit):
    least, greatest = bounds
    if least is None:
        return "any" if greatest is None else f"at most {greatest:g} {unit}"
    return f"at least {least:.10g} {unit}" if greatest is None else f"{least:.10g} to {greatest:.10g} {unit}"

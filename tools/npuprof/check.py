# SPDX-License-Identifier: MIT
"""Test traces against the rules of the viewers.

Reads Chrome traces (JSON) strictly. It reports what Perfetto, Chrome's viewer or speedscope would drop, move,
or take for something else. For traces of npuprof it also tests what they promise beyond the format: metadata,
names of threads and processes, pids and tids from 1, at most three decimals. It warns of what was lost and of
device spans that are missing or contradict their submission.

Prints one line for each finding: `file: event N (byte B): rule: sentence`. Events count from 0, bytes from
the start of the file. At most 10 findings of each rule are printed, then how many more there are.

Behind them come the findings of a doctor, a sentence each: what is wrong, where, and what to do. A fault: the
trace is wrong or lacks something, and no count of it says how much. A warning: what is missing is counted, or
is as the program wanted it. An image is checked as the JSON that `convert` makes of it. A CSV and a database
have no rules, and tell the doctor less.

Exit code 0: neither errors nor faults (warnings are allowed). 1: a rule is broken, or the trace has a fault.
2: a file cannot be read, is not strict JSON, or is no trace.
"""

import bisect
import contextlib
import math
import re
import sys
from array import array
from collections import Counter, defaultdict
from decimal import Decimal

from .base.doctor import Evidence, Finding, device_of, evidence_of, findings
from .base.files import read_bytes
from .base.losses import syncs_of
from .base.messages import Refused, tell
from .base.numbers import plain
from .base.promised import CLOCK, CLOCK_SYNC, COUNT, DEVICE, NPUPROF
from .base.strict_json import NotJson, decode, read_events, read_trace, refuse_halves, shown
from .merging.beside import add_kernel_arguments, beside, kernel_arguments, only_trace
from .read import load
from .read.database import MAGIC
from .read.foreign import file_of
from .read.image import opened, refuse_other
from .read.pairs import name_of, partners

PRINTED_PER_RULE = 10
HEAD = 4096                   # bytes that tell what a file is
DEPTH_MAX = 512               # viewers drop deeper slices
EVENTS_SLOW = 1_000_000       # with more, Chrome's viewer is slow
TIME_LIMIT_US = Decimal("2251799813685.248")  # 2^51 ns; below, three decimals are exact in a double
ID_MAX = 2**32 - 1            # of a pid or tid
INT64 = range(-2**63, 2**63)
PHASES = frozenset("BEXiICbneSTpFstfPNODMVvRc(),")
OF_THREADS = "BEXstf"         # phases whose events are on a thread
THOUSANDTH = Decimal("0.001")
LONG_FRACTION = re.compile(r"\.[0-9]{20}")
STRING_OR_LONG_FRACTION = re.compile(r'"(?:\\.|[^"\\])*"|[0-9]\.[0-9]{20}')
FLOW_ID = re.compile(r"(?:0x)?[0-9a-fA-F]{1,16}")


class Findings:
    """Prints findings as they come, at most PRINTED_PER_RULE of each rule."""

    def __init__(self, path, text):
        self.path, self.text, self.counts = path, text, Counter()
        self.positions = array("Q")  # of the events, in characters

    def add(self, rule, sentence, event=None):
        self.counts[rule] += 1
        if self.counts[rule] <= PRINTED_PER_RULE:
            where = "" if event is None else f" event {event} (byte {self.byte(self.positions[event])}):"
            print(f"{self.path}:{where} {rule}: {sentence}")

    def byte(self, position):
        return position if self.text.isascii() else len(self.text[:position].encode())

    def print_rest(self):
        for rule, count in self.counts.items():
            if count > PRINTED_PER_RULE:
                print(f"{self.path}: {rule}: {count - PRINTED_PER_RULE} more")


def integer_outside_int64(value):
    """The first integer anywhere in a value that 64 bits cannot hold; None: there is none."""
    todo = [value]
    while todo:
        value = todo.pop()
        if type(value) is int and value not in INT64:
            return value
        if type(value) is dict:
            todo.extend(value.values())
        elif type(value) is list:
            todo.extend(value)
    return None


class Checker:
    """Takes events one by one; finish() tests what needs all of them.

    Times are whole nanoseconds, a thread is (pid, tid), an event is known by its index."""

    def __init__(self, findings):
        self.findings = findings
        # Else another tool's, which promises only the format. Ours is never a mere array.
        self.is_own = '"npuprof"' in findings.text and not findings.text.lstrip().startswith("[")
        self.add = findings.add
        self.slices = defaultdict(list)   # thread -> (start, -end, event): sorts as the viewers do
        self.begin_end = defaultdict(list)  # thread -> (ts, is it E, name, event)
        self.flows = []                   # (ts, event, phase, thread, (id, cat, name))
        self.has_complete = False         # there are X events
        self.processes, self.process_names, self.thread_names = set(), set(), set()
        self.evidence, self.track_names = Evidence(), {}
        self.executions = defaultdict(set)  # thread -> values of execution_index
        self.about = {}                   # metadata.npuprof, with plain numbers

    def event(self, position, event):
        index = len(self.findings.positions)
        self.findings.positions.append(position)
        if not (event or self.is_own) and type(event) is dict:
            return None                   # XProf ends each trace with an empty object
        if type(event) is not dict:
            return self.add("event", f"{shown(event)} is not an object", index)
        phase, name, args = event.get("ph"), event.get("name"), event.get("args")
        if type(phase) is not str or phase not in PHASES:
            return self.add("ph", f"ph {shown(phase)} is not known", index)
        if type(name) is not str and not (name is None and phase == "E"):
            self.add("name", f"name {shown(name)} is not a string", index)
        if type(event.get("cat", "")) is not str:
            self.add("cat", f"cat {shown(event['cat'])} is not a string", index)
        if args is not None and type(args) is not dict:
            self.add("args", "args is not an object", index)
            args = None
        if args:
            outside = integer_outside_int64(args)
            if outside is not None:
                self.add("args", f"{shown(outside)} does not fit int64", index)

        thread = self.thread(index, event, phase, name)
        if thread is None:
            return None
        if phase == "M":
            return self.metadata(index, thread, name, args)
        self.processes.add(thread[0])
        self.note(thread, phase, name, args or {})
        ts = self.nanoseconds(index, event, "ts")
        if ts is None:
            return None
        if phase == "X":
            self.has_complete = True
            dur = self.nanoseconds(index, event, "dur")
            if dur is not None:
                self.slices[thread].append((ts, -(ts + dur), index))
        elif phase in "BE":
            self.begin_end[thread].append((ts, phase == "E", name_of(event), index))
        elif phase == "C":
            self.counter(index, args)
        elif phase in "stf":
            self.flow(index, event, phase, ts, thread)
        return None

    def note(self, thread, phase, name, args):
        """Takes what an event tells the doctor."""
        self.evidence.events += 1
        if phase in "iI":
            self.evidence.instant(name, args)
        elif phase == "X" and args:
            self.evidence.open[str(name)] += args.get("unfinished") is True
            self.evidence.span(str(name), args)
            number = args.get("execution_index")
            if "error_ns" in args and type(number) is int:
                self.executions[thread].add(number)
        elif phase == "C" and args.keys() == {"used", "allocated"}:
            self.evidence.rounded += any(type(value) is not int for value in args.values())

    def thread(self, index, event, phase, name):
        """(pid, tid); None if one of them is wrong. The name of a process needs no tid. Other tools count
        from 0, as Kineto its GPUs, have words for them, and give a tid where a thread is meant."""
        ids, least = [], 1 if self.is_own else 0
        no_tid = (phase == "M" and str(name).startswith("process_") if self.is_own else
                  phase not in OF_THREADS)
        for key in ("pid", "tid"):
            value = event.get(key)
            if key == "tid" and value is None and no_tid:
                ids.append(None)
            elif type(value) is str and not self.is_own:
                ids.append(value)
            elif type(value) is not int or not least <= value <= ID_MAX:
                self.add(key, f"no {key}" if value is None else
                         f"{key} {shown(value)} is not {least} to 2^32-1", index)
                return None
            else:
                ids.append(value)
        return tuple(ids)

    def nanoseconds(self, index, event, key):
        """A time in whole nanoseconds, or None if it breaks a rule."""
        value = event.get(key)
        if type(value) not in (int, Decimal):
            sentence = f"no {key}" if value is None else f"{shown(value)} is not a number"
        elif value < 0:
            sentence = f"{shown(value)} is negative"
        elif not self.is_own and value < INT64.stop // 1000:
            return int(value * 1000)
        elif value >= TIME_LIMIT_US:
            sentence = (f"{shown(value)} us is too large for exact nanoseconds, "
                        "count from the start of the trace")
        elif type(value) is int:
            return value * 1000
        elif value.same_quantum(THOUSANDTH) or value.as_tuple().exponent >= -3:
            return int(value * 1000)
        else:
            sentence = f"{shown(value)} has more than three decimals"
        self.add(key, sentence, index)
        return None

    def metadata(self, index, thread, name, args):
        if name in ("process_name", "thread_name"):
            if type((args or {}).get("name")) is not str:
                self.add("name", f"{name} has no string args.name", index)
                return
            if not args["name"]:
                self.add("name", f"{name} has an empty args.name, which viewers refuse", index)
            if name == "process_name":
                self.process_names.add(thread[0])
            else:
                self.thread_names.add(thread)
                self.track_names[thread] = args["name"]

    def counter(self, index, args):
        if not args:
            self.add("counter", "a counter without a value in args", index)
            return
        for key, value in args.items():
            if type(value) is not int and not (type(value) is Decimal and math.isfinite(float(value))):
                self.add("counter", f"{shown(key)}: {shown(value)} is not a finite number", index)

    def flow(self, index, event, phase, ts, thread):
        flow_id = event.get("id")
        if type(flow_id) is str and not self.is_own:
            pass
        elif type(flow_id) is str and FLOW_ID.fullmatch(flow_id):
            flow_id = int(flow_id, 16)
        elif type(flow_id) is not int or flow_id not in range(2**64):
            self.add("flow-id", f"id {shown(flow_id)} is neither a 64-bit number nor a string of hex digits",
                     index)
            return
        if self.is_own and phase == "f" and event.get("bp") != "e":
            self.add("flow-bp", 'f without "bp":"e" ends at the next slice', index)
        self.flows.append((ts, index, phase, thread,
                           (flow_id, str(event.get("cat", "")), str(event.get("name")))))

    def finish(self, top):
        """Tests what needs all events. `top` holds the members beside traceEvents."""
        for thread, marks in self.begin_end.items():
            self.pair(thread, marks)
        covered = {thread: self.nest(slices) for thread, slices in self.slices.items()}
        self.join_flows(covered)
        for pid, tid in self.slices.keys() - self.thread_names if self.is_own else ():
            self.add("thread-name", f"tid {tid} of pid {pid} has slices and no thread_name")
        for pid in self.processes - self.process_names if self.is_own else ():
            self.add("process-name", f"pid {pid} has no process_name")
        if top.get("displayTimeUnit", "ms") not in ("ms", "ns"):
            self.add("time-unit", f"displayTimeUnit {shown(top['displayTimeUnit'])} is neither ms nor ns")
        metadata = top.get("metadata", {})
        if type(metadata) is not dict:
            self.add("metadata", "metadata is not an object")
        elif "npuprof" in metadata:
            self.npuprof(metadata["npuprof"])

    def pair(self, thread, marks):
        """Makes slices of B and E events."""
        for (ts, ends, name, index), partner in zip(marks, partners(marks)):
            if partner is None:
                self.add("begin-end", "E where no B is open" if ends else f"B {shown(name)} is never closed",
                         index)
            elif ends:
                start, _, begin_name, begin = marks[partner]
                if name not in ("", begin_name):
                    self.add("begin-end", f"E {shown(name)} closes B {shown(begin_name)}, event {begin}",
                             index)
                elif self.has_complete and start == ts:
                    self.add("begin-end", f"E closes event {begin} of the same ts: in a file with X events, "
                                          "viewers put ends first", index)
                self.slices[thread].append((start, -ts, begin))

    def nest(self, slices):
        """Tests that slices nest. Returns the starts and ends of the time that they cover."""
        slices.sort()
        starts, ends, open_slices = [], [], []
        for start, minus_end, index in slices:
            end = -minus_end
            while open_slices and open_slices[-1][0] <= start:
                open_slices.pop()
            if open_slices and end > open_slices[-1][0]:
                parent_end, parent = open_slices[-1]
                self.add("overlap", f"{start} to {end} ns runs past event {parent}, which ends at "
                                    f"{parent_end}", index)
            else:
                open_slices.append((end, index))
                if len(open_slices) > DEPTH_MAX:
                    self.add("depth", f"nested {len(open_slices)} deep, viewers take {DEPTH_MAX}", index)
            if ends and start < ends[-1]:
                ends[-1] = max(ends[-1], end)
            else:
                starts.append(start)
                ends.append(end)
        return starts, ends

    def join_flows(self, covered):
        started = set()
        for ts, index, phase, thread, key in sorted(self.flows):
            if phase == "s" and key in started:
                self.add("flow-repeat", f"s {shown(key)} is there twice", index)
            elif phase == "s":
                started.add(key)
            elif key not in started:
                self.add("flow-match", f"{phase} {shown(key)} has no earlier s of the same id, cat and name",
                         index)
            starts, ends = covered.get(thread, ((), ()))
            at = bisect.bisect_right(starts, ts) - 1
            if at < 0 or not (ts < ends[at] or starts[at] == ends[at] == ts):
                self.add("flow-slice", f"{phase} at {ts} ns lies in no slice of its thread", index)

    def npuprof(self, npuprof):
        """Tests the metadata that npuprof promises."""
        self.members("npuprof", npuprof, NPUPROF)
        if type(npuprof) is not dict:
            return
        lost = npuprof.get("lost")
        self.members("npuprof.clock", npuprof.get("clock"), CLOCK)
        self.members("npuprof.lost", lost, dict.fromkeys(lost if type(lost) is dict else (), COUNT))
        devices = npuprof.get("devices", [])
        if type(devices) is not list:
            return self.add("metadata", "npuprof.devices is not an array")
        for number, device in enumerate(devices):
            self.members(f"npuprof.devices[{number}]", device, DEVICE)
            if type(device) is dict:
                self.members(f"npuprof.devices[{number}].clock_sync", device.get("clock_sync"), CLOCK_SYNC)
        self.about = plain(npuprof)

    def diagnosis(self):
        """The doctor's findings, after finish()."""
        devices = [name for name, _ in syncs_of(self.about)]
        for thread, values in self.executions.items():
            name = device_of(self.track_names.get(thread, ""), devices)
            self.evidence.executions.setdefault(name, set()).update(values)
        self.evidence.open = +self.evidence.open
        return findings(self.about, self.evidence)

    def members(self, where, value, schema):
        """Tests the members of an object."""
        if type(value) is not dict:
            return self.add("metadata", f"{where} is missing, or not an object")
        for key, (kind, fits) in schema.items():
            if key not in value:
                self.add("metadata", f"{where} has no {key}")
            elif not fits(value[key]):
                self.add("metadata", f"{where}.{key} {shown(value[key])} is not {kind}")


def text_of(path, head):
    """The text of a trace; of an image that of its JSON, and what is damaged."""
    data, damage = b"", ""
    if head.startswith(b"NPUPROF"):
        file, damage, _ = opened(path)
        with file:
            data = file.read()
    else:
        data = read_bytes(path)
    try:
        return data.decode(), damage
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"{path}:{line}: byte {error.start}: not strict JSON: invalid UTF-8") from None


def check_other(path, head):
    """check_file() of what has no rules of viewers: a CSV, a database of `export`, another tool's own file.
    None: it is another file."""
    is_csv = b"span_id" in head.partition(b"\n")[0] and not head.startswith(b"{")
    if not (is_csv or head.startswith(MAGIC) or file_of(head)):
        return None
    trace = load(path)
    found = findings(trace.metadata, evidence_of(trace))
    if trace.format == "csv":
        found.append(Finding(False, "a CSV does not say what was lost, nor what its clocks are worth"))
    return concluded(path, 0, len(trace), found, trace.damage, what="spans")


def check_file(path):
    """Prints the findings of one file and returns the exit code. Raises Refused if it is no trace."""
    head = read_bytes(path, HEAD)
    refuse_other(path, head)
    code = check_other(path, head)
    return check_text(path, *text_of(path, head)) if code is None else code


def check_beside(path, arguments):
    """check_file() of a trace, or None, with the text of --ftrace."""
    with beside(path, arguments) as (merged, damage):
        return check_text(path or arguments.ftrace, text_of(merged, read_bytes(merged, HEAD))[0], damage)


def check_text(path, text, damage):
    """check_file() of a text that should be JSON."""
    if re.fullmatch(r"\s*\[[^{]+\]\s*", text):
        raise Refused(f"{path}:1: not a trace: its array holds no event")
    rules = Findings(path, text)
    checker = Checker(rules)
    try:
        top = read_any(text, checker.event)
    except NotJson as error:
        line = text.count("\n", 0, error.position) + 1
        raise Refused(f"{path}:{line}: byte {rules.byte(error.position)}: not strict JSON: "
                      f"{error}") from None
    if top is None or top.get("traceEvents") != []:
        raise Refused(f"{path}:1: not a trace: no top-level object with an array traceEvents")
    if LONG_FRACTION.search(text):
        for match in STRING_OR_LONG_FRACTION.finditer(text):
            if not match[0].startswith('"'):
                rules.add("number", f"more than 19 decimals at byte {rules.byte(match.start())}")
    for position in deletes(text, rules.positions):
        rules.add("control", f"a raw DEL (0x7f) beside the events, byte {rules.byte(position)}: "
                             "Perfetto refuses the file; write \\u007f")
    checker.finish(top)
    rules.print_rest()
    found = diagnosis(path, text, checker)
    return concluded(path, rules.counts.total(), len(rules.positions), found, damage)


def read_any(text, on_event):
    """read_trace(), also of a mere array of events. Chrome's format lets that end anywhere: diagnosis()
    refuses one that is damaged."""
    refuse_halves(text, pairs=True)
    if not text.lstrip().startswith("["):
        return read_trace(text, on_event)
    with contextlib.suppress(NotJson):
        read_events(text, text.index("["), on_event)
    return {"traceEvents": []}


def diagnosis(path, text, checker):
    """What the doctor says; of another tool's trace, what its reader says."""
    if checker.is_own:
        return checker.diagnosis()
    try:
        return findings({}, evidence_of(load(path)))
    except Refused:
        if text.lstrip().startswith("["):
            raise
        # Why nothing beside errors: the rules have named what it is.
        return [] if checker.findings.counts else checker.diagnosis()


def concluded(path, errors, events, diagnosis, damage="", what="events"):
    """Prints what the doctor says, and the last line. Returns the exit code."""
    if events > EVENTS_SLOW:
        tell(f"{path}: warning: {events} events, Chrome's viewer is slow above {EVENTS_SLOW}")
    for finding in diagnosis:
        tell(f"{path}: {'fault' if finding.is_fault else 'warning'}: {finding.sentence}")
    faults = sum(finding.is_fault for finding in diagnosis) + bool(damage)
    counts = [f"{count} {kind}{'s' * (count > 1)}" for count, kind in (
        (errors, "error"), (faults, "fault"), (len(diagnosis) + bool(damage) - faults, "warning")) if count]
    tell(f"{path}: {', '.join(counts) or 'ok'}" + ("" if errors else f", {events} {what}"))
    return 1 if errors or faults else 0


def deletes(text, positions):
    """Where there is a DEL before the first event or behind the last one."""
    if "\x7f" not in text:
        return []
    first, end = (positions[0], decode(text, positions[-1])[1]) if positions else (len(text), len(text))
    return [match.start() for match in re.finditer("\x7f", text) if not first <= match.start() < end]


def add_arguments(parser):
    parser.add_argument("traces", metavar="TRACE.json", nargs="*",
                        help="a .json, .npuprof or .csv file, or a database of `export`; none is needed with "
                             "--ftrace")
    add_kernel_arguments(parser)


def run(arguments):
    kernel_arguments(arguments)
    if arguments.ftrace or not arguments.traces:
        return check_beside(only_trace(arguments.traces, arguments), arguments)
    code = 0
    for path in arguments.traces:
        try:
            code = max(code, check_file(path))
        except Refused as refused:
            print(refused, file=sys.stderr)
            code = 2
    return code

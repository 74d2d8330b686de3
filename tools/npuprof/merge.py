# SPDX-License-Identifier: MIT
"""Puts traces of several processes, ranks or hosts on one timeline.

Traces of npuprof (JSON or images) are aligned on their absolute bases. On one host, that is where the clock
since boot and the Unix clock agree about the time of the boot, by the clock since boot; the error is that of
the two traces' clock anchors, and of a user clock's rate: how far it ran from the OS's clock. Across hosts by
the Unix clocks, and there the error is that of the hosts' clocks: what the program said with
npuprof_metadata("clock_error_ns", "250000"), else what --host-error says for all hosts (10 ms if nothing is
known, and the output says that it is assumed). --offset FILE=NS moves a file by hand, with --host-error for
how sure you are.

Two traces of one process (one host, boot, pid and program) keep its pid, and the threads of the later one get
numbers behind those of the earlier. Processes that share a pid by chance get another, flow arrows get new
ids, processes are named by --label, else by the metadata "rank", and by program, host and pid. What cannot be
aligned is refused: other tools' traces, a CSV, traces of two versions, and one without an absolute base (of a
board without a clock), unless --offset says the Unix ns of its start.

The output's metadata.npuprof.processes holds each trace's own metadata with its file, label, shift_ns,
tid_shift, how it was aligned and error_ns, which is against the first file.

Exit code 0; 2: an input or the output cannot be used.
"""

import json
import os
import re

from . import loops
from .base.files import check_output, whole_file
from .base.messages import Progress, Refused
from .base.metadata import check_about, check_version
from .read import load
from .read.image import is_json, opened
from .read.own_layout import BLOCK, HEAD, STRING

HOST_ERROR_NS = 10_000_000
SAME_BOOT_NS = 1_000_000_000     # how far the Unix clock may be moved between two traces of one boot
LIMIT_NS = 2**51                 # three decimals of a microsecond are exact below
LINE = re.compile(rb'(\{"ph":"(.)".*?"pid":)(\d+)(,.*)', re.S)
TID = re.compile(rb'"tid":(\d+)')
SORT = re.compile(rb'"sort_index":(\d+)')
STAMP = re.compile(rb'"ts":(\d+)\.(\d\d\d)')
FLOW = re.compile(rb'"name":(' + STRING + rb').*?"id":(\d+)')


class Part:
    """One input: its metadata, and where it goes on the common timeline."""

    def __init__(self, path):
        self.path = path
        self.file, self.damage, head = opened(path)
        if not is_json(head):
            raise Refused(f"{path}:1: a CSV has no process, host, arrows or counters: merge the JSON or the "
                          "image")
        self.own = head.startswith(HEAD + b"\n")
        self.about = self.metadata()
        for key in ("start_unix_ns", "start_boottime_ns", "pid"):
            if type(self.about.get(key)) is not int:
                raise Refused(f"{path}: metadata.npuprof.{key} is missing, so it cannot be placed on a "
                              "common timeline")
        self.version = check_version(path, str(self.about.get("version")))
        if "processes" in self.about:
            raise Refused(f"{path}: is a merged trace: merge its parts")
        self.host = self.about.get("host", "")
        self.unix, self.boot, self.old_pid = (self.about[key]
                                              for key in ("start_unix_ns", "start_boottime_ns", "pid"))
        clock = self.about.get("clock", {})
        # Why the drift: between its anchors a clock is only as right as the rate that its user states.
        self.anchor_error = clock.get("error_ns", 0) + clock.get("drift_ns", 0)
        self.rate_unknown = clock.get("source") == "user" and "drift_ns" not in clock
        self.start = self.how = self.pid = self.label = self.lead = None
        self.error, self.assumed, self.tid_shift = 0, False, 0

    def metadata(self):
        """metadata.npuprof. Of an own file only its end is read."""
        if self.own:
            size = os.fstat(self.file.fileno()).st_size
            tail, step = b"", 1 << 16
            while b'\n],\n"displayTimeUnit"' not in tail and len(tail) < size:
                step *= 4
                self.file.seek(max(0, size - step))
                tail = self.file.read()
            end = tail.rfind(b'\n],\n"displayTimeUnit"')
            try:
                top = json.loads(b"{" + tail[end + 3:])
            except (ValueError, RecursionError):
                raise Refused(f"{self.path}: byte {size}: the file ends too early, was it cut off?") from None
            self.events_end = size - len(tail) + end + 1
            self.file.seek(0)
        else:
            trace = load(self.path)        # refuses what is broken, in its words
            top = {"metadata": {"npuprof": trace.metadata}}
        about = top.get("metadata").get("npuprof") if type(top.get("metadata")) is dict else None
        if not about:
            raise Refused(f"{self.path}: not a trace of npuprof: no metadata.npuprof (an array of events "
                          "alone has none), so it cannot be placed on a common timeline")
        return check_about(self.path, about)

    def lines(self):
        """The events, each as a line of npuprof's own layout without its comma."""
        if self.own:
            self.file.seek(0)
            offset, native = len(self.file.readline()), loops.Reader() if loops.native.library() else None
            while offset < self.events_end:
                block = self.file.read(min(BLOCK, self.events_end - offset))
                lines = (block + (b"" if block.endswith(b"\n")
                                  else self.file.readline())).splitlines(keepends=True)
                self.strict(offset, lines, native)
                offset += sum(map(len, lines))
                for line in lines:
                    yield line.rstrip(b",\n")
        else:
            self.file.seek(0)
            for n, event in enumerate(json.load(self.file)["traceEvents"]):
                try:
                    yield own_line(event)
                except (AttributeError, TypeError, ValueError, OverflowError):
                    raise Refused(f"{self.path}: event {n} of traceEvents: no event, its ts or dur is no "
                                  "time, or a number is too large") from None

    def strict(self, offset, lines, native):
        """Refuses lines that are not strict JSON."""
        block = b"".join(lines).rstrip(b",\n") + b",\n"
        others = lines
        if native and native.read("json", block, len(lines)) >= 0:
            others = [line for line in lines if not line.startswith(b'{"ph":"X"')]
        try:
            block.decode()
            for line in others:
                at = line
                json.loads(line.rstrip(b",\n"))
        except UnicodeDecodeError as error:
            raise Refused(f"{self.path}: byte {offset + error.start}: not strict JSON: invalid "
                          "UTF-8") from None
        except (ValueError, RecursionError) as error:
            raise Refused(f"{self.path}: byte {offset + block.find(at)}: not strict JSON: {error}") from None


def own_line(event):
    """An event as npuprof's own writer lays it out."""
    event = {key: event[key] for key in dict.fromkeys(("ph", "name", "cat", "pid", "tid", *event))
             if key in event}
    marks = {}
    for key in ("ts", "dur"):
        if key in event:
            ns = round(event[key] * 1000)
            marks[f'"{key}":"@{key}@"'] = f'"{key}":{ns // 1000}.{ns % 1000:03}'
            event[key] = f"@{key}@"
    text = json.dumps(event, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for mark, number in marks.items():
        text = text.replace(mark, number, 1)
    return text.encode()


def align(parts, offsets, host_error):
    """Gives every part its start on the Unix clock of the first, how that was found, and the error against
    the first."""
    boots = []                         # [part that leads, ...]: hosts, or boots of a host
    for part in parts:
        if part.path in offsets and part.unix <= 0:
            part.start, part.how = offsets[part.path], "offset"
        elif part.unix <= 0:
            raise Refused(f"{part.path}: it has no absolute base (its clock knew no date): "
                          f"say the Unix ns of its start with --offset {part.path}=NS")
        else:
            lead = next((b for b in boots if b.host == part.host and b.boot > 0 and part.boot > 0
                         and abs((b.unix - b.boot) - (part.unix - part.boot)) < SAME_BOOT_NS), None)
            if lead is None:
                boots.append(part)
                part.start, part.how, part.lead = part.unix, "unix", part
            else:
                part.start, part.how, part.lead = lead.start + part.boot - lead.boot, "boottime", lead
            if part.path in offsets:
                part.start, part.how = part.start + offsets[part.path], part.how + " and offset"

    def of_host(part):
        said = part.about.get("user", {}).get("clock_error_ns", "")
        if host_error is None and re.fullmatch(r"\d{1,15}", said):
            return int(said), False
        return (HOST_ERROR_NS, True) if host_error is None else (host_error, False)
    first = parts[0]
    for part in parts[1:]:
        part.error = first.anchor_error + part.anchor_error
        part.assumed = first.rate_unknown or part.rate_unknown
        if part.lead is None or part.lead is not first.lead or part.path in offsets:
            for error, assumed in (of_host(first), of_host(part)):
                part.error += error
                part.assumed = part.assumed or assumed


def last_tid(part):
    """The highest thread number of its events."""
    return max((int(tid[1]) for line in part.lines() if (tid := TID.search(line, line.find(b'"pid":')))),
               default=0)


def number(parts, labels):
    """Pids that differ where the processes do, and the processes' names."""
    used = set()
    taken = {part.old_pid for part in parts}
    for n, part in enumerate(parts):
        rank = part.about.get("user", {}).get("rank")
        name = f"{part.about.get('program') or 'process'} ({part.host or 'no host'}, pid {part.old_pid})"
        part.label = labels[n] if n < len(labels) else f"rank {rank}: {name}" if rank is not None else name
        twins = [other for other in parts[:n] if part.host and part.lead is not None
                 and part.lead is other.lead
                 and all(part.about.get(key) == other.about.get(key) for key in ("pid", "program"))]
        if twins:
            part.pid, part.tid_shift = twins[-1].pid, twins[-1].tid_shift + last_tid(twins[-1])
            continue
        part.pid = part.old_pid
        while part.pid in used or (part.pid != part.old_pid and part.pid in taken) or part.pid < 1:
            part.pid = max(used | taken | {0}) + 1
        used.add(part.pid)


def merged_metadata(parts, base):
    first = parts[0].about
    lost = {}
    for part in parts:
        for cause, count in part.about.get("lost", {}).items():
            lost[cause] = lost.get(cause, 0) + count
    processes = [part.about | {"pid": part.pid, "original_pid": part.old_pid,
                               "file": os.path.basename(part.path), "label": part.label,
                               "shift_ns": part.start - base, "tid_shift": part.tid_shift,
                               "aligned_by": part.how, "error_ns": part.error, "error_assumed": part.assumed}
                 for part in parts]
    devices = [device | {"pid": part.pid} for part in parts for device in part.about.get("devices", [])]
    return {"version": first["version"], "host": ", ".join(dict.fromkeys(part.host for part in parts)),
            "program": "merged", "pid": parts[0].pid,
            "start_unix_ns": base, "start_boottime_ns": 0, "start_monotonic_ns": 0,
            "clock": first.get("clock", {}), "lost": lost,
            "max_error_ns": max(part.error for part in parts), "devices": devices, "processes": processes}


def write(file, parts, base, bar):
    """Writes the merged trace. Every event keeps its line; pid, stamps and flow ids change."""
    flows, next_flow, done = {}, 0, 0
    file.write(HEAD + b"\n")
    separator = b""
    for n, part in enumerate(parts):
        shift, pid = part.start - base, b"%d" % part.pid

        def moved(match):
            ns = int(match[1] + match[2]) + shift
            return b'"ts":%d.%03d' % (ns // 1000, ns % 1000)
        same = [other.label for other in parts if other.pid == part.pid]
        label = json.dumps(", ".join(dict.fromkeys(same)), ensure_ascii=False).encode()
        out = [] if part.tid_shift else [b'{"ph":"M","name":"process_name","pid":%s,"tid":1,"args":{"name":%s}}' % (pid, label),
               b'{"ph":"M","name":"process_sort_index","pid":%s,"tid":1,"args":{"sort_index":%d}}' % (pid, n + 1)]
        for k, line in enumerate(part.lines()):
            match = LINE.fullmatch(line)
            if not match:
                raise Refused(f"{part.path}: event {k} of traceEvents has no ph or pid: "
                              f"{line[:60].decode(errors='replace')}")
            head, phase, _, rest = match.groups()
            if part.tid_shift:
                rest = TID.sub(lambda tid: b'"tid":%d' % (int(tid[1]) + part.tid_shift), rest, 1)
            if phase == b"M":
                if b'"name":"process_' in head:
                    continue
                if part.tid_shift:
                    rest = SORT.sub(lambda tid: b'"sort_index":%d' % (int(tid[1]) + part.tid_shift), rest, 1)
            else:
                rest, stamps = STAMP.subn(moved, rest, 1)
                if not stamps:
                    raise Refused(f"{part.path}: event {k} of traceEvents has no time in µs with three "
                                  f"decimals: {line[:60].decode(errors='replace')}")
                if phase in b"sf":
                    name, flow = FLOW.search(line).groups()
                    number = flows.get((n, name, flow))
                    if number is None:
                        next_flow += 1
                        number = flows[n, name, flow] = next_flow
                    elif phase == b"f":
                        del flows[n, name, flow]
                    rest = rest.replace(b'"id":' + flow, b'"id":%d' % number, 1)
            out.append(head + pid + rest)
            if len(out) >= 4096:
                file.write(separator + b",\n".join(out))
                separator, done = b",\n", done + sum(map(len, out))
                out = []
                if bar:
                    bar.at(done)
        if out:
            file.write(separator + b",\n".join(out))
            separator = b",\n"
    about = json.dumps(merged_metadata(parts, base), ensure_ascii=False, separators=(",", ":")).encode()
    file.write(b'\n],\n"displayTimeUnit":"ns",\n"metadata":{"npuprof":' + about + b"}}\n")


def add_arguments(parser):
    parser.add_argument("traces", metavar="TRACE", nargs="+",
                        help=".json or .npuprof files; the first one's clock is the common one")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.json")
    parser.add_argument("--label", action="append", default=[], metavar="TEXT",
                        help="the process name of the first, second, ... trace")
    parser.add_argument("--offset", action="append", default=[], metavar="FILE=NS",
                        help="move FILE by NS (may be negative); without an absolute base: the Unix ns of "
                             "its start")
    parser.add_argument("--host-error", type=int, metavar="NS",
                        help="how far each host's clock may be from the true time")


def run(arguments):
    check_output(arguments.output, (".json",), *arguments.traces)
    if len(arguments.label) > len(arguments.traces):
        raise Refused(f"--label: {len(arguments.label)} labels for {len(arguments.traces)} traces")
    offsets = {}
    for text in arguments.offset:
        path, _, ns = text.rpartition("=")
        if path not in arguments.traces or not re.fullmatch(r"-?\d{1,19}", ns):
            raise Refused(f"--offset {text}: not FILE=NS with one of the files given and whole ns")
        offsets[path] = int(ns)
    if arguments.host_error is not None and arguments.host_error < 0:
        raise Refused("--host-error: not below 0")
    parts = [Part(path) for path in arguments.traces]
    for part in parts[1:]:
        if part.version != parts[0].version:
            raise Refused(f"{part.path}: of npuprof {part.about['version']}, {parts[0].path} is of "
                          f"{parts[0].about['version']}: "
                          "what they say of themselves may differ; record both with one version")
    align(parts, offsets, arguments.host_error)
    number(parts, arguments.label)
    base = min(part.start for part in parts)
    far = max(part.start for part in parts) - base
    if far >= LIMIT_NS // 2:
        days = far / 86400e9
        raise Refused(f"{arguments.output}: the traces lie {days:.1f} days apart, too far for exact ns on "
                      "one timeline; is a host's clock wrong?")
    bar = Progress(f"writing {arguments.output}", sum(os.fstat(part.file.fileno()).st_size for part in parts))
    with whole_file(arguments.output) as file:
        write(file, parts, base, bar)
    bar.done()
    for part in parts:
        against = "the reference" if part is parts[0] else f"error at most {part.error} ns" + (" (assumed: an error of a host's clock, or of a user clock's rate, is not known)" if part.assumed else "")
        print(f"{part.path}: {part.label}: pid {part.pid}, by {part.how}, {(part.start - base) / 1e6:.6f} "
              f"ms after the start; {against}")
    return 0

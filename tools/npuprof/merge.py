# SPDX-License-Identifier: MIT
"""Puts traces of several processes, ranks or hosts on one timeline.

Takes traces of npuprof, JSON or images. It refuses traces of other tools, a CSV, and traces of two versions.

How traces are aligned:
  one boot of one host    by the clock since boot. Traces are of one boot if their clocks agree about when it
                          was. The error is that of the clock anchors, and how far a user clock ran from
                          the clock of the OS.
  other hosts or boots    by the Unix clock. The error is also that of the hosts' clocks: what a program said
                          with npuprof_metadata("clock_error_ns", "250000"), else --host-error for all hosts,
                          else 10 ms, and the output says that this is assumed.
  by hand                 --offset FILE=NS moves a file. A trace without an absolute base (of a board without
                          a clock) begins at that Unix ns; without --offset it is refused.

Two traces of one process (host, boot, pid and program) keep its pid; the threads of the later one get higher
numbers. Other processes with the same pid get a new one. Flow arrows get new ids. The name of a process is
its --label, else the metadata "rank", program, host and pid. What a kernel module recorded in a task of one
of the processes (examples/kernel) comes into that process, as the track "NAME in MODULE".

metadata.npuprof.processes of the output holds the metadata of each trace, with its file, label, shift_ns,
tid_shift, how it was aligned (aligned_by), and error_ns against the first file.

With --ftrace, the kernel's scheduling, interrupts and tracepoints are beside the spans, if the output ends in
.pftrace. examples/system.sh records both.

An output that ends in .pftrace is Perfetto's own format; files packed with gzip (.gz) are read and written.

Exit code 0; 2: an input or the output cannot be used.
"""

import json
import os
import re
import tempfile

from . import loops
from .base.files import check_output, whole_file
from .base.messages import Progress, Refused
from .base.metadata import check_about, check_version
from .base.strict_json import json_text, shown
from .convert.forms import form_of
from .convert.kernel_packets import write_kernel
from .read import load
from .read.ftrace import Ftrace
from .read.image import is_json, opened
from .read.own_layout import BLOCK, HEAD, STRING

HOST_ERROR_NS = 10_000_000       # of a host's clock, if nobody says
SAME_BOOT_NS = 1_000_000_000     # the Unix clock may move so far between two traces of one boot
LIMIT_NS = 2**51                 # below, three decimals of a microsecond are exact in a double
FIRST = ("ph", "name", "cat", "pid", "tid", "ts", "dur")      # members of a line of npuprof's own layout
LINE = re.compile(rb'(\{"ph":"(.)"(?:,"name":' + STRING + rb')?(?:,"cat":' + STRING + rb')?,"pid":)'
                  rb'(\d+)(,.*)', re.S)
TID = re.compile(rb'"tid":(\d+)')
SORT = re.compile(rb'"sort_index":(\d+)')
STAMP = re.compile(rb'"ts":(\d+)\.(\d\d\d)')
NATIVE = re.compile(rb'"native_id":(\d+)')
NATIVE_OF = re.compile(rb',"native_id":\d+(?:,"native_threads":\d+)?')
NAMED = re.compile(rb'("args":\{"name":"(?:[^"\\]|\\.)*)"')
FLOW = re.compile(rb'"name":(' + STRING + rb').*?"id":(\d+)')


class Part:
    """One input: its metadata, and its place on the common timeline."""

    def __init__(self, path):
        self.path = path
        self.file, self.damage, head = opened(path)
        if not is_json(head):
            raise Refused(f"{path}:1: a CSV has no process, host, arrows or counters: "
                          "merge the JSON or the image")
        self.own = head.startswith(HEAD + b"\n")
        self.about = self.metadata()
        for key in ("start_unix_ns", "start_boottime_ns", "pid"):
            if type(self.about.get(key)) is not int:
                raise Refused(f"{path}: metadata.npuprof.{key} is missing, "
                              "so it cannot be placed on a common timeline")
        self.version = check_version(path, str(self.about.get("version")))
        if "processes" in self.about:
            raise Refused(f"{path}: is a merged trace: merge its parts")
        self.host = self.about.get("host", "")
        self.unix, self.boot = self.about["start_unix_ns"], self.about["start_boottime_ns"]
        self.old_pid = self.about["pid"]
        clock = self.about.get("clock", {})
        # Why the drift: between anchors, a clock is only as exact as the rate that its user states.
        self.anchor_error = clock.get("error_ns", 0) + clock.get("drift_ns", 0)
        self.rate_unknown = clock.get("source") == "user" and "drift_ns" not in clock
        self.start = self.how = self.pid = self.label = self.lead = None
        self.error, self.assumed, self.tid_shift = 0, False, 0
        self.is_kernel = "npuprof.kernel" in self.about.get("user", {})
        self.moved = {}                # of a kernel's: its thread number -> pid and number in that process

    def metadata(self):
        """Reads metadata.npuprof. Of npuprof's own layout it reads only the end."""
        if self.own:
            size = os.fstat(self.file.fileno()).st_size
            tail, step = b"", 1 << 16
            while b'\n],\n"displayTimeUnit"' not in tail and len(tail) < size:
                step *= 4
                self.file.seek(max(0, size - step))
                tail = self.file.read()
            end = tail.rfind(b'\n],\n"displayTimeUnit"')
            self.own = end >= 0
        if self.own:
            try:
                top = json.loads(b"{" + tail[end + 3:])
            except (ValueError, RecursionError):
                raise Refused(f"{self.path}: byte {size}: the file ends too early, was it cut off?") from None
            self.events_end = size - len(tail) + end + 1
            self.file.seek(0)
        else:
            trace = load(self.path)        # refuses a broken file
            top = {"metadata": {"npuprof": trace.metadata}}
        about = top.get("metadata").get("npuprof") if type(top.get("metadata")) is dict else None
        if not about:
            raise Refused(f"{self.path}: not a trace of npuprof: no metadata.npuprof "
                          "(an array of events alone has none), so it cannot be placed on a common timeline")
        return check_about(self.path, about)

    def lines(self):
        """Yields the events, each as a line of npuprof's own layout without its comma."""
        if self.own:
            self.file.seek(0)
            offset, native = len(self.file.readline()), loops.Reader() if loops.native.library() else None
            while offset < self.events_end:
                block = self.file.read(min(BLOCK, self.events_end - offset))
                block += b"" if block.endswith(b"\n") else self.file.readline()
                lines = block.splitlines(keepends=True)
                self.strict(offset, lines, native)
                offset += sum(map(len, lines))
                for line in lines:
                    line = line.rstrip(b",\n")
                    # Each line was read as JSON: it may be laid out in another way.
                    yield line if LINE.match(line) else self.event(json.loads(line))
        else:
            self.file.seek(0)
            yield from map(self.event, json.load(self.file)["traceEvents"])

    def event(self, event):
        """An event as a line of npuprof's own layout."""
        try:
            return own_line(event)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            raise Refused(f"{self.path}: an event of traceEvents: no event, its ts or dur is no time, or a "
                          f"number is too large: {shown(event)}") from None

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
            raise Refused(f"{self.path}: byte {offset + error.start}: not strict JSON: "
                          "invalid UTF-8") from None
        except (ValueError, RecursionError) as error:
            raise Refused(f"{self.path}: byte {offset + block.find(at)}: not strict JSON: {error}") from None


def own_line(event):
    """An event as npuprof's own writer lays it out."""
    event = {key: event[key] for key in dict.fromkeys((*FIRST, *event))
             if key in event}
    if event["ph"] in ("s", "t", "f") and isinstance(event["id"], str):
        event["id"] = int(event["id"], 16)
    marks = {}
    for key in ("ts", "dur"):
        if key in event:
            ns = round(event[key] * 1000)
            marks[f'"{key}":"@{key}@"'] = f'"{key}":{ns // 1000}.{ns % 1000:03}'
            event[key] = f"@{key}@"
    text = json_text(event)
    for mark, number in marks.items():
        text = text.replace(mark, number, 1)
    return text.encode()


def align(parts, offsets, host_error):
    """Gives each part its start on the Unix clock of the first, how that was found, and the error against the
    first."""
    boots = []                         # the first part of each boot of each host
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


def program_of(part):
    """The program's name, also where a library of it recorded: "app (plugin.so)"."""
    return re.sub(r" \([^()]*\)$", "", part.about.get("program") or "")


def number(parts, labels):
    """Gives the parts their pids, thread numbers and names."""
    used = set()
    taken = {part.old_pid for part in parts}
    for n, part in enumerate(parts):
        rank = part.about.get("user", {}).get("rank")
        name = f"{part.about.get('program') or 'process'} ({part.host or 'no host'}, pid {part.old_pid})"
        part.label = labels[n] if n < len(labels) else f"rank {rank}: {name}" if rank is not None else name
        # Earlier traces of the same process.
        twins = [other for other in parts[:n]
                 if part.host and part.lead is not None and part.lead is other.lead
                 and part.old_pid == other.old_pid and program_of(part) == program_of(other)]
        if twins:
            part.pid, part.tid_shift = twins[-1].pid, twins[-1].tid_shift + last_tid(twins[-1])
            continue
        part.pid = part.old_pid
        while part.pid in used or (part.pid != part.old_pid and part.pid in taken) or part.pid < 1:
            part.pid = max(used | taken | {0}) + 1
        used.add(part.pid)


def native_tids(part):
    """The system's numbers of its threads: number -> thread number. And the highest thread number."""
    found, last = {}, 0
    for line in part.lines():
        match = TID.search(line, line.find(b'"pid":'))
        last = max(last, int(match[1]) if match else 0)
        native = NATIVE.search(line) if line.startswith(b'{"ph":"M","name":"thread_name"') else None
        if native:
            found[int(native[1])] = int(match[1])
    return found, last


def place_tasks(parts):
    """Finds the tasks of kernels' traces in the processes of the same boot."""
    kernels = [part for part in parts if part.is_kernel]
    for part in parts if kernels else ():
        if part.is_kernel or part.tid_shift:
            continue
        threads, last = native_tids(part)
        for kernel in kernels:
            if kernel.lead is None or kernel.lead is not part.lead:
                continue
            tasks, highest = native_tids(kernel)
            kernel.moved |= {tid: (part.pid, last + tid) for task, tid in tasks.items() if task in threads}
            last += highest


def merged_metadata(parts, base):
    first, lost = parts[0].about, {}
    for part in parts:
        for cause, count in part.about.get("lost", {}).items():
            lost[cause] = lost.get(cause, 0) + count
    processes = [part.about | {"pid": part.pid, "original_pid": part.old_pid,
                               "file": os.path.basename(part.path),
                               "label": part.label, "shift_ns": part.start - base,
                               "tid_shift": part.tid_shift,
                               "aligned_by": part.how, "error_ns": part.error, "error_assumed": part.assumed}
                 for part in parts]
    devices = [device | {"pid": part.pid} for part in parts for device in part.about.get("devices", [])]
    return {"version": first["version"], "host": ", ".join(dict.fromkeys(part.host for part in parts)),
            "program": "merged", "pid": parts[0].pid, "start_unix_ns": base, "start_boottime_ns": 0,
            "start_monotonic_ns": 0, "clock": first.get("clock", {}), "lost": lost,
            "max_error_ns": max(part.error for part in parts), "devices": devices, "processes": processes}


class Writer:
    """Writes the merged trace. Every event keeps its line; pid, times and flow ids change."""

    def __init__(self, file, parts, base, bar):
        self.file, self.parts, self.base, self.bar = file, parts, base, bar
        self.flows, self.next_flow = {}, 0     # (part, name, id) -> new id, of arrows without an end
        self.separator, self.done = b"", 0

    def write(self):
        self.file.write(HEAD + b"\n")
        for n, part in enumerate(self.parts):
            lines = [] if part.tid_shift else self.names(n, part)
            for k, line in enumerate(part.lines()):
                lines += self.event(n, part, k, line)
                if len(lines) >= 4096:
                    self.put(lines)
                    lines = []
            self.put(lines)
        about = json_text(merged_metadata(self.parts, self.base))
        self.file.write(b'\n],\n"displayTimeUnit":"ns",\n"metadata":{"npuprof":' + about.encode() + b"}}\n")

    def put(self, lines):
        if lines:
            self.file.write(self.separator + b",\n".join(lines))
            self.separator = b",\n"
            self.done += sum(map(len, lines))
            self.bar.at(self.done)

    def names(self, n, part):
        """The events that name a process and give its place in the order."""
        same = [other.label for other in self.parts if other.pid == part.pid]
        label = json_text(", ".join(dict.fromkeys(same))).encode()
        return [b'{"ph":"M","name":"process_%s","pid":%d,"tid":1,"args":{%s}}' % (name, part.pid, value)
                for name, value in ((b"name", b'"name":' + label),
                                    (b"sort_index", b'"sort_index":%d' % (n + 1)))]

    def event(self, n, part, k, line):
        """Event k of part n: a list of its new line, empty for the old name of the process."""
        match = LINE.fullmatch(line)
        if not match:
            raise Refused(f"{part.path}: event {k} of traceEvents has no ph or pid: "
                          f"{line[:60].decode(errors='replace')}")
        head, phase, _, rest = match.groups()
        pid, tid = part.moved.get(int(TID.search(rest)[1]), (part.pid, 0)) if part.moved else (part.pid, 0)
        if tid:
            rest = TID.sub(b'"tid":%d' % tid, rest, 1)
            if phase == b"M":
                program = json.dumps(part.about.get("program") or "kernel")[1:-1].encode()
                rest = SORT.sub(b'"sort_index":%d' % tid, rest, 1)
                rest = NAMED.sub(lambda name: name[1] + b' in %s"' % program, NATIVE_OF.sub(b"", rest), 1)
        if part.tid_shift:
            rest = TID.sub(lambda tid: b'"tid":%d' % (int(tid[1]) + part.tid_shift), rest, 1)
        if phase == b"M":
            if b'"name":"process_' in head:
                return []
            if part.tid_shift:
                rest = SORT.sub(lambda tid: b'"sort_index":%d' % (int(tid[1]) + part.tid_shift), rest, 1)
            return [head + b"%d" % pid + rest]

        def moved(match):
            ns = int(match[1] + match[2]) + part.start - self.base
            return b'"ts":%d.%03d' % (ns // 1000, ns % 1000)
        rest, stamps = STAMP.subn(moved, rest, 1)
        if not stamps:
            raise Refused(f"{part.path}: event {k} of traceEvents has no time in µs with three decimals: "
                          f"{line[:60].decode(errors='replace')}")
        if phase in b"stf":
            name, flow = FLOW.search(line).groups()
            rest = rest.replace(b'"id":' + flow, b'"id":%d' % self.flow((n, name, flow), phase), 1)
        return [head + b"%d" % pid + rest]

    def flow(self, key, phase):
        """The new id of an arrow."""
        number = self.flows.get(key)
        if number is None:
            self.next_flow += 1
            number = self.flows[key] = self.next_flow
        elif phase == b"f":
            del self.flows[key]
        return number


def kernel_clock(part, clock):
    """A function from the stamps of the kernel's tracer to CLOCK_BOOTTIME, which Perfetto's packets have."""
    about = part.about
    if clock == "boot":
        return lambda ns: ns
    if clock == "mono":
        shift = part.boot - about.get("start_monotonic_ns", 0)
        return lambda ns: ns + shift
    host = about.get("clock", {})
    if host.get("source") != "tsc" or "start_ticks" not in host:
        raise Refused(f"{part.path}: its clock is {host.get('source', 'not known')}, not tsc, "
                      "so stamps of x86-tsc cannot be placed: record the kernel with trace_clock mono")
    hz = round(host["hz"] * 1000)
    return lambda ticks: part.boot + (ticks - host["start_ticks"]) * 10**12 // hz


def add_arguments(parser):
    parser.add_argument("traces", metavar="TRACE", nargs="+",
                        help=".json or .npuprof files; times are those of the first one's clock")
    parser.add_argument("-o", "--output", required=True, metavar="OUT",
                        help="the merged trace: .json or .pftrace, also with .gz")
    parser.add_argument("--ftrace", metavar="FILE",
                        help="what the kernel's tracer wrote meanwhile on the first one's host: the text of "
                             "tracefs or of trace-cmd report -t, or a trace.dat; OUT is a .pftrace then")
    parser.add_argument("--ftrace-clock", choices=("mono", "boot", "x86-tsc"), default="mono",
                        help="the trace_clock that it was recorded with (default mono)")
    parser.add_argument("--label", action="append", default=[], metavar="TEXT",
                        help="the process name of the first, second, ... trace")
    parser.add_argument("--offset", action="append", default=[], metavar="FILE=NS",
                        help="move FILE by NS, which may be negative; "
                             "if it has no absolute base: the Unix ns of its start")
    parser.add_argument("--host-error", type=int, metavar="NS",
                        help="how far each host's clock may be from the true time")


def run(arguments):
    check_output(arguments.output, (".json", ".pftrace"), *arguments.traces)
    if len(arguments.label) > len(arguments.traces):
        raise Refused(f"--label: {len(arguments.label)} labels for {len(arguments.traces)} traces")
    form = form_of(arguments.output)
    packets = form is not None and form.ending == ".pftrace"
    if arguments.ftrace and not packets:
        raise Refused(f"{arguments.output}: --ftrace needs an output that ends in .pftrace: "
                      "Chrome's JSON has no events of the kernel")
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
        if part.version[0] != parts[0].version[0]:
            raise Refused(f"{part.path}: written by npuprof {part.about['version']}, "
                          f"{parts[0].path} by {parts[0].about['version']}: record both with "
                          "one major version")
    align(parts, offsets, arguments.host_error)
    number(parts, arguments.label)
    place_tasks(parts)
    base = min(part.start for part in parts)
    far = max(part.start for part in parts) - base
    if far >= LIMIT_NS // 2:
        days = far / 86400e9
        raise Refused(f"{arguments.output}: the traces lie {days:.1f} days apart, "
                      "too far for exact ns on one timeline; is a host's clock wrong?")
    bar = Progress(f"writing {arguments.output}", sum(os.fstat(part.file.fileno()).st_size for part in parts))
    kernel = Ftrace(arguments.ftrace, arguments.ftrace_clock == "x86-tsc") if arguments.ftrace else None
    if packets:
        with tempfile.NamedTemporaryFile(prefix="npuprof-", suffix=".json") as merged:
            Writer(merged, parts, base, bar).write()
            merged.flush()
            with whole_file(arguments.output) as file:
                form.write(load(merged.name), file)
                if kernel:
                    write_kernel(kernel, file, kernel_clock(parts[0], arguments.ftrace_clock))
    else:
        with whole_file(arguments.output) as file:
            Writer(file, parts, base, bar).write()
    bar.done()
    for part in parts:
        against = "the reference" if part is parts[0] else f"error at most {part.error} ns"
        if part.assumed:
            against += " (assumed: an error of a host's clock, or of a user clock's rate, is not known)"
        print(f"{part.path}: {part.label}: pid {part.pid}, by {part.how}, "
              f"{(part.start - base) / 1e6:.6f} ms after the start; {against}")
    if kernel:
        print(f"{kernel.path}: {kernel.count} events of {len(kernel.cpus)} CPUs, "
              f"by {arguments.ftrace_clock}; error at most {parts[0].anchor_error + kernel.quantum_ns} ns "
              f"against {parts[0].path}; {kernel.lost} lost")
    return 0

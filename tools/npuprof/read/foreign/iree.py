# SPDX-License-Identifier: MIT
"""IREE's device profile, .ireeprof: a stream of records, format IRPF 1.

A queue of a physical device is a lane. Its device events are executions, the dispatches of the same
submission their instructions. Both have ticks, which the first and the last sample of both clocks turn into
the host's time, as iree-profile does. Executions on the host, as of local-task, are a lane of their own. A
queue event is the submission: an arrow leads from its host time to the execution.

A dispatch that npuprof_iree.h wrote is where npuprof's anchors place it, with the error that npuprof states:
these are in chunks of npuprof's own.
"""

from decimal import Decimal
from fractions import Fraction
from struct import Struct

from ...base.contract import DEVICE

NAME = "IREE"
MAGIC, CONTENT = b"IRPF", "application/vnd.iree.hal.profile."
FILE, RECORD = Struct("<4sHHIIQ"), Struct("<7Q5I4xQQIHH")
CHUNK, SESSION_END = 2, 3
# The records that are read; field 0 is the length. Behind each, by number, the fields that are used.
FUNCTION = Struct("<2IQ8I2Q")        # 2 executable, 3 function, 10 bytes of the name behind it
CLOCK = Struct("<4I5Q2q")            # 1 flags, 2 device, 5 tick, 9 to 10 ns of the host
DISPATCH = Struct("<2I4Q8I2Q")       # 3 submission, 5 executable, 6 command, 7 function, 14 to 15 ticks
QUEUE = Struct("<4IQq4Q6IQq")        # 1 type, 5 ns of the host, 6 submission, 10 device, 11 queue
DEVICE_EVENT = Struct("<4I6Q4I2Q")   # 1 type, 5 submission, 10 device, 11 queue, 14 to 15 ticks
HOST = Struct("<4I6Q4I6I2q2Qq2I")    # 1 type, 5, 7 executable, 10, 11, 13 function, 20 to 21 ns of the host
MEMORY = Struct("<4IQq4Q4I9Q2I")     # 1 type, 5 ns of the host, 6 allocation, 10 device, 17 bytes
STATED = Struct("<2IQ2qQ")           # 1 resets, 2 event, 3 to 4 ns of the host, 5 their error
NPUPROF = "application/vnd.npuprof.device-times"
TICK, BRACKET = 1, 8             # flags of a clock sample
EXECUTE = 3
OPERATIONS = ("none", "barrier", "dispatch", "execute", "copy", "fill", "update", "read", "write", "alloca",
              "dealloca", "host call")
MEMORY_EVENTS = ("none", "slab acquire", "slab release", "pool reserve", "pool materialize", "pool release",
                 "pool wait", "queue alloca", "queue dealloca", "buffer allocate", "buffer free",
                 "buffer import", "buffer unimport")
FORMS = {"executable-functions": FUNCTION, "clock-correlations": CLOCK, "dispatch-events": DISPATCH,
         "queue-events": QUEUE, "queue-device-events": DEVICE_EVENT, "host-execution-events": HOST,
         "memory-events": MEMORY, NPUPROF: STATED}
# What only describes, and is no event.
PLAIN = {"session", "devices", "queues", "executables", "executable-code-objects", "command-buffers",
         "executable-code-object-loads", "command-operations", "counter-sets", "counters",
         "device-metric-sources", "device-metric-descriptors", "event-relationships"}


def is_file(head):
    return head[:4] == MAGIC


def read(data, reader):
    Bundle(data, reader).read()


def name_in(names, number):
    return names[number] if number < len(names) else str(number)


class Bundle:
    """found: by content, [(the record's fields, what is behind them, device and queue of its chunk)]."""

    def __init__(self, data, reader):
        self.data, self.reader, self.found = data, reader, {form: [] for form in FORMS}
        self.functions, self.clocks = {}, {}

    def read(self):
        self.take_records()
        for fields, rest, *_ in self.found["executable-functions"]:
            self.functions[fields[2], fields[3]] = rest[:fields[10]].decode("utf-8", "replace")
        for device in {fields[2] for fields, *_ in self.found["clock-correlations"]}:
            self.clocks[device] = self.clock_of(device)
        self.queue_events()
        self.device_events()
        self.host_events()
        for fields, *_ in self.found["memory-events"]:
            self.reader.event({"ph": "i", "name": name_in(MEMORY_EVENTS, fields[1]), "pid": 1,
                               "tid": self.host(fields[10], None), "ts": Decimal(fields[5]) / 1000,
                               "cat": "memory", "args": {"allocation": fields[6], "bytes": fields[17]}}, 0)

    def take_records(self):
        magic, major, _, at, _, length = FILE.unpack_from(self.data)
        if major != 1:
            raise ValueError(f"format {major}, this reads 1")
        end, ended = min(length or len(self.data), len(self.data)), False
        while at + RECORD.size <= end:
            fields = RECORD.unpack_from(self.data, at)
            size, payload, header = fields[0], fields[1], fields[7]
            if header < RECORD.size or size < header + fields[8] + fields[9] + payload or size > 2**40:
                raise ValueError(f"byte {at}: a record that fits no length")
            if at + size > end:
                break
            content = self.data[at + header:at + header + fields[8]].decode("utf-8", "replace")
            if fields[15] == CHUNK:
                if fields[13]:
                    self.reader.trace.left_out["dropped IREE record"] += fields[13]
                behind = at + header + fields[8] + fields[9]
                self.take_chunk(content.removeprefix(CONTENT), behind, behind + payload, fields[10:12])
            ended = ended or fields[15] == SESSION_END
            at += size
        if not ended:
            self.reader.trace.notes.append("the profile has no end: the program was killed, or the file was "
                                           "cut off")

    def take_chunk(self, content, at, end, whose):
        form, left_out = FORMS.get(content), self.reader.trace.left_out
        if form is None:
            if content not in PLAIN:
                left_out[f"{content} chunk"] += 1
            return
        while at + 4 <= end:
            length = int.from_bytes(self.data[at:at + 4], "little")
            if length < form.size or at + length > end:
                raise ValueError(f"byte {at}: {content} that fits no length")
            self.found[content].append((form.unpack_from(self.data, at),
                                        self.data[at + form.size:at + length], *whose))
            at += length

    def clock_of(self, device):
        """(first tick, its host ns, ns a tick) of a device; None: its samples do not say."""
        samples = sorted((fields[5], fields[9] + (fields[10] - fields[9]) // 2)
                         for fields, *_ in self.found["clock-correlations"]
                         if fields[2] == device and fields[1] & BRACKET and fields[1] & TICK)
        if not samples or samples[-1][0] == samples[0][0] or samples[-1][1] <= samples[0][1]:
            return None
        (first, ns), (last, end) = samples[0], samples[-1]
        return first, ns, Fraction(end - ns, last - first)

    # ---- Events

    def host(self, device, queue):
        """The number of the track of what the host does for a queue, or for a device."""
        tid = 1 + 2 * (device % 1000) + (queue is None)
        what = "memory" if queue is None else "submissions"
        self.reader.track_names[1, tid] = {"thread_name": f"{what} of device {device}"}
        return tid

    def queue_events(self):
        self.submissions = {}
        for fields, *_ in self.found["queue-events"]:
            tid, name = self.host(fields[10], fields[11]), name_in(OPERATIONS, fields[1])
            args = {"submission": fields[6], "queue": fields[11]}
            self.reader.event({"ph": "i", "name": f"submit {name}", "pid": 1, "tid": tid, "cat": "queue",
                               "ts": Decimal(fields[5]) / 1000, "args": args}, 0)
            self.submissions.setdefault((*fields[10:12], fields[6]), (tid, fields[5]))

    def lane(self, name, queue, device):
        key = 2 + device, f"{name} {queue}"
        self.reader.track_names[key] = {"thread_name": f"{name} {device} stream {queue}"}
        return key

    def device_events(self):
        """Executions and dispatches with ticks."""
        whole, steps = set(), {}
        known = {(*whose, fields[2]): fields[1:] for fields, _, *whose in self.found[NPUPROF]}
        for fields, *_ in self.found["queue-device-events"]:
            whole.add((*fields[10:12], fields[5]))
            args = {"submission": fields[5], "stream": fields[11]}
            self.ticked(fields[10], fields[11], name_in(OPERATIONS, fields[1]), fields[14:16], args)
        for fields, _, device, queue in self.found["dispatch-events"]:
            key = device, queue, fields[3]
            args = {"submission": fields[3], "command": fields[6], "stream": queue}
            if key in whole:
                args["instruction_index"] = steps[key] = steps.get(key, -1) + 1
            name = self.function(fields[5], fields[7])
            if (device, queue, fields[2]) in known:
                self.stated(device, queue, name, fields[14:16], args, known[device, queue, fields[2]])
            else:
                self.ticked(device, queue, name, fields[14:16], args)

    def function(self, executable, number):
        return self.functions.get((executable, number), f"function {number} of {executable}")

    def ticked(self, device, queue, name, ticks, args):
        clock = self.clocks.get(device)
        if clock is None or ticks[1] < ticks[0]:
            what = "event that ends before its start" if ticks[1] < ticks[0] else \
                "event of a clock that nobody compared"
            self.reader.trace.left_out[what] += 1
            return
        start, end = (round(clock[1] + (tick - clock[0]) * clock[2]) for tick in ticks)
        self.executed(self.lane("device", queue, device), (device, queue), name, start, end, args)

    def stated(self, device, queue, name, ticks, args, said):
        epoch, _, start, end, error = said
        args.update(start_ticks=ticks[0], end_ticks=ticks[1], epoch=epoch)
        if error != 2**64 - 1:
            args["error_ns"] = error
        self.executed(self.lane("device", queue, device), (device, queue), name, start, end, args)

    def executed(self, key, queue, name, start, end, args):
        reader = self.reader
        reader.event({"ph": "X", "name": name, "cat": "device", "pid": key[0], "tid": key[1], "args": args,
                      "ts": Decimal(start) / 1000, "dur": Decimal(max(0, end - start)) / 1000}, 0)
        reader.trace.kind[-1] = DEVICE
        tid, ns = self.submissions.get((*queue, args["submission"]), (None, 0))
        if tid is not None and "instruction_index" not in args:
            flow = reader.trace._numbers["submit"]
            reader.trace.flows.add(flow, reader.tracks[1, tid], ns, reader.trace.track[-1], start)

    def host_events(self):
        """What a device that is the host itself executed."""
        whole = {(*f[10:12], f[5]) for f, *_ in self.found["host-execution-events"] if f[1] == EXECUTE}
        steps = {}
        for fields, *_ in self.found["host-execution-events"]:
            key, args = (*fields[10:12], fields[5]), {"submission": fields[5], "stream": fields[11]}
            name = name_in(OPERATIONS, fields[1])
            if name == "dispatch":
                name = self.function(fields[7], fields[13])
                if key in whole:
                    args["instruction_index"] = steps[key] = steps.get(key, -1) + 1
            self.executed(self.lane("host", fields[11], fields[10]), key[:2], name, *fields[20:22], args)

# SPDX-License-Identifier: MIT
"""Writes events of the Linux kernel's tracer as packets of Perfetto's format, behind a trace of ours.

Numbers of fields: ftrace_event.proto, ftrace_event_bundle.proto, process_tree.proto and system_info.proto in
Perfetto's repository. An event that Perfetto has no message for, such as a driver's own tracepoint, goes as a
generic one: its name, and the fields it printed.
"""

import re
from collections import defaultdict

from ..base.messages import Refused
from ..kernel.contexts import SHORT_SWITCH, SWITCH
from ..kernel.lines import MARKS, Hole, fields, whole_number
from .pftrace import inside, number, text

BUNDLE = 2048                      # events of a CPU in one packet
# Bits of prev_state as Perfetto reads them where no release is said: those of kernels before 4.14. The
# letters are those of any kernel. Why not the release: no trace of the tracer tells it.
STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 16, "Z": 32, "x": 64, "K": 128, "W": 256, "P": 512,
          "N": 1024, "I": 1026, "+": 2048}
# event -> its number, and its fields: name -> (number, is text)
EVENTS = {
    "sched_waking": (20, {"comm": (1, True), "pid": (2, False), "prio": (3, False),
                          "target_cpu": (5, False)}),
    "sched_wakeup_new": (114, {"comm": (1, True), "pid": (2, False), "prio": (3, False),
                               "target_cpu": (5, False)}),
    "sched_process_exit": (238, {"comm": (1, True), "pid": (2, False), "prio": (4, False)}),
    "irq_handler_entry": (36, {"irq": (1, False), "name": (2, True)}),
    "irq_handler_exit": (37, {"irq": (1, False)}),
    "softirq_entry": (24, {"vec": (1, False)}),
    "softirq_exit": (25, {"vec": (1, False)}),
    "softirq_raise": (26, {"vec": (1, False)}),
}
GENERIC = 327


def switch(found):
    prev_comm, prev_pid, prev_prio, state, next_comm, next_pid, next_prio = found.groups()
    bits = sum(STATES.get(letter, 0) for letter in state if letter != "|")
    numbers = [(2, prev_pid), (3, prev_prio), (4, bits), (6, next_pid), (7, next_prio)]
    return inside(4, text(1, prev_comm) + text(5, next_comm) +
                  b"".join(number(field, int(value)) for field, value in numbers))


def generic(event):
    content = text(1, event.name)
    for key, value in fields(event.text).items() or {"text": event.text}.items():
        is_number = re.fullmatch(r"-?\d{1,18}", value)
        content += inside(2, text(1, key) + (number(4, int(value)) if is_number else text(3, value)))
    return inside(GENERIC, content)


def message(event):
    """The part of a FtraceEvent that depends on the kind of event."""
    if event.name == "sched_switch":
        found = SWITCH.fullmatch(event.text) or SHORT_SWITCH.fullmatch(event.text)
        return switch(found) if found else generic(event)
    if event.name not in EVENTS:
        return generic(event)
    said, content = fields(event.text), b""
    kind, known = EVENTS[event.name]
    for key, (field, is_text) in known.items():
        value = said.get(key) if is_text else whole_number(said.get(key))
        if value is not None:
            content += text(field, value) if is_text else number(field, value)
    return inside(kind, content)


def write_kernel(source, file):
    """Writes all events of a KernelText whose stamps are CLOCK_BOOTTIME ns."""
    waiting, threads, lost = defaultdict(list), {}, set()

    def flush(cpu):
        events = b"".join(inside(2, event) for event in waiting.pop(cpu, ()))
        if cpu in lost:
            events += number(3, 1)
            lost.remove(cpu)
        file.write(inside(1, inside(1, number(1, cpu) + events)))
    for event in source.items():
        if type(event) is Hole:
            flush(event.cpu)
            lost.add(event.cpu)
            continue
        if event.name in MARKS:
            continue
        if event.ns < 0:
            raise Refused(f"{source.path}: an event before the host's start: is it of another host, "
                          "or is its clock another one (--ftrace-clock)?")
        waiting[event.cpu].append(number(1, event.ns) + number(2, event.tid) + message(event))
        if event.tgid is not None:
            threads[event.tid] = event.tgid, event.comm
        if len(waiting[event.cpu]) == BUNDLE:
            flush(event.cpu)
    for cpu in list(waiting):
        flush(cpu)
    tree = b"".join(inside(2, number(1, tid) + text(2, comm) + number(3, tgid))
                    for tid, (tgid, comm) in sorted(threads.items()))
    if tree:
        file.write(inside(1, inside(2, tree)))

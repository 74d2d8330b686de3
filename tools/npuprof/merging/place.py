# SPDX-License-Identifier: MIT
"""Places the inputs of a merge on the common timeline, and gives them pids, thread numbers and names."""

import re

from ..base.messages import Refused

HOST_ERROR_NS = 10_000_000       # of a host's clock, if nobody says
SAME_BOOT_NS = 1_000_000_000     # the Unix clock may move so far between two traces of one boot
TID = re.compile(rb'"tid":(\d+)')
NATIVE = re.compile(rb'"native_id":(\d+)')


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
            lead = next((b for b in boots if b.host == part.host != "" and b.boot > 0 and part.boot > 0
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
    for part in parts[1:]:
        first = parts[0]
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

# SPDX-License-Identifier: MIT
"""Rules about the host: it gives the device work too late, or takes its results too late."""

from fractions import Fraction
from heapq import nlargest

from ...base.contract import NULL
from ...tables.arithmetic import percentile
from ...tables.table import pct
from ..depth import is_known, mean_of
from ..figures import floor_of
from ..graph import host_rows
from ..idle import confidence_of, inference_of
from ..jobs import MARKED
from ..latency import split
from ..polls import polls
from .finding import Finding, Missing, ns_text, pct_text

DEVICES = 8        # that slow starts and late notices are told of


def submissions(facts):
    """The jobs in the window that have a submission, and are known to a tenth of their length."""
    found = [k for k, s in enumerate(facts.jobs.s) if s != NULL and facts.jobs.inside[k]]
    if not found:
        raise Missing('submissions: an arrow "submit" from a host span to its execution')
    unsure = set(facts.jobs.unsure)
    sure = [k for k in found if k not in unsure]
    if not sure:
        who = "the device's clock" if facts.jobs.by_order else "the kernel's text"
        raise Missing(f"jobs whose begin and end {who} tells to a tenth of their length")
    return sure


def change_of(facts, what, name):
    """The change of all that of one device, the one of that name. Why no name for an only one: it is all."""
    return what, name if len(facts.jobs.devices) > 1 else None, None


def on(facts, name):
    """Which device a sentence is about, where there are several."""
    return f" on {name}" if len(facts.jobs.devices) > 1 else ""


def longest(of_device, ns):
    """The devices whose jobs have most of that time. Why not all: each is replayed, and who has a hundred
    devices reads of the worst."""
    return sorted(nlargest(DEVICES, of_device, key=lambda device: (sum(map(ns, of_device[device])), -device)))


def rows_of(entry):
    return [row for _, row, _ in entry.longest if row >= 0]


def host_bound(facts):
    """The device waits for a span of the host: at least a tenth of the window."""
    total, _, found = facts.idle.of_class("host_busy")
    submits = set(facts.preempted) if facts.has_submissions else set()
    for span, entry in found:
        share = pct(entry.certain, facts.window.length_ns)
        if span in submits or share is None or share < 10:
            continue
        yield Finding(span, f"the device is idle for {ns_text(entry.total)} while the host is in {span}, "
                            f"{pct_text(pct(entry.total, facts.window.length_ns))} % of the window, "
                            f"{len(entry.lengths)} times",
                      f"prepare the next inference before waiting for this one, or move {span} to another "
                      "thread",
                      {"idle_ns": entry.total, "pieces": len(entry.lengths),
                       "idle_pct": pct(entry.total, facts.window.length_ns)},
                      entry.certain, share, entry.confidence(), ("host", span, 0), rows_of(entry))


def host_on_path(facts):
    """A span of the host that the path goes through: faster, it would bring something."""
    waits = {facts.trace.text(row) for row, sure in zip(facts.jobs.wait, facts.jobs.sure)
             if row >= 0 and sure == MARKED}
    for (kind, name), share in facts.owners.items():
        if kind != "host" or name in waits | facts.replay.handing or share < 2 * facts.threshold_pct:
            continue
        rows = host_rows(facts.trace, facts.replay.points, name)
        # Why: between two inferences nobody knows whether a thread works or waits for the next one.
        inside = not facts.window.inferences or any(inference_of(facts.trace, i) >= 0 for i in rows)
        if rows and inside:
            yield Finding(name, f"the critical path is in {name} for {pct_text(share)} % of its time",
                          "make it faster, split it over threads, or do it beside what it holds up",
                          {"path_pct": share, "spans": len(rows)}, None, share / 2, "likely",
                          ("host", name, Fraction(1, 2)),
                          nlargest(3, rows, key=lambda i: (facts.trace.dur[i], -i)))


def host_off_cpu(facts):
    """A thread of the host does not get the CPU."""
    claimed = set()
    if facts.has_submissions:
        for name, (count, of, ns, certain, rows, usual) in facts.preempted.items():
            share = facts.share_of_inferences(certain)
            if share is None or share < 5:
                continue
            claimed.add(name)
            cpu = [facts.idle.leaves.cpu[i] for i in rows if i in facts.idle.leaves.cpu]
            proven = bool(cpu) and all(2 * used < facts.trace.dur[i] for used, i in zip(cpu, rows))
            if cpu and not proven:
                continue
            wall = facts.trace.dur[rows[0]]
            proof = (f"; the longest took {ns_text(wall)}, {ns_text(cpu[0])} of it on the CPU" if proven else
                     f"; the job starts after {ns_text(usual)}")
            threads = len({facts.jobs.thread[k] for k in submissions(facts)})
            yield Finding(name, f"{name} returns {ns_text(Fraction(ns, count))} on average after the device "
                                f"is done ({count} of {of}){proof}",
                          f"give the threads that submit ({threads} here) a higher priority or a core "
                          "each; run no more threads than cores"
                          + ("" if proven else "; perf sched shows whether they wait for a core"),
                          {"after_end_ns": ns, "spans": count, "of": of, "usual_ns": usual},
                          certain, share, confidence_of(certain, ns, capped=not proven),
                          ("host", name, 0), rows)
    _, _, found = facts.idle.of_class("host_off_cpu")
    for span, entry in found:
        share = pct(entry.certain, facts.window.length_ns)
        if span not in claimed and share is not None and share >= 5:
            yield Finding(span, f"the device is idle for {ns_text(entry.total)} while {span} is off the CPU",
                          "raise the thread's priority, pin it to a core, or run fewer threads than cores",
                          {"idle_ns": entry.total, "pieces": len(entry.lengths)},
                          entry.certain, share, entry.confidence(), ("host", span, 0), rows_of(entry))


def serial_submit(facts):
    """One submission at a time on a queue that takes more, so that every round trip is idle time."""
    submissions(facts)
    if not is_known(facts):
        raise Missing("ends of all jobs: those without one may be in flight")
    jobs, window, own = facts.jobs, facts.window, []
    for device, name in enumerate(jobs.devices):
        total, certain, found = facts.idle.of_class("in_submit", "dispatch", "late_notice", "host_blocked",
                                                    "unknown", device=device)
        share = pct(certain, window.length_ns)
        depth = facts.depth_of(device).get("device", {})
        if share is not None and share >= 10 and max(depth, default=0) == 1 \
                and facts.queue_slots(name) != 1 and not facts.chained:
            own.append((certain, total, name, mean_of(depth), found))
    if own:
        yield serial(facts, own)


def serial(facts, own):
    """The Finding. own: (certain ns, ns, name, mean depth, entries) of each device. Why one for all of
    them: the change is of all queues, and what it brings is not what one of them would."""
    certain, total, name, mean, found = max(own, key=lambda one: one[:3])
    names, times = (" and ".join(texts) for texts in zip(*((one[2], ns_text(one[1])) for one in own)))
    slots = facts.queue_slots(name)
    return Finding(names, f"never more than one submission in flight{on(facts, names)}: each round trip "
                          f"leaves {'the device' if len(own) == 1 else 'them'} idle, {times} in all",
                   f"submit the next inference before waiting for this one: a depth of 2 hides up to "
                   f"{ns_text(certain)}",
                   {"round_trips_ns": total, "max_depth": 1, "device_depth_ratio": mean}, certain,
                   pct(certain, facts.window.length_ns), confidence_of(certain, total, slots is None),
                   ("depth", None, 2), [row for _, entry in found for row in rows_of(entry)][:3],
                   below=("late_notice", "slow_dispatch", "host_off_cpu"), of="throughput")


def late_notice(facts):
    """The host picks up completions late."""
    jobs, of_device = facts.jobs, {}
    for k in submissions(facts):
        if jobs.n[k] != NULL:
            of_device.setdefault(jobs.queues[jobs.queue[k]].device, []).append(k)
    if not of_device:
        raise Missing("wait spans: kind \"wait\", an arrow from the execution, or a name (--wait NAME)")
    for device in longest(of_device, lambda k: split(jobs, k)[5]):
        yield from late_notices(facts, device, of_device[device])


def late_notices(facts, device, own):
    """The same for one device and its jobs."""
    notices = sorted(split(facts.jobs, k)[5] for k in own)
    total, certain, found = facts.idle.of_class("late_notice", device=device)
    share = pct(certain, facts.window.length_ns)
    p50, p05 = percentile(notices, 500), floor_of(notices)
    name = facts.jobs.devices[device]
    change = change_of(facts, "notice", name)
    if not found or ((share is None or share < 5 or not (p50 > 4 * max(p05, 1) or p50 > 50_000))
                     and not facts.promises(change)):
        return
    period = polls(facts.jobs, own)
    how = f"; waits end every {ns_text(period)}: it polls" if period else ""
    advice = (f"poll more often than every {ns_text(period)}, or use an interrupt" if period else
              "use an interrupt, or poll more often; look at what wakes the waiting thread")
    yield Finding(found[0][0], f"the host notices an end{on(facts, name)} {ns_text(p50)} late (median), "
                               f"{ns_text(notices[-1])} at most{how}", advice,
                  {"notice_p50_ns": p50, "notice_p05_ns": p05, "notice_max_ns": notices[-1],
                   "idle_ns": total, "period_ns": period}, certain, share, confidence_of(certain, total),
                  change, rows_of(found[0][1]))


def slow_dispatch(facts):
    """The device begins late although the job is there."""
    of_device = {}
    for k in submissions(facts):
        of_device.setdefault(facts.jobs.queues[facts.jobs.queue[k]].device, []).append(k)
    for device in longest(of_device, facts.jobs.latency.__getitem__):
        yield from slow_starts(facts, facts.jobs.devices[device], of_device[device])


def slow_starts(facts, name, own):
    """The same for one device and its jobs."""
    jobs = facts.jobs
    latencies = sorted(jobs.latency[k] for k in own)
    executes = sorted(jobs.end[k] - jobs.start[k] for k in own)
    p50, floor = percentile(latencies, 500), floor_of(latencies)
    errors = sorted(max(jobs.error[k], 0) for k in own)
    # Why no error behind a predecessor: both stamps are the device's.
    alone = sum(jobs.before[k] < 0 or jobs.end[jobs.before[k]] <= jobs.s[k] for k in own)
    error = percentile(errors, 500) if 2 * alone > len(own) else 0
    over, change = p50 - floor, change_of(facts, "dispatch", name)
    little = 20 * over < percentile(executes, 500) and not facts.promises(change)
    if little or over <= error:
        return
    total = sum(max(0, value - floor) for value in latencies)
    certain = sum(max(0, value - floor - error) for value in latencies)
    door = any(value != NULL for value in jobs.doorbell)
    since = "doorbell" if door else "submission"
    yield Finding(name, f"from {since} to start{on(facts, name)} the device needs {ns_text(p50)}, "
                        f"{ns_text(floor)} at best" + ("" if door else "; the submit call is in it"),
                  "keep the queue filled and batch small jobs; ask the firmware what it does before a start",
                  {"dispatch_p50_ns": p50, "dispatch_p05_ns": floor, "total_ns": total}, certain,
                  facts.share_of_inferences(certain), confidence_of(certain, total),
                  change, [jobs.row[k] for k in nlargest(3, own, key=lambda k: (jobs.latency[k], -k))],
                  below=("late_notice",))


def short_kernels(facts):
    """A job takes less time than to submit and start it."""
    jobs, own = facts.jobs, submissions(facts)
    # Why the smaller: a submit span that lasts beyond its job waited for the CPU.
    calls = sorted(min(jobs.S[k], max(jobs.start[k], jobs.s[k])) - jobs.s[k] if jobs.S[k] > jobs.end[k]
                   else jobs.S[k] - jobs.s[k] for k in own if jobs.wait[k] != jobs.submit[k])
    if not calls:
        raise Missing("submit spans that are not the wait, too")
    execute = percentile(sorted(jobs.end[k] - jobs.start[k] for k in own), 500)
    call, start = percentile(calls, 500), percentile(sorted(jobs.latency[k] for k in own), 500)
    error = percentile(sorted(max(jobs.error[k], 0) for k in own), 500)
    if execute + error >= call + start:
        return
    overhead = sum(calls) + sum(jobs.latency[k] for k in own)
    yield Finding("", f"a job takes {ns_text(execute)}, its submission and start {ns_text(call + start)} "
                      f"({len(own)} jobs)",
                  "put more work into each job: fuse operators, or batch inferences",
                  {"execute_p50_ns": execute, "call_p50_ns": call, "dispatch_p50_ns": start,
                   "jobs": len(own)}, overhead, facts.share_of_inferences(overhead), "likely")


def no_demand(facts):
    """The device is idle because nobody asked."""
    submissions(facts)
    # Why: idle times would be counted twice, and where one of them is idle, another one may be at work.
    if facts.jobs.may_be_one:
        raise Missing("which rings are one engine: lines of the driver with the start of each job")
    total, certain, found = facts.idle.of_class("no_demand")
    whole = sum(ns for (_, queue), ns in facts.idle.idle.items() if queue < 0)
    devices = len(facts.jobs.devices)
    all_ns = facts.window.length_ns * devices
    if 2 * total < whole or 10 * total < all_ns:
        return
    capped = any(entry.capped for _, entry in found)
    who, mean = (f"each of the {devices} devices", " on average") if devices > 1 else ("the device", "")
    yield Finding("", f"{who} had nothing to do for {ns_text(total // devices)}{mean}, "
                      f"{pct_text(pct(total, all_ns))} % of the window",
                  "more requests at a time would use it; no request is seen in these times",
                  {"no_demand_ns": total, "idle_ns": whole}, certain, None,
                  confidence_of(certain, total, capped))


def untraced(facts):
    """Idle time in which the host did something that has no span."""
    total, certain, found = facts.idle.of_class("host_untraced")
    whole = sum(ns for (_, queue), ns in facts.idle.idle.items() if queue < 0)
    share = pct(certain, facts.window.length_ns)
    if not whole or 5 * certain < whole or share < 5:
        return
    parent, entry = found[0]
    yield Finding(parent, f"the device is idle for {ns_text(total)} while the host is inside {parent}, but "
                          "in no span of its own", f"mark what happens inside {parent}: it hides any cause",
                  {"untraced_ns": total, "idle_ns": whole, "idle_pct": pct(total, whole)}, certain, share,
                  confidence_of(certain, total), None, rows_of(entry))

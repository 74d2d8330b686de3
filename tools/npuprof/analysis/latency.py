# SPDX-License-Identifier: MIT
"""Each submission, split: call, queue_wait, dispatch, execute, before_wait, notice.

    call        the submit span: what a submission costs the host. It overlaps the others
    queue_wait  from the begin of the submit span until the job before it on the queue ends
    dispatch    from then, or from the submission, to the start
    execute     the job
    before_wait from its end to the begin of its wait span: the device is done, and the thread is elsewhere
    notice      from its end, or from the begin of the wait if that is later, to the end of the wait

Without a wait span the last two are not known. All but the call add up to the time from the submission to the
end of the wait, to the ns. A start before its
submission, within the clock's error, makes dispatch 0 and is counted. Submissions that are only partly in the
window are left out.
"""

from array import array

from ..base.contract import NULL
from ..tables.arithmetic import percentile
from ..tables.table import Table, pct
from .figures import spread

COLUMNS = ("queue", "part", "count", "total_ns", "share_pct", "p50_ns", "p90_ns", "p99_ns", "max_ns",
           "error_ns")
TABLES = ("latency",)
PARTS = ("call", "queue_wait", "dispatch", "execute", "before_wait", "notice")


def split(jobs, k):
    """The PARTS of job k, which has a submission; the last two are None without a wait."""
    s, before = jobs.s[k], jobs.before[k]
    ready = s if before < 0 else max(s, jobs.end[before])
    late = notice = None
    if jobs.n[k] != NULL:
        late = max(0, jobs.w[k] - jobs.end[k])
        notice = jobs.n[k] - jobs.end[k] - late
    # Why min: jobs of one queue may overlap.
    wait = min(ready, jobs.start[k]) - s
    return jobs.S[k] - s, wait, jobs.start[k] - s - wait, jobs.end[k] - jobs.start[k], late, notice


def preempted(facts):
    """Submit spans that last beyond the end of their job, and 20 times as long as a submission usually needs
    to start: {name: [count, all, ns beyond, certain ns, rows of the longest, usual ns]}."""
    jobs, trace, found = facts.jobs, facts.trace, {}
    own = [k for k, s in enumerate(jobs.s) if s != NULL and jobs.inside[k]]
    usual = sorted(jobs.start[k] - jobs.s[k] for k in own)
    usual = max(percentile(usual, 500), 1) if usual else 1
    for k in own:
        i = jobs.submit[k]
        if i < 0 or jobs.wait[k] == i or trace.kind[i]:
            continue
        entry = found.setdefault(trace.text(i), [0, 0, 0, 0, []])
        entry[1] += 1
        over = jobs.S[k] - jobs.end[k]
        if over > 0 and trace.dur[i] >= 20 * usual:
            entry[0] += 1
            entry[2] += over
            entry[3] += max(0, over - max(jobs.error[k], 0) - facts.host_error_ns)
            entry[4].append((over, i))
    return {name: [*entry[:4], [i for _, i in sorted(entry[4], reverse=True)[:3]], usual]
            for name, entry in found.items() if entry[2]}


def analyse(facts):
    jobs, columns, cut = facts.jobs, {}, 0
    for k, s in enumerate(jobs.s):
        if s == NULL:
            continue
        if not jobs.inside[k]:
            cut += 1
            continue
        parts = split(jobs, k)
        for label in {"(all)", jobs.queues[jobs.queue[k]].label} if len(jobs.queues) > 1 else {"(all)"}:
            own = columns.setdefault(label, [array("q") for _ in range(7)])
            own[6].append(jobs.error[k])
            for column, value in zip(own, parts):
                if value is not None:
                    column.append(value)
    rows = []
    for label in sorted(columns, key=lambda label: (label != "(all)", label)):
        own = columns[label]
        errors = [error for error in own.pop() if error != NULL]
        everything = sum(map(sum, own[1:]))
        for part, values in zip(PARTS, own):
            share = None if part == "call" else pct(sum(values), everything)
            rows.append((label, part, len(values), sum(values), share, *spread(values),
                         max(errors, default=None)))
    notes = []
    if not rows:
        notes.append("no submissions: no arrow from a host span to an execution")
    if jobs.early:
        notes.append(f"{jobs.early} starts lie before their submission, within the clock's error: dispatch 0")
    if cut:
        notes.append(f"{cut} submissions are only partly in the window, and left out")
    if jobs.violated:
        notes.append(f"{jobs.violated} executions contradict the clock (causality violated): left out")
    yield Table("latency", "From submission to notice (call overlaps the other parts)", COLUMNS, rows, notes)

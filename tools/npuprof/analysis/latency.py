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

from ..base.contract import NULL
from ..tables.table import Table, pct
from .figures import spread

COLUMNS = ("queue", "part", "count", "total_ns", "share_pct", "p50_ns", "p90_ns", "p99_ns", "max_ns",
           "error_ns")
PARTS = ("call", "queue_wait", "dispatch", "execute", "before_wait", "notice")


def split(jobs, k):
    """The PARTS of job k, which has a submission; the last two are None without a wait."""
    s, before = jobs.s[k], jobs.before[k]
    ready = s if before < 0 else max(s, jobs.end[before])
    late = notice = None
    if jobs.n[k] != NULL:
        late = max(0, jobs.w[k] - jobs.end[k])
        notice = jobs.n[k] - jobs.end[k] - late
    # Why min: a start that the clock's error puts before the submission is one at the submission.
    wait = min(ready - s, max(0, jobs.start[k] - s))
    execute = jobs.end[k] - max(jobs.start[k], s)
    return jobs.S[k] - s, wait, max(0, jobs.start[k] - s) - wait, execute, late, notice


def analyse(facts):
    jobs, columns, early, cut = facts.jobs, {}, 0, 0
    for k, s in enumerate(jobs.s):
        if s == NULL:
            continue
        if not jobs.inside[k]:
            cut += 1
            continue
        early += jobs.start[k] < s
        parts = split(jobs, k)
        for label in {"(all)", jobs.queues[jobs.queue[k]].label} if len(jobs.queues) > 1 else {"(all)"}:
            own = columns.setdefault(label, [[], [], [], [], [], [], []])
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
    if early:
        notes.append(f"{early} starts lie before their submission, within the clock's error: dispatch 0")
    if cut:
        notes.append(f"{cut} submissions are only partly in the window, and left out")
    if jobs.violated:
        notes.append(f"{jobs.violated} executions contradict the clock (causality violated): left out")
    yield Table("latency", "From submission to notice (call overlaps the other parts)", COLUMNS, rows, notes)

# SPDX-License-Identifier: MIT
"""Jobs: the executions of the device in columns, each with its submission, its wait and its predecessor.

Jobs are ordered by (start, end, row). Left out: warm-up, unfinished spans, and those whose order the clock
contradicts (causality violated, counted in `violated`). Of each job:

    group               its place in trace.executions
    row, start, end     the execution [d, f). Within the error of its stamps it is moved, so that it begins no
                        earlier than its submission (`early` counts these) and ends no later than its wait
    error               ns its stamps may be wrong; NULL: not known
    queue               number of its queue: a PE and stream. queues[q] is a Queue
    before              the previous job of its queue; -1: none
    thread              base track of the submitting thread; -1: no arrow "submit" leads to it
    submit              row of the submit span [s, S); -1
    s, S, doorbell      NULL without a submission; doorbell NULL if the span does not state doorbell_ns
    wait                row of its wait span; -1
    sure                MARKED: the trace or the user says that it waits; 0: only its name does; DOUBTED:
                        marked, but its job was hardly ever under way when it began
    w, n                begin and end of the wait; NULL
    look, looks         begin of the first wait of that name behind the submission, and how many came before
                        the last one: looks that saw nothing; NULL, -1
    inference           row of the inference around the submit span; -1
    inside              1: the execution and its submission lie wholly in the window

A wait span of a submission is on its thread, begins when the submit span has ended, and says so: by an arrow
from the execution, by kind "wait", or by its name (WAIT). One that ends before the device did waited for
something else. Which wait is for which submission: pairing.py; `open` has the rows of those that may be for
another one, `few` the jobs behind which there are too few waits to tell, `given_up` those that ended behind
their wait, and no other one came: maybe it timed out, and the host ended the job. A sampled kernel is its own
wait. A submit span of a ring is not taken for a wait, even if its job ends inside: the thread may be slow
(stretches.py).
"""

import re
from array import array
from collections import Counter, namedtuple
from functools import cached_property

from ..base.contract import DEVICE, ENDED, INFERENCE, KERNEL, NULL, SAMPLED, UNFINISHED, VIOLATED
from ..base.losses import missing_in, syncs_of
from ..tables.tracks import label_of
from .arguments import chosen
from .lanes import Names
from .pairing import SAYS_SO, Pairing
from .stretches import Stretches
from .usage import slept

WAIT = "wait|sync|poll|join|fence"
MARKED, DOUBTED = 1, 2
SEEN = 20          # of so many marked waits one must have waited, or they are doubted
# device: number of the device in Jobs.devices; base: base track; label: for a reader
Queue = namedtuple("Queue", "device base stream label")
COLUMNS = {"group": "i", "row": "i", "start": "q", "end": "q", "error": "q", "queue": "i", "before": "i",
           "thread": "i", "submit": "i", "s": "q", "S": "q", "doorbell": "q", "wait": "i", "sure": "b",
           "w": "q", "n": "q", "look": "q", "looks": "i", "inference": "i", "inside": "b"}


class Jobs:
    """Columns as above. devices: names by number."""

    def __init__(self, trace, window, wait=None):
        self.trace, self.window = trace, window
        self.devices, self.queues, self.violated, self.early = [], [], 0, 0
        self.open, self.few, self.given_up = set(), set(), set()
        groups = self._executions()
        for name, kind in COLUMNS.items():
            setattr(self, name, array(kind, [NULL if kind == "q" else -1]) * len(groups))
        rows = array("i", map(trace.executions[0].__getitem__, groups))
        self.group, self.row = groups, rows
        self.start = array("q", map(trace.start.__getitem__, rows))
        self.end = array("q", map(int.__add__, self.start, map(trace.dur.__getitem__, rows)))
        keys = chosen(trace, rows, ("error_ns", "stream"))
        self.error = keys["error_ns"]
        self._queues(keys["stream"])
        self._submissions()
        self.names = wait_names(trace, wait, set(self.thread))
        self._waits(self.names)
        self._doubt()
        self._inside()

    def __len__(self):
        return len(self.row)

    @cached_property
    def stretches(self):
        """Where threads may have waited for jobs that have no wait: a Stretches."""
        return Stretches(self.trace, self)

    @cached_property
    def unmarked(self):
        """True: for some job nothing but a name, or nothing at all, says where its thread waits."""
        return any(self._is_unmarked(k) for k in range(len(self)))

    @cached_property
    def call(self):
        """By job, how much of its time may be the host's: of a sampled kernel, the call but for the spans
        inside that say they wait; all of one that was given up; 0 for all others."""
        trace, finder, found = self.trace, self.trace.finder, array("q", bytes(8 * len(self)))
        for k, (i, caller) in enumerate(zip(self.row, self.submit)):
            if k not in self.given_up and not trace.flags[i] & SAMPLED:
                continue
            found[k] = trace.dur[i]
            if caller >= 0 and k not in self.given_up:
                n, _ = finder.after(self.thread[k], trace.start[caller])
                until = min(trace.start[caller] + trace.dur[caller], self.end[k])
                while n < finder.ends[self.thread[k]] and trace.start[finder.rows[n]] < until:
                    row = finder.rows[n]
                    if row != caller and self.names[trace.name[row]] == SAYS_SO:
                        found[k] -= trace.dur[row]
                    n += 1
                found[k] = max(0, found[k])
        return found

    @cached_property
    def unsure(self):
        """Jobs whose error is not known, or more than a tenth of their length: of the kernel's text, and of
        the devices in `by_order`."""
        trace, kernel = self.trace, self.trace.metadata.get("ftrace")
        wild = [self.devices[queue.device] in self.by_order for queue in self.queues]
        return [k for k, (i, error) in enumerate(zip(self.row, self.error) if kernel or self.by_order else ())
                if (error == NULL or 10 * error > trace.dur[i])
                and (wild[self.queue[k]] or (kernel and trace.names[trace.cat[i]] == KERNEL))]

    @cached_property
    def rings(self):
        """By queue: the rings of the kernel's text that have its lane."""
        kernel = self.trace.metadata.get("ftrace")
        every = kernel.get("rings", ()) if isinstance(kernel, dict) else ()
        names = (f"{self.devices[queue.device]} " for queue in self.queues)
        return [{ring for ring in every if name.startswith(f"{ring} ")} for name in names]

    @cached_property
    def shared(self):
        """[queues] of lanes that may be one engine in turns, or several: the kernel's text does not tell."""
        kernel = self.trace.metadata.get("ftrace")
        groups = kernel.get("may_share", ()) if isinstance(kernel, dict) else ()
        found = ([q for q, rings in enumerate(self.rings) if rings & set(group)] for group in groups)
        return [own for own in found if len(own) > 1]

    @cached_property
    def may_be_one(self):
        """Are there devices by name that may be one engine?"""
        return any(len({self.queues[q].device for q in own}) > 1 for own in self.shared)

    @cached_property
    def by_order(self):
        """Devices whose clock did again and again what its declared rate excludes: between two reads nothing
        is known but the order of their stamps."""
        wild = {name for name, sync in syncs_of(self.trace.metadata, None) if sync.get("class") == "stands"}
        return [name for name in self.devices if name in wild]

    @cached_property
    def are_drawn_loosely(self):
        """Is the length of more than a tenth of the device's time not known to a tenth?"""
        length = sum(self.end) - sum(self.start)
        return bool(self.unsure) and 10 * sum(self.end[k] - self.start[k] for k in self.unsure) >= length

    def _is_unmarked(self, k):
        return self.thread[k] >= 0 and self.sure[k] != MARKED and k not in self.slept

    @cached_property
    def latency(self):
        """By job, ns from when it could start to its start, d - max(s, end of the one before); NULL without
        a submission."""
        found = array("q", [NULL]) * len(self)
        for k, (s, start, before) in enumerate(zip(self.s, self.start, self.before)):
            if s != NULL:
                ready = s if before < 0 or self.end[before] <= s else self.end[before]
                found[k] = start - ready if start > ready else 0
        return found

    @cached_property
    def slept(self):
        """Jobs of which the counts of their thread say that it slept until their end; see usage.py."""
        names, ends = self.trace.name, {k: (-1, end) for k, (_, end) in self.stretches.of.items()}
        ends |= {k: (names[i], self.w[k] + self.trace.dur[i]) for k, (i, sure) in
                 enumerate(zip(self.wait, self.sure)) if i >= 0 and sure != MARKED}
        return slept(self.trace, self, ends)

    @cached_property
    def unmarked_names(self):
        """Where threads may wait: names of spans, "" for no span, ascending."""
        names = self.trace.names
        open_ = [(i, sure) for k, (i, sure) in enumerate(zip(self.wait, self.sure))
                 if self._is_unmarked(k) and k not in self.few]
        found = {names[self.trace.name[i]] for i, sure in open_ if i >= 0 and not sure}
        found |= {f"what comes before {names[self.trace.name[i]]}" for i, sure in open_ if sure == DOUBTED}
        if any(i < 0 for i, _ in open_):
            found |= {names[n] if n >= 0 else "" for n in self.stretches.names}
        return sorted(found)

    @cached_property
    def queues_of(self):
        """The queues of each device, by number."""
        found = [[] for _ in self.devices]
        for q, queue in enumerate(self.queues):
            found[queue.device].append(q)
        return found

    @cached_property
    def of_queue(self):
        """The jobs of each queue, in their order."""
        found = [array("i") for _ in self.queues]
        for k, q in enumerate(self.queue):
            found[q].append(k)
        return found

    def of_queues(self, queues):
        """The jobs of these queues, in their order."""
        return array("i", sorted(k for q in queues for k in self.of_queue[q]))

    @cached_property
    def missing(self):
        """How many executions of the window are not in the trace, by the gaps in their numbers; of a pause
        nobody knows. They count by queue if two of a device have the same number, else by device."""
        numbers = self.trace.index.get("execution_index")
        if numbers is None or self.window.paused_ns:
            return 0
        # Why: those before and behind the window, in warm-up, or of another PE are not missing.
        inside = set(map(numbers.__getitem__, self.row))
        outside = {numbers[i] for i in self.trace.executions[0] if i >= 0 and numbers[i] not in inside}
        of_queue = {}
        for q, own in enumerate(self.of_queue):
            of_queue[q] = [numbers[self.row[k]] for k in own if numbers[self.row[k]] != NULL]
        found = 0
        for queues in self.queues_of:
            together = [n for q in queues for n in of_queue[q]]
            lists = [together] if len(set(together)) == len(together) else [of_queue[q] for q in queues]
            for own in lists:
                first, last = min(own, default=0), max(own, default=0)
                found += missing_in({*own, *(n for n in outside if first < n < last)})
        return found

    def device_of(self, k):
        """The number of the device of job k."""
        return self.queues[self.queue[k]].device

    def _executions(self):
        """Their places in trace.executions, by start."""
        trace, window = self.trace, self.window
        start, dur, flags, pes = trace.start, trace.dur, trace.flags, trace.index.get("pe_index")
        rows, found = trace.executions[0], []
        for g, i in enumerate(rows):
            if i < 0 or not window.touches(start[i], start[i] + dur[i]) or trace.warm_up[i]:
                continue
            if window.pe is not None and (pes is None or pes[i] != window.pe):
                continue
            if flags[i] & VIOLATED:
                self.violated += 1
            elif not flags[i] & UNFINISHED:
                found.append(g)
        # Why one after the other: so many tuples take more memory than the trace.
        for column in (range(len(trace)), dur, start):
            found.sort(key=lambda g: column[rows[g]])
        return array("i", found)

    def _queues(self, streams):
        trace, numbers, devices, last, names = self.trace, {}, {}, {}, Names(self.trace)
        for k, (i, stream) in enumerate(zip(self.row, streams)):
            base = trace.tracks[trace.track[i]].base
            q = numbers.get((base, stream))
            if q is None:
                q = numbers[base, stream] = len(self.queues)
                label = label_of(trace, trace.tracks[base])
                # Why an empty name: a CSV names PEs, and no devices.
                key = trace.tracks[base].pid, names.of(trace.tracks[base])[0] or "device"
                if key not in devices:
                    devices[key] = len(self.devices)
                    self.devices.append(f"{key[1]} (pid {key[0]})" if trace.has_processes else key[1])
                self.queues.append(Queue(devices[key], base, None if stream == NULL else stream, label))
            self.queue[k] = q
            self.before[k] = last.get(q, -1)
            last[q] = k
        labels = Counter(queue.label for queue in self.queues)
        self.queues = [queue._replace(label=f"{queue.label} stream {queue.stream}")
                       if labels[queue.label] > 1 and queue.stream is not None else queue
                       for queue in self.queues]

    def _submissions(self):
        trace = self.trace
        from_track, from_ns, to_track, to_ns = trace.flows.named("submit")
        if not len(from_ns):
            return
        callers = trace.finder.innermost(from_track, from_ns)
        called = trace.finder.beginning(to_track, to_ns, trace.kind, DEVICE)
        place = array("i", [-1]) * len(trace)
        for k, row in enumerate(self.row):
            place[row] = k
        threads, parents, kind = self.window.threads, trace.parents, trace.kind
        for track, ns, submit, i in zip(from_track, from_ns, callers, called):
            k, base = place[i] if i >= 0 else -1, trace.tracks[track].base
            if k < 0 or (threads is not None and base not in threads):
                continue
            if self.start[k] < ns <= self.start[k] + max(self.error[k], 0):
                self._move(k, ns - self.start[k])
                self.early += 1
            self.thread[k], self.submit[k], self.s[k], self.S[k] = base, submit, ns, ns
            above = submit
            if submit >= 0:
                self.S[k] = trace.start[submit] + trace.dur[submit]
            while above >= 0 and kind[above] != INFERENCE:
                above = parents[above]
            self.inference[k] = above
        if trace.mentions("doorbell_ns"):
            rows = array("i", sorted({i for i in self.submit if i >= 0}))
            of = dict(zip(rows, chosen(trace, rows, ("doorbell_ns",))["doorbell_ns"]))
            for k, submit in enumerate(self.submit):
                self.doorbell[k] = of.get(submit, NULL)

    def _waits(self, names):
        """Pairs the wait spans of each thread with its submissions."""
        trace, name, of_thread = self.trace, self.trace.name, {}
        for k, thread in enumerate(self.thread):
            if thread >= 0 and trace.flags[self.row[k]] & SAMPLED:
                self._take(k, self.submit[k], True)
            elif thread >= 0:
                of_thread.setdefault(thread, []).append(k)
        by_arrow = self._arrows()
        finder = trace.finder
        for thread, jobs in of_thread.items():
            jobs.sort(key=lambda k: (self.S[k], self.s[k], k))
            first = finder.ends[thread - 1] if thread else 0
            waits = [i for i in finder.rows[first:finder.ends[thread]] if names[name[i]] or i in by_arrow]
            found = Pairing(self, jobs, waits, by_arrow, names)
            self.open |= found.open
            self.few |= found.few
            self.given_up |= found.given_up
            for pair in found.pairs:
                if pair.looks is not None:
                    self.look[pair.job], self.looks[pair.job] = pair.look, pair.looks
                self._take(pair.job, pair.row, pair.sure)

    def _doubt(self):
        """Why: where the device was done before a marked wait began, the thread may have waited before it."""
        trace, of_name = self.trace, {}
        for k, sure in enumerate(self.sure):
            if sure == MARKED and self.wait[k] != self.submit[k]:
                of_name.setdefault(trace.name[self.wait[k]], []).append(k)
        for own in of_name.values():
            if SEEN * sum(self.w[k] < self.end[k] for k in own) < len(own):
                for k in own:
                    self.sure[k] = DOUBTED

    def _take(self, k, i, sure):
        if i < 0:
            return
        seen = self.trace.start[i] + self.trace.dur[i]
        if self.end[k] <= seen + max(self.error[k], 0):
            self.wait[k], self.sure[k], self.w[k], self.n[k] = i, sure, self.trace.start[i], seen
            late = min(self.end[k] - seen, self.start[k] - self.s[k])
            if late > 0:
                self._move(k, -late)
            self.n[k] = max(seen, self.end[k])

    def _move(self, k, ns):
        """Why both ends: the device's clock is wrong by nearly the same at both."""
        self.start[k] += ns
        self.end[k] += ns

    def _arrows(self):
        """{row of a host span: job} for the arrows from an execution to a host span."""
        trace, found = self.trace, {}
        if all(trace.names[n] == "submit" for n in set(trace.flows.name)):
            return found
        ends = {(self.queues[q].base, trace.start[i] + trace.dur[i]): k
                for k, (q, i) in enumerate(zip(self.queue, self.row))}
        for flow in trace.flows:
            if flow.name != "submit" and trace.tracks[flow.from_track].kind == "device":
                base = trace.tracks[flow.from_track].base
                k = ends.get((base, flow.from_ns), -1)
                if flow.name == ENDED:
                    # Why: merge draws it from the job's last ns, since viewers want it inside of a span.
                    k = ends.get((base, flow.from_ns + 1), k)
                row = trace.finder.at(flow.to_track, flow.to_ns)
                if k >= 0 and row >= 0 and trace.tracks[flow.to_track].kind == "thread":
                    found[row] = k
        return found

    def _inside(self):
        holds, latest = self.window.holds, 2**62
        if not any(self.window.selection):
            # Why: without a choice the window ends with the last job, and its notice comes later.
            latest = self.window.end_ns
        for k, (start, end, s, n) in enumerate(zip(self.start, self.end, self.s, self.n)):
            self.inside[k] = holds(min(start, s) if s != NULL else start, max(end, min(n, latest)))


def jobs_of(trace, window, wait=None):
    """The Jobs of a window, made once for each trace."""
    made = trace.__dict__.setdefault("jobs_of", {})
    key = (tuple(window.intervals.flat), window.pe, frozenset(window.threads or ("all",)), tuple(wait or ()))
    if key not in made:
        made[key] = Jobs(trace, window, wait)
    return made[key]


def wait_names(trace, more, threads):
    """Bytes by name: SAYS_SO if the user (more) or a span of that name says that it waits, 1 if only the name
    sounds so, else 0."""
    known = re.compile(WAIT, re.I)
    given = set(more or ())
    names = bytearray(SAYS_SO if text in given else known.search(text) is not None for text in trace.names)
    if trace.mentions("kind", "wait"):
        # One span of each name tells for all of them.
        asked = bytearray(len(names))
        for i in trace.host_rows:
            n = trace.name[i]
            if not asked[n] and trace.track[i] in threads:
                asked[n] = 1
                if trace.args(i).get("kind") == "wait":
                    names[n] = SAYS_SO
    return names

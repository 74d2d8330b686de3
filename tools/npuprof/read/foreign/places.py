# SPDX-License-Identifier: MIT
"""What the spans of a foreign trace are: the one interface between a tool's conventions and a Trace."""

import re
from collections import Counter

from ...base.contract import DEVICE
from ..track_names import AsyncId

UNKNOWN = ("the error of the clocks is not known: {} merged those of host and device, and does not say how "
           "well; no finding is sure")
STATED = "the error of each device time is its error_ns, as npuprof states it; no finding is sure"


class Places:
    """trace, top (members of the file), and by number of a track its key (pid, tid).

    A module calls job() for each span that a device executes, aside() for what only stands on a device's
    track, and submissions() for the calls that jobs come from."""

    def __init__(self, reader, top):
        self.reader, self.trace, self.top = reader, reader.trace, top
        self.keys = {number: key for key, number in reader.tracks.items()}
        self.categories = {self.trace.names[number] for number in set(self.trace.cat)}
        self.jobs, self.device_tracks = {}, set()      # (track, start) -> rows of jobs; their tracks
        self.calls = {}                                # number -> row of the call; None: of several

    # ---- What the file says

    def cat(self, i):
        return self.trace.names[self.trace.cat[i]]

    def args(self, i):
        return self.trace._args.get(i, {})

    def said(self, track, what):
        """What a metadata event says about a track or, if `what` is of a process, its process."""
        pid, tid = self.keys[track]
        names = self.reader.track_names
        if not what.startswith("process_"):
            return names.get((pid, tid), {}).get(what)
        return next((own[what] for (of, _), own in names.items() if of == pid and what in own), None)

    # ---- What a module says

    def job(self, i):
        """Row i is an execution or an instruction of a device."""
        self.trace.kind[i] = DEVICE
        self.jobs.setdefault((self.trace.track[i], self.trace.start[i]), []).append(i)
        self.device_tracks.add(self.trace.track[i])

    def lane(self, track, device, stream=None):
        """The track is one of the device's: of that stream, or its only one."""
        name = device if stream is None else f"{device} stream {re.sub(r'[^0-9A-Za-z_]', '_', str(stream))}"
        self.reader.track_names.setdefault(self.keys[track], {})["thread_name"] = name

    def aside(self, i, name):
        """Row i stands on a track of that name instead: it is no work of the device."""
        key = self.keys[self.trace.track[i]][0], AsyncId(name)
        self.trace.track[i] = self.reader.tracks[key]
        self.keys[self.trace.track[i]] = key

    def aside_track(self, track, name):
        """The same of all of a track."""
        pid, tid = self.keys[track]
        del self.reader.tracks[pid, tid]
        key = pid, AsyncId(name)
        if key in self.reader.tracks:
            key = pid, AsyncId(f"{name} ({tid})")
        self.reader.tracks[key] = track
        self.keys[track], self.trace.tracks[track].tid = key, key[1]

    def column(self, key, i, value):
        """An index of row i, such as execution_index."""
        self.reader.column(key, len(self.trace))[i] = value

    def submissions(self, key):
        """An arrow from the host to the begin of a job is its submission; else the call that has the same
        number in the argument `key`. Returns the rows that have one."""
        trace, found, submit = self.trace, set(), self.trace._numbers["submit"]
        rows = sorted(row for same in self.jobs.values() for row in same)
        callers = {row: self.caller(self.args(row).get(key)) for row in rows} if self.calls else {}
        from_track, from_ns, to_track, to_ns = trace.flows.columns
        for n, end in enumerate(zip(to_track, to_ns)):
            rest = [row for row in self.jobs.get(end, ()) if row not in found]
            if rest and from_track[n] not in self.device_tracks:
                trace.flows.name[n] = submit
                found.add(self.job_of(rest, callers, from_track[n], from_ns[n]))
        for row in rows:
            caller = callers.get(row)
            if caller is not None and row not in found:
                trace.flows.add(submit, trace.track[caller], trace.start[caller], trace.track[row],
                                trace.start[row])
                found.add(row)
        return found

    def job_of(self, rows, callers, track, ns):
        """Of jobs that begin in one tick, the one whose call has this place, else one without a call."""
        trace = self.trace

        def other(row):
            caller = callers.get(row)
            return 1 if caller is None else 2 * (trace.track[caller] != track or not
                                                 0 <= ns - trace.start[caller] <= trace.dur[caller])
        return min(rows, key=other)

    def call(self, number, i):
        """Row i is the call of that number. If another call has it, too, as of another process, the number
        does not say whose a job is; one inside the other is one call."""
        trace, number = self.trace, str(number)
        other = self.calls.setdefault(number, i)
        if other is not None and other != i:
            outer, inner = sorted((i, other), key=trace.dur.__getitem__, reverse=True)
            behind = trace.start[inner] - trace.start[outer]
            is_one = trace.track[outer] == trace.track[inner] and \
                0 <= behind <= trace.dur[outer] - trace.dur[inner]
            self.calls[number] = outer if is_one else None

    def caller(self, number):
        """The row of the call of that number; None: there is none, or it is not known which."""
        return self.calls.get(str(number)) if number is not None else None

    def note(self, sentence):
        self.trace.notes.append(sentence)

    # ---- What the times are worth

    def finish(self):
        """Says what arrows and clocks are worth."""
        trace, flows = self.trace, self.trace.flows
        if DEVICE not in trace.kind:
            return
        rows = (i for i, kind in enumerate(trace.kind) if kind == DEVICE)
        is_stated = all("error_ns" in self.args(i) for i in rows)
        self.note(STATED if is_stated and trace.tool == "IREE" else UNKNOWN.format(trace.tool))
        arrows, back, exact, worst = Counter(), Counter(), Counter(), Counter()
        _, from_ns, to_track, to_ns = flows.columns
        for n, name in enumerate(flows.name):
            if trace.names[name] == "submit":
                device = str(self.said(to_track[n], "thread_name")).partition(" stream ")[0]
                arrows[device] += 1
                back[device] += to_ns[n] < from_ns[n]
                exact[device] += to_ns[n] == from_ns[n]
                worst[device] = max(worst[device], from_ns[n] - to_ns[n])
        for device in sorted(arrows):
            if back[device]:
                self.note(f"{device}: {back[device]} of {arrows[device]} arrows go back in time, by up to "
                          f"{worst[device]} ns: its clock and the host's differ by at least that; believe no "
                          "shorter time between host and device")
            if exact[device]:
                self.note(f"{device}: {exact[device]} of {arrows[device]} jobs begin in the very tick of "
                          "their submission: the tool may have moved them there")

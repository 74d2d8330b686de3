# SPDX-License-Identifier: MIT
"""What is wrong with a trace, one sentence each: what, where, what to do. `check` and `report` both ask it.

Two kinds of findings. A fault: something is missing or wrong, and no count of the trace says how much. A
doubt: what is missing is counted, or is as the program wanted it."""

from collections import Counter, namedtuple

from .contract import UNFINISHED
from .losses import counted, doubts, lost_by_cause, missing_in, syncs_of

Finding = namedtuple("Finding", "is_fault sentence")
SHOWN = 3                    # names in a sentence
RATE_PPM = 10_000            # so far a stated rate may be off; oscillators without a crystal are better
NARROW = (8, 12, 16, 20, 24, 28, 32, 40, 48, 56)     # widths of counters
NO_SPAN = "no device span"
# Facts of a span whose stamps cannot be right, and what is said of such spans.
WRONG = {"stamps_out_of_range": "have stamps too far from the trace, and are drawn without length where it "
                                "begins; hand times of npuprof_now_ns() to npuprof_span()",
         "end_before_start": "end before they start, and are drawn without length; look at what is handed to "
                             "npuprof_span()"}
ROUNDED = "memory records of 2^63 bytes or more are rounded to 53 bits, as every JSON has them"
ENDS_LOST = {"reading", "sink"}      # the end of a span that was recorded may be among these
RECORDED_LESS = ("overwritten", "arena_full", "reading", "sink", "no_context")


class Evidence:
    """What the events of a trace tell, beside its metadata. Every reader fills it in; None: not known."""

    def __init__(self):
        self.events = 0
        self.open = Counter()            # name of a span that was open at the end -> how many
        self.no_span = Counter()         # (device, why) of submissions without a device span -> how many
        self.pauses = self.resumes = 0
        self.notes = []                  # what the reader says of a trace of another tool
        self.executions = {}             # device -> the values of execution_index of its spans
        self.wrong = Counter()           # (key of WRONG, name of a span) -> how many
        self.rounded = 0                 # of ROUNDED

    def span(self, name, args):
        """Takes the arguments of a span."""
        for key in WRONG.keys() & args.keys():
            self.wrong[key, name] += args[key] is True

    def instant(self, name, args):
        """Takes an instant event."""
        if name == NO_SPAN:
            args = args if isinstance(args, dict) else {}
            self.no_span[str(args.get("device") or "")[:60], str(args.get("why", ""))[:200]] += 1
        self.pauses += name == "npuprof paused"
        self.resumes += name == "npuprof resumed"


def evidence_of(trace):
    """The Evidence of a loaded trace."""
    found = Evidence()
    found.events = len(trace) + len(trace.instants) + len(trace.counters) + len(trace.memory)
    is_open = bytes(flags & UNFINISHED and 1 for flags in range(256))
    marked, row = bytes(trace.flags).translate(is_open), -1
    while (row := marked.find(1, row + 1)) >= 0:
        found.open[trace.names[trace.name[row]]] += 1
    if any(trace.mentions(key) for key in WRONG):
        for row, track in enumerate(trace.track):
            if trace.tracks[track].kind == "other":
                found.span(trace.text(row), trace.args(row))
    # Why: 64 bits of the arena become a real in its JSON. Other tools' JSON has them whole.
    found.rounded = sum(max(record.used, record.allocated) >> 63 > 0 for record in trace.memory
                        if trace.metadata)
    for instant in trace.instants:
        if instant.name == NO_SPAN or instant.name.startswith("npuprof "):
            found.instant(instant.name, instant.args)
    found.notes = [*trace.notes, *([f"left out: {trace.left_out_text()}"] if trace.left_out else ())]
    devices = [name for name, _ in syncs_of(trace.metadata)]
    for track, values in trace.values_of("execution_index").items():
        if trace.tracks[track].kind == "device":
            name = device_of(trace.tracks[trace.tracks[track].base].name, devices)
            known = found.executions.get(name)
            found.executions[name] = known | values if known else values
    return found


def device_of(track, devices):
    """The device that a track of that name belongs to; "": none of them."""
    return max((name for name in devices if track == name or track.startswith(f"{name} ")), key=len,
               default="")


def listed(names):
    """Names for a sentence, at most SHOWN of them."""
    texts = [f"{name[:60]!a}" for name in list(names)[:SHOWN]]
    return ", ".join(texts) + (" and others" if len(names) > SHOWN else "")


def findings(about, evidence):
    """[Finding] of metadata.npuprof, any JSON object or None, and an Evidence. Faults come first."""
    about = about if isinstance(about, dict) else {}
    parts = about.get("processes")
    parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else [about]
    damaged = counted(about).get("damaged_places", 0)
    found = [*nothing(about, evidence, damaged), *missing_devices(parts, about, evidence)]
    if not counted(about).get("left_out"):       # what a target cannot write may be those spans
        found += of_submissions(evidence)
    for name, sync in syncs_of(about):
        found += of_device(name, sync, evidence, damaged)
    if not damaged:
        found += holes(about, evidence)
    ends = counted(about.get("lost")).get("ends", 0)
    if ends:
        found.append((True, f"{ends} PROF_END had no PROF_BEGIN on their thread: a span may have ended too "
                            "early; use PROF_SCOPE, or end each span where it began"))
    if evidence.open:
        found.append((False, still_open(evidence.open, damaged, counted(about.get("lost")))))
    for key, sentence in WRONG.items():
        names = [name for (fault, name), count in evidence.wrong.items() if fault == key and count]
        if names:
            count = sum(evidence.wrong[key, name] for name in names)
            found.append((False, f"{count} spans, {listed(names)}, {sentence}"))
    if evidence.rounded:
        found.append((False, f"{evidence.rounded} {ROUNDED}"))
    if evidence.pauses > evidence.resumes:
        found.append((False, "recording was paused at the end: what came later is not in the trace; "
                             "call npuprof_resume()"))
    found += [(False, sentence) for sentence in doubts(about) if sentence != f"lost: {ends} ends"]
    found += [(False, note) for note in evidence.notes]
    ftrace = about.get("ftrace")
    notes = ftrace.get("notes") if isinstance(ftrace, dict) else None
    found += [(False, note) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    for part in parts:
        found += refused(part)
    return sorted((Finding(*one) for one in dict.fromkeys(found)), key=lambda one: not one.is_fault)


def still_open(names, damaged, lost):
    """The sentence on spans without an end; names: a Counter of them."""
    spans = f"{names.total()} spans"
    if damaged or lost.keys() & ENDS_LOST:
        return f"{spans}, {listed(names)}, have no end: they were open, or it is in what is missing"
    return (f"{spans} were still open at the end, {listed(names)}: they took at least so long; end them "
            "before the trace is written, or see why the program died")


def nothing(about, evidence, damaged):
    """Nothing was recorded, or all was lost."""
    recorded = about.get("recorded")
    if not about and not evidence.events:
        yield True, "nothing was recorded: it has no event beside names"
    elif recorded == 0 or (type(recorded) is not int and "lost" in about and not evidence.events):
        lost = sum(lost_by_cause(about).values())
        yield True, ("no event could be read: the file is damaged, and how many were recorded is not known"
                     if damaged else
                     f"nothing was recorded: all {lost} spans and events were lost" if lost else
                     "nothing was recorded: call npuprof_start() before the code of interest and "
                     "npuprof_dump() after it; look at level and categories")


def missing_devices(parts, about, evidence):
    """npuprof_npu_open() failed, and no later one went well."""
    names = {name for name, _ in syncs_of(about)}
    for part in parts:
        unused = part.get("unused_environment")
        for key, why in unused.items() if isinstance(unused, dict) else ():
            what, _, name = key.partition(" ")
            if what == "npuprof_npu_open" and name[:60] not in names:
                yield True, f"device {name[:60]!a} could not be opened: {str(why)[:300]}"
            if what == "npuprof_npu_open_twice":
                yield False, f"device {name[:60]!a}: {str(why)[:300]}"


def refused(part):
    """Settings that were refused."""
    unused = part.get("unused_environment")
    for key, why in unused.items() if isinstance(unused, dict) else ():
        if not key.startswith(("npuprof_npu_open", "NPUPROF_NOW", "NPUPROF_LINE")):
            yield False, f"{key[:60]} was refused: {str(why)[:300]}"


def of_submissions(evidence):
    for (device, why), count in evidence.no_span.items():
        where = f"device {device!a}" if device else "a device that was never opened" if why else "a device"
        yield True, f"{where}: {count} submissions have no device span{': ' * bool(why)}{why}"


def of_device(name, sync, evidence, damaged):
    """What a clock_sync tells that is no count of losses."""
    counts, where = counted(sync), f"device {name!a}"
    spans = counts.get("spans", 0) + counts.get("host_spans", 0)
    by_cause = sum(n for key, n in counted(sync.get("records")).items() if key.startswith("lost_"))
    odd = max(by_cause, counts.get("ring_lost", 0))        # that counts them all
    if "spans" in sync and not spans and not damaged:
        silent = any(device == name for device, _ in evidence.no_span)
        if odd:
            yield True, f"{where}: none of {odd} records became a span; look at the description of its ring"
        elif not silent:
            yield False, (f"{where}: was opened, and has no span: did anything run on it, and was its ring "
                          "drained before the end?")
    elif spans and counts.get("unplaced_spans", 0) == spans:
        yield True, f"{where}: none of its {spans} spans has a place in time; call npuprof_npu_sync()"
    violations = counts.get("causality_violations", 0)
    if violations * 10 > spans > 0:
        yield True, (f"{where}: {violations} of its {spans} spans lie outside the call that caused them: its "
                     "counter stood still, or the stamps or the job numbers are not what they are said to be")
    if sync.get("anchors") == 1 and counts.get("spans"):
        yield False, (f"{where}: its clock was compared with the host's only once; call npuprof_npu_sync() "
                      "before and after the work, and npuprof_npu_close() at the end")
    drift, unsure = sync.get("drift_ppm"), sync.get("rate_uncertainty_ppm") or 0
    if isinstance(sync.get("rate_hz"), NUMBERS) and isinstance(drift, NUMBERS) \
            and abs(drift) - unsure > RATE_PPM and (drift > 0 or sync.get("class") != "stands"):
        yield True, (f"{where}: its counter makes {sync['rate_hz']:.0f} ticks a second, {drift / 1e4:+.1f} % "
                     "beside counter.hz: mend counter.hz, or see whether it is another register")
    bits = narrow(sync.get("anchor_list"))
    if bits:
        yield True, (f"{where}: its counter begins again after {bits} bits, which looks like resets: "
                     f"set counter.bits = {bits}")
    elif counts.get("resets"):
        yield False, (f"{where}: its counter went back {counts['resets']} times: was the device reset? "
                      "If not, look at counter.bits and at the offsets")


NUMBERS = (int, float)


def narrow(anchors):
    """The bits of a counter that wraps and was not said to; 0: it does not. anchors: [[ns, error, ticks]].

    A counter of so many bits fits all distances between anchors only modulo 2^bits."""
    if not isinstance(anchors, list) or not all(
            isinstance(a, list) and len(a) == 3 and all(isinstance(v, int) for v in a) for a in anchors):
        return 0
    steps = [(b[0] - a[0], b[2] - a[2], a[1] + b[1]) for a, b in zip(anchors, anchors[1:])]
    rates = sorted(ticks / ns for ns, ticks, error in steps if ns > 20 * error and ticks > 0)
    if not rates or all(ticks >= 0 for _, ticks, _ in steps):
        return 0
    top, rate = max(a[2] for a in anchors), rates[len(rates) // 2]
    bits = next((bits for bits in NARROW if top < 1 << bits), 0)
    turns = 0
    for ns, ticks, error in steps if bits and top >> bits - 4 else ():
        period, unsure = 1 << bits, rate * (error + ns / 1000) + 2
        off = (ticks - rate * ns) % period
        if unsure > period / 16:
            continue
        if min(off, period - off) > unsure:
            return 0
        turns += ticks < 0
    return bits if turns else 0


def holes(about, evidence):
    """Executions that the device counted and the trace does not have."""
    if evidence.pauses or any(key in RECORDED_LESS for key in lost_by_cause(about)) \
            or any(counted(sync).get("ring_lost") for _, sync in syncs_of(about)):
        return
    for name, values in evidence.executions.items():
        away = missing_in(values)
        if away:
            where = f"device {name!a}: " if name else ""
            yield True, (f"{where}{away} of the executions {min(values)} to {max(values)} are not in the "
                         "trace, and none was counted as lost: see whether every record is handed over, or "
                         "another process uses the device")

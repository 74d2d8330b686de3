# SPDX-License-Identifier: MIT
"""What metadata.npuprof says was lost, by cause, and what to do about each cause."""

PARTS = ("arguments", "notes", "ends")     # of `lost`: no span or event is missing for these
LOST_SPANS = ("unplaced_spans", "ring_lost")    # counts in a clock_sync
RING = "device_ring"       # in `lost`: the same losses as ring_lost of all devices together
# The causes in clock_sync.records: (what they are, what to do).
RECORDS = {
    "lost_overwritten": ("entries were overwritten before they were read", "drain the ring more often"),
    "lost_stamps": ("stamps fit no time",
                    "look at stamp, stamp_scale and npuprof_npu_set_stamp_offset(); "
                    "stamps that wrap need more drains"),
    "lost_epoch": ("entries are of another run of the counter than their submission",
                   "drain before power off or reset; look at the counter's bits and hz"),
    "lost_no_anchor": ("entries came before the clock was known",
                       "call npuprof_npu_sync() or npuprof_npu_anchor() before the first drain"),
    "lost_by_driver": ("entries were counted by npuprof_npu_lost()", "see why the driver counted them"),
    "lost_period": ("nobody can tell which period of the narrow stamp they are of",
                    "submit them through the library, or give max_age_ms or stamps = \"ascending\""),
    "lost_contradiction": ("stamps fit no time between submission and hand-over",
                           "look at job, job_scope, the stamp's bits and its clock"),
    "unknown_records": ("entries have a kind that is not described", "name it in kinds, or skip it there"),
    "unmatched_ends": ("ends have no begin",
                       "look at key; a begin that is lost leaves its end alone, so mind the losses first"),
    "unfinished": ("begins have no end", "drain after the last job; look at key"),
    "past_last_lane": ("entries name a PE that does not exist", "look at pe and pe_count"),
    "dropped_jobs": ("submissions lost their arrows, as more were open than desc.job_count",
                     "give a larger desc.job_count, or drain more often"),
    "open_jobs": ("submissions were open when the device was closed: no record ended them",
                  "drain after the last job; look at job and job_scope"),
    "ambiguous_jobs": ("records have a number that is not certain to be one submission's: no arrow",
                       "look at job_scope, and at the stream of the submissions; mind the losses first"),
    "loss_unknown": ("looks at rings may have lost more than is counted: they cannot tell it",
                     "drain the ring more often; describe `sequence` or a lap count, if there is one"),
}
# Members of metadata.npuprof beside `lost`, and what the places that they count are.
MISSING = {"damaged_places": "damaged places: what was there is missing, and how much is not known",
           "ends_with_flush": "streams end with npuprof_flush(), and not with their program: what was "
                              "recorded since is missing, and how much is not known",
           "changed_while_read": "chunks changed while they were read: what was there is missing",
           "counter_values_not_finite": "values of counters are no finite numbers, and are not drawn: look "
                                        "at what is handed to PROF_COUNTER",
           "left_out": "left out: the target cannot write them"}
HOLES = {"damaged_places", "changed_while_read"}       # of MISSING: anywhere, and nobody counted it
UNCOUNTED = {*HOLES, "ends_with_flush"}
ADVICE = {"arena_full": "a larger arena: NPUPROF_ARENA_BYTES; or NPUPROF_WHEN_FULL=keep-newest, for what "
                       "comes last", "overwritten": "a larger arena, or a stream",
          "sink": "a faster disk, or fewer categories",
          "unplaced_spans": "call npuprof_npu_sync() more often",
          "names_full": "fewer names: NPUPROF_MAX_NAMES", "too_deep": "less nesting",
          RING: "the trace does not say why; drain the ring more often, or look at its stamps",
          **{cause: advice for cause, (_, advice) in RECORDS.items()}}


def counted(found):
    """The members of a JSON object that are counts above 0."""
    found = found if isinstance(found, dict) else {}
    return {key: count for key, count in found.items() if isinstance(count, int) and count > 0}


def syncs_of(about, length=60):
    """[(name, clock_sync)] of the devices; at most `length` letters of a name, as sentences have them. Takes
    any JSON object."""
    devices = about.get("devices")
    return [(str(d.get("name"))[:length], d["clock_sync"])
            for d in (devices if isinstance(devices, list) else ())
            if isinstance(d, dict) and isinstance(d.get("clock_sync"), dict)]


def lost_by_cause(about):
    """{cause: count} of what was lost, each loss once: those of rings by the reason in clock_sync.records."""
    found = counted(about.get("lost"))
    syncs = [sync for _, sync in syncs_of(about)]
    known, reasons = 0, {}
    for sync in syncs:
        known += counted(sync).get("ring_lost", 0)
        unplaced = counted(sync).get("unplaced_spans", 0)
        if unplaced:
            found["unplaced_spans"] = found.get("unplaced_spans", 0) + unplaced
        for cause, count in counted(sync.get("records")).items():
            if cause.startswith("lost_"):
                reasons[cause] = reasons.get(cause, 0) + count
    # Why the largest: each loss of a ring is in all three, and a file cut short may lack one.
    found.pop("ends", None)          # no span or event: base/doctor.py tells of them
    ring = max(found.pop(RING, 0), known, sum(reasons.values()))
    rest = ring - sum(reasons.values())
    return found | reasons | ({RING: rest} if rest else {})


def are_known(about):
    """True: somebody counted what was lost. Of other tools' traces, and of a CSV, nobody did; nor of a text
    of the kernel that does not tell it; nor of what is missing in the file."""
    ftrace = about.get("ftrace")
    told = not isinstance(ftrace, dict) or ftrace.get("lost", 0) is not None
    told = told and not UNCOUNTED & counted(about).keys()
    return told and isinstance(about.get("lost"), dict) or bool(lost_by_cause(about))


def has_holes(about):
    """True: anywhere in the trace something may be missing, and nobody counted it."""
    return bool(HOLES & counted(about).keys())


def records_lost(causes):
    """How many spans and events these are."""
    return sum(count for cause, count in causes.items() if cause not in PARTS)


def ring_causes(causes):
    """True: one of the causes counts entries of a ring, which are not always spans."""
    return any(cause == RING or cause in RECORDS for cause in causes)


def contradicted(counts, sync):
    """A device clock that did what its declared rate excludes, and what the bounds are worth there."""
    said = f"its clock's rate changed {counts['contradictions']} times by more than max_rate_ppm allows"
    if sync.get("class") == "stands":
        return f"{said}: its bounds rest on the order of reads and stamps alone"
    return (f"{said}: in {counts.get('opened_ns', 0) / 1e6:.1f} ms the bounds rest on the order of reads "
            "and stamps; others are not touched")


def doubts(about):
    """One sentence for each loss or contradiction that metadata.npuprof tells of. Takes any JSON object."""
    found = []
    lost = counted(about.get("lost"))
    if lost:
        found.append("lost: " + ", ".join(f"{count} {key}" for key, count in lost.items()))
    places = counted(about)
    found += [f"{places[key]} {what}" for key, what in MISSING.items() if key in places]
    host = about.get("clock", {})
    if isinstance(host, dict) and isinstance(host.get("doubt"), str):
        found.append(f"clock: {host['doubt'][:300]}")
    clock = about.get("unused_environment", {})
    if isinstance(clock, dict) and isinstance(clock.get("NPUPROF_NOW"), str):
        found.append(f"clock: {clock['NPUPROF_NOW'][:120]}")
    if isinstance(clock, dict) and isinstance(clock.get("NPUPROF_LINE"), str):
        found.append(f"line: {clock['NPUPROF_LINE'][:480]}")
    for name, sync in syncs_of(about):
        counts = counted(sync)
        for key in ("causality_violations", *LOST_SPANS):
            if key in counts:
                same = f", counted in {RING} too" if key == "ring_lost" and RING in lost else ""
                found.append(f"device {name!a}: {counts[key]} {key}{same}")
        if "contradictions" in counts:
            found.append(f"device {name!a}: {contradicted(counts, sync)}")
        for cause, count in counted(sync.get("records")).items():
            what, advice = RECORDS.get(cause, ("", ""))
            found.append(f"device {name!a}: {count} {cause}" + (f": {what}: {advice}" if what else ""))
    return found


def missing_in(numbers):
    """How many values of a counter are not in this set, from its first to its last one. 0 if they are as
    many as those that are: then it is no counter."""
    away = max(numbers) - min(numbers) + 1 - len(numbers) if numbers else 0
    return away if 0 < away < len(numbers) else 0

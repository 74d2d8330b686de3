# SPDX-License-Identifier: MIT
"""Rules about the trace itself: how far the others can be trusted."""

from statistics import median

from ...base.losses import ADVICE, PARTS, RECORDS, ring_causes
from ...tables.table import pct
from .finding import Finding, Missing, ns_text, pct_text


def trace_incomplete(facts):
    """More than 1 % of the spans were lost; above 10 % nothing else is said."""
    causes, lost, kept = facts.losses, facts.lost_records, len(facts.trace)
    counted, evidence, sentences = 100 * lost > lost + kept, {}, []
    if facts.missing_pct > 1:
        missing, share = facts.jobs.missing, facts.missing_pct
        evidence |= {"missing": missing, "missing_pct": share}
        sentences.append(f"{missing} of {missing + len(facts.jobs)} executions are missing "
                         f"({pct_text(share)} %): their numbers are not in the trace")
    if counted:
        causes = {cause: count for cause, count in causes.items() if cause not in PARTS}
        worst, share = max(causes, key=causes.get), pct(lost, lost + kept)
        what = "spans and entries of rings" if ring_causes(causes) else "spans"
        why = f"{worst} ({RECORDS[worst][0]})" if worst in RECORDS else worst.replace("_", " ")
        evidence |= {"lost": lost, "kept": kept, "lost_pct": share}
        sentences.append(f"{lost} of {lost + kept} {what} are missing ({pct_text(share)} %), "
                         f"{causes[worst]} of them: {why}")
        yield Finding(worst, "; ".join(sentences),
                      f"record again: {ADVICE.get(worst, 'with less load')}; all else here is less sure",
                      evidence)
    elif sentences:
        yield Finding("executions", *sentences,
                      "record again, and drain more often; see whether every record is handed over, or "
                      "another process uses the device", evidence)
    if not facts.trace.metadata:
        raise Missing("metadata of npuprof: nobody counted what was lost")


def clock_unsure(facts):
    """The error of the device's clock covers most of the gaps, and most of their time."""
    idle = facts.idle
    if not facts.jobs.queues:
        raise Missing("executions")
    if not idle.errors_known:
        raise Missing("error_ns of the device's stamps")
    for device, name in enumerate(facts.jobs.devices):
        lengths, certains = idle.gaps[device, -1]
        total, certain = sum(lengths), sum(certains)
        if not lengths or 50 * total < facts.window.length_ns:
            continue
        if median(c / n for c, n in zip(certains, lengths)) >= 0.5 or 2 * certain >= total:
            continue
        error = round(median(e for e, q in zip(facts.jobs.error, facts.jobs.queue)
                             if facts.jobs.queues[q].device == device))
        gap = round(median(lengths))
        yield Finding(name, f"gaps of {ns_text(gap)} against a clock error of +-{ns_text(error)}: who caused "
                            "them cannot be told",
                      "call npuprof_npu_sync() more often, or state lag_ns if the device has a faster path",
                      {"gap_p50_ns": gap, "error_p50_ns": error, "idle_ns": total, "certain_ns": certain},
                      certain, pct(total - certain, facts.window.length_ns), "sure")


def causality(facts):
    """Device spans that begin before their submission, beyond the clock's error."""
    if not facts.trace.metadata.get("devices"):
        raise Missing("clock_sync of a device")
    for device in facts.trace.metadata["devices"]:
        count = device.get("clock_sync", {}).get("causality_violations") or 0
        if count > 0:
            yield Finding(str(device.get("name")), f"{count} executions begin before their submission or end "
                                                   "after their wait, beyond the clock's error",
                          "check the counter's rate and lag_ns of the device; its other figures are doubtful",
                          {"violations": count})

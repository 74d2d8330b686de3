# SPDX-License-Identifier: MIT
"""Jobs of the module toy: what `merge --ftrace` makes of the kernel's text, against what the device knows."""
import json
import re
import subprocess
import sys
from collections import Counter, namedtuple

from modules import ROOT

QUANTUM_NS = 1000            # of the text's stamps
Job = namedtuple("Job", "start end args")


def truth_of(folder, name):
    """{label: (begin, end, ns from the end of the job before to its interrupt)} of the jobs that the device
    began with, ns; end 0: never."""
    found, before = {}, {}
    for line in (folder / f"{name}.truth").read_text().splitlines():
        context, number, begin, done, end = map(int, line.split())
        found[f"{context}:{number}"] = begin, end, before.get(context, 0)
        before[context] = end - done
    return found


def merged(folder, name):
    """({label: Job}, metadata.npuprof.ftrace) of a text; each label once."""
    out = folder / f"{name}.jobs.json"
    for words in (("merge", "--ftrace", folder / f"{name}.ftrace", "-o", out), ("check", out)):
        done = subprocess.run([sys.executable, ROOT / "tools/npuprof.py", *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
    trace, found = json.loads(out.read_text()), {}
    about = trace["metadata"]["npuprof"]
    for event in trace["traceEvents"]:
        args = event.get("args", {})
        if event["ph"] == "X" and args.get("stamp") == "kernel":
            assert args["job"] not in found, f"two jobs are called {args['job']}"
            start = about["start_boottime_ns"] + round(event["ts"] * 1000)
            found[args["job"]] = Job(start, start + round(event["dur"] * 1000), args)
    return found, about["ftrace"]


def wrong(job, begin, end, before):
    """Why a job is not as the device knows it; "" if it is."""
    args, q = job.args, QUANTUM_NS
    e = args.get("start_error_ns")
    # Why: the interrupt's own latency is in no text.
    back = before if args["start"] == "start by order" else 0
    if e is not None and not job.start - e - back - q <= begin <= job.start + e + q:
        return f"it begins at {job.start}, not {begin} within {e}: {args['start']}"
    e = args.get("end_error_ns")
    # Why both sides of others: of several jobs that one interrupt ended, only the last one's end is tight,
    # and an interrupt may have waited for another one.
    back = 0 if args["end"].endswith("one-sided") else e
    if e is not None and not job.end - back - q <= end <= job.end + e + q:
        return f"it ends at {job.end}, not {end} within {e}: {args['end']}"
    if end == 0 or end > job.end + (e or 0) + q:
        return f"it ends at {job.end}, before its end {end}"
    return ""


def compared(folder, name):
    """(the jobs, what the text says of itself, the truth); each job is right."""
    truth, (jobs, said) = truth_of(folder, name), merged(folder, name)
    bad = [f"{label}: {why}" for label, job in jobs.items() if (why := wrong(job, *truth[label]))]
    assert not bad, f"{len(bad)} of {len(jobs)} jobs are wrong: {bad[0]}"
    return jobs, said, truth


def shares(jobs):
    """In words, of how many jobs begin and end are known."""
    known = Counter()
    for job in jobs.values():
        known.update(key for key in ("start_error_ns", "end_error_ns") if key in job.args)
    begins, ends = known["start_error_ns"], known["end_error_ns"]
    return f"{len(jobs)} jobs, of {begins} the begin is known, of {ends} the end"


def whole(folder):
    """8,000 jobs of two schedulers of one name: each is there, with begin and end in the stated intervals"""
    jobs, said, truth = compared(folder, "whole")
    assert jobs.keys() == truth.keys() and len(jobs) == 8000, (len(jobs), len(truth))
    assert (said["no_begin_seen"], said["no_end_seen"], said["holes"]) == (0, 0, 0), said
    told = sum(re.fullmatch(r"interrupt \d+ \(toy\)", job.args.get("end_by", "")) is not None
               for job in jobs.values())
    assert told > 3800, f"{told} jobs end by the interrupt of the device"
    words = Counter(" ".join(job.args["start"].split()[:2]) for job in jobs.values())
    assert words["start bracketed"] > 1000 and words["start by"] > 100, words
    return shares(jobs)


def both_at_once(folder):
    """3,000 jobs, of which those of one ring end in any order, and one that is open at the end"""
    jobs, said, truth = compared(folder, "both")
    before = truth_of(folder, "lost").keys()
    never = {label for label, (_, end, _) in truth.items() if not end}
    assert jobs.keys() == truth.keys() - before - never and len(jobs) == 3000, (len(jobs), len(truth))
    assert (said["no_begin_seen"], said["no_end_seen"], len(never)) == (0, 1, 1), said
    of_ring = {}
    for label in sorted(jobs, key=lambda label: int(label.partition(":")[2])):
        of_ring.setdefault(label.partition(":")[0], []).append(truth[label])
    swaps = {ring: sum(b < a for (_, a, _), (_, b, _) in zip(own, own[1:])) for ring, own in of_ring.items()}
    assert max(swaps.values()) > 100 and min(swaps.values()) == 0, swaps
    return f"{shares(jobs)}; {max(swaps.values())} ended before an earlier one"


def lost_events(folder):
    """2,000 jobs whose events a small buffer lost in places: what is drawn is right, edges are counted"""
    jobs, said, truth = compared(folder, "lost")
    own = truth.keys() - truth_of(folder, "whole").keys()
    assert jobs.keys() <= own and len(own) == 2000, (len(jobs), len(own))
    edges = said["no_begin_seen"] + said["no_end_seen"]
    assert said["holes"] > 3 and edges > 0 and len(jobs) > 100, said
    # Why not equal: of a job that lies in a hole with all its events nothing is seen.
    assert len(jobs) + edges <= len(own), (len(jobs), edges)
    inside = len(own) - len(jobs) - edges
    return f"{shares(jobs)}; {edges} at edges of {said['holes']} holes, {inside} inside"


CHECKS = [("whole.truth", whole), ("lost.truth", lost_events), ("both.truth", both_at_once)]


def checks_for(sent):
    """As modules.checks_for()."""
    return [check for name, check in CHECKS if name in sent]

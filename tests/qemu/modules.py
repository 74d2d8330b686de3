# SPDX-License-Identifier: MIT
"""What must be true of the files that the rigs with a kernel's view send: of module.c and ftrace.c."""
import bisect
import json
import pathlib
import re
import subprocess
import sys
import unittest
from collections import Counter, defaultdict

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

import pftrace                                                        # noqa: E402
import sched_waits                                                    # noqa: E402

CONVERT = ROOT / "build" / "npuprof-convert"
COMPLAINTS = re.compile(r"WARNING:|BUG:|\bOops|Call Trace|possible .* detected|inconsistent lock state|stall"
                        r"|soft lockup|general protection|unable to handle|refcount|scheduling while", re.I)
EVENT = re.compile(rb'\{"ph":"X","name":"([^"]+)".*?"tid":(\d+),"ts":([\d.]+),"dur":([\d.]+)')
NAME = re.compile(rb'\{"ph":"M","name":"thread_name".*?"tid":(\d+),"args":\{"name":"([^"]+)"')


def run(*command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"{command[0]}: {done.stdout.decode(errors='replace')}"
    return done.stdout


def npuprof(*words):
    return run(sys.executable, ROOT / "tools" / "npuprof.py", *words).decode()


def convert(folder, module, arena=None):
    """The JSON of a module's arena, with the names that examples/kernel/names.sh gives."""
    arena = arena or module
    sections = folder / f"{module}.d"
    sections.mkdir(exist_ok=True)
    for line in (folder / f"{module}.sections").read_text().splitlines():
        name, address = line.split()
        (sections / name).write_text(address + "\n")
    elf, out = folder / f"{module}.elf", folder / f"{arena}.json"
    built = ROOT / "build" / "qemu" / "modules" / module / f"{module}.ko"
    elf.write_bytes(run(ROOT / "examples" / "kernel" / "names.sh", built, sections))
    run("make", "-s", "-C", ROOT, "build/npuprof-convert")
    run(CONVERT, folder / f"{arena}.arena", "--elf", elf, "-o", out)
    return out


def about(data):
    return json.loads(b"{" + data[data.rfind(b'"metadata"'):])["metadata"]["npuprof"]


def storm(folder):
    """a million spans of tasks, interrupts and NMIs: each is there, on its track, in its time"""
    before, after, clocks, into = {}, {}, [], None
    for line in (folder / "storm.counts").read_text().splitlines():
        word, *rest = line.split()
        if word in ("before", "after"):
            into = before if word == "before" else after
        elif word == "clock":
            clocks.append([int(number) for number in rest])
        else:
            into[word] = int(rest[0])
    kinds = ("task", "moved", "inner", "hardirq", "softirq", "nmi")
    wanted = {kind: after[kind] - before[kind] for kind in kinds}
    data = convert(folder, "storm").read_bytes()
    names = {int(tid): name.decode() for tid, name in NAME.findall(data)}
    spans, of_track = defaultdict(list), Counter()
    for name, tid, ts, dur in EVENT.findall(data):
        begin = int(ts.replace(b".", b""))
        spans[name.decode()].append((names[int(tid)], begin, begin + int(dur.replace(b".", b""))))
        of_track[name.decode(), names[int(tid)]] += 1
    got = {kind: len(spans[kind]) for kind in kinds}
    assert got == wanted, (got, wanted)
    assert wanted["task"] == 1000000 and min(wanted.values()) > 50, wanted
    assert [of_track["task", f"storm/{cpu}"] for cpu in (0, 1)] == [500000, 500000], of_track
    levels = {"hardirq": "hardirq", "softirq": "softirq", "nmi": "NMI"}
    for name, track in of_track:
        assert track.startswith("storm/") if name not in levels else track in (
            f"CPU 0 {levels[name]}", f"CPU 1 {levels[name]}"), (name, track)
    meta = about(data)
    assert meta["recorded"] == after["recorded"] == sum(wanted.values()) and after["lost"] == 0, meta
    assert not any(meta["lost"].values()), meta["lost"]
    inside(spans, "inner", "moved", lambda track: track)
    inside(spans, "nmi", "hardirq", lambda track: track.replace("NMI", "hardirq"))
    # The clock was TSC; its rate is as the kernel says, and drift_ns says how far off that is.
    error = meta["clock"]["error_ns"] + meta["clock"]["drift_ns"] + max(c[4] for c in clocks)
    start = meta["start_boottime_ns"]
    earliest = start + min(begin for all_of in spans.values() for _, begin, _ in all_of)
    latest = start + max(end for all_of in spans.values() for _, _, end in all_of)
    assert clocks[0][1] - error <= earliest <= latest <= clocks[1][1] + error, (clocks, earliest, latest,
                                                                               error)
    return f"{sum(wanted.values())} spans, {wanted['nmi']} of NMIs; time within {error} ns"


def inside(spans, inner, outer, track_of):
    """Each span of one name lies in one of the other, on the track that belongs to it."""
    rooms = defaultdict(list)
    for track, begin, end in spans[outer]:
        rooms[track].append((begin, end))
    for room in rooms.values():
        room.sort()
    for track, begin, end in spans[inner]:
        room = rooms[track_of(track)]
        at = bisect.bisect_right(room, (begin, 2**63)) - 1
        assert at >= 0 and end <= room[at][1], (inner, track, begin, end, room[max(at, 0)])


def jobs(folder):
    """one timeline of program, driver and device: each job in order, within the stated error"""
    merged = folder / "merged.json"
    said = npuprof("merge", folder / "user.json", convert(folder, "npuprof_demo"), "-o", merged)
    npuprof("check", merged)
    npuprof("merge", folder / "user.json", folder / "npuprof_demo.json", "-o", folder / "merged.pftrace")
    found = pftrace.read((folder / "merged.pftrace").read_bytes())
    assert not found.errors, found.errors
    trace = json.loads(merged.read_text())
    meta = trace["metadata"]["npuprof"]
    assert meta["processes"][1]["aligned_by"] == "boottime", said
    user = meta["processes"][0]["pid"]
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"]
              if e["ph"] == "M" and e["name"] == "thread_name"}
    assert tracks.get((user, 1)) == "submitter", tracks
    of_job, device_error = defaultdict(dict), 0
    order = sorted((e for e in trace["traceEvents"] if e["ph"] == "X"), key=lambda e: e["ts"])
    for event in order:
        args = event.get("args", {})
        name = event["name"] if "stamp" not in args else "device"
        if name in ("submit", "demo_run", "device"):
            of_job[args["job"]][name] = event
        if name == "device":
            device_error = max(device_error, args.get("error_ns", 0))
        if name == "demo_run":
            assert event["pid"] == user, event
            assert tracks[user, event["tid"]] == "module in npuprof_demo", event
    error = (meta["max_error_ns"] + device_error) / 1000 + 0.002
    interrupts = [e for e in order if e["name"] == "demo_interrupt"]
    finishes = [e for e in order if e["name"] == "demo_finish"]
    counts = len(of_job), len(interrupts), len(finishes)
    assert counts == (200, 200, 200), counts
    for number, (interrupt, finish) in enumerate(zip(interrupts, finishes), 1):
        job = of_job[number]
        submit, handler, device = job["submit"], job["demo_run"], job["device"]
        ends = {name: e["ts"] + e["dur"] for name, e in job.items()}
        steps = [submit["ts"], handler["ts"], device["ts"], interrupt["ts"], finish["ts"], ends["demo_run"],
                 ends["submit"]]
        assert all(a <= b + error for a, b in zip(steps, steps[1:])), (number, steps, error)
        assert interrupt["ts"] - error <= ends["device"] <= interrupt["ts"] + interrupt["dur"] + error, job
        assert device["dur"] >= 50 - error, device               # what the job was to last
    return f"200 jobs, error at most {error * 1000:.0f} ns"


def crowd(folder):
    """more tasks than tracks: every span is there, and those without a track share one"""
    data = convert(folder, "npuprof_demo", "crowd").read_bytes()
    names = {int(tid): name.decode() for tid, name in NAME.findall(data)}
    of_track = Counter(names[int(tid)] for name, tid, _, _ in EVENT.findall(data) if name == b"demo_run")
    assert sum(of_track.values()) == 300 and not any(about(data)["lost"].values()), of_track
    # 256, and the device's
    assert len(names) <= 257 and of_track["others"] > 40, (len(names), of_track["others"])
    return f"{of_track['others']} of 300 tasks share a track"


def dmesg(folder):
    """the kernel has nothing to complain of"""
    lines = (folder / "dmesg.txt").read_text(errors="replace").splitlines()
    assert any("loading out-of-tree module" in line for line in lines), lines[-3:]
    bad = [line for line in lines if COMPLAINTS.search(line)]
    assert not bad, "; ".join(bad)


def waits(folder):
    """a thread's spans "wait" and its sleeps in the kernel's trace agree within the stated error"""
    out = folder / "waits.pftrace"
    said = npuprof("merge", folder / "waits.json", "--ftrace", folder / "waits.ftrace", "-o", out)
    error = int(said.rpartition("error at most ")[2].split()[0])
    case = unittest.TestCase()
    found = sched_waits.compare(case, pftrace.read(out.read_bytes()), error, 200000)
    # Of virtual time nobody takes anything: each wait is one sleep of at least what was asked.
    assert (found.waits, found.slept, found.short) == (1000, 1000, 0), found
    return f"1000 waits, error at most {error} ns, sleeps reach {found.out_of_span} ns out of their spans"


def checks_for(sent):
    """The checks for the files that a rig sent; each takes the folder."""
    return [check for name, check in CHECKS if name in sent]


CHECKS = [("storm.counts", storm), ("npuprof_demo.arena", jobs), ("crowd.arena", crowd), ("dmesg.txt", dmesg),
          ("waits.ftrace", waits)]

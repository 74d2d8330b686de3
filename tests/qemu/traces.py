# SPDX-License-Identifier: MIT
"""What the traces that the guests send must show."""
import json
import re


class Trace:
    """A trace in Chrome's format, as npuprof writes it."""

    def __init__(self, path):
        data = json.loads(path.read_text(encoding="utf-8"))
        self.events = data["traceEvents"]
        self.meta = data["metadata"]["npuprof"]
        self.sync = self.meta["devices"][0]["clock_sync"] if self.meta["devices"] else {}
        self.host = [e for e in self.events if e["ph"] == "X" and "stamp" not in e.get("args", {})]
        self.device = [e for e in self.events if e["ph"] == "X" and "stamp" in e.get("args", {})]


# What the doctor must find in a trace, by the words of the fault: these rigs provoke it. In others nothing.
FAULTS = {"hda_laps.json": "nothing was recorded", "mfindex.json": "nothing was recorded",
          "hpet.json": "nothing was recorded", "hda_reset.json": "NPUPROF_ERR_NPU_RESET",
          "rtl8139.json": "33333333 ticks a second, +1.0 %", "way_died.json": "NPUPROF_ERR_NPU_DECODE_OFF",
          **{f"ptp_{ppm}.json": "nothing was recorded" for ppm in ("200", "minus_200", "400", "minus_400")}}


def faults_of(name, checked):
    """What is wrong with what `check` printed of a trace; "" if nothing is."""
    faults = [line for line in checked.splitlines() if ": fault: " in line]
    wanted = FAULTS.get(name)
    if re.search(r": \d+ errors?\b", checked):
        return checked
    if wanted is None:
        return "\n".join(faults)
    return "" if len(faults) == 1 and wanted in faults[0] else f"wanted {wanted!r}, is {checked}"


def near(what, got, wanted, most):
    assert abs(got - wanted) <= most, f"{what} is {got}, not {wanted} within {most}"


def hda_kernels(trace):
    """24,000,000 Hz within 1 ppm, kernels as long as they were"""
    near("rate_hz", trace.sync["rate_hz"], 24_000_000, 24)
    assert trace.sync["causality_violations"] == 0 and trace.sync["resets"] == 0, trace.sync
    assert len(trace.device) == len(trace.host) == 30, (len(trace.device), len(trace.host))
    for device, host in zip(trace.device, trace.host):
        lasts = host["args"]["lasts_ns"] / 1000
        assert lasts <= device["dur"] <= lasts + 1000, (host, device)
        assert (host["ts"] <= device["ts"] and device["ts"] + device["dur"] <= host["ts"]
                + host["dur"]), (host, device)
    # Half a bracket, which is two system calls of 2 us on x86, and 2 ppm of the longest kernel on either
    # side.
    assert trace.sync["max_error_ns"] < 20_000, trace.sync["max_error_ns"]
    return f"{trace.sync['rate_hz']} Hz, {trace.sync['drift_ppm']} ppm, bound {trace.sync['max_error_ns']} ns"


def hda_laps(trace):
    """every lap of hours in the metadata"""
    near("wraps", trace.sync["wraps"], int(trace.meta["user"]["laps"]), 0)
    near("rate_hz", trace.sync["rate_hz"], 24_000_000, 24)
    assert trace.sync["wraps"] >= 60 and trace.sync["resets"] == 0, trace.sync
    return f"{trace.sync['wraps']} laps, {trace.sync['rate_hz']} Hz"


def hda_reset(trace):
    """two resets reported, no lap counted, no span over them"""
    assert trace.sync["resets"] == 2 and trace.sync["wraps"] == 0, trace.sync
    assert [e["name"] for e in trace.device] == ["before", "after"], trace.device
    for event in trace.device:
        near("a kernel", event["dur"], 5_000_000, 1000)


def rtl8139(trace):
    """a nominal rate that is 1 % wrong is measured within 1 ppm, the timer's restart reported"""
    near("rate_hz", trace.sync["rate_hz"], 1e9 / 30, 33)
    near("drift_ppm", trace.sync["drift_ppm"], 1e15 / 30 / 33_000_000 - 1e6, 1)
    near("wraps", trace.sync["wraps"], int(trace.meta["user"]["laps"]), 0)
    assert trace.sync["wraps"] >= 7 and trace.sync["resets"] == 1, trace.sync
    assert len(trace.device) == 10, trace.device
    for event in trace.device:
        near("a kernel", event["dur"], 100_000_000, 1000)
    # Also of the one just before the restart. Why one may be wide: the machine may stop the emulator in the
    # middle of a read, and the host's clock goes on.
    errors = sorted(event["args"]["error_ns"] for event in trace.device)
    assert errors[-2] < 10_000, errors
    return f"{trace.sync['rate_hz']} Hz, {trace.sync['drift_ppm']} ppm, the widest error {errors[-1]} ns"


def mfindex(trace):
    """8,000 Hz within 1 ppm from 14 bits, every lap in the metadata"""
    near("rate_hz", trace.sync["rate_hz"], 8000, 0.008)
    near("wraps", trace.sync["wraps"], int(trace.meta["user"]["laps"]), 0)
    assert trace.sync["wraps"] > 1000 and trace.sync["resets"] == 0, trace.sync
    return f"{trace.sync['rate_hz']} Hz, {trace.sync['wraps']} laps"


def hpet(trace):
    """100,000,000 Hz within 1 ppm, no torn read"""
    near("rate_hz", trace.sync["rate_hz"], 100_000_000, 100)
    assert trace.sync["torn_reads"] == 0 and trace.sync["resets"] == 0, trace.sync
    return f"{trace.sync['rate_hz']} Hz"


def igb_clock(trace):
    """4.096 THz within 1 ppm, far beyond 2^53 ticks"""
    near("rate_hz", trace.sync["rate_hz"], 4.096e12, 4.096e6)
    assert (trace.sync["resets"] == 0 and trace.sync["wraps"] == 0
            and trace.sync["torn_reads"] == 0), trace.sync
    assert max(a[2] for a in trace.sync["anchor_list"]) > 2**53, trace.sync["anchor_list"][-1]
    assert len(trace.device) == 1
    near("the kernel", trace.device[0]["dur"], 12345.678, 150)
    return f"{trace.sync['rate_hz']} Hz"


def igb_frames(trace):
    """64 frames that the card stamped, each a device span inside the call that sent it, with its arrow"""
    assert len(trace.device) == len(trace.host) == 64, (len(trace.device), len(trace.host))
    assert trace.sync["causality_violations"] == 0 and trace.sync["unplaced_spans"] == 0, trace.sync
    arrows = {(e["ph"], e["id"]) for e in trace.events if e["ph"] in "sf"}
    assert len(arrows) == 128, len(arrows)
    for device, host in zip(sorted(trace.device, key=lambda e: e["args"]["job"]), trace.host):
        assert device["args"]["stamp"] == "device", device
        assert (host["ts"] <= device["ts"] and device["ts"] + device["dur"] <= host["ts"]
                + host["dur"]), (host, device)
        lasts = host["args"]["lasts_ns"] / 1000
        assert lasts <= device["dur"] <= lasts + 1000, (host, device)
    return f"bound {trace.sync['max_error_ns']} ns"


def ptp(trace):
    """the drift that the kernel was told to make, within 1 ppm"""
    told = int(trace.meta["user"]["told_ppm"])
    near("drift_ppm", trace.sync["drift_ppm"], told, 1)
    assert trace.sync["resets"] == 0 and trace.sync["torn_reads"] == 0, trace.sync
    return f"told {told} ppm, measured {trace.sync['drift_ppm']}"


def without_time(event):
    """An event without what two runs cannot have in common."""
    args = {key: value for key, value in event.get("args", {}).items()
            if key not in ("start_ticks", "end_ticks", "error_ns", "trace_id", "span_id", "parent_span_id",
                           "native_id")}
    return {**{key: value for key, value in event.items() if key not in ("ts", "dur", "pid", "id")},
            "args": args}


def same_trace(one, other):
    """the same trace as through sysfs"""
    assert len(one.device) == 8 and len(one.host) == 16, (len(one.device), len(one.host))
    assert len(one.events) == len(other.events), (len(one.events), len(other.events))
    for a, b in zip(one.events, other.events):
        assert without_time(a) == without_time(b), (a, b)
    # Why not the first one: it pays for what the program touches first. Why the median: a timer's interrupt
    # may fall into one.
    pairs = [*zip(one.device[1:], other.device[1:]), *zip(one.host[2:], other.host[2:])]
    apart = sorted(abs(a["dur"] - b["dur"]) for a, b in pairs)
    assert apart[len(apart) // 2] < 25 and apart[-1] < 300, apart
    for trace in one, other:
        near("rate_hz", trace.sync["rate_hz"], 24_000_000, 24)
        never = ("causality_violations", "resets", "dead_reads")
        assert all(trace.sync[name] == 0 for name in never), trace.sync
        assert trace.sync["max_error_ns"] < 100_000, trace.sync
    return f"{len(one.events)} events, spans as long within {apart[len(apart) // 2]:.3f} us in the median"


def way_died(trace):
    """a device that died: no span of it, and the metadata says so"""
    assert [e["name"] for e in trace.device] == ["before"], trace.events
    assert [e["name"] for e in trace.host] == ["before", "dies"], trace.events
    assert trace.sync["dead_reads"] > 0 and trace.sync["resets"] == 0, trace.sync
    assert trace.sync["unplaced_spans"] == 0, trace.sync


def checks_for(sent):
    """[(names of files, check)] for the files that a rig sent."""
    stems = [name[:-5] for name in sent if name.endswith(".json")]
    found = [((f"{stem}.json",), check) for stem in stems for pattern, check in CHECKS
             if re.fullmatch(pattern, stem)]
    ways = [stem for stem in ("way_uio", "way_vfio") if stem in stems and "way_sysfs" in stems]
    return found + [(("way_sysfs.json", f"{way}.json"), same_trace) for way in ways]


CHECKS = [("hda_kernels", hda_kernels), ("hda_laps", hda_laps), ("hda_reset", hda_reset),
          ("rtl8139", rtl8139),
          ("mfindex", mfindex), ("hpet", hpet), ("igb_clock", igb_clock), ("igb_frames", igb_frames),
          ("ptp_.*", ptp),
          ("way_died", way_died)]

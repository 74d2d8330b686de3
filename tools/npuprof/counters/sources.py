# SPDX-License-Identifier: MIT
"""What the kernel counts of devices, in /sys and /proc, and how each value is read.

Of each accelerator (accel class) and GPU (render node): its runtime PM, the files of ivpu, its hwmon and its
devfreq. Beside them the energy of powercap, other hwmon devices by name, and what fdinfo says of processes.
A device that is asleep is not read: that could wake it. Its runtime PM can always be asked."""

import os
import pathlib
import re

from ..base.contract import ENERGY

HWMON = {"power": ("mW", 1e-3), "energy": (ENERGY, 1), "temp": ("degC", 1e-3), "freq": ("MHz", 1e-6),
         "in": ("mV", 1), "curr": ("mA", 1)}
HWMON_FILE = re.compile(r"(power|energy|temp|freq|in|curr)(\d+)_(input|average)")
# File of ivpu: (name, unit, factor, least ns between two reads). Why a second: a read waits for submissions.
IVPU = {"npu_busy_time_us": ("busy", "%", 1000, 10**9),
        "npu_memory_utilization": ("memory", "bytes", 1, 0),
        "npu_current_frequency_mhz": ("frequency", "MHz", 1, 0),
        "freq/current_freq": ("frequency of the engine", "MHz", 1, 0)}
BYTES = {"": 1, "bytes": 1, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30}
FDINFO = re.compile(r"(drm-[\w-]+):\s*(.+)")
NODES = "/dev/accel/", "/dev/dri/"


class Source:
    """One counter. of: the device; name, unit: of its track. value(): a number, or None if there is none now.

    factor: what is drawn for each of its steps. grows: it counts up: drawn is the sum since the first sample;
    of the unit "%", where a step is `factor` ns, the share of the time since the last one. wraps: behind that
    value it begins at 0 again; None: it never falls, and what is less than before is an old value. every:
    least ns between two reads. awake: a function, or None."""

    def __init__(self, of, name, unit, value, factor=1, grows=False, wraps=None, every=0, awake=None):
        self.of, self.name, self.unit, self.read, self.factor = of, name, unit, value, factor
        self.grows, self.wraps, self.every, self.awake = grows, wraps, every, awake
        self.last = self.due = None            # (ns, value) of the last read; the sum
        self.sum = 0

    def sample(self, ns, value):
        """What is drawn at that time, or None: the first of a rate, or an old value."""
        last, self.last = self.last, (ns, value)
        if not self.grows:
            return value * self.factor
        more = value - last[1] if last else 0
        if more < 0:
            if self.wraps is None or not 0 <= value < last[1] <= self.wraps:
                self.last = last
                return None
            more += self.wraps + 1
        if self.unit != "%":
            self.sum += more * self.factor
            return self.sum
        return 100 * more * self.factor / (ns - last[0]) if last and ns > last[0] else None


def text_of(path):
    """The text of a small file, or None: it is not there, may not be read, or the device does not answer."""
    try:
        with open(path, "rb") as file:
            return file.read(65536).decode("utf-8", "replace").strip()
    except OSError:
        return None


def whole_of(path):
    """The whole number in a file, or None."""
    text = text_of(path)
    return int(text) if text and re.fullmatch(r"-?\d{1,18}", text) else None


def of_file(path):
    return lambda: whole_of(path)


class Sysfs:
    """Finds the sources below a root, "/" but in tests. refused: paths that may not be read."""

    def __init__(self, root="/"):
        self.sys, self.refused = pathlib.Path(root) / "sys", []

    def sources(self, hwmon=()):
        """All of them. hwmon: names of further hwmon devices."""
        found, seen = [], set()
        for node in sorted([*self.sys.glob("class/accel/accel*"), *self.sys.glob("class/drm/renderD*")]):
            device = (node / "device").resolve()
            if device not in seen:
                seen.add(device)
                found += self.of_device(node.name, device)
        for folder in sorted(self.sys.glob("class/devfreq/*")):
            parent = (folder / "device").resolve()
            found += self.some([Source(folder.name, "frequency", "MHz", of_file(folder / "cur_freq"), 1e-6,
                                       awake=awake(parent))], folder / "cur_freq")
        for folder in sorted(self.sys.glob("class/powercap/*:*")):
            path = folder / "energy_uj"
            name = f"{text_of(folder / 'name') or folder.name} ({folder.name})"
            most = whole_of(folder / "max_energy_range_uj")
            found += self.some([Source("powercap", name, ENERGY, of_file(path), 1, True, most)], path)
        for folder in sorted(self.sys.glob("class/hwmon/hwmon*")):
            if text_of(folder / "name") in hwmon:
                found += self.of_hwmon(text_of(folder / "name"), folder, awake((folder / "device").resolve()))
        return found

    def some(self, sources, path):
        """The sources, if the file is there and may be read."""
        if os.path.exists(path) and not os.access(path, os.R_OK):
            self.refused.append(str(path))
        return sources if os.access(path, os.R_OK) else []

    def of_device(self, node, device):
        driver = (device / "driver").resolve().name if (device / "driver").exists() else "no driver"
        of, is_awake, found = f"{node} ({driver})", awake(device), []
        if (device / "power/runtime_status").exists():
            found += [Source(of, "awake", "%", of_file(device / "power/runtime_active_time"), 1e6, True)]
        for name, (label, unit, factor, every) in IVPU.items():
            found += self.some([Source(of, label, unit, of_file(device / name), factor, unit == "%",
                                       every=every, awake=is_awake)], device / name)
        for folder in sorted(device.glob("hwmon/hwmon*")):
            found += self.of_hwmon(of, folder, is_awake)
        return found

    def of_hwmon(self, of, folder, is_awake):
        found = []
        for path in sorted(folder.iterdir()):
            match = HWMON_FILE.fullmatch(path.name)
            if match:
                unit, factor = HWMON[match[1]]
                label = text_of(folder / f"{match[1]}{match[2]}_label") or f"{match[1]}{match[2]}"
                found += self.some([Source(of, label, unit, of_file(path), factor, unit == ENERGY,
                                           awake=is_awake)], path)
        return found


def awake(device):
    """A function that says whether a device is awake, as far as its runtime PM tells."""
    path = device / "power/runtime_status"
    return lambda: text_of(path) in (None, "active", "unsupported")


class Clients:
    """What fdinfo says of processes: engines in ns or cycles, and memory. root: "/" but in tests."""

    def __init__(self, root="/"):
        self.proc, self.known = pathlib.Path(root) / "proc", {}      # (pid, client): its sources by key

    def family(self, pid):
        """A process and all that it started."""
        found, todo = [], [pid]
        while todo:
            found.append(todo.pop())
            for path in (self.proc / str(found[-1]) / "task").glob("*/children"):
                todo += [int(word) for word in (text_of(path) or "").split() if int(word) not in found]
        return found

    def values(self, pids):
        """Yields (Source, value) of each counter of each client."""
        for pid in pids:
            seen = set()
            for said in self.files(pid):
                client = said.get("drm-client-id"), said.get("drm-pdev") or said.get("drm-driver")
                if client not in seen and said.get("drm-driver"):
                    seen.add(client)
                    yield from self.of_client(pid, client, said)

    def files(self, pid):
        """Yields what each open file of a device says, as a dict."""
        try:
            names = os.listdir(self.proc / str(pid) / "fd")
        except OSError:
            return
        for name in sorted(names, key=int):
            try:
                target = os.readlink(self.proc / str(pid) / "fd" / name)
            except OSError:
                continue
            if target.startswith(NODES):
                yield dict(FDINFO.findall(text_of(self.proc / str(pid) / "fdinfo" / name) or ""))

    def of_client(self, pid, client, said):
        sources = self.known.setdefault((pid, client), {})
        for key, text in said.items():
            number, _, unit = text.partition(" ")
            if not re.fullmatch(r"\d{1,18}", number):
                continue
            of = f"{said['drm-driver']} of {pid}"
            source = sources.get(key) or self.source(of, key, unit.strip(), said)
            if source:
                sources[key] = source
                yield source, int(number)

    def source(self, of, key, unit, said):
        kind, _, name = key.removeprefix("drm-").partition("-")
        if kind == "engine" and unit == "ns" and not name.startswith("capacity-"):
            engines = said.get(f"drm-engine-capacity-{name}", "1")
            count = int(engines) if engines.isdigit() and int(engines) else 1
            return Source(of, f"{name} busy", "%", None, 1 / count, True)
        if kind == "cycles" and not unit:
            return Source(of, f"{name} cycles", "cycles", None, 1, True)
        if kind in ("resident", "memory") and unit in BYTES and name:
            return Source(of, f"{kind} {name}", "bytes", None, BYTES[unit])
        return None

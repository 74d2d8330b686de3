# SPDX-License-Identifier: MIT
"""Records with the kernel's tracer, in an instance of its own: its buffer, clock and events disturb nobody
else's, and all of them go with it.

    with Instance(tracefs()) as instance:
        missing = instance.set_up(events)     # the events that this kernel does not have
        instance.start(); ...; instance.stop()
        instance.copy(file)
"""

import contextlib
import errno
import os
import pathlib
import time

from ..base.messages import Refused

MOUNTS = "/proc/self/mounts"
CLOCKS = "mono", "boot"            # trace_clocks that the program's clock knows, the better first
NAME = "npuprof-"
# What the reader knows, by what it is for. Each event is system/name, or a whole system.
NEEDED = {"threads": ("sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup_new"),
          "interrupts": ("irq/irq_handler_entry", "irq/irq_handler_exit", "irq/softirq_raise",
                         "irq/softirq_entry", "irq/softirq_exit", "timer/hrtimer_expire_entry",
                         "timer/hrtimer_expire_exit")}
JOBS = ("dma_fence/dma_fence_init", "dma_fence/dma_fence_signaled", "gpu_scheduler/drm_sched_job_queue",
        "gpu_scheduler/drm_sched_job_run", "gpu_scheduler/drm_sched_job_done", "gpu_scheduler/drm_run_job",
        "vpu/job", "amdxdna/xdna_job", "virtio_gpu")
DEVICES = ("devfreq/devfreq_frequency", "rpm/rpm_suspend", "rpm/rpm_resume", "rpm/rpm_return_int",
           "thermal/thermal_temperature", "thermal/cdev_update")
MARKERS = 4                        # in a row: the next one brackets each, and the reader takes the best


def tracefs():
    """The folder of the kernel's tracer. Refuses where there is none, or it may not be used."""
    try:
        lines = pathlib.Path(MOUNTS).read_text().splitlines()
    except OSError:
        raise Refused("system-trace: only Linux has the tracer that it needs") from None
    found = [words[1] for words in map(str.split, lines) if len(words) > 2 and words[2] == "tracefs"]
    if not found:
        raise Refused("system-trace: tracefs is not mounted: as root, mount -t tracefs none "
                      "/sys/kernel/tracing (in a container: on its host)")
    return found[0]


def same_pids():
    """The end of a name: equal where the same pids are the same processes, which containers' are not."""
    return f"-{os.stat('/proc/self/ns/pid').st_ino}"


def refused(folder, error):
    """Why the tracer cannot be used, and which right would do."""
    if error.errno in (errno.EACCES, errno.EPERM) and os.geteuid() != 0:
        return Refused(f"{folder}: no right to use the kernel's tracer: use sudo, or let root give it to a "
                       f"group of yours: mount -o remount,gid=GROUP,mode=0770 {folder}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Refused(f"{folder}: the kernel refuses its tracer even to root: in a container run this on "
                       "its host; else see /sys/kernel/security/lockdown, which must be [none]")
    return Refused(f"{folder}: the kernel's tracer cannot be used: {error.strerror}")


class Instance:
    """An instance of the tracer, from __enter__ to __exit__."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.folder = self.root / "instances" / f"{NAME}{os.getpid()}{same_pids()}"

    def __enter__(self):
        try:
            self.remove_stale()
            os.mkdir(self.folder)
        except OSError as error:
            raise refused(self.root, error) from None
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.put("tracing_on", "0")
        os.rmdir(self.folder)

    def remove_stale(self):
        """Removes instances of earlier runs that were killed."""
        for folder in (self.root / "instances").glob(f"{NAME}*{same_pids()}"):
            pid = folder.name.removeprefix(NAME).removesuffix(same_pids())
            if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)

    def put(self, name, text):
        # Why no O_CREAT: a file that the kernel does not have is missing, not new.
        handle = os.open(self.folder / name, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)

    def set_up(self, events, buffer_kb):
        """Switches the events on, and records nothing yet. Returns those that there are not."""
        missing = []
        try:
            self.put("tracing_on", "0")
            known = (self.folder / "trace_clock").read_text().replace("[", "").replace("]", "").split()
            self.put("trace_clock", next((clock for clock in CLOCKS if clock in known), known[0]))
            self.put("buffer_size_kb", str(buffer_kb))
            with contextlib.suppress(FileNotFoundError):
                self.put("options/overwrite", "1")  # Why: it is inherited, and a full buffer may stop instead
            with contextlib.suppress(OSError):      # Linux 4.17 and later
                self.put("options/record-tgid", "1")
            for event in events:
                try:
                    self.put(f"events/{event}/enable", "1")
                except FileNotFoundError:
                    missing.append(event)
        except OSError as error:
            raise refused(self.folder, error) from None
        return missing

    def start(self):
        self.put("tracing_on", "1")
        self.mark()

    def stop(self):
        self.mark()
        self.put("tracing_on", "0")

    def mark(self):
        """Clock markers: see clock.py."""
        handle = os.open(self.folder / "trace_marker", os.O_WRONLY | os.O_CLOEXEC)
        try:
            for _ in range(MARKERS):
                mono, boot = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.clock_gettime_ns(BOOTTIME)
                os.write(handle, b"npuprof_clock mono=%d boot=%d" % (mono, boot))
        finally:
            os.close(handle)

    def copy(self, file):
        """Copies the text to a file."""
        with open(self.folder / "trace", "rb") as text:
            while block := text.read(1 << 20):
                file.write(block)

    def lost(self):
        """How many events did not fit."""
        total = 0
        for stats in self.folder.glob("per_cpu/cpu*/stats"):
            for line in stats.read_text().splitlines():
                key, _, value = line.partition(":")
                total += int(value) if key in ("overrun", "dropped events") and value.strip().isdigit() else 0
        return total


BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

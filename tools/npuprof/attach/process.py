# SPDX-License-Identifier: MIT
"""The memory of another process, read and written through /proc/PID/mem, and why the kernel may refuse it.

A process that ends gives its number back, and another one may get it. So everything is opened by the folder
/proc/PID, which stays that of the one process, and /proc/PID/mem stays that of its memory: after its end, or
after exec, nothing can be read or written any more."""

import contextlib
import os
import re

from ..base.messages import Refused

SYS_PTRACE = 19
YAMA = {1: "only those that started it may (kernel.yama.ptrace_scope is 1): run this as root, have the "
           "program call prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY), or set kernel.yama.ptrace_scope to 0",
        2: "only root may (kernel.yama.ptrace_scope is 2): run this with CAP_SYS_PTRACE",
        3: "nobody may until the machine starts again (kernel.yama.ptrace_scope is 3): start the program "
           "with NPUPROF_OUTPUT_PATH instead"}


class Gone(Exception):
    """The process has ended, or runs another program."""


def number_in(path, base=10):
    """The number in a file of the kernel; 0: there is none."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read(), base)
    except (OSError, ValueError):
        return 0


def own_status():
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return file.read()


class Process:
    """Another process. Raises Refused if it cannot be attached to."""

    def __init__(self, pid):
        self.pid, self.maps = pid, []
        try:
            self.folder = os.open(f"/proc/{pid}", os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            raise Refused(f"{pid}: there is no such process, or no /proc") from None
        try:
            self.maps = self.read_maps()
            self.memory = self.open("mem", os.O_RDWR)
        except PermissionError:
            raise Refused(f"{pid}: the kernel does not let you into this process: {self.why_not()}") from None
        except OSError as error:
            raise Refused(f"{pid}: has ended, or cannot be looked at: {error.strerror}") from None
        if not self.maps:
            raise Refused(f"{pid}: has no memory: it has ended, or is a thread of the kernel")

    def open(self, name, flags=os.O_RDONLY):
        return os.open(name, flags | os.O_CLOEXEC, dir_fd=self.folder)

    def text(self, name):
        with open(self.open(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def name(self):
        with contextlib.suppress(OSError):
            return self.text("comm").strip()
        return "?"

    def is_stopped(self):
        """Does a debugger or a signal hold it?"""
        with contextlib.suppress(OSError):
            return self.text("stat").rpartition(")")[2].split()[0] in ("T", "t")
        return False

    def read_maps(self):
        """(start, end, permissions, device and inode, path) of each mapping."""
        line = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) [0-9a-f]+ (\S+ \d+) *(.*)")
        rows = [line.fullmatch(row) for row in self.text("maps").splitlines()]
        return [(int(m[1], 16), int(m[2], 16), m[3], m[4], m[5]) for m in rows if m]

    def read(self, address, count):
        data = bytearray()
        while len(data) < count:
            try:
                part = os.pread(self.memory, count - len(data), address + len(data))
            except OSError:
                part = b""
            if not part:
                raise Gone
            data += part
        return bytes(data)

    def write(self, address, data):
        """Stores into data that the program itself may write, and nowhere else. Why asked: the kernel lets
        who may trace a process write to its code and constants, too."""
        if not any(start <= address and address + len(data) <= end and "w" in may
                   for start, end, may, *_ in self.maps):
            raise Refused(f"{self.pid}: its words for tools point to {address:#x}, which is no data")
        try:
            done = os.pwrite(self.memory, data, address)
        except OSError:
            done = 0
        if done != len(data):
            raise Gone

    def why_not(self):
        """Why this process is not ours to look into, and what to do."""
        with contextlib.suppress(OSError):
            status = dict(row.split(":\t", 1) for row in self.text("status").splitlines() if ":\t" in row)
            uids, may = status["Uid"].split(), int(status["CapPrm"], 16)
            mine = int(re.search(r"CapEff:\t(\w+)", own_status())[1], 16)
            if not mine >> SYS_PTRACE & 1:
                if {int(uid) for uid in uids[:3]} != {os.geteuid()}:
                    return f"it belongs to user {uids[0]}: run this as that user, or as root"
                if may & ~mine:
                    return "it has capabilities that you have not: run this as root"
                if os.stat("status", dir_fd=self.folder).st_uid != os.geteuid():
                    return ("it may not be dumped: it is or was set-user-id, its file cannot be read, or it "
                            "called prctl(PR_SET_DUMPABLE, 0); run this as root")
            scope = number_in("/proc/sys/kernel/yama/ptrace_scope")
            if scope in YAMA and (scope == 3 or not mine >> SYS_PTRACE & 1):
                return YAMA[scope]
        return ("it is in another container, or a security module forbids it (SELinux, AppArmor): run this "
                "with CAP_SYS_PTRACE in the user namespace of the process, such as on the host as root")

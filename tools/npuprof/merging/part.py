# SPDX-License-Identifier: MIT
"""One input of a merge: its metadata, and its events as lines of npuprof's own layout."""

import json
import os
import re

from .. import loops
from ..base.messages import Refused
from ..base.metadata import check_about, check_version
from ..base.strict_json import json_text, shown
from ..read import load
from ..read.image import is_json, opened
from ..read.own_layout import BLOCK, HEAD, STRING

FIRST = ("ph", "name", "cat", "pid", "tid", "ts", "dur")      # members of a line of npuprof's own layout
LINE = re.compile(rb'(\{"ph":"(.)"(?:,"name":' + STRING + rb')?(?:,"cat":' + STRING + rb')?,"pid":)'
                  rb'(\d+)(,.*)', re.S)


class Part:
    """One input: its metadata, and its place on the common timeline."""

    def __init__(self, path):
        self.path = path
        self.file, self.damage, head = opened(path)
        if not is_json(head):
            raise Refused(f"{path}:1: a CSV has no process, host, arrows or counters: "
                          "merge the JSON or the image")
        self.own = head.startswith(HEAD + b"\n")
        self.about = self.metadata()
        for key in ("start_unix_ns", "start_boottime_ns", "pid"):
            if type(self.about.get(key)) is not int:
                raise Refused(f"{path}: metadata.npuprof.{key} is missing, "
                              "so it cannot be placed on a common timeline")
        self.version = check_version(path, str(self.about.get("version")))
        if "processes" in self.about:
            raise Refused(f"{path}: is a merged trace: merge its parts")
        self.host = self.about.get("host", "")
        self.unix, self.boot = self.about["start_unix_ns"], self.about["start_boottime_ns"]
        self.old_pid = self.about["pid"]
        clock = self.about.get("clock", {})
        # Why the drift: between anchors, a clock is only as exact as the rate that its user states.
        self.anchor_error = clock.get("error_ns", 0) + clock.get("drift_ns", 0)
        self.rate_unknown = clock.get("source") == "user" and "drift_ns" not in clock
        self.start = self.how = self.pid = self.label = self.lead = None
        self.error, self.assumed, self.tid_shift = 0, False, 0
        self.is_kernel = "npuprof.kernel" in self.about.get("user", {})
        self.moved = {}                # of a kernel's: its thread number -> pid and number in that process

    def metadata(self):
        """Reads metadata.npuprof. Of npuprof's own layout it reads only the end."""
        if self.own:
            size = os.fstat(self.file.fileno()).st_size
            tail, step = b"", 1 << 16
            while b'\n],\n"displayTimeUnit"' not in tail and len(tail) < size:
                step *= 4
                self.file.seek(max(0, size - step))
                tail = self.file.read()
            end = tail.rfind(b'\n],\n"displayTimeUnit"')
            self.own = end >= 0
        if self.own:
            try:
                top = json.loads(b"{" + tail[end + 3:])
            except (ValueError, RecursionError):
                raise Refused(f"{self.path}: byte {size}: the file ends too early, was it cut off?") from None
            self.events_end = size - len(tail) + end + 1
            self.file.seek(0)
        else:
            trace = load(self.path)        # refuses a broken file
            top = {"metadata": {"npuprof": trace.metadata}}
        about = top.get("metadata").get("npuprof") if type(top.get("metadata")) is dict else None
        if not about:
            raise Refused(f"{self.path}: not a trace of npuprof: no metadata.npuprof "
                          "(an array of events alone has none), so it cannot be placed on a common timeline")
        return check_about(self.path, about)

    def lines(self):
        """Yields the events, each as a line of npuprof's own layout without its comma."""
        if self.own:
            self.file.seek(0)
            offset, native = len(self.file.readline()), loops.Reader() if loops.native.library() else None
            while offset < self.events_end:
                block = self.file.read(min(BLOCK, self.events_end - offset))
                block += b"" if block.endswith(b"\n") else self.file.readline()
                lines = block.splitlines(keepends=True)
                self.strict(offset, lines, native)
                offset += sum(map(len, lines))
                for line in lines:
                    line = line.rstrip(b",\n")
                    # Each line was read as JSON: it may be laid out in another way.
                    yield line if LINE.match(line) else self.event(json.loads(line))
        else:
            self.file.seek(0)
            yield from map(self.event, json.load(self.file)["traceEvents"])

    def event(self, event):
        """An event as a line of npuprof's own layout."""
        try:
            return own_line(event)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            raise Refused(f"{self.path}: an event of traceEvents: no event, its ts or dur is no time, or a "
                          f"number is too large: {shown(event)}") from None

    def strict(self, offset, lines, native):
        """Refuses lines that are not strict JSON."""
        block = b"".join(lines).rstrip(b",\n") + b",\n"
        others = lines
        if native and native.read("json", block, len(lines)) >= 0:
            others = [line for line in lines if not line.startswith(b'{"ph":"X"')]
        try:
            block.decode()
            for line in others:
                at = line
                json.loads(line.rstrip(b",\n"))
        except UnicodeDecodeError as error:
            raise Refused(f"{self.path}: byte {offset + error.start}: not strict JSON: "
                          "invalid UTF-8") from None
        except (ValueError, RecursionError) as error:
            raise Refused(f"{self.path}: byte {offset + block.find(at)}: not strict JSON: {error}") from None


def own_line(event):
    """An event as npuprof's own writer lays it out."""
    event = {key: event[key] for key in dict.fromkeys((*FIRST, *event))
             if key in event}
    if event["ph"] in ("s", "t", "f") and isinstance(event["id"], str):
        event["id"] = int(event["id"], 16)
    marks = {}
    for key in ("ts", "dur"):
        if key in event:
            ns = round(event[key] * 1000)
            marks[f'"{key}":"@{key}@"'] = f'"{key}":{ns // 1000}.{ns % 1000:03}'
            event[key] = f"@{key}@"
    text = json_text(event)
    for mark, number in marks.items():
        text = text.replace(mark, number, 1)
    return text.encode()

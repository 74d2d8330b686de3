# SPDX-License-Identifier: MIT
"""The rig of a firmware's stream: an emulated Cortex-M3 sends over its UART at 115,200 baud, a relay loses,
doubles and flips bytes, and npuprof-convert --follow reads a terminal at the other end meanwhile."""
import json
import os
import pathlib
import pty
import random
import re
import socket
import struct
import subprocess
import time
import tty

from baremetal.base import BUILD, command, need
from firmware import line

HERE = pathlib.Path(__file__).resolve().parent
BYTES_PER_SECOND = 11520
OPEN = 0x8000


def listen(folder):
    path = folder / "uart.socket"
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.relpath(path))
    server.listen(1)
    server.settimeout(20)
    return server


def relay(connection, terminal, chance):
    """What the target sent, and what arrived. Paced as the line is."""
    sent, arrived = bytearray(), bytearray()
    begin = time.monotonic()
    connection.settimeout(20)
    while piece := connection.recv(512):
        sent += piece
        kind, at = chance.randrange(30), chance.randrange(len(piece))
        if kind == 0:
            piece = piece[:at] + piece[at + chance.randrange(1, 20):]
        elif kind == 1:
            piece = piece[:at] + piece[at:at + chance.randrange(1, 20)] + piece[at:]
        elif kind == 2:
            piece = piece[:at] + bytes([piece[at] ^ 1 << chance.randrange(8)]) + piece[at + 1:]
        arrived += piece
        os.write(terminal, piece)
        time.sleep(max(0, begin + len(sent) / BYTES_PER_SECOND - time.monotonic()))
    return bytes(sent), bytes(arrived)


def closed_spans(data):
    """Start and end of every span that is closed in its own cell, and begins in an undamaged part; how many
    cells are missing, from the target's first one to the last."""
    found, cells = set(), set()
    parts = line.parts_in(data)
    for first, (count, lead, at) in parts.items():
        cells |= set(range(first, first + count))
        i = lead
        while i < count:
            place = at + line.HEAD + line.CELL * i
            ref, start, end, low, high = struct.unpack_from("<3I2H", data, place)
            if ref and not ref & 2 and not high & OPEN and 0 < end - start < 20000:   # no counter
                found.add((start | low >> 1 << 32, end | high << 32))
            more = data[place + line.CELL:place + 2 * line.CELL] if ref & 1 and i + 1 < count else b""
            i += (struct.unpack_from("<I", more, 4)[0] >> 20 & 0x7FF or 1) if more else 1
            if ref & 1 and not more:
                break
    headers = line.headers_in(data)
    if not cells or not headers:
        return found if headers else set(), 0
    return found, max([max(cells) + 1] + [used for _, used in headers]) - len(cells)


def events_of(trace):
    return {(e["ph"], e["name"], e["ts"], e.get("dur")) for e in trace["traceEvents"]
            if e["ph"] in "XC" and e.get("cat") != "npuprof" and not e.get("args", {}).get("unfinished")}


def check(trace, whole, data):
    """All that came undamaged is in the trace, what is missing is counted, and nothing else is there."""
    spans, missing = closed_spans(data)
    start = trace["metadata"]["npuprof"]["clock"]["start_ticks"]
    seen = {(round(e["ts"]) + start, round(e["ts"] + e["dur"]) + start) for e in trace["traceEvents"]
            if e["ph"] == "X" and e.get("cat") != "npuprof"}
    gaps = sum(e["args"]["cells"] for e in trace["traceEvents"] if e["name"] == "gap")
    if spans - seen:
        raise AssertionError(f"{len(spans - seen)} spans of undamaged parts are not in the trace")
    if gaps != missing:
        raise AssertionError(f"{gaps} cells are counted as missing, {missing} are")
    if events_of(trace) - events_of(whole):
        raise AssertionError(f"invented: {sorted(events_of(trace) - events_of(whole))[:3]}")
    return gaps


def converted(converter, folder, data, *words):
    (folder / "line.bin").write_bytes(data)
    out = folder / "line.json"
    out.unlink(missing_ok=True)
    done = subprocess.run([converter, folder / "line.bin", "--elf", folder / "fw.elf", "-o", out, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    if done.returncode > 1 and line.headers_in(data) and line.parts_in(data):
        raise AssertionError(done.stderr)
    return json.loads(out.read_bytes()) if done.returncode < 2 else None


def followed(converter, folder, machine, chance):
    """Runs the machine with a relay to --follow: what was sent, what arrived, and the trace."""
    server = listen(folder)
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    out = folder / "follow.json"
    out.unlink(missing_ok=True)
    words = ["--follow", os.ttyname(theirs), "--elf", folder / "fw.elf", "-o", out, "--every", "1"]
    follow = subprocess.Popen([converter, *words], stderr=subprocess.PIPE, text=True)
    words = list(machine["run"])
    words[words.index("-serial") + 1] = "unix:uart.socket"
    target = subprocess.Popen([*words, "fw.elf"], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        sent, arrived = relay(server.accept()[0], ours, chance)
        code = target.wait(20)
        time.sleep(0.3)
        os.close(theirs)
        os.close(ours)
        said = follow.communicate(timeout=30)[1]
    finally:
        target.kill()
        follow.kill()
        server.close()
    if code:
        raise AssertionError(f"the target's exit code is {code}")
    if not re.search(r"\d+ s: \d+ spans, \d+ events, \d+ gaps of \d+ cells", said):
        raise AssertionError(said)
    return sent, arrived, json.loads(out.read_bytes())


def rig(converter, machine, free):
    need(machine["cc"][0], machine["run"][0])
    folder, chance = BUILD / "uart", random.Random(15)
    folder.mkdir(parents=True, exist_ok=True)
    command([*machine["cc"], *free, "-Os", HERE / "uart.c", "-o", folder / "fw.elf", *machine["libs"]])
    sent, arrived, trace = followed(converter, folder, machine, chance)
    whole = converted(converter, folder, sent)
    names = [e["name"] for e in whole["traceEvents"] if e["ph"] in "XC"]
    counts = [names.count(n) for n in ("step", "with arguments", "i", "other", "whole run", "gap")]
    if counts != [300] * 4 + [1, 0] or whole["metadata"]["npuprof"].get("damaged_places"):
        raise AssertionError(f"of an undamaged line: {counts}")
    if converted(converter, folder, arrived) != trace:
        raise AssertionError("what was followed is not what the captured bytes give")
    late = folder / "late.bin"               # its first header is damaged: parts come before one
    late.write_bytes(sent[40:])
    done = subprocess.run([converter, "--follow", late, "--seconds", "0", "--elf", folder / "fw.elf", "-o",
                           folder / "late.json"], stderr=subprocess.PIPE, text=True, timeout=60)
    if done.returncode > 1:
        raise AssertionError(f"a late start: exit code {done.returncode}: {done.stderr}")
    missing = check(trace, whole, arrived)
    if not missing:
        raise AssertionError("the relay lost nothing")
    for _ in range(200):
        begin, end = sorted(chance.sample(range(len(arrived)), 2))
        piece = arrived[begin:] if chance.random() < 0.5 else arrived[:end]
        part = converted(converter, folder, piece)
        if part:
            check(part, whole, piece)
    print(f"   {len(sent)} bytes sent, {missing} cells missing, 200 cuts")

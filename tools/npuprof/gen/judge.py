# SPDX-License-Identifier: MIT
"""What C refuses of a description. npuprof-judge makes the checks of npuprof_npu_open(); here its sentence
gets the line of the key that it is about."""

import re
import subprocess
import sys

from ..base import built
from ..base.messages import Refused
from .json_text import json_of
from .schema import INDEX, READY

# Members of npuprof_npu_ring that other keys of a description lead to: the first that is there is at fault.
RING_KEYS = {"feed": ("count", "memory", "ready", "valid", "phase", *INDEX),
             "clock_high": ("clock_high", "clock_when"),
             "entry_bytes": ("record",), "valid_value": ("valid_is",), "all_are": ("kind",),
             "kind": ("kind", "kinds"), "kinds": ("kinds", "kind"), "lanes": ("pe_names",),
             "more_args": ("args",), "memory": ("first", "memory"), "offset": ("offset", "memory"),
             "memory_bytes": ("count",), "pe_base": ("instances", "pe_base"),
             "scale_num": ("stamp_scale",), "duration_num": ("duration_scale", "duration_unit_ns"),
             "duration_in_ns": ("duration",), "stamp_clock": ("stamp_clock", "stamp")}
# Words of a sentence about an index, and the key that they are about.
INDEX_KEYS = (("laps", "laps_at"), ("wrap", "producer_wrap_bit"), ("progress.count", "count"),
              ("bits", "producer_bits"), ("wide", "producer_width"), ("", "producer_at"), ("", "producer"))
# How C writes what a description says otherwise: an enumerator is a word.
SAID = ((r"\bis (?:STAMP|READY)_([A-Z]+)", "is"), (r"\bREADY_([A-Z]+)", "ready ="),
        (r"\bSTAMP_([A-Z]+)", "stamp ="))
told = set()               # what was said; once is enough for all descriptions


def program():
    """The path of npuprof-judge; None: there is none."""
    return built.program("npuprof-judge")


def is_described(device):
    """Whether there is something to open, not only registers."""
    return device.counter or device.rings or device.progress or device.pmu


def functions(device):
    """What the driver reads by a function of its own, as arguments of npuprof-judge."""
    ticks = ["ticks"] if device.counter and device.counter.source == "function" else []
    return ticks + [str(i) for i, c in enumerate(device.pmu) if c.lo is None]


def judge(device):
    """Raises Refused if C would not open such a device. Where there is no judge, it says so once."""
    if not is_described(device):
        return
    path = program()
    if path is None:
        if not told:
            print("note: only the spelling of the description was checked; npuprof-judge checks what "
                  f"npuprof_npu_open() would refuse: {built.remedy()}", file=sys.stderr)
        told.add(path)
        return
    done = subprocess.run([path, *functions(device)], input=json_of(device, judged=True).encode(),
                          capture_output=True, check=False)
    if done.returncode == 0:
        return
    if done.returncode != 1:
        raise Refused(f"{device.table.file}:1: npuprof-judge ended with {done.returncode}: "
                      + " ".join(done.stderr.decode(errors="replace").split()))
    part, sentence = done.stdout.decode().splitlines()
    part, number = part.split()
    sentence = re.sub(r"^(NPUPROF_ERR_\w+: )?(npuprof_npu_open: )?", "", sentence)
    for pattern, before in SAID:
        sentence = re.sub(pattern, lambda m, before=before: f'{before} "{m[1].lower()}"', sentence)
    PARTS[part](device, int(number), sentence)


def refuse(table, key, sentence):
    """key: a key of the table, or one that is not there."""
    table.refuse(f"{table.where()}: {sentence}", *([key] if key in table.value else []))


def refuse_ring(device, number, sentence):
    found = re.match(r"desc\.ring(?:s\[(\d+)\])?\.(\w+)(\S*) (.*)", sentence)
    if not found:                          # of all rings
        (device.progress or device.rings[0]).table.refuse(sentence)
    number, (member, rest, why) = int(found[1] or number), found.groups()[1:]
    why = why.replace("desc.pe_count", "pe_count")
    ring = next(r for r in device.rings if number < r.number + r.instances)
    table = ring.table
    if member == "producer":
        key = index_key(table, rest + why)
    else:
        keys = RING_KEYS.get(member, (member, "ready") if member in READY else (member,))
        key = next((key for key in keys if key in table.value), member)
    other = member in RING_KEYS and member not in ("feed", "kinds", "clock_high") and key in table.value
    name = key if other else member + rest
    refuse(table, key, f"{name} {why}")


def index_key(table, sentence):
    return next((key for word, key in INDEX_KEYS if word in sentence and key in table.value), None)


def refuse_progress(device, _number, sentence):
    table = device.progress.table
    refuse(table, index_key(table, sentence), re.sub(r"^desc\.progress\.index", "its index", sentence))


def refuse_counter(c, sentence):
    refuse(c.table, next((key for key in ("hi", "idle", "busy", "scale", "bits", "order")
                          if re.search(rf"(\bis_|\b){key}(_|\b)", sentence) and key in c.table.value), "lo"),
           sentence)


def refuse_requirement(device, number, sentence):
    r = device.requirements[number]
    r.table.refuse(f"{r.path} in {r.table.where()}: {sentence}", r.path)


PARTS = {"ring": refuse_ring, "progress": refuse_progress, "requirement": refuse_requirement,
         "counter": lambda device, _, sentence: refuse_counter(device.counter, sentence),
         "pmu": lambda device, number, sentence: refuse_counter(device.pmu[number], sentence)}

# SPDX-License-Identifier: MIT
"""metadata.npuprof, what a trace says about itself: its form, its version, and what was lost."""

import re
from decimal import Decimal

from .contract import MAJOR
from .messages import Refused
from .numbers import DOUBLE_MAX, plain

COUNT = "a whole number of 64 bits"
NUMBER = "a number"
TEXT = "a text"
# The form of metadata.npuprof. "*" stands for any key.
ABOUT = {**dict.fromkeys(("version", "host", "program", "when_full", "traceparent", "label", "file"), TEXT),
         **dict.fromkeys(("pid", "threads", "start_unix_ns", "start_boottime_ns", "start_monotonic_ns",
                          "tid_shift", "damaged_places"), COUNT),
         "clock": {"source": TEXT, "hz": NUMBER, "error_ns": COUNT, "drift_ns": COUNT}, "lost": {"*": COUNT},
         "user": {"*": TEXT}, "unused_environment": {"*": TEXT},
         "modules": [{"*": TEXT}],
         "sites": [{"name": TEXT, "cat": TEXT, "file": TEXT, "line": COUNT}],
         "devices": [{"name": TEXT, "clock_sync": {"anchor_list": [[NUMBER]], "clock": TEXT, "class": TEXT,
                                                   "records": {"*": COUNT}, "*": NUMBER}}]}
ABOUT["processes"] = [ABOUT | {"processes": []}]


def misfit(value, form):
    """The first place where a JSON value differs from the form: (path, what is expected there); None:
    nowhere."""
    if value is None:
        return None
    if isinstance(form, (dict, list)):
        if type(value) is not type(form):
            return "", "an object" if isinstance(form, dict) else "an array"
        known = value.items() if isinstance(form, dict) else enumerate(value)
        for key, inner in known:
            of_key = form.get(key, form.get("*")) if isinstance(form, dict) else form[0] if form else None
            if of_key is not None and (found := misfit(inner, of_key)):
                return f".{key}{found[0]}", found[1]
        return None
    if form == TEXT:
        fits = type(value) is str
    elif form == COUNT:
        fits = type(value) is int and -2**63 <= value < 2**63
    else:
        fits = isinstance(value, (int, float, Decimal)) and abs(value) <= DOUBLE_MAX
    return None if fits else ("", form)


def check_about(path, about):
    """Returns metadata.npuprof without its nulls. Refuses what npuprof does not write."""
    if type(about) is not dict or (type(about.get("start_unix_ns")),
                                   type(about.get("version"))) != (int, str):
        raise Refused(f"{path}: metadata.npuprof has no version or start_unix_ns: not a trace of npuprof")
    check_version(path, about["version"])
    if found := misfit(about, ABOUT):
        raise Refused(f"{path}: metadata.npuprof{found[0][:100]} is not {found[1]}: not a trace of npuprof")
    about = plain(about)
    for key in [key for key in about if about[key] is None]:
        del about[key]
    return about


def check_version(path, text):
    """Returns (major, minor) of the npuprof that wrote the file. Refuses a newer major version than this tool
    reads."""
    match = re.fullmatch(r"(\d+)\.(\d+)(\..*)?", text)
    if match is None or int(match[1]) > MAJOR:
        raise Refused(f"{path}: written by npuprof {text[:20]}, "
                      f"this tool reads up to {MAJOR}.x: use the tool of that version")
    return int(match[1]), int(match[2])


def said_of_names(metadata, head):
    """{NAME: what the program said of it} by npuprof_metadata(HEAD + NAME, ...)."""
    return {key.removeprefix(head): str(value)
            for part in (metadata, *metadata.get("processes", []))
            for key, value in part.get("user", {}).items() if key.startswith(head)}


# What an operator or a lane of a device is for.
ROLES = ("engine", "worker", "stage", "container", "dma", "comm")


def roles_of(metadata):
    """{name of an operator or of a lane: its role}"""
    return {name: role for name, role in said_of_names(metadata, "npuprof.role.").items() if role in ROLES}


def units_of(metadata):
    """{name of a counter: its unit}"""
    return said_of_names(metadata, "npuprof.unit.")


def sources(metadata):
    """(name, category) -> the places in the code, "file:line", where spans of that name are recorded."""
    found = {}
    processes = metadata.get("processes")
    for part in (metadata, *(processes if isinstance(processes, list) else ())):
        sites = part.get("sites") if isinstance(part, dict) else None
        for site in sites if isinstance(sites, list) else ():
            if isinstance(site, dict) and isinstance(site.get("file"), str):
                places = found.setdefault((str(site.get("name", "")), str(site.get("cat", ""))), {})
                places[f"{site['file']}:{site.get('line', 0)}"] = None
    return found

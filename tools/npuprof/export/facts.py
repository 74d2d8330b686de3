# SPDX-License-Identifier: MIT
"""What a SQLite database of `export` tells the doctor of base/doctor.py."""

import os
import sqlite3
import urllib.parse

from ..base.doctor import NO_SPAN, Evidence
from ..base.messages import Refused

SYNC = ("rate_hz", "drift_ppm", "max_error_ns", "anchors", "causality_violations", "unplaced_spans",
        "ring_lost")


def facts_of(path):
    """(metadata.npuprof as far as the database has it, its Evidence, the number of its spans)."""
    try:
        database = sqlite3.connect(f"file:{quoted(path)}?mode=ro", uri=True)
        try:
            return (*read(database.execute), database.execute("SELECT count(*) FROM spans").fetchone()[0])
        finally:
            database.close()
    except sqlite3.Error as error:
        raise Refused(f"{path}: no database of `npuprof.py export`: {error}") from None


def quoted(path):
    return urllib.parse.quote(os.fsencode(path))


def read(execute):
    meta, found = dict(execute("SELECT key, value FROM meta")), Evidence()
    about = {"lost": dict(execute("SELECT cause, count FROM losses")), "devices": []}
    if meta.get("recorded", "").isdigit():
        about["recorded"] = int(meta["recorded"])
    about["unused_environment"] = {key.partition(".")[2]: value for key, value in meta.items()
                                   if key.startswith("unused_environment.")}
    devices = dict(execute("SELECT id, name FROM devices"))
    for number, *sync in execute(f"SELECT id, {', '.join(SYNC)} FROM devices"):
        spans = execute("SELECT count(*) FROM spans JOIN tracks t ON t.id = track WHERE t.device = ?",
                        (number,))
        anchors = execute("SELECT host_ns, error_ns, ticks FROM anchors WHERE device = ?", (number,))
        about["devices"].append({"name": devices[number], "clock_sync": {
            **dict(zip(SYNC, sync)), "spans": spans.fetchone()[0], "anchor_list": list(map(list, anchors))}})
    found.events = execute("SELECT (SELECT count(*) FROM spans) + (SELECT count(*) FROM instants)"
                           ).fetchone()[0]
    found.open.update(dict(execute("SELECT s.text, count(*) FROM spans JOIN strings s ON s.id = name "
                                   "WHERE unfinished GROUP BY s.id")))
    for name, count in execute("SELECT name, count(*) FROM instants WHERE name = ? OR name LIKE 'npuprof %' "
                               "GROUP BY name", (NO_SPAN,)):
        for _ in range(count):
            found.instant(name, {})
    for number, execution in execute("SELECT DISTINCT t.device, execution_index FROM spans JOIN tracks t ON "
                                     "t.id = track WHERE t.kind = 'device' AND execution_index IS NOT NULL"):
        found.executions.setdefault(devices.get(number, ""), set()).add(execution)
    return about, found

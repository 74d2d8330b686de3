# SPDX-License-Identifier: MIT
"""The critical path by owner, and what changes would bring: tables critical_path and whatif.

A change as a text, as the command line takes it; K is the factor of the time, 0 to 100:

    operator:NAME=K    the operator of that name takes K times as long
    load=K             all transfers; load:NAME=K: those that bring the operands of that operator
    host:NAME=K        host spans of that name, without their children
    dispatch           no start latency is longer than their 5th percentile; dispatch=NS: than NS ns
    notice             the same for the notice of an end
    depth=N            N submissions in flight on each queue
    pes                jobs go to the PE that is free first; pes=N: with N more PEs
    device=K           everything on the device

Several with + between them are replayed together. What is not there to be changed is refused.
"""

import math
import re
from fractions import Fraction

from ..base.contract import DEVICE
from ..base.messages import Refused
from ..tables.table import Table, pct
from . import reactions, replay
from .paths import by_owner, slack_of

PATH = ("kind", "owner", "count", "total_ns", "share_pct", "slack_ns")
TABLES = "critical_path", "whatif"
WHATIF = ("change", "inference_low_pct", "inference_high_pct", "window_low_pct", "window_high_pct",
          "jobs_low_pct", "jobs_high_pct", "inference_before_ns", "inference_after_low_ns",
          "inference_after_high_ns", "note")
KINDS = "operator|load|host|dispatch|notice|depth|pes|device"
FORM = re.compile(rf"({KINDS})(?::(.+?))?(?:=(\d+\.?\d*|\.\d+))?")
NEXT = re.compile(rf"\+(?=(?:{KINDS})(?:[:=+]|$))")     # between two changes
MANY = 3           # operators and host spans that are tried without being asked for


def parse(text):
    """The changes of a text, as a tuple."""
    return tuple(parse_one(part, text) for part in NEXT.split(text))


def parse_one(part, text):
    match = FORM.fullmatch(part)
    if not match:
        raise Refused(f"--what-if {text}: {part!r} is no change; see report --help")
    what, name, number = match.groups()
    if (what in ("operator", "host")) != bool(name) and not (what == "load" and name):
        raise Refused(f"--what-if {text}: {what} "
                      + ("needs the name of a span" if what in ("operator", "host") else "has no name"))
    k = None if number is None else Fraction(number)
    whole = what in ("dispatch", "notice", "depth", "pes")
    if k is None and what in ("operator", "load", "host", "device", "depth"):
        raise Refused(f"--what-if {text}: {what} needs a number, as in "
                      f"{what}{':NAME' if name else ''}={'2' if whole else '0.5'}")
    if k is not None and whole and (k.denominator != 1 or k > 10**12):
        raise Refused(f"--what-if {text}: {what} needs a whole number")
    if k is not None and ((not whole and k > 100) or (what == "depth" and not 0 < k <= 4096)
                          or (what == "pes" and k > 4096)):
        raise Refused(f"--what-if {text}: {number} is out of bounds")
    return what, name, int(k) if whole and k is not None else k


def shown(changes):
    """The text of changes."""
    parts = []
    for what, name, k in changes:
        number = "" if k is None else f"={float(k):g}" if isinstance(k, Fraction) else f"={k}"
        parts.append(what + (f":{name}" if name else "") + number)
    return "+".join(parts)


def check(facts, changes):
    """Refuses changes of what the trace does not have."""
    trace = facts.trace
    for what, name, _ in changes:
        if name is not None:
            numbers = {n for n, text in enumerate(trace.names) if text == name}
            device = what != "host"
            if not any(n in numbers and (kind == DEVICE) == device
                       for n, kind in zip(trace.name, trace.kind)):
                where = "on the device" if device else "on a host thread"
                raise Refused(f"{trace.path}: --what-if {shown(changes)}: no span {name!r} {where}")


def usual(facts):
    """The changes that are tried without being asked for."""
    half, owners, found = Fraction(1, 2), path_rows(facts), []
    for kind, what in (("operator", "operator"), ("host", "host")):
        names = [name for own, name, *_ in owners if own == kind and name != "no span"]
        found += [((what, name, half),) for name in names[:MANY]]
    if not facts.jobs.queues:
        return found
    found += [(("load", None, half),), (("load", None, Fraction(0)),), (("dispatch", None, None),),
              (("notice", None, None),), (("depth", None, 2),), (("pes", None, 1),),
              (("device", None, half),), (("device", None, Fraction(0)),)]
    return found


def row_of(facts, changes):
    """A row of WHATIF, or None if the graph cannot say."""
    effect = replay.of(facts).effect(*changes)
    if effect is None:
        return None
    before, after = None, (None, None)
    if effect.before is not None:
        before = Fraction(effect.before, 2)
    if effect.after:                   # not where the median inference has no length
        after = tuple(Fraction(ns, 2) for ns in effect.after)
    note = ""
    if effect.edge >= 10:
        note = (f"at the edge: in {float(effect.edge):.0f} % of the waits the device would be done less than "
                "a tenth of a job before the host looks")
    gains = *(effect.inference or (None, None)), *effect.window, *effect.jobs
    return shown(changes), *gains, before, *after, note


def whatif_table(facts, wanted):
    """wanted: tuples of changes."""
    found = replay.of(facts)
    if found.why:
        return Table("whatif", TITLE, WHATIF, [], [f"no replay: {found.why}"])
    rows = [row for row in (row_of(facts, changes) for changes in wanted) if row]
    notes = ["positive: faster. Contention, off-CPU time, clock rates and requests may react to a change:"
             " that is not replayed"]
    if found.working:
        where = ", ".join(name or "no span" for name in facts.jobs.unmarked_names) or "any span"
        notes.append(f"low: the threads work in {where} until their jobs end; high: they wait there. Nothing "
                     'says which: PROF_WAIT would, or kind = "wait" of a span, or --wait NAME')
    assumed = {why for changes in wanted if (effect := found.effect(*changes)) for why in effect.assumed}
    if assumed - {replay.JOB} or (assumed and not found.working):
        notes.append(f"an interval, where the trace does not say {', or '.join(sorted(assumed))}")
    if reactions.is_unsteady(found):
        notes.append("the same work of the device takes longer in parts of the run, or after idle times: "
                     "whether it does after a change, too, is not known")
    if len(rows) < len(wanted):
        lost = float(100 * found.unexplained())
        notes.append(f"no replay of operators: the graph does not explain {lost:.1f} % of the device's time")
    if found.programs.as_recorded():
        notes.append(f"replayed as recorded: {float(100 * found.programs.as_recorded()):.1f} %")
    if found.points.count < len(facts.jobs):
        notes.append(f"replayed: the first {found.points.count} of {len(facts.jobs)} submissions")
    return Table("whatif", TITLE, WHATIF, rows, notes)


TITLE = "What changes would bring, by replay (inference: the median; jobs: their executions together)"


def path_rows(facts):
    """Rows of PATH, the largest total first; made once."""
    found = replay.of(facts)
    if not hasattr(found, "path_rows"):
        found.path_rows = made_path_rows(found)
    return found.path_rows


def made_path_rows(found):
    owners = by_owner(found.paths.whole())
    whole = sum(ns for _, ns in owners.values())
    rest = slack(found)
    rows = [(kind, name, count, ns, pct(ns, whole), rest.get((kind, name), 0))
            for (kind, name), (count, ns) in owners.items()]
    rows += [(kind, name, 0, 0, pct(0, whole), ns) for (kind, name), ns in rest.items()
             if (kind, name) not in owners]
    return sorted(rows, key=lambda row: (-row[3], row[5], row[0], row[1]))


def slack(found):
    """{owner: ns that each of its spans may take longer, and the end stays}, for operators and transfers."""
    points, graph, paths, times = found.points, found.graph, found.paths, found.base
    places = [graph.at[p] for p in points.end] or list(graph.done)
    last = max(places, key=lambda n: (times[n], n))
    nodes = slack_of(graph, paths.one, paths.two, times, last)
    allows = [[0] * len(program.dur) for program in found.programs.all]
    for k, (number, e) in enumerate(zip(found.programs.of, found.programs.place)):
        if number >= 0:
            allows[number][e] = nodes[graph.done[k]]
    out = {}
    for program, own in zip(found.programs.all, allows):
        for row, ns in zip(program.instructions, program.slack(own)):
            key = "transfer" if row.transfer else "operator", row.name
            out[key] = min(out.get(key, math.inf), ns)
    return {key: ns for key, ns in out.items() if ns < 2**61}


def path_table(facts):
    title = "The critical path of the window, by owner"
    found = replay.of(facts)
    if found.why:
        return Table("critical_path", title, PATH, [], [f"no path: {found.why}"])
    lost = found.unexplained()
    notes = [f"the graph does not explain {float(100 * lost):.1f} % of the time inside jobs"] if lost else []
    return Table("critical_path", title, PATH, path_rows(facts), notes)


def asked(facts, wanted):
    """[critical_path, whatif] for the changes that a user asked for."""
    for changes in wanted:
        check(facts, changes)
    return [path_table(facts), whatif_table(facts, wanted)]


def analyse(facts):
    """Of more inferences than replay takes, the tables are of the middle ones, and say so."""
    part = facts.part
    notes = [] if part is facts else [f"of {part.window.text}"]
    for table in path_table(part), whatif_table(part, usual(part) if replay.of(part).why is None else ()):
        yield table._replace(notes=[*table.notes, *notes])

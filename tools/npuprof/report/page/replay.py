# SPDX-License-Identifier: MIT
"""The dependency graph for the page's sliders: what replay.js needs to replay it with other times.

Of a long trace it is that of INFERENCES in the middle, or of fewer with many different executions. The page
adds the same numbers as analysis/replay.py, so both say the same gain. Where that one gives an interval, as
the trace does not say something, the page's is one number of it, and it says what it takes for granted."""

from ...analysis import reactions, replay
from ...analysis.effects import MARGIN
from ...analysis.engines import members
from ...analysis.graph import NEVER, NOTICED, host_rows, overlaps
from ...analysis.replay import UNEXPLAINED
from ...analysis.whatif import path_rows

INFERENCES, NODES, STEPS = 1_000, 50_000, 20_000     # of the graph; instructions of all different executions
OPERATORS, HOSTS = 6, 3                              # sliders


def sliders(facts, wanted=frozenset(), most=INFERENCES):
    """The graph and its sliders, or None: nothing can be replayed, or it is too large. wanted: (kind, name)
    of what findings are about; each has a slider, whatever its share."""
    part = facts.middle(most)
    found = replay.of(part)
    if found.why or len(found.graph.what) > NODES:
        return None
    programs = found.programs.all if found.unexplained() <= UNEXPLAINED else ()
    runs, run_of = different(found) if programs else ([], [])
    steps = sum(len(times) // 2 for _, _, times in runs)
    if steps > STEPS:
        count = len(part.window.inferences)
        if count > 1:
            return sliders(facts, wanted, max(1, count * STEPS // steps))
        programs, runs, run_of = (), [], []
    groups = device_groups(part, wanted) if programs else []
    places = {group["name"]: n for n, group in enumerate(groups) if group["kind"] == "operator"}
    trace, points, graph = part.trace, found.points, found.graph
    for kind, name, count, ns, *_ in path_rows(part):
        few = sum(g["kind"] == "host" for g in groups) < HOSTS
        if kind == "host" and name != "no span" and (few or ("host", name) in wanted):
            groups.append({"kind": "host", "name": name, "ops": count, "ms": ns / 1e6,
                           "stretches": stretches(found, name)})
    groups.append({"kind": "device", "name": "the whole device", "ops": points.count,
                   "ms": sum(points.dur) / 1e6})
    one, two = graph.lags(points.lags())
    jobs = [[graph.done[k], points.dur[k], run_of[k] if programs else -1,
             places.get(trace.text(points.jobs.row[k]), -1) if number < 0 else -1]
            for k, number in enumerate(found.programs.of)]
    return {"groups": groups, "first": list(graph.first), "second": list(graph.second),
            "one": [None if lag <= NEVER // 2 else lag for lag in one], "two": list(two), "jobs": jobs,
            "programs": [of_program(program, places) for program in programs], "runs": runs,
            "tolerance": found.programs.tolerance,
            "early": sorted(graph.at[p] for p in points.early),
            "begins": [graph.at[p] for p in points.begin], "ends": [graph.at[p] for p in points.end],
            "from": points.first, "of": "" if part is facts else part.window.text,
            "margin": MARGIN if found.shares else 0, "assumed": assumed(found)}


def assumed(found):
    """What the page's replay takes for granted and the trace does not say, as a sentence; "" for nothing."""
    parts = ["threads wait until their jobs end, and not for one another"
             ] if found.working or found.hears or found.locked else []
    parts += ["a poll sees an end as late as it did"] if found.poll else []
    parts += ["requests come as soon as a thread is ready"] if found.points.waited else []
    parts += ["no job waits for one of another device"] if found.fenced else []
    parts += ["lanes of one device do not wait for one another"] if reactions.in_turns(found) else []
    parts += ["the clock of the device stays as it is"] if reactions.is_unsteady(found) else []
    parts += ["no other thread holds this up"] if reactions.beside(found) else []
    return f"This holds only if {', and '.join(parts)}: the trace does not say so." if parts else ""


def device_groups(facts, wanted):
    """The operators with most time and those that are wanted, and all transfers."""
    trace, engines = facts.trace, facts.engines
    found = sorted((-ns, name, count) for name, (count, ns) in engines.operators.items())
    groups = [{"kind": "operator", "name": name, "ops": count, "ms": -ns / 1e6}
              for n, (ns, name, count) in enumerate(found) if n < OPERATORS or ("operator", name) in wanted]
    moved = [trace.dur[i] for _, rows in members(facts) for i in rows if engines.kinds[trace.name[i]] == 1]
    if moved:
        groups.append({"kind": "load", "name": "transfers (Load, Store)", "ops": len(moved),
                       "ms": sum(moved) / 1e6})
    return groups


def stretches(found, name):
    """Nodes and the ns in which that host span decides when they come, one after the other."""
    points, out = found.points, []
    for p, ns in overlaps(points, host_rows(found.trace, points, name), True).items():
        if points.point[p].kind != NOTICED or p in points.early:
            out += [found.graph.at[p], ns]
    return out


def different(found):
    """(the different executions: [program, ns, begin and length of each instruction]; by job which of them it
    is, -1: it stays as recorded)"""
    programs, start, dur = found.programs, found.trace.start, found.trace.dur
    numbers, run_of = {}, []
    for k, (number, e) in enumerate(zip(programs.of, programs.place)):
        if number < 0 or not programs.all[number].obeys[e]:
            run_of.append(-1)
            continue
        begin, rows = found.points.start_of[k], programs.all[number].rows(e)
        run = number, found.points.dur[k], *(n for i in rows for n in (start[i] - begin, dur[i]))
        run_of.append(numbers.setdefault(run, len(numbers)))
    return [[number, ns, list(times)] for number, ns, *times in numbers], run_of


def of_program(program, places):
    """Of each instruction: [those that must have ended, its pair or -1, number of its slider or -1, 1 for a
    transfer]."""
    edges = program.edges
    return {"order": edges.order,
            "rows": [[sorted(after), pair, -1 if row.transfer else places.get(row.name, -1),
                      int(row.transfer)]
                     for row, after, pair in zip(program.instructions, edges.after, edges.pair)]}

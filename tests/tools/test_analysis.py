# test: time=120 - the analyses against every single ns of small random traces, and against fractions
# SPDX-License-Identifier: MIT
import statistics
import unittest
from fractions import Fraction

import helpers
import npuprof
import small_traces
from npuprof.analysis import catalogue, depth, engines, idle, latency, pes
from npuprof.analysis.facts import Facts
from npuprof.analysis.window import Selection, choose

SEEDS = range(30)


def made(seed, selection=None, **options):
    """(Small, Facts)"""
    small = small_traces.Small(seed, **options)
    if seed % 3 == 0:
        small.instants = [("npuprof paused", 300), ("npuprof resumed", 420)]
    trace = npuprof.load(small.write(helpers.scratch() / "small.json"))
    return small, Facts(trace, choose(trace, selection))


def window_of(small):
    """The set of all ns that are looked at."""
    own = [span for span in small.spans if span[1] == "Inference"]
    whole = range(min(span[2] for span in own), max(span[3] for span in own))
    paused = range(300, 420) if small.instants else ()
    return {t for t in whole if t not in paused}


def ordered(small):
    """The jobs by start."""
    return sorted(small.jobs, key=lambda job: (job[1], job[2]))


def row(table, **wanted):
    places = {name: table.columns.index(name) for name in wanted}
    found = [r for r in table.rows if all(r[places[name]] == value for name, value in wanted.items())]
    assert len(found) == 1, (wanted, found)
    return dict(zip(table.columns, found[0]))


def leaf_at(small, tid, t):
    """The innermost span of a thread that is open at t, or None."""
    own = [s for s in small.spans if s[0] == tid and s[2] <= t < s[3]]
    return max(own, key=lambda s: (s[2], -s[3]), default=None)


def wait_of(small, job):
    """The wait span of a job: the first of its thread behind its submit span."""
    _, _, _, _, s, tid, _ = job
    submit = next(span for span in small.spans if span[:3] == (tid, "Submit", s))
    waits = [span for span in small.spans if span[:2] == (tid, "Wait") and span[2] >= submit[3]]
    return min(waits, key=lambda span: span[2])


def class_at(small, jobs, floors, after, t):
    """The class and span of one idle ns before job `after`, as the documents define it."""
    pe, start, _, _, s, tid, _ = after
    if t >= s:
        submit = next(span for span in small.spans if span[:3] == (tid, "Submit", s))
        return ("in_submit" if t < min(submit[3], start - floors[pe]) else "dispatch"), "Submit"
    leaf = leaf_at(small, tid, t)
    inference = max((x for x in small.spans if x[0] == tid and x[1] == "Inference" and x[2] <= s),
                    key=lambda x: x[2])
    asked = [f[2] for f in small.flows if f[3] == tid and f[4] == inference[2]]
    if leaf is None:
        return ("late_thread" if asked and t >= asked[0] else "no_demand"), ""
    if leaf[1] == "Wait":
        owner = next(job for job in jobs if job[5] == tid and wait_of(small, job) == leaf)
        return ("late_notice" if t >= owner[2] else "host_blocked"), "Wait"
    if leaf[1] == "Inference":
        return "host_untraced", "Inference"
    return ("host_blocked" if "lock" in leaf[1] else "host_busy"), leaf[1]


def floors_of(jobs):
    """By PE: the start latency that a twentieth of the jobs does not exceed."""
    found = {}
    for pe in (0, 1):
        own, last, latencies = [job for job in jobs if job[0] == pe], None, []
        for job in own:
            latencies.append(job[1] - (job[4] if last is None else max(job[4], last)))
            last = job[2]
        latencies.sort()
        found[pe] = latencies[(len(latencies) - 1) // 20] if latencies else 0
    return found


def own_times(steps):
    """Sum of the compute spans among (name, begin, end, index) on one track, each without the compute spans
    directly inside it."""
    whole, open_ones = 0, []
    for name, a, b, _ in sorted(steps, key=lambda step: (step[1], -step[2])):
        while open_ones and (open_ones[-1][2] < b or open_ones[-1][2] <= a):
            open_ones.pop()
        nested = any(one[0] in ("conv", "pad") for one in open_ones)
        whole += 0 if name not in ("conv", "pad") or nested else b - a
        open_ones.append((name, a, b))
    return whole


class EveryNanosecond(unittest.TestCase):
    def check_idle(self, small, facts, wanted, queue):
        """Labels every idle ns of a set of PEs."""
        jobs = [job for job in ordered(small) if job[0] in wanted]
        floors, counts = floors_of(ordered(small)), {}
        for t in window_of(small):
            if any(job[1] <= t < job[2] for job in jobs):
                continue
            after = next((job for job in jobs if job[1] > t), None)
            if after is None or not any(job[2] <= t for job in jobs):
                own = after or max(jobs, key=lambda job: job[2])
                leaf = leaf_at(small, own[5], t)
                key = "edge", leaf[1] if leaf else ""
            else:
                key = class_at(small, ordered(small), floors, after, t)
            counts[key] = counts.get(key, 0) + 1
        found = {(label, span): entry.total for (_, q, label, span), entry in facts.idle.entries.items()
                 if q == queue}
        self.assertEqual(found, counts)
        self.assertEqual(sum(counts.values()), facts.idle.idle[0, queue])

    @helpers.thorough
    def test_idle(self):
        for seed in SEEDS:
            small, facts = made(seed)
            if {job[0] for job in small.jobs} == {0, 1}:
                with self.subTest(seed=seed):
                    self.check_idle(small, facts, (0, 1), -1)
                    for q, queue in enumerate(facts.jobs.queues):
                        self.check_idle(small, facts, (int(queue.label[-1]),), q)

    def test_depth(self):
        for seed in SEEDS:
            small, facts = made(seed)
            window, tables = window_of(small), list(depth.analyse(facts))
            for view in depth.VIEWS:
                until = {"pending": lambda j: j[1], "device": lambda j: j[2],
                         "host": lambda j: max(wait_of(small, j)[3], j[2])}[view]
                counts, ends = {}, [(job[4], until(job)) for job in small.jobs]
                for t in window:
                    open_now = sum(begin <= t < end for begin, end in ends)
                    counts[open_now] = counts.get(open_now, 0) + 1
                found = row(tables[0], queue="(all)", view=view)
                self.assertEqual(found["mean_ratio"],
                                 Fraction(sum(d * n for d, n in counts.items()), len(window)))
                self.assertEqual(found["max"], max(counts))
                self.assertEqual(found["zero_pct"], Fraction(100 * counts.get(0, 0), len(window)))
                self.assertEqual({r[2]: r[3] for r in tables[1].rows if r[:2] == ("(all)", view)}, counts)

    def test_pes(self):
        for seed in SEEDS:
            small, facts = made(seed)
            window = window_of(small)
            at = {t: {job[0] for job in small.jobs if job[1] <= t < job[2]} for t in window}
            busy, balance, once = pes.analyse(facts)
            for pe in {job[0] for job in small.jobs}:
                self.assertEqual(row(busy, pe=f"dev PE {pe}")["busy_ns"], sum(pe in on for on in at.values()))
            own = row(balance, device="dev")
            sums = [sum(pe in on for on in at.values()) for pe in (0, 1)]
            self.assertEqual(own["any_busy_ns"], sum(bool(on) for on in at.values()))
            self.assertEqual(own["parallelism_ratio"], Fraction(sum(sums), own["any_busy_ns"]))
            self.assertEqual(own["imbalance_pct"], Fraction(200 * max(sums), sum(sums)) - 100)
            n = len(facts.jobs)
            self.assertEqual(own["unavoidable_pct"], Fraction(-(-n // 2) * 2 * 100, n) - 100)
            self.assertEqual({r[1]: r[2] for r in once.rows},
                             {k: c for k in range(3) if (c := sum(len(on) == k for on in at.values()))})

    def test_overlap(self):
        for seed in SEEDS:
            small, facts = made(seed)
            own = [job for job in small.jobs if job[6]]
            if not own:
                continue
            sums, exposed = [0] * 6, {}
            for _, start, end, _, _, _, program in own:
                inside = [step for step in program]
                moved = {t for name, a, b, _ in inside if name in ("Load", "Store") for t in range(a, b)}
                works = {t for name, a, b, _ in inside if name in ("conv", "pad") for t in range(a, b)}
                added = own_times(inside)
                values = 1, end - start, len(moved), len(works), len(moved & works), added
                sums = [a + b for a, b in zip(sums, values)]
                alone = sorted(moved - works)
                for t in alone:
                    stop = t
                    while stop in moved and stop not in works:
                        stop += 1
                    later = [(a, k) for k, (name, a, b, _) in enumerate(inside)
                             if name in ("conv", "pad") and a >= stop]
                    name = inside[min(later)[1]][0] if later else "(end)"
                    exposed[name] = exposed.get(name, 0) + 1
            table, charged, _ = engines.analyse(facts)
            found = table.rows[0]
            self.assertEqual(found[1:6], tuple(sums[:5]))
            count, execute, moved, works, shared, added = sums
            self.assertEqual(found[7:10], tuple(Fraction(100 * n, execute) for n in (
                moved - shared, works - shared, execute - moved - works + shared)))
            self.assertEqual(found[10], Fraction(added, works) if works else None)
            self.assertEqual({r[0]: r[2] for r in charged.rows}, exposed)


class Split(unittest.TestCase):
    def test_parts_add_up(self):
        """Each part by its definition; together the time from submission to notice."""
        for seed in SEEDS:
            small, facts = made(seed)
            parts = {part: [] for part in latency.PARTS}
            last = {}
            for job in ordered(small):
                pe, start, end, _, s, tid, _ = job
                ready = max(s, last.get(pe, s))
                last[pe] = end
                wait = wait_of(small, job)
                submit = next(span for span in small.spans if span[:3] == (tid, "Submit", s))
                own = (submit[3] - s, ready - s, start - ready, end - start, max(0, wait[2] - end),
                       wait[3] - max(end, wait[2]))
                self.assertEqual(sum(own[1:]), wait[3] - s)
                for part, value in zip(latency.PARTS, own):
                    parts[part].append(value)
            [table] = latency.analyse(facts)
            whole = sum(sum(values) for part, values in parts.items() if part != "call")
            for part, values in parts.items():
                found = row(table, queue="(all)", part=part)
                self.assertEqual((found["count"], found["total_ns"], found["max_ns"]),
                                 (len(values), sum(values), max(values)))
                self.assertEqual(found["p50_ns"], int(Fraction(statistics.median(values)) + Fraction(1, 2)))
                self.assertEqual(found["share_pct"],
                                 None if part == "call" else Fraction(100 * sum(values), whole))

    def test_op_gaps(self):
        for seed in SEEDS:
            small, facts = made(seed)
            gaps, last = [], {}
            for job in ordered(small):
                if job[0] in last:
                    gaps.append(job[1] - last[job[0]])
                last[job[0]] = job[2]
            table = engines.op_gaps(facts)
            found = [r for r in table.rows if r[0] == "execution"]
            self.assertEqual([r[3:5] for r in found], [(len(gaps), sum(gaps))] if gaps else [])


class Errors(unittest.TestCase):
    @helpers.thorough
    def test_certain_is_what_the_errors_leave(self):
        """What is certain with an error stays, whichever way all stamps of the device were off. An error that
        puts a job before its submission, or its end behind its wait, is none. Left out: in_submit and
        dispatch, which the usual start latency divides, and that changes, too."""
        tested = 0
        for seed in SEEDS:
            for error in (3, 20):
                small, facts = made(seed, error=error)
                early = min(error, *(job[1] - job[4] for job in small.jobs))
                late = min(error, *(wait_of(small, job)[3] - job[2] for job in small.jobs))
                exact = {}
                for shift in (-early, 0, late):
                    moved = small_traces.Small(seed)
                    moved.instants = small.instants
                    moved.jobs = [(pe, a + shift, b + shift, 0, s, tid, program)
                                  for pe, a, b, _, s, tid, program in moved.jobs]
                    trace = npuprof.load(moved.write(helpers.scratch() / "moved.json"))
                    for key, entry in Facts(trace).idle.entries.items():
                        exact.setdefault(key, []).append(entry.total)
                for key, entry in facts.idle.entries.items():
                    if key[2] not in ("unknown", "edge", "in_submit", "dispatch"):
                        least = min(exact[key]) if len(exact.get(key, ())) == 3 else 0
                        self.assertLessEqual(entry.certain, least, (seed, error, key, exact.get(key)))
                        tested += entry.certain > 0
        self.assertGreater(tested, 100)

    def test_confidence(self):
        for certain, total, capped, wanted in ((90, 100, False, "sure"), (89, 100, False, "likely"),
                                               (100, 100, True, "likely"), (50, 100, False, "likely"),
                                               (49, 100, False, "unsure"), (0, 0, False, "sure")):
            self.assertEqual(idle.confidence_of(certain, total, capped), wanted)


class Catalogue(unittest.TestCase):
    def test_each_analysis(self):
        """What has analyse() is in the catalogue; the tables that it yields are those that it names."""
        folder = helpers.ROOT / "tools/npuprof/analysis"
        there = {path.stem for path in folder.glob("*.py") if "\ndef analyse(" in path.read_text()}
        self.assertEqual({module.__name__.rpartition(".")[2] for module in catalogue.ANALYSES}, there)
        facts = made(1)[1]
        for analysis in catalogue.ANALYSES:
            made_of_it = [table.name for table in analysis.analyse(facts)]
            self.assertLessEqual(set(made_of_it), set(analysis.TABLES), analysis.__name__)


class Parts(unittest.TestCase):
    def test_choices(self):
        small, whole = made(5)
        trace = whole.trace
        own = sorted(span[2:4] for span in small.spans if span[1] == "Inference")
        chosen = choose(trace, Selection(inference="2-3"))
        self.assertEqual(list(chosen.intervals), merged(own[1:3]))
        self.assertLessEqual(2, len(chosen.inferences))
        between = choose(trace, Selection(between=f"{own[0][0]}:{own[1][1]}"))
        self.assertEqual(list(between.intervals), [(own[0][0], own[1][1])])
        named = choose(trace, Selection(between="Inference#1:Inference#2"))
        self.assertEqual(list(named.intervals), [(own[0][0], own[1][1])])
        waits = sorted(span[2:4] for span in small.spans if span[1] == "Wait")
        self.assertEqual(list(choose(trace, Selection(name="^Wa")).intervals), merged(waits))
        self.assertEqual(list(choose(trace, Selection(name="Wait", nth=2)).intervals), [waits[1]])
        both = choose(trace, Selection(name="Wait", between=f"{own[0][0]}:{own[0][1]}"))
        self.assertEqual({t for a, b in both.intervals for t in range(a, b)},
                         {t for a, b in waits for t in range(a, b) if own[0][0] <= t < own[0][1]})

    def test_pe_and_thread(self):
        small, whole = made(5)
        pe = Facts(whole.trace, choose(whole.trace, Selection(pe=1)))
        self.assertEqual(len(pe.jobs), sum(job[0] == 1 for job in small.jobs))
        thread = Facts(whole.trace, choose(whole.trace, Selection(thread="worker 1")))
        self.assertEqual(sum(ns >= 0 for ns in thread.jobs.s), sum(job[5] == 2 for job in small.jobs))
        self.assertEqual(len(thread.window.inferences),
                         sum(span[:2] == (2, "Inference") for span in small.spans))

    def test_refusals(self):
        trace = made(5)[1].trace
        for selection in (Selection(record="x"), Selection(inference="0"), Selection(inference="2-1"),
                          Selection(inference="99"), Selection(between="5"), Selection(between="9:2"),
                          Selection(between="a#1:3"), Selection(name="("), Selection(nth=1),
                          Selection(name="Wait", nth=99), Selection(thread="nobody"),
                          Selection(name="Wait", between="0:1")):
            with self.assertRaises(npuprof.Refused, msg=selection) as refused:
                choose(trace, selection)
            self.assertNotIn("\n", str(refused.exception))


def merged(pairs):
    out = []
    for a, b in sorted(pairs):
        if out and a <= out[-1][1]:
            out[-1] = out[-1][0], max(out[-1][1], b)
        else:
            out.append((a, b))
    return out

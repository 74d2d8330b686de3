# SPDX-License-Identifier: MIT
"""The 30 planted cases: what is wrong in each, what a verdict must say, and the same run without it."""

from .model import Model, chance, idle, latencies, median, simulate, window
from .programs import PEAK, TOML, bank, capped, one_op, padded, pipelined
from .write import Form, write

CASES = {}
MS = 1_000_000


class Case:
    """See __init__.py. without: {rule: Model without that plant}."""

    def __init__(self, name, model, expect, forbid=(), without=None, error_ns=1000, unsure=(),
                 shift=None, peaks=True, **facts):
        self.name, self.model, self.expect, self.forbid = name, model, tuple(expect), tuple(forbid)
        self.without, self.error_ns, self.facts = without or {}, error_ns, facts
        self.unsure = tuple(unsure) if error_ns >= 100_000 else ()
        # Why 0.6: a real error is smaller than its bound.
        self.shift = round(0.6 * error_ns) * chance(name, "sign").choice((-1, 1)) if shift is None else shift
        self.toml = TOML.format(pes=model.pes, peak=PEAK * 10**9 if peaks else "")
        if not peaks:
            head, _, tail = self.toml.partition("[peaks]")
            self.toml = head + tail[tail.index("[operators"):]
        self.run = simulate(model)

    def write(self, path, **form):
        """Form's fields are options."""
        form.setdefault("shift", self.shift)
        return write(path, self.run, self.error_ns, Form(**form))

    def gain(self, rule):
        """(inference_pct, window_pct) of removing the plants of that rule, or of several (a tuple)."""
        after = simulate(self.without[rule])
        pairs = (median(latencies(self.run)), median(latencies(after))), (window(self.run), window(after))
        return tuple(100 * (before - now) / before for before, now in pairs)

    def idle(self):
        return idle(self.run)


def case(name, error_ns=1000):
    return CASES[name](error_ns)


def planted(function):
    """Adds the case Pn of a function pn(error_ns) that returns (model, expect, options)."""
    name = function.__name__.upper()

    def make(error_ns):
        model, expect, options = function(error_ns)
        return Case(name, model, expect, **{"error_ns": error_ns, **options})
    CASES[name] = make
    make.__doc__ = function.__doc__
    return function


BASE = Model(program=one_op(1_000_000))
QUICK = Model(program=one_op(800_000))
TOKENIZE = (("prepare", 2000), ("tokenize", 200_000))


@planted
def p1(_):
    """Nothing: two threads keep the queue full, one compute-bound operator."""
    return BASE.but(threads=2), (), {"forbid": ("V2", "V10", "V11")}


@planted
def p2(_):
    """200 us of tokenize between notice and submission."""
    return (QUICK.but(before=TOKENIZE), ("V2",),
            {"forbid": ("V5",), "without": {"V2": QUICK}, "subject": "tokenize"})


@planted
def p3(_):
    """The same on another thread that overlaps fully."""
    plain = simulate(QUICK)
    spans = [("tokenizer", "tokenize", job.begin + 50_000, job.begin + 250_000) for job in plain.jobs]
    requests = [("tokenizer", job.begin + 60_000, job.inference + 1) for job in plain.jobs[:-1]]
    return QUICK.but(options={"spans": spans, "requests": requests}), (), {"forbid": ("V2",)}


def preempted(cpu):
    """Nine of ten submissions lose the CPU for 600 us; the device needs 300."""
    model = Model(program=one_op(300_000), submit_cpu=cpu)
    return (model.but(submit=lambda i: 3000 if i % 10 == 9 else 600_000), ("V3",),
            {"forbid": ("V5", "V11"), "without": {"V3": model.but(submit=3000)}, "subject": "Submit"})


@planted
def p4(_):
    """Submit takes 600 us, 3 of them on the CPU; the device was done at 300."""
    return preempted(3000)


@planted
def p5(_):
    """As P4, and nobody recorded the CPU time: likely, not sure."""
    return preempted(None)


def uneven(low, high):
    """Programs whose operator takes a different time in each inference; one in ten ends just before a ms."""
    def program(i):
        return one_op(1_997_000 if i % 10 == 3 else chance("uneven", i).randrange(low, high, 40))(i)
    return program


@planted
def p6(_):
    """The host polls every ms."""
    model = Model(program=uneven(1_200_000, 2_200_000))
    return (model.but(poll=MS), ("V5",),
            {"forbid": ("V2",), "without": {"V5": model}, "period_ns": MS, "may": ("V4",)})


@planted
def p7(_):
    """One job at a time, on a queue that takes 16."""
    model = Model(program=one_op(300_000), submit=20_000, dispatch=25_000, notice=30_000)
    return (model, ("V4",), {"forbid": ("V6",), "without": {"V4": model.but(depth=2)},
                             "unsure": ("V4",)})


@planted
def p8(_):
    """P7, but each job needs the result of the one before."""
    model = Model(program=one_op(300_000), submit=20_000, dispatch=25_000, notice=30_000, depends=True)
    return model, (), {"forbid": ("V4",), "unsure": ("V1",)}


@planted
def p9(_):
    """The device needs 40 us to begin; 2 us in one of twenty."""
    model = Model(program=one_op(500_000), threads=2)
    return (model.but(dispatch=lambda i: 2000 if i % 20 == 7 else 40_000), ("V6",),
            {"forbid": ("V2",), "without": {"V6": model}})


@planted
def p10(_):
    """Four requests are open, and all jobs go to PE 0 of 4."""
    model = BASE.but(threads=4, pes=4)
    return (model.but(pe_of=lambda i, thread: 0), ("V8", "V9"),
            {"forbid": ("V20",), "without": {"V8": model, "V9": model}})


@planted
def p11(_):
    """5 jobs on 4 PEs: one of them gets two, and that cannot be avoided."""
    return BASE.but(n=5, threads=5, pes=4), (), {"forbid": ("V9",)}


@planted
def p12(_):
    """The weights of op7 are on the path for 30 %."""
    model = BASE.but(program=bank())
    return (BASE.but(program=bank(long=("op7", 420_000))), ("V10",),
            {"forbid": ("V11",), "without": {"V10": model}, "subject": "op7"})


@planted
def p13(_):
    """A long Load, fully hidden behind computing."""
    return BASE.but(program=bank(long=("op7", 80_000)), threads=2), (), {"forbid": ("V10",)}


@planted
def p14(_):
    """A matrix operator stretches the vector operator that follows it row by row."""
    return (BASE.but(program=pipelined(900_000, 200_000)), ("V11",),
            {"peaks": False, "subject": "Conv2d", "without": {"V11": BASE.but(program=pipelined(450_000,
                                                                                               200_000))}})


@planted
def p15(_):
    """An operator whose single channel is padded to 4."""
    return (BASE.but(program=padded(400_000, 1)), ("V12",),
            {"subject": "conv1", "waste_pct": 75, "without": {"V12": BASE.but(program=padded(100_000, 4))}})


@planted
def p16(_):
    """1 % of the inferences are noticed 5 ms late."""
    late = set(chance("p16").sample(range(20, 600), 6))
    model = BASE.but(n=600)
    return (model.but(notice=lambda i: 5_002_000 if i in late else 2000), ("V14",),
            {"phase": "notice", "without": {"V14": model}})


@planted
def p17(_):
    """A stall of 2 ms every 100 ms."""
    model = Model(n=400, program=one_op(4_900_000))
    period = 100 * MS
    # The first inference that begins after each multiple of the period waits.
    stalled, now, due = set(), 1_000_000, period // 2
    for i in range(model.n):
        if now >= due:
            stalled.add(i)
            now, due = now + 2 * MS, due + period
        now += 4_900_000 + 7_400 + 10_000
    return (model.but(before=(("prepare", lambda i: 2_002_000 if i in stalled else 2000),)), ("V15",),
            {"forbid": ("V16",), "period_ns": period, "without": {"V15": model}})


@planted
def p18(_):
    """All operators take 8 % longer from the middle on."""
    model = BASE.but(program=capped(lambda i, name: 1))
    return (model.but(program=capped(lambda i, name: 1.08 if i >= 100 else 1)), ("V16",),
            {"forbid": ("V15",), "step": 100, "without": {"V16": model}})


@planted
def p19(_):
    """One operator takes 8 % longer from the middle on: its data."""
    return (BASE.but(program=capped(lambda i, name: 1.08 if i >= 100 and name == "op2" else 1)), (),
            {"forbid": ("V16",), "drift_of": "op2"})


@planted
def p20(_):
    """The first 12 of 100 take three times as long."""
    model = BASE.but(n=100, program=capped(lambda i, name: 1))
    return (model.but(program=capped(lambda i, name: 3 if i < 12 else 1)), ("V17",),
            {"forbid": ("V14",), "first": 12, "without": {"V17": model}})


@planted
def p21(_):
    """`scores` loses 4 KiB in each inference; `cache` stops growing after a fifth."""
    jobs, memory, used, limit = simulate(BASE).jobs, [], 0, 2 << 20
    for job in jobs:
        changes = [("tensor", 65536), ("scores", 4096)] + [("cache", 4096)] * (job.inference < 40)
        for k, (tag, change) in enumerate(changes):
            used += change
            memory.append(("heap", job.begin + 100 + k, tag, change, used, limit))
        used -= 65536
        memory.append(("heap", job.end - 100, "tensor", -65536, used, limit))
    return BASE.but(options={"memory": memory}), ("V18",), {"subject": "scores", "not_subject": "cache"}


@planted
def p22(error_ns):
    """Gaps of 300 ns, and the clock's error is 400."""
    model = Model(n=400, program=one_op(2500), before=(("prepare", 40),), after=(("finish", 40),), submit=60,
                  dispatch=100, notice=60, pause=20)
    return model, ("V1",), {"forbid": ("V2", "V6"), "error_ns": error_ns if error_ns > 1000 else 400}


@planted
def p23(_):
    """30 % of the ring's records were lost."""
    lost = set(chance("p23").sample(range(200), 60))
    return QUICK.but(before=TOKENIZE, options={"lost_jobs": lost}), ("V0",), {"only": True}


@planted
def p24(_):
    """A pause of 40 % of the window."""
    run = simulate(BASE)
    paused = run.jobs[80].end + 50, run.jobs[160].begin - 50
    return BASE.but(options={"paused": paused}), (), {"forbid": ("V20",)}


@planted
def p25(_):
    """Two at once: tokenize, and the weights of op7."""
    both = BASE.but(program=bank(long=("op7", 420_000)), before=TOKENIZE)
    without = {"V2": both.but(before=BASE.before), "V10": both.but(program=bank()),
               ("V2", "V10"): BASE.but(program=bank())}
    return both, ("V10", "V2"), {"without": without}


@planted
def p26(_):
    """Two at once: polling hides a slow dispatch."""
    model = Model(program=uneven(1_200_000, 2_200_000), poll=MS,
                  dispatch=lambda i: 2000 if i % 10 == 3 else 140_000)
    return (model, ("V5", "V6"), {"may": ("V4",),
                                  "without": {"V5": model.but(poll=None),
                                              ("V5", "V6"): model.but(poll=None, dispatch=2000)},
                                  "unsure": ("V6",)})


@planted
def p27(_):
    """A request every 10 ms, each takes 1 ms."""
    def arrival(i):
        return 10 * MS * (i + 1)
    spans = [("client", "Enqueue", arrival(i) - 2000, arrival(i) + 1000) for i in range(200)]
    requests = [("client", arrival(i), i) for i in range(200)]
    counters = [("requests waiting", 0, 0)]
    for i in range(200):
        counters += [("requests waiting", arrival(i), 1), ("requests waiting", arrival(i) + 5000, 0)]
    options = {"spans": spans, "requests": requests, "counters": counters}
    return BASE.but(arrival=arrival, options=options), ("V20",), {"forbid": ("V2", "V4")}


@planted
def p28(_):
    """300 us of the host without a span."""
    return (QUICK.but(before=(("prepare", 2000), ("", 300_000))), ("V21",),
            {"forbid": ("V2",), "without": {"V21": QUICK}})


@planted
def p29(_):
    """Sampled kernels only: no ring, no arrows."""
    return (QUICK.but(before=TOKENIZE, options={"sampled": True}), (),
            {"may": ("V2",)})


@planted
def p30(error_ns):
    """P2 with all device stamps late by the whole error."""
    model, expect, options = p2(error_ns)
    return model, expect, {**options, "shift": error_ns}

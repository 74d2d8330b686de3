# test: time=180 - Python's scopes over await, tasks, generators and threads, in C and in Python: each span's
# time and the span that opened it, against what the program saw
# SPDX-License-Identifier: MIT
import statistics
import sys
import textwrap
import unittest

import helpers
from helpers import ROOT, environment, run, scratch

# Each use of seen() is one span and what is true of it: truth[number] = (name, the number of what opened it,
# a time before its start, one after it, one before its end, one after it). Number 0 is nobody.
PROGRAM = """
import sys
sys.path.insert(0, {tools!r})
if {slow}:
    import sysconfig                   # as in a Python that cannot load the part in C
    sysconfig.get_config_var = lambda name: True
import asyncio, concurrent.futures, contextlib, contextvars, gc, itertools, threading, time
import npuprof
from npuprof.recording import native
assert (native.module is None) == {slow}, native.module
truth, numbers, now = {{}}, itertools.count(1), npuprof.now_ns

class seen:
    def __init__(self, name, opener):
        self.name, self.opener, self.number = name, opener, next(numbers)
        self.scope = npuprof.scope(name, "test", me=self.number)

def opened(one, before):
    one.times = [before, now()]
    return one.number

def closed(one, before):
    truth[one.number] = (one.name, one.opener, *one.times, before, now())

def check(p):
    trace = p.load()
    rows = {{trace.args(i)["me"]: i for i in range(len(trace)) if "me" in trace.args(i)}}
    assert set(rows) == set(truth), set(rows) ^ set(truth)
    for number, (name, opener, *times) in truth.items():
        i = rows[number]
        start, end = trace.base_ns + trace.start[i], trace.base_ns + trace.start[i] + trace.dur[i]
        assert trace.text(i) == name and not trace.flags[i], (name, trace.text(i), trace.flags[i])
        assert times[0] <= start <= times[1] and times[2] <= end <= times[3], (name, times, start, end)
        above = trace.callers[i]
        above = trace.args(above).get("me", 0) if above >= 0 else 0
        assert above == opener, (name, "opened by", above, "and not by", opener)
    return trace
"""
# A scope in the function itself: what wraps it would decide how it is recorded.
WITH = """
    one_{number} = seen({name!r}, {opener}); t = now()
    with one_{number}.scope:
        {number} = opened(one_{number}, t)
        {body}
        t = now()
    closed(one_{number}, t)
"""


def scope(name, opener, number, *body):
    """The lines of a scope: what `body` does is in it."""
    lines = "\n".join(body).replace("\n", "\n        ") or "pass"
    return textwrap.dedent(WITH.format(name=name, opener=opener, number=number, body=lines))


def function(head, *body):
    return head + "\n" + textwrap.indent("\n".join(body), "    ") + "\n"


def raised(name, opener, body, error):
    """A scope that is left by an exception."""
    return "\n".join([f"one = seen({name!r}, {opener}); t = now()", "try:", "    with one.scope:",
                      "        number = opened(one, t)", *(f"        {line}" for line in body),
                      f"except {error}:", "    closed(one, one.times[1])"])


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("libnpuprof.so")
        helpers.tool("npuprof_python.so")

    def both(self, *code):
        """Runs the program with the spans in C, and with those in Python; says nothing on stderr."""
        for slow in (False, True):
            text = PROGRAM.format(tools=str(ROOT / "tools"), slow=slow) + "\n".join(code)
            run([sys.executable, "-c", text], code=0, said="", env=environment(), cwd=scratch())


HELPER = function("def work(opener):", scope("work", "opener", "number", "time.sleep(0.0001)"))


class Tasks(Case):
    def test_fifty_tasks(self):
        """gather() of 50 tasks, three scopes deep, that wait for different times and call functions."""
        self.both(
            HELPER,
            function("async def each(n, top):",
                     scope("outer", "top", "outer", "work(outer)",
                           scope("inner", "outer", "inner", "await asyncio.sleep(0.0005 * (n * 7 % 5))",
                                 "work(inner)",
                                 scope("innermost", "inner", "_", "await asyncio.sleep(0)")),
                           "work(outer)", "await asyncio.sleep(0.001)")),
            function("async def main(around):",
                     scope("top", "around", "top",
                           "await asyncio.gather(*(each(n, top) for n in range(50)))")),
            "with npuprof.profile() as p:",
            textwrap.indent(scope("around", "0", "around", "asyncio.run(main(around))"), "    "),
            "trace = check(p)",
            "assert len(truth) == 2 + 50 * 6",
            # A track is given back: a second crowd needs no more of them.
            "assert len({t.name for t in trace.tracks if t.name.startswith('task ')}) == 51")

    def test_cancelled(self):
        self.both(
            function("async def each(top):",
                     raised("cancelled", "top", ["await asyncio.sleep(60)"], "asyncio.CancelledError")),
            function("async def main():",
                     scope("top", "0", "top", "tasks = [asyncio.create_task(each(top)) for _ in range(5)]",
                           "await asyncio.sleep(0.002)", "for task in tasks: task.cancel()",
                           "await asyncio.gather(*tasks)"),
                     scope("after", "0", "_", "await asyncio.sleep(0)")),
            "with npuprof.profile() as p:\n    asyncio.run(main())\ncheck(p)")

    def test_threads(self):
        """to_thread() and a copied context know what opened them; a plain executor does not. Loops in
        threads keep apart."""
        self.both(
            HELPER,
            function("async def main(opener):",
                     scope("top", "opener", "top", "await asyncio.gather(*(asyncio.to_thread(work, top)"
                           " for _ in range(8)))",
                           "with concurrent.futures.ThreadPoolExecutor(2) as pool:",
                           "    context = contextvars.copy_context()",
                           "    loop = asyncio.get_running_loop()",
                           "    await loop.run_in_executor(pool, context.run, work, top)",
                           "    await loop.run_in_executor(pool, work, 0)")),
            "with npuprof.profile() as p:",
            "    threads = [threading.Thread(target=lambda: asyncio.run(main(0))) for _ in range(3)]",
            "    for thread in threads: thread.start()",
            "    for thread in threads: thread.join()",
            "check(p)")

    def test_exceptions_and_context_managers(self):
        """A function of @contextmanager has its scope around the block; ExitStack and `async with`, too."""
        self.both(
            HELPER,
            "@contextlib.contextmanager",
            function("def manager(opener):", scope("manager", "opener", "inside", "yield inside")),
            "@contextlib.asynccontextmanager",
            function("async def waits(opener):",
                     scope("waits", "opener", "inside", "await asyncio.sleep(0)", "yield inside")),
            function("async def fails(opener):",
                     raised("fails", "opener", ["await asyncio.sleep(0.001)", "raise ValueError"],
                            "ValueError")),
            function("async def main():",
                     "with manager(0) as a:", "    await asyncio.sleep(0)", "    work(a)",
                     "async with waits(0) as b:", "    await asyncio.sleep(0.001)", "    await fails(b)",
                     "one = seen('stack', 0); t = now()",
                     "with contextlib.ExitStack() as stack:",
                     "    stack.enter_context(one.scope)", "    opened(one, t)",
                     "    await asyncio.sleep(0)", "    work(one.number)", "    t = now()", "closed(one, t)",
                     "one = seen('async with', 0); t = now()",
                     "async with one.scope:", "    opened(one, t)", "    await asyncio.sleep(0)",
                     "    t = now()", "closed(one, t)"),
            "with npuprof.profile() as p:",
            "    asyncio.run(main())",
            "    with manager(0) as a: work(a)",
            "check(p)")


class Functions(Case):
    def test_one_scope_for_many(self):
        """A scope that is entered while it is open, deeper or by other threads and tasks: each has its own
        time. An argument that cannot be shown costs no span, and while it is asked others may enter."""
        self.both("""
import threading
class Mute:
    def __str__(self):
        time.sleep(0.01)
        raise ValueError
one = npuprof.scope("one", of=Mute())
def deep(n):
    with one as here:
        here.set(n=n)
        if n: deep(n - 1)
def wait(n):
    with one as here: here.set(n=n); time.sleep(n / 100)
async def each(n):
    with one as here: here.set(n=n); await asyncio.sleep(n / 100)
async def every(n):
    async with one as here: here.set(n=n); await asyncio.sleep(n / 100)
async def main(body): await asyncio.gather(*map(body, (4, 1, 3, 2)))
def threads():
    all = [threading.Thread(target=wait, args=(n,)) for n in (4, 1, 3, 2)]
    for t in all: t.start()
    for t in all: t.join()
for what, wanted in ((lambda: deep(3), [0, 1, 2, 3]), (threads, [1, 2, 3, 4]),
                     (lambda: asyncio.run(main(each)), [1, 2, 3, 4]),
                     (lambda: asyncio.run(main(every)), [1, 2, 3, 4])):
    with npuprof.profile() as p: what()
    trace = p.load()
    spans = [(trace.args(i).get("n"), trace.dur[i]) for i in range(len(trace))]
    assert sorted(n for n, _ in spans) == wanted and not any(trace.flags), spans
    assert wanted[0] == 0 or all(n * 10**7 <= dur for n, dur in spans), spans
    assert {trace.args(i)["of"] for i in range(len(trace))} == {"<Mute>"}
""")

    def test_one_scope_that_another_thread_left(self):
        """Then it is entered deeper by a thread that has it open: the inner span ends first."""
        self.both("""
import threading
one, entered, left = npuprof.scope("one"), threading.Event(), threading.Event()
def deep():
    with one as outer:
        outer.set(n=1)
        entered.set()
        left.wait()
        with one as inner: inner.set(n=2)
        time.sleep(0.05)
with npuprof.profile() as p:
    thread = threading.Thread(target=deep)
    with one:
        thread.start()
        entered.wait()
    left.set()
    thread.join()
trace = p.load()
took = {trace.args(i).get("n"): trace.dur[i] for i in range(len(trace))}
assert len(trace) == 3 and not any(trace.flags) and took[2] < 5 * 10**7 <= took[1], took
""")

    def test_coroutine_functions(self):
        """A decorated `async def` is recorded until it ends, and what it awaits and calls is in it."""
        self.both("""
@npuprof.scope("inner")
def inner(): pass
@npuprof.scope("waits", "cpu", rows=3)
async def waits():
    inner()
    await asyncio.sleep(0.005)
    return 7
@npuprof.asynchronous("job")
async def job():
    await asyncio.sleep(0.005)
@npuprof.inference()
async def infer():
    await asyncio.sleep(0.001)
async def main():
    assert await asyncio.gather(waits(), waits()) == [7, 7]
    await job()
    await infer()
with npuprof.profile() as p:
    asyncio.run(main())
trace = p.load()
rows = {}
for i in range(len(trace)):
    rows.setdefault(trace.text(i), []).append(i)
assert [len(rows[name]) for name in ("waits", "inner", "job", "Inference")] == [2, 2, 1, 1], rows
assert all(trace.dur[i] >= 5_000_000 and trace.args(i)["rows"] == 3 for i in rows["waits"])
assert trace.dur[rows["job"][0]] >= 5_000_000
assert {trace.callers[i] for i in rows["inner"]} == set(rows["waits"])
assert trace.tables["summary"].to_dicts()[0]["count"] == 1
""")

    def test_generators(self):
        """A decorated generator is a span a step; what it calls is in the step. send, throw, return and an
        early close work as without. A scope in a generator lasts until the generator leaves it."""
        self.both("""
@npuprof.scope("inside")
def inside(): pass
@npuprof.scope("step")
def numbers():
    inside()
    try:
        got = yield 1
        assert got == "sent"
        yield 2
    except KeyError:
        yield 3
    return 4
@npuprof.scope("async step")
async def stream():
    for n in range(3):
        await asyncio.sleep(0.002)
        yield n
def all_of():
    return (yield from numbers())
def own():
    with npuprof.scope("own"):
        yield 1
        yield 2
async def main():
    assert [n async for n in stream()] == [0, 1, 2]
    early = stream()
    async for n in early: break
    await early.aclose()
with npuprof.profile() as p:
    g = numbers()
    assert (next(g), g.send("sent"), g.throw(KeyError())) == (1, 2, 3)
    try: next(g)
    except StopIteration as stop: assert stop.value == 4
    closed_early = numbers()
    next(closed_early)
    closed_early.close()
    time.sleep(0.003)
    g = own()
    next(g)
    with npuprof.scope("caller"): time.sleep(0.002)
    del g
    asyncio.run(main())
trace = p.load()
rows = {}
for i in range(len(trace)):
    rows.setdefault(trace.text(i), []).append(i)
assert {name: len(found) for name, found in rows.items()} == {
    "step": 5, "inside": 2, "async step": 5, "own": 1, "caller": 1}, rows
assert all(trace.text(trace.callers[i]) == "step" for i in rows["inside"])
assert sum(trace.dur[i] >= 2_000_000 for i in rows["async step"]) == 4
assert trace.dur[rows["own"][0]] >= 2_000_000 and trace.callers[rows["caller"][0]] == -1
assert not any(trace.flags), list(trace.flags)
""")

    def test_arguments_at_the_end(self):
        """set() adds arguments that are known only inside, of a thread's span and of a task's."""
        self.both("""
async def main():
    with npuprof.scope("task", "", first=1) as s:
        await asyncio.sleep(0)
        s.set(status="ok", last=2**63)
with npuprof.profile() as p:
    with npuprof.scope("outer", "", first=1) as outer:
        with npuprof.scope("inner") as inner:
            outer.set(late=True)
            inner.set(rows=3)
            inner.set(rows=4, bad=b"x", huge=2**70, ratio=0.5, text="a\\0b")
    asyncio.run(main())
outer.set(never=1)
trace = p.load()
args = {trace.text(i): {key: value for key, value in trace.args(i).items() if key != "scope.id"}
        for i in range(len(trace))}
assert args == {"outer": {"first": 1, "late": True},
                "inner": {"rows": 4, "bad": "b'x'", "huge": str(2**70), "ratio": 0.5, "text": "a\\ufffdb"},
                "task": {"first": 1, "status": "ok", "last": str(2**63)}}, args
""")


class Cost(Case):
    def test_calls_of_a_span(self):
        """A span with C costs at most 25 calls of an empty function (README), in CPU time of one thread."""
        ratios = run([sys.executable, ROOT / "tests/bench/python_span.py", "11"], code=0,
                     env=environment()).stdout.split()
        print(f"note a span in Python costs {statistics.median(map(float, ratios)):.1f} calls", flush=True)
        self.assertLessEqual(statistics.median(map(float, ratios)), 25, ratios)


if __name__ == "__main__":
    unittest.main()

# test: time=30 - names and processes of threads of a tid that was used again
# SPDX-License-Identifier: MIT
import unittest

import kernel_texts
import kernel_threads
from helpers import scratch
from npuprof.kernel.lines import KernelText
from npuprof.kernel.names import Life
from npuprof.kernel.patterns import Patterns
from npuprof.kernel.witness import Witness
from test_kernel_drivers import text
from test_kernel_jobs import merged
from test_kernel_waits import WAIT, switch


def names_of(text):
    (scratch() / "n.txt").write_text(text)
    return Witness(KernelText(scratch() / "n.txt"), Patterns(), set(range(100, 120))).read()


class Truth(unittest.TestCase):
    """A made machine whose tids are used again: no name and no process is another one's."""

    def check(self, machine, text, at):
        """Shares of lines whose name and tgid are known, and of wakers in words."""
        seen = names = tgids = 0
        silent = machine.renames and not machine.told
        witness = names_of(text)
        for ns, _, _, tid, *_ in machine.lines:
            if tid:
                comm, tgid = machine.named(tid, ns)
                said = witness.names.name(tid, ns), witness.names.tgid(tid, ns)
                # Why any: a name before the first and behind the last field may have been another one.
                own = [name for _, name, its in machine.names[tid] if its == tgid] if silent else [comm]
                self.assertIn(said[0], ("", *own), (tid, ns, at))
                self.assertIn(said[1], (None, tgid), (tid, ns, at))
                seen, names, tgids = seen + 1, names + bool(said[0]), tgids + bool(said[1])
        for own in witness.waits.of_thread.values():
            for hop in (hop for off in own for hop in off.hops if hop.context.key[0] == "thread"):
                tid = hop.context.key[1]
                who = hop.context.who.removesuffix(", or another interrupt")
                if not silent:
                    self.assertIn(who, (f"thread ? ({tid})",
                                        f"thread {machine.named(tid, hop.ns)[0]} ({tid})"))
        return names / seen, tgids / seen

    def test_truth(self):
        for made, names, tgids in (({}, 0.99, 0.99), ({"die": 0.3}, 0.95, 0.01),
                                   ({"die": 0.3, "renames": 0.1, "told": True}, 0.9, 0.01),
                                   ({"die": 0.1, "renames": 0.1}, 0.5, 0.01)):
            for seed in range(6):
                machine = kernel_threads.Machine(seed, **made).run(400)
                late = kernel_texts.read_late(machine.lines)
                with self.subTest(made=made, seed=seed):
                    known = self.check(machine, kernel_texts.ftrace(late), "tracefs")
                    self.assertGreater(known[0], names)
                    self.assertGreaterEqual(known[1], tgids if not made else 0)
                    known = self.check(machine, kernel_texts.perf(machine.lines), "perf")
                    self.assertEqual(known[1], 1)
                    self.assertGreater(known[0], names)

    def test_no_fields(self):
        """What lines say counts where nothing else does; not where they differ, nor behind an exit."""
        lines = [(1000, 0, "a-7", ".....", "x: y"), (1001, 0, "b-8", ".....", "x: y"),
                 (1002, 0, "c-8", ".....", "x: y"), (1003, 0, "d-9", ".....", "x: y"),
                 (1004, 0, "d-9", ".....", "sched_process_exit: comm=old pid=9 prio=120"),
                 (1005, 0, "d-9", ".....", "x: y"), (1006, 0, "<...>-6", ".....", "x: y")]
        names = names_of(text(*lines)).names
        self.assertEqual([names.name(tid, us * 1000) for tid, us in
                          ((7, 1000), (8, 1002), (9, 1003), (9, 1005), (6, 1006), (5, 1000))],
                         ["a", "", "old", "", "", ""])

    def test_births(self):
        """Several events begin one life, each only once."""
        fork = "sched_process_fork: comm=sh pid=7 child_comm=sh child_pid=8"
        new = "task_newtask: pid=8 comm=sh "
        lines = [(us, 0, "sh-7", ".....", what) for us, what in (
            (1000, fork), (1001, new + "clone_flags=0 oom_score_adj=0"),
            (1002, "sched_wakeup_new: comm=sh pid=8 prio=120 target_cpu=000"), (1100, fork))]
        lives = names_of(text(*lines)).names.lives
        self.assertEqual(([life.begin for life in lives[8]], len(lives[7])), ([1000000, 1100000], 1))


class Known(unittest.TestCase):
    def test_between_two_names(self):
        """Nobody knows when it was renamed, nor what it is called behind its end."""
        life = Life(0)
        for ns, comm in ((10, "a"), (20, "a"), (40, "b")):
            life.seen(ns, comm)
        self.assertEqual([life.name(ns) for ns in (5, 15, 20, 30, 40, 50)], ["a", "a", "a", "", "b", "b"])
        life.ended = 45
        self.assertEqual(life.name(50), "")


class Merged(unittest.TestCase):
    def tracks(self, text):
        _, trace = merged(text, name="names")
        names = {event["name"]: [] for event in trace["traceEvents"]}
        for event in trace["traceEvents"]:
            names[event["name"]].append(event.get("args", {}))
        return names

    def test_a_tid_that_is_used_again(self):
        """The job is its first thread's, and the second one's name and process are on each of its lines."""
        lines = [*WAIT[:-1], switch(5000, 0, "app-70", "X", "swapper/0-0"),
                 (5100, 1, "sh-5", ".....", "sched_wakeup_new: comm=sh pid=70 prio=120 target_cpu=000"),
                 switch(5200, 0, "swapper/0-0", "R", "late-70"),
                 switch(5300, 0, "late-70", "S", "swapper/0-0")]
        last = text(*sorted(lines)).replace(" app-70 ", " late-70  (   66) ")
        found = self.tracks(last)
        job, = found["Execution"]
        self.assertEqual((job["thread"], job.get("process")), ("app (70)", None))
        self.assertEqual(found["process_name"][0]["name"], "app (tid 70, by the kernel)")
        self.assertIn("app", [args["name"] for args in found["thread_name"]])
        self.assertEqual(len(found["asleep"]), 1)             # not that of the other thread

    def test_no_column(self):
        """Without a tgid the number is the thread's; with one it is the process, named by its leader."""
        found = self.tracks(text(*WAIT))
        self.assertEqual(found["process_name"][0]["name"], "app (tid 70, by the kernel)")
        found = self.tracks(text(*WAIT).replace(" app-70 ", " app-70 (   66) "))
        self.assertEqual(found["process_name"][0]["name"], "(pid 66, by the kernel)")
        leader = text((999, 1, "lead-66", ".....", "x: y")) + text(*WAIT)
        found = self.tracks(leader.replace("-70 [", "-70 (   66) ["))
        self.assertEqual(found["process_name"][0]["name"], "lead (pid 66, by the kernel)")


if __name__ == "__main__":
    unittest.main()

# test: - examples/runtimes/iree on declarations of IREE: each device span a dispatch event with its ticks,
# clock samples with their bracket, what was lost counted; the .ireeprof is read back with the same bound
# SPDX-License-Identifier: MIT
import struct
import unittest

import helpers
import npuprof
from helpers import environment, run, scratch
from runtimes import hosts

RUNS = 300
IREE, NONE = "application/vnd.iree.hal.profile.", 2**32 - 1
SLACK = 20      # ns: a tick, and what is rounded


def chunks(data):
    """[(type of record, content type, device, queue, stream, flags, dropped, status, payload)]: read by our
    own lines, not by the reader."""
    (length,) = struct.unpack_from("<Q", data, 16)
    assert data[:16] == struct.pack("<4sHHII", b"IRPF", 1, 6, 24, 0) and length == len(data)
    at = 24
    while at < length:
        size, payload, session, stream = struct.unpack_from("<4Q", data, at)
        head, content, name, device, queue = struct.unpack_from("<5I", data, at + 56)
        flags, dropped, status, kind = struct.unpack_from("<2QIH", data, at + 80)
        assert head == 104 and session == 9 and size == head + content + name + payload
        begin = at + head + content + name
        yield (kind, data[at + head:at + head + content].decode(), device, queue, stream, flags, dropped,
               status, data[begin:begin + payload])
        at += size


def records(payload):
    at = 0
    while at < len(payload):
        (size,) = struct.unpack_from("<I", payload, at)
        yield payload[at:at + size]
        at += size
    assert at == len(payload)


class Iree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = hosts.built("iree_host.c", "gnu11", "iree")
        cls.path, truth = scratch() / "npu.ireeprof", scratch() / "truth"
        cls.done = run([cls.program, RUNS, cls.path, truth], code=0, said="", env=environment())
        cls.truth = {}
        for number, line in enumerate(truth.read_text().splitlines()):
            job, *numbers, name = line.split(None, 7)
            cls.truth[int(job) if number % 10 else 1000000 + number] = (*map(int, numbers), name)
        cls.chunks = list(chunks(cls.path.read_bytes()))
        cls.by_type = {}
        for _, content, *where, payload in cls.chunks:
            kept = cls.by_type.setdefault(content.removeprefix(IREE), [])
            kept += [(record, *where) for record in records(payload)]

    def test_metadata_comes_before_events(self):
        kinds = [chunk[0] for chunk in self.chunks]
        self.assertEqual((kinds[0], kinds[-1], set(kinds[1:-1])), (1, 3, {2}))
        queues, functions, devices = set(), set(), {}
        for _, content, device, queue, stream, *_, payload in self.chunks:
            for record in records(payload):
                kind = content.removeprefix(IREE)
                if kind == "devices":
                    _, ordinal, count = struct.unpack_from("<3I", record, 4)
                    devices[ordinal] = count
                elif kind == "queues":
                    queues.add(struct.unpack_from("<2I4xQ", record, 4))
                elif kind == "executables":
                    executable, count = struct.unpack_from("<QI", record, 8)
                    self.assertEqual(count, 1)
                elif kind == "executable-functions":
                    functions.add(struct.unpack_from("<QI", record, 8))
                    self.assertEqual(functions & {(executable, 0)}, {(executable, 0)})
                elif kind == "clock-correlations":
                    self.assertIn(struct.unpack_from("<I", record, 8)[0], devices)
                elif kind == "dispatch-events":
                    self.assertIn((device, queue, stream), queues)
                    executable, function = struct.unpack_from("<Q4xI", record, 32)
                    self.assertIn((executable, function), functions)
        self.assertEqual((devices, len(functions)), ({0: 2, 1: 2}, 7))

    def test_each_span_once_with_its_own_ticks(self):
        seen = {}
        for record, device, queue, *_ in self.by_type["dispatch-events"]:
            self.assertEqual(len(record), 88)
            event, submission = struct.unpack_from("<2Q", record, 8)
            self.assertNotIn(submission, seen)
            seen[submission] = (device, queue, *(t & NONE for t in struct.unpack_from("<2Q", record, 72)))
        self.assertEqual(seen, {key: (own[0], own[1], own[4], own[5]) for key, own in self.truth.items()})

    def test_what_is_not_there_is_counted(self):
        """4 that the device lost, and one whose stamps are the host's."""
        counted = [(flags, dropped, payload) for _, _, _, _, _, flags, dropped, _, payload in self.chunks
                   if flags or dropped]
        self.assertEqual((counted, self.done.stdout), ([(1, 5, b"")], "0 5 0\n"))

    def test_samples_bracket_the_clock(self):
        """The device's clock, at both ends of a job, lies between the brackets around it."""
        samples = {0: [], 1: []}
        for record, *_ in self.by_type["clock-correlations"]:
            self.assertEqual(len(record), 72)
            flags, device, zero, _, tick, *others, begin, end = struct.unpack("<4I5Q2q", record)[1:]
            self.assertEqual((flags, zero, others), (11, 0, [begin + (end - begin) // 2, 0, 0]))
            self.assertLess(begin, end)
            samples[device].append((tick, begin, end))
        for device, own in samples.items():
            self.assertGreaterEqual(len(own), 2)
            self.assertEqual(own, sorted(own))
        ids = [struct.unpack_from("<Q", record, 16)[0] for record, *_ in self.by_type["clock-correlations"]]
        self.assertEqual(len(set(ids)), len(ids))
        for resets, _, start, end, *ticks, _ in self.truth.values():
            for ns, low in ((start, ticks[0]), (end, ticks[1])):
                for tick, begin, finish in samples[resets]:
                    ahead = ((low - tick + 2**31) & NONE) - 2**31       # at 100 MHz + 65 to 95 ppm
                    slow, fast = sorted((ahead * 10 / 1.00006, ahead * 10 / 1.0001))
                    self.assertTrue(begin + slow - SLACK <= ns <= finish + fast + SLACK)

    def test_read_back_with_the_bound(self):
        trace = npuprof.load(self.path)
        self.assertEqual(trace.tool, "IREE")
        self.assertEqual(dict(trace.left_out), {"dropped IREE record": 5})
        self.assertEqual(len(trace), len(self.truth))
        errors = []
        for i in range(len(trace)):
            args = trace.args(i)
            resets, pe, start, end, *ticks, name = self.truth[args["submission"]]
            self.assertEqual((trace.text(i), args["stream"], args["epoch"] - self.epoch(trace)),
                             (name, pe, resets))
            self.assertEqual([args["start_ticks"] & NONE, args["end_ticks"] & NONE], ticks)
            for got, real in ((trace.start[i], start), (trace.start[i] + trace.dur[i], end)):
                self.assertLessEqual(abs(got - real), args["error_ns"])
            errors.append(args["error_ns"])
        print(f"note error_ns: median {sorted(errors)[len(errors) // 2]}")
        self.assertLess(sorted(errors)[len(errors) // 2], 50000)
        self.assertEqual(trace.notes, ["the error of each device time is its error_ns, as npuprof states it; "
                                       "no finding is sure"])
        self.assertIn("main_dispatch_3", helpers.npuprof_py("report", self.path).stdout)

    def epoch(self, trace):
        return min(trace.args(i)["epoch"] for i in range(len(trace)))

    def test_sink_that_fails(self):
        """Its code comes back, the session is ended with it, and nothing is written after it."""
        for number in (1, 2, 9):
            path = scratch() / "failed.ireeprof"
            done = run([self.program, 20, path, scratch() / "t", number], code=0, said="", env=environment())
            self.assertEqual(done.stdout.split()[0], "14")
            kinds = [(chunk[0], chunk[7]) for chunk in chunks(path.read_bytes())]
            self.assertEqual(kinds, [(1, 0)] + [(2, 0)] * (number - 1) + [(3, 14)])


if __name__ == "__main__":
    unittest.main()

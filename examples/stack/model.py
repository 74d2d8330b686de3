#!/usr/bin/env python3
# model.py: a Python front end above the runtime. `make demo-stack` runs it.
# SPDX-License-Identifier: MIT
#
# It makes a small network from labelled images, gives it to the runtime (C++) through ctypes, and asks for
# other images. The runtime and the driver (C) are shared libraries with marks of their own. All of them and
# this program record into one arena: they share libnpuprof.so.
import argparse
from concurrent.futures import ThreadPoolExecutor
import ctypes
from pathlib import Path
import re
import sys
import threading

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import npuprof  # noqa: E402

BUILD = ROOT / "build/examples"
IMAGES = ROOT / "examples/digits/digits_images.h"
CLASSES, OUTPUTS, PIXELS = 10, 12, 64       # the NPU's outputs are a multiple of 4
SHIFT = 7                                   # of the scores, to make them 8 bits
ARROWS = 4                                  # of one inference: see runtime_start() in runtime.cpp
THREADS = 3


def read_images():
    """Images as lists of 64 brightnesses from 0 to 16, and their labels."""
    text = IMAGES.read_text()
    images = [[ord(c) - ord("A") for c in row] for row in re.findall(r'"([A-Q]{64})"', text)]
    labels = [int(c) for c in "".join(re.findall(r'"([0-9]+)"', text))]
    return images, labels


def train(images, labels):
    """Weights and biases of the nearest mean: image x is of the class whose 2 m x - m m is the largest."""
    weights, biases = [[0] * PIXELS] * OUTPUTS, [-2 ** 20] * OUTPUTS
    for digit in range(CLASSES):
        members = [image for image, label in zip(images, labels) if label == digit]
        means = [sum(column) / len(members) for column in zip(*members)]
        weights[digit] = [round(2 * m) for m in means]
        biases[digit] = -round(sum(m * m for m in means))
    return weights, biases


def expected(weights, biases, image):
    """The ten scores that the NPU must compute."""
    sums = [sum(w * x for w, x in zip(row, image)) + b for row, b in zip(weights, biases)]
    half = 1 << SHIFT - 1
    scores = [-((half - s) >> SHIFT) if s < 0 else (s + half) >> SHIFT for s in sums]
    return [max(-128, min(127, s)) for s in scores[:CLASSES]]


class Runtime:
    """libstackruntime.so, with a network on the NPU."""

    @npuprof.scope("open", "model")
    def __init__(self, folder, weights, biases):
        self.library = ctypes.CDLL(str(folder / "libstackruntime.so"))
        self.library.runtime_open.restype = ctypes.c_char_p
        self.library.runtime_start.restype = ctypes.c_void_p
        self.library.runtime_start.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64
        self.library.runtime_wait.argtypes = ctypes.c_void_p,
        flat = (ctypes.c_int8 * (OUTPUTS * PIXELS))(*[w for row in weights for w in row])
        table = (ctypes.c_int32 * (3 * OUTPUTS))(*[v for b in biases for v in (b, 1, SHIFT)])
        wrong = self.library.runtime_open(str(BUILD / "digits/npusim").encode(), flat, table)
        if wrong:
            self.close()
            raise SystemExit(f"model.py: {wrong.decode()}")

    def infer(self, number, image):
        """The answer and the ten scores of an image."""
        with npuprof.inference("Inference", image=number):
            scores = (ctypes.c_int8 * CLASSES)()
            with npuprof.scope("start", "model"):
                npuprof.flow_out(number * ARROWS)
                pixels = (ctypes.c_float * PIXELS)(*[x / 16 for x in image])
                request = self.library.runtime_start(pixels, scores, number * ARROWS)
            with npuprof.scope("wait", "model", kind="wait"):
                answer = self.library.runtime_wait(request)
                npuprof.flow_in(number * ARROWS + ARROWS - 1)
            return answer, list(scores)

    @npuprof.scope("close", "model")
    def close(self):
        self.library.runtime_close()


def name_thread(numbers=iter(range(THREADS))):
    threading.current_thread().name = f"model {next(numbers)} (Python)"


def main():
    parser = argparse.ArgumentParser(description="Python, C++, C and an NPU on one timeline.")
    parser.add_argument("--images", type=int, default=24, help="1 to 200 (default: 24)")
    parser.add_argument("--output", default="stack.json", help="the trace (default: stack.json)")
    parser.add_argument("--libraries", type=Path, default=BUILD / "stack", help="where libstackruntime.so is")
    options = parser.parse_args()

    images, labels = read_images()
    weights, biases = train(images[200:], labels[200:])
    asked = images[:max(1, min(200, options.images))]
    with npuprof.profile(file=options.output) as profile:
        npuprof.thread_name("main (Python)")
        runtime = Runtime(options.libraries, weights, biases)
        with ThreadPoolExecutor(THREADS, initializer=name_thread) as pool:
            answers = list(pool.map(runtime.infer, range(len(asked)), asked))
        runtime.close()

    right = sum(answer == label for (answer, _), label in zip(answers, labels))
    equal = all(scores == expected(weights, biases, image)
                for (_, scores), image in zip(answers, asked))
    profile.print_summary()
    for table in ("operators", "names"):
        print()
        profile.report(table)
    print(f"\n{len(answers)} images, {right} answers right; "
          f"scores equal to Python's: {'yes' if equal else 'NO'}")
    print(f"Trace: {options.output}. Open it in https://ui.perfetto.dev.")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())

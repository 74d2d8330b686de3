# SPDX-License-Identifier: MIT
"""Makes the README's pictures from a run of the digits network: examples/timeline.png, the timeline of the
report page, and examples/report.png, its head. Needs chromium, npm and pngquant; `make pictures` calls it.
"""
import json
import pathlib
import subprocess
import sys

import helpers

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
LIMIT = 120_000     # bytes
# the one in which the device was done first is shown: the others waited for a busy machine
RUNS = 12


def device_ns(trace):
    """From the first device span to the end of the last."""
    spans = [e for e in helpers.events(helpers.load(trace), "X")
             if e.get("args", {}).get("stamp") == "device"]
    return max(e["ts"] + e["dur"] for e in spans) - min(e["ts"] for e in spans)


def main():
    folder = ROOT / "build" / "report"
    folder.mkdir(parents=True, exist_ok=True)
    helpers.make("build/examples/digits/digits", "build/examples/digits/npusim")
    runs = []
    for number in range(RUNS):
        (folder / str(number)).mkdir(exist_ok=True)
        trace = folder / str(number) / "digits.json"
        subprocess.run([ROOT / "build/examples/digits/digits", "--output", trace], check=True,
                       stdout=subprocess.DEVNULL)
        runs.append((device_ns(trace), trace))
    trace = folder / "digits.json"
    trace.write_bytes(min(runs)[1].read_bytes())
    subprocess.run([sys.executable, ROOT / "tools/npuprof.py", "report", trace, "--html",
                    folder / "digits.html"], check=True)
    page = {"file": str(folder / "digits.html"), "walk": 0}
    jobs = [{**page, "shot": str(folder / "timeline.png"), "height": 1200, "of": ("#timeline", ".scroll")},
            {**page, "shot": str(folder / "report.png"), "height": 900}]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    done = helpers.run(["node", TESTS / "web/viewers.mjs", helpers.web(), helpers.chromium(),
                        folder / "jobs.json"])
    bad = [answer["error"] for answer in json.loads(done.stdout or "[]") if answer.get("error")]
    if done.returncode or bad:
        sys.exit(f"the browser: {done.stderr[-500:]}{bad}")
    for name in ("timeline.png", "report.png"):
        target = ROOT / "examples" / name
        subprocess.run([helpers.need("pngquant"), "--force", "--strip", "--speed", "1", "64", "-o", target,
                        folder / name], check=True)
        size = target.stat().st_size
        if size > LIMIT:
            sys.exit(f"{target}: {size} bytes, more than {LIMIT}")
        print(f"{target.relative_to(ROOT)}: {size} bytes")


if __name__ == "__main__":
    main()

# test: - npuprof_npu.h without an OS, on this machine: what the host makes of the image is true, and what it was on the microcontrollers
# SPDX-License-Identifier: MIT
import importlib.util
import sys
import unittest

import helpers
from helpers import ROOT, run, scratch

SPEC = importlib.util.spec_from_file_location("targets", ROOT / "tests" / "targets" / "run.py")
targets = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(targets)


class Device(unittest.TestCase):
    def image(self, *flags):
        """The program's image as JSON, and the JSON it wrote itself, or None."""
        folder = scratch() / "npu"
        folder.mkdir(exist_ok=True)
        (folder / "npu.json").unlink(missing_ok=True)
        done = run([*helpers.CC, "-std=c11", "-O1", *helpers.WARNINGS, "-no-pie", f"-I{ROOT}", *flags, ROOT / "tests" / "targets" / "npu.c", "-o", folder / "npu"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(run([folder / "npu"], cwd=folder).returncode, 0)
        done = run([*helpers.CC, "-O1", f"-I{ROOT}", ROOT / "tools" / "npuprof_convert.c", "-o", folder / "convert", "-pthread"], timeout=200)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run([folder / "convert", folder / "npu.img", "--elf", folder / "npu"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout, (folder / "npu.json").read_text() if (folder / "npu.json").exists() else None

    def test_truth(self):
        text, own = self.image()
        targets.check_npu(text)
        self.assertEqual(text, (targets.GOLDEN / "firmware_npu.json").read_text())
        self.assertEqual(own, (targets.GOLDEN / "firmware_npu_target.json").read_text())

    def test_targets_own_json(self):
        """What the machines write themselves breaks no rule of the viewers."""
        files = [targets.GOLDEN / "firmware_target.json", targets.GOLDEN / "firmware_npu_target.json"]
        done = run([sys.executable, ROOT / "tools" / "npuprof.py", "check", *files])
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("16 left out", done.stdout)

    def test_without_json(self):
        """Records without the device's name: the host has it from elsewhere."""
        text, own = self.image("-DNPUPROF_NO_JSON")
        targets.check_npu(text)
        self.assertIsNone(own)


if __name__ == "__main__":
    unittest.main()

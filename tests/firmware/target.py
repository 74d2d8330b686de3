# SPDX-License-Identifier: MIT
"""Programs that record as firmware does, built and run on this machine, and what npuprof-convert makes of
what they wrote."""
import json

import helpers


def build(source, *flags, name="program"):
    """The program of a file of tests/programs, or of any path, with addresses of 32 bits."""
    return helpers.build(source, name, "-O1", "-no-pie", *flags)


def convert(image, program):
    """The trace of an image that is whole, as a text."""
    done = helpers.run([helpers.tool("npuprof-convert"), image, "--elf", program], code=0, said="")
    return done.stdout


class Target(helpers.Folder):
    """A case with an empty folder, in which SOURCE runs."""

    @classmethod
    def setUpClass(cls):
        if cls.SOURCE:
            cls.program = build(cls.SOURCE)

    def converted(self, image="out.img", program=None):
        return json.loads(convert(self.folder / image, program or self.program))

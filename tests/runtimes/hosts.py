# SPDX-License-Identifier: MIT
"""Programs that play a runtime for one of the adapters of examples/runtimes."""
import helpers

SOURCES = helpers.PROGRAMS / "runtimes"


def built(source, standard, adapter, declared="declared"):
    """The program of a file of programs/runtimes, with the adapter and declarations of its runtime."""
    return helpers.build(SOURCES / source, source.partition(".")[0], f"-std={standard}", *helpers.WARNINGS,
                         f"-I{SOURCES}", f"-I{SOURCES / declared}",
                         f"-I{helpers.ROOT / 'examples' / 'runtimes' / adapter}", "-Wl,--no-as-needed", "-lm")

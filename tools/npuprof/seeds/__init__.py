# SPDX-License-Identifier: MIT
"""Programs written for three older profilers, with one import changed.

    from npuprof.seeds.furiosa import RecordFormat, profile        # was: from furiosa.runtime.profiler
    from npuprof.seeds import raf                                   # was: import raf
    raf.utils.profiler.start()

Import it before anything is recorded. The environment names of these profilers then count as npuprof's own:
FURIOSA_PROFILER_OUTPUT_PATH and NUX_PROFILER_PATH name the trace; ENGINE_PROFILING writes into the folder
engine_profiling. An own name of npuprof wins, and of the others the first one here. As in npuprof, 0, off,
false and empty mean unset.
"""

import os

# name: what it means to npuprof; None: its own value.
NAMES = {"FURIOSA_PROFILER_OUTPUT_PATH": None, "NUX_PROFILER_PATH": None,
         "ENGINE_PROFILING": "engine_profiling/"}
UNSET = ("", "0", "off", "false")


def environment():
    """Sets NPUPROF_OUTPUT_PATH to what the older names say. Returns the name that counted, or None."""
    if os.environ.get("NPUPROF_OUTPUT_PATH", "").lower() not in UNSET:
        return None
    for name, meaning in NAMES.items():
        value = os.environ.get(name, "")
        if value.lower() not in UNSET:
            os.environ["NPUPROF_OUTPUT_PATH"] = meaning or value
            return name
    return None


environment()

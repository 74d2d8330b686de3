# SPDX-License-Identifier: MIT
"""Traces with a planted bottleneck, and the truth about them.

    case = planted.case("P2", error_ns=1000)
    case.write(path)                the trace, as the C library writes it; options: see write.write()
    case.toml                       the description of its device: engines, peaks, lanes
    case.expect                     rules in the order in which a verdict must find them; () for none
    case.forbid                     rules that it must not find
    case.unsure                     of these, the rules that cannot be told with this error of the clock
    case.facts["may"]               rules that it may find, too: below the others, and true
    case.facts                      what a finding must name: subject, period_ns, step, waste_pct, ...
    case.run                        what really happened, in true time: model.Run
    case.gain(rule)                 (inference_pct, window_pct): what it brings to remove that plant, from
                                    generating again without it. inference: the median. Both are positive if
                                    it gets faster

model.py is an exact model of a host with threads and a device with queues, PEs and engines. write.py puts it
on paper with the errors of a real clock. cases.py has the 30 cases. Equal arguments give equal bytes.
"""

from .cases import CASES, case
from .model import Instr, Model, simulate

__all__ = ["CASES", "Instr", "Model", "case", "simulate"]

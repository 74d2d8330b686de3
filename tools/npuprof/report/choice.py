# SPDX-License-Identifier: MIT
"""Options that choose a part of the trace and say what its spans mean, for the analyses and the verdict."""

from ..analysis.facts import Facts
from ..analysis.roofline import read_description
from ..analysis.window import Selection, choose
from ..base.messages import Refused

OPTIONS = ("record", "inference", "between", "pe", "thread", "name", "nth")


def add_arguments(parser):
    group = parser.add_argument_group("a part of the trace, for the verdict and its tables; may be combined")
    group.add_argument("--record", metavar="NAME[#N]", help="the records of that name, or the Nth")
    group.add_argument("--inference", metavar="N[-M]", help="inferences by number, from 1, warm-up left out")
    group.add_argument("--between", metavar="A:B",
                       help="two times in ns of the trace; or NAME#N: the Nth span of that name, its begin "
                            "for A, its end for B")
    group.add_argument("--name", metavar="REGEX", help="where a span is open whose name it finds")
    group.add_argument("--nth", metavar="N", type=int, help="with --name: only the Nth of them, from 1")
    group.add_argument("--pe", metavar="N", type=int, help="only executions of this PE")
    group.add_argument("--thread", metavar="NAME",
                       help="only submissions and inferences of this thread: its name or number")
    group = parser.add_argument_group("what the trace does not say")
    group.add_argument("--wait", action="append", metavar="NAME",
                       help="host spans of this name wait for the device; may be repeated")
    group.add_argument("--device", metavar="TOML",
                       help="the device's description: [peaks] ops_per_s and bytes_per_s, lanes and "
                            "engine of operators, queue_slots")


def chosen(arguments):
    """True: only a part of the trace is asked for."""
    return any(getattr(arguments, key) is not None for key in OPTIONS)


def facts_of(trace, arguments):
    """The Facts that the options ask for."""
    selection = Selection(**{key: getattr(arguments, key) for key in OPTIONS})
    description = read_description(arguments.device) if arguments.device else None
    if description:
        trace.roles |= dict.fromkeys(description.transfers, "dma")
    for name in arguments.wait or ():
        if name not in trace.names:
            raise Refused(f"{trace.path}: --wait {name}: there is no such span")
    return Facts(trace, choose(trace, selection), arguments.wait, description)

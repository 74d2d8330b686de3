# SPDX-License-Identifier: MIT
"""ONNX Runtime's profile: a JSON array of sessions, nodes and, of some providers, kernels.

A `model_run` is an inference, a node a host operator: its name is the operator's type, and the node is an
argument. Why no device: a provider's node is timed on the host, from call to return; and of a kernel ONNX
Runtime keeps only the duration, as it sets the start to that of its node. Kernels stand on tracks of their
own.
"""

import re

from ...base.contract import INFERENCE, OPERATOR

NAME = "ONNX Runtime"
CPU = "CPUExecutionProvider"
KERNEL_TIME = re.compile(r"(.*)_kernel_time")


def is_of(places):
    trace = places.trace
    return "Session" in places.categories and any(
        text == "session_initialization" or text.startswith("model_loading") or text == "model_run"
        for text in trace.names) or "Node" in places.categories and any(
        KERNEL_TIME.fullmatch(text) for text in trace.names)


def place(places):
    trace, providers, kernels = places.trace, {}, 0
    for i in range(len(trace)):
        cat, args, name = places.cat(i), places.args(i), trace.text(i)
        if cat == "Session" and name == "model_run":
            trace.kind[i] = INFERENCE
        elif cat == "Node" and (match := KERNEL_TIME.fullmatch(name)):
            trace.kind[i] = OPERATOR
            args = trace._args.setdefault(i, {})
            args["node"] = match[1]
            if type(args.get("op_name")) is str and args["op_name"]:
                trace.name[i] = trace._numbers[args["op_name"]]
            number = str(args.get("node_index", args.get("graph_index", "")))
            if re.fullmatch(r"\d{1,18}", number):
                places.column("operator_index", i, int(number))
            provider = str(args.get("provider", CPU))
            providers[provider] = providers.get(provider, 0) + 1
        elif cat in ("Kernel", "KERNEL"):
            places.aside(i, f"kernels of stream {args.get('stream', '?')}")
            kernels += 1
    for provider in sorted(providers.keys() - {CPU}):
        places.note(f"{providers[provider]} nodes of {provider} are timed on the host, from call to return: "
                    "what the device did is not in this trace")
    if kernels:
        places.note(f"{kernels} kernels have their true durations, and starts that ONNX Runtime made up from "
                    "their nodes: they are on no device, and nothing is said of when it was busy")

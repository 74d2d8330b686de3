# SPDX-License-Identifier: MIT
"""Traces of several processes, and what the kernel's tracer wrote, on one timeline.

    part         one input: its metadata, and its events as lines
    place        where each input begins on the timeline, and its pid
    arrows       those from one process to another
    writer       the merged trace
    together     all of it: of a merge, and of one trace beside a text of the kernel
    beside       the options --ftrace ..., and a trace read together with such a text
"""

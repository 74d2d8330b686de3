# SPDX-License-Identifier: MIT
"""Recording a program that is already running.

    command      the command `attach`
    words        the words of each copy of npuprof in a process: begin, end, copy
    arena        the copy of an arena: checked, counted, cut
    process      the memory of another process, and why the kernel may refuse it"""

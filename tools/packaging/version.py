# SPDX-License-Identifier: MIT
"""Prints the version: it stands in npuprof.h alone."""

from install import version

print(version())

# SPDX-License-Identifier: MIT
"""Counters that the kernel keeps of devices, sampled: sources.py finds them, command.py writes the trace."""

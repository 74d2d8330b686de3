# SPDX-License-Identifier: MIT
"""Reads CMSIS-SVD (schema 1.3): XML in, peripherals with registers and fields out. Refusals name file and
line.

An SVD file may come from a stranger: a document type and entities are refused, and all that can grow has a
limit.
"""

from .device import Device
from .tree import members_of, own_name

__all__ = ["Device", "members_of", "own_name"]

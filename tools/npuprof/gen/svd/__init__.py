# SPDX-License-Identifier: MIT
"""Reads CMSIS-SVD (schema 1.3): XML in, peripherals with registers and fields out, every refusal with file and line.

The file is read as data from a stranger: no document type, no entities, and limits on all that can grow.
"""

from .device import Device
from .tree import members_of, own_name

__all__ = ["Device", "members_of", "own_name"]

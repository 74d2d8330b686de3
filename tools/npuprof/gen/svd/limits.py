# SPDX-License-Identifier: MIT
"""How much an SVD file may hold. Why limits: it may come from a stranger."""

FILE_BYTES_MAX = 64 << 20
ELEMENTS_MAX = 1000000     # in the file
ITEMS_MAX = 250000         # registers, fields and values, after derivedFrom and lists are followed
SPANS_MAX = 1000000        # addresses, after arrays are followed
DEPTH_MAX = 64
ATTRIBUTE_MAX = 4096
TEXT_MAX = 1 << 16
NAME_MAX = 256
DESCRIPTION_MAX = 90

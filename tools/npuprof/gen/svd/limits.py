# SPDX-License-Identifier: MIT
"""How much an SVD file may hold. Why: it is read as data from a stranger."""

FILE_BYTES_MAX = 64 << 20
ELEMENTS_MAX = 1000000     # in the file
ITEMS_MAX = 250000        # registers, fields and values, once derivedFrom and lists are followed
SPANS_MAX = 1000000        # addresses, once arrays are followed
DEPTH_MAX = 64
ATTRIBUTE_MAX = 4096
TEXT_MAX = 1 << 16
NAME_MAX = 256
DESCRIPTION_MAX = 90

# SPDX-License-Identifier: MIT
"""The arithmetic of the tables, in whole numbers. The report, its page, the comparison and the operator sheet
use it.

Nothing here prints. A function returns a Table, or rows (tuples), or a dict, and its docstring names the
columns.
"""

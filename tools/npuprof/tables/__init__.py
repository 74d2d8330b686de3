# SPDX-License-Identifier: MIT
"""The arithmetic of all tables, in whole numbers: the report, its page, the comparison and the operator sheet import it.

It prints nothing. A table is a Table, or rows of tuples, or a dict; the columns of each stand in its docstring.
"""

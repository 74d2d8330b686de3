# SPDX-License-Identifier: MIT
"""A fleet: many traces, of ranks and hosts, in one report.

rank.py     rank_of(path): what is kept of one trace, a small dict
spread.py   rank_of for many paths: here, in processes, or on Dask
fleet.py    Fleet: takes the dicts in the order of the paths, whatever made them
tables.py   the tables of a Fleet

Why the same result bit for bit: all figures are whole numbers or Fractions, and the order is that of the
paths. Memory is bounded: of a trace at most some 20 KB are kept, however long it is."""

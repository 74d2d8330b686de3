# SPDX-License-Identifier: MIT
"""The names and numbers that npuprof.h and these tools agree on: the columns, kinds and flags of a span."""

# The columns of the CSV, and those among them that are indexes.
COLUMNS = ("trace_id", "parent_span_id", "span_id", "start", "end", "cat", "name", "thread.id", "dram_base",
           "pe_index", "execution_index", "instruction_index", "operator_index", "dur")
INDEXES = COLUMNS[8:13]
SOURCE = "source"                 # the column behind them, file:line; older files do not have it
NULL = -2**63                     # an index without a value

# The kind of a span.
SPAN, RECORD, WARM_UP, INFERENCE, OPERATOR, DEVICE = range(6)
KINDS = {b"record": RECORD, b"warm_up": WARM_UP, b"inference": INFERENCE, b"operator": OPERATOR}
# The flags of a span.
UNFINISHED, UNWOUND, VIOLATED, IN_WARM_UP, SAMPLED, COUNTED = 1, 2, 4, 8, 16, 32

# What merge adds of a text of the kernel: the category of its spans, and the arrow from a job to the sleep
# that its end ended.
KERNEL, ENDED = "kernel", "ended"
# The unit of a counter of energy: all that was used since its first sample.
ENERGY = "uJ"

# The newest npuprof.h whose files this reads, by its major version: minor ones only add to what files hold.
MAJOR = 1

# SPDX-License-Identifier: MIT
"""What every part of npuprof stands on; it knows nothing of a command, a table or a trace's form."""

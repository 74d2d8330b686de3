# SPDX-License-Identifier: MIT
"""npuprof clock: shift and drift between host and device, of the arrows between them alone."""

# SPDX-License-Identifier: MIT
"""The tables of a trace as text, as a page, and as a sheet with formulas."""

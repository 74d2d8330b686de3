# SPDX-License-Identifier: MIT
"""A trace in other forms, one module a form."""

# SPDX-License-Identifier: MIT
"""Turns a trace into another form. Each form has a module."""

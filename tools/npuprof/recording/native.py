# SPDX-License-Identifier: MIT
"""npuprof_python: the spans in C (tools/npuprof_python.c). module is None where it was not built, or where
this Python cannot load it: then span.py does the same in Python, at ten times the cost."""

import importlib.machinery
import importlib.util
import sys
import sysconfig

from ..base.built import BUILD

NAME = "npuprof_python"


def loaded():
    path = BUILD / f"{NAME}.so"
    # Why: a Python without its lock has another layout of objects, and so have other Pythons.
    other = sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED")
    if other or not path.exists():
        return None
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
    try:
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(NAME, loader))
        loader.exec_module(module)
    except ImportError:
        return None
    return module


module = loaded()

# SPDX-License-Identifier: MIT
"""A parser of command lines that refuses in one sentence, and says what was probably meant."""

import argparse
import re
import sys

from .base.messages import meant


class Parser(argparse.ArgumentParser):
    def error(self, message):
        message = re.sub(r"^argument ", "", message)
        message = re.sub(r"invalid int value: (.*)", r"\1: not a whole number", message)
        message = re.sub(r"^the following arguments are required: (.*)", r"\1: not given", message)
        end = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: {message}{end} {self.prog} --help\n")

    def exit(self, status=0, message=None):
        if message:
            print(message, end="", file=sys.stderr)
        sys.exit(status)

    def _check_value(self, action, value):
        if action.choices is not None and value not in action.choices:
            what = "command" if isinstance(action, argparse._SubParsersAction) else "word"
            raise argparse.ArgumentError(None if what == "command" else action,
                                         f"{value!r}: unknown {what}{meant(value, action.choices)}")

    def parse_known_args(self, args=None, namespace=None):
        """As argparse's, but what is left is an error of this parser, which knows the options."""
        namespace, left = super().parse_known_args(args, namespace)
        if left and left[0].startswith("-") and left[0] != "-":
            word = left[0].partition("=")[0]
            options = [option for option in self._option_string_actions if option.startswith("--")]
            self.error(f"{word}: unknown option{meant(word, options)}")
        if left:
            self.error(f"{left[0]!r}: one word too many")
        return namespace, left

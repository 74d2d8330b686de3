# SPDX-License-Identifier: MIT
"""How long something is recorded: for some seconds, until a signal, or while a command runs."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading

from .messages import Refused

ENDED_BY = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def seconds_of(words):
    """The seconds that a command line asks for, or None: its words are a command, or there are none."""
    try:
        seconds = float(words[0]) if len(words) == 1 else None
    except ValueError:
        return None
    if seconds is not None and not 0 < seconds <= 86400:
        raise Refused(f"{words[0]} seconds: more than 0, and a day at most")
    return seconds


class Ended:
    """While it is open, signals end the recording instead of this program. number: of the first, or None.
    process: the command, which gets all of them but Ctrl-C: the terminal gives it that."""

    def __init__(self):
        self.number, self.process, self.event = None, None, threading.Event()

    def __enter__(self):
        self.before = {number: signal.signal(number, self.take) for number in ENDED_BY}
        return self

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def take(self, number, _):
        self.number = self.number or number
        self.event.set()
        if self.process is not None and number != signal.SIGINT:
            with contextlib.suppress(OSError):
                self.process.send_signal(number)


def run_command(words, environment, ended, begun=None):
    """Runs a command and returns its exit code: 128 and the signal if one ended it. begun: called with its
    pid."""
    if not shutil.which(words[0]):
        raise Refused(f"{words[0]}: no such command")
    try:
        ended.process = subprocess.Popen(words, env=os.environ | environment)
    except OSError as error:
        raise Refused(f"{words[0]}: cannot be run: {error.strerror}") from None
    if begun:
        begun(ended.process.pid)
    code = ended.process.wait()
    return code if code >= 0 else 128 - code

# SPDX-License-Identifier: MIT
"""What the tools offer: commands and options, keys of a device description, functions of the Python module,
the tables of a database, the rules of the verdict."""
import argparse
import inspect
import re

import helpers
from helpers import ROOT, run
import npuprof
from npuprof import cli
from npuprof.analysis import rules
from npuprof.export import tables as database
from npuprof.gen import schema
from npuprof.gen.toml_table import plain

# Where the tables of a description stand in it: path -> name in gen/schema.py.
DESCRIPTION = {"": "ROOT", "device.": "DEVICE", "register[].": "REGISTER",
               "register[].field[].": "REGISTER_FIELD", "record[].": "RECORD",
               "record[].field[].": "RECORD_FIELD", "roles.": "ROLES",
               "roles.counter.": "COUNTER", "roles.pmu[].": "PMU", "roles.ring.": "RING",
               "roles.progress.": "PROGRESS", "operators.NAME.": "OPERATOR", "peaks.": "PEAKS"}
PARTS_OF_OTHERS = {"INDEX"}            # its keys are those of ring and progress


class Parsed(Exception):
    """Ends main() where it would parse, with the parser."""


def parser():
    def stop(self, argv=None, namespace=None):
        raise Parsed(self)

    kept, argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_args, stop
    try:
        cli.main([])
    except Parsed as found:
        return found.args[0]
    finally:
        argparse.ArgumentParser.parse_args = kept


def command_line(own, words):
    """A line for each command, argument and option, with the values that an option takes."""
    for action in own._actions:          # argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):
            for name, inside in action.choices.items():
                yield f"cli {name}"
                yield from command_line(inside, [name])
        elif words and not isinstance(action, argparse._HelpAction):
            value = action.metavar or ("" if action.nargs == 0 or action.choices else action.dest.upper())
            value = " ".join(value) if isinstance(value, tuple) else value
            many = {"*": "...", "+": "...", "?": "?"}.get(action.nargs, "")
            shown = f"{value}{many}" if value else ""
            for option in action.option_strings or [""]:
                yield " ".join(filter(None, ["cli", *words, option, shown]))
            for choice in action.choices or ():
                yield " ".join(["cli", *words, action.option_strings[-1] if action.option_strings else value,
                                f"= {choice}"])


def programs():
    """The options of the two programs in C, as they print them."""
    convert = run([helpers.tool("npuprof-convert"), "--help"])
    top = run([helpers.tool("npuprof-top")])
    for name, said in (("npuprof-convert", convert.stdout + convert.stderr),
                       ("npuprof-top", top.stdout + top.stderr)):
        options = set(re.findall(r"(?<![\w/])--?[a-z][\w-]*", said))
        assert options, said
        yield f"cli {name}"
        yield from (f"cli {name} {option}" for option in options)


def description():
    """The keys of a device description: type and default."""
    tables = {name for name, value in vars(schema).items()
              if isinstance(value, dict) and value and all(isinstance(v, tuple) for v in value.values())}
    assert tables - PARTS_OF_OTHERS == set(DESCRIPTION.values()), tables ^ set(DESCRIPTION.values())
    for path, name in DESCRIPTION.items():
        for key, (kind, default) in getattr(schema, name).items():
            kind = kind if isinstance(kind, str) else plain(kind).__name__
            default = "required" if default is schema.REQUIRED else f"default {default!r}"
            yield f"toml {path}{key}: {kind}, {default}"
    for what in ("ORDERS", "UNITS", "READY", "KINDS", "SOURCES"):
        yield from (f"toml word {what.lower()}: {word}" for word in getattr(schema, what))


def python():
    """`import npuprof`: functions with their parameters, classes with their methods."""
    for name in npuprof.__all__:
        value = getattr(npuprof, name)
        if inspect.isclass(value) and issubclass(value, Exception):
            yield f"python {name}"
            continue
        yield f"python {name}{inspect.signature(value)}"
        # Why not these two: what read.__doc__ does not name is private, and it is listed below.
        if inspect.isclass(value) and name not in ("Trace", "Track"):
            yield from methods(name, value)
    said = npuprof.read.__doc__
    yield from (f"python load().{name}" for name in re.findall(r"\btrace\.(\w+)", said))


def methods(owner, kind):
    for name, value in vars(kind).items():
        # Why: what a Scope keeps is not for its users.
        if name.startswith("_") or owner == "Scope" and inspect.ismemberdescriptor(value):
            continue
        yield (f"python {owner}.{name}{inspect.signature(value)}" if callable(value)
               else f"python {owner}.{name}")


def analyses():
    for rule in rules.RULES:
        yield f"rule {rule.number} {rule.name}"
    yield f"sqlite version {database.VERSION}"
    for table in database.TABLES:
        yield from (f"sqlite {table}.{name} {kind}" for name, kind in database.columns(table))


def lines():
    return {*command_line(parser(), []), *programs(), *description(), *filter(None, python()), *analyses()}

# SPDX-License-Identifier: MIT
"""What a shell needs to complete commands, options and their words: npuprof completion bash

  bash   npuprof completion bash > ~/.local/share/bash-completion/completions/npuprof
  zsh    npuprof completion zsh > DIR/_npuprof, where DIR is in $fpath
  fish   npuprof completion fish > ~/.config/fish/completions/npuprof.fish

An installation has these files already. They are made of the parser, so they know what --help knows.
"man" prints the manual page.
"""

import re
from typing import NamedTuple

from .base.built import version


class Option(NamedTuple):
    names: list        # -o, --output
    help: str
    words: list        # that its value may be; [] for any
    takes: bool        # it has a value


class Command(NamedTuple):
    name: str
    help: str
    options: list
    words: list        # that an argument may be; [] for files


def add_arguments(parser):
    parser.add_argument("shell", choices=list(SHELLS), metavar="SHELL", help=", ".join(SHELLS))


def run(arguments):
    print(SHELLS[arguments.shell](described(arguments.parser)), end="")
    return 0


def first_sentence(text):
    """For one line beside a word, without what a shell or argparse would read in it."""
    text = re.split(r"[;:.](?: |$)", " ".join((text or "").split()).replace("%%", "%"))[0]
    return re.sub(r"[\[\]'\"`\\$]", "", text)


def options_of(parser):
    return [Option(list(action.option_strings), first_sentence(action.help),
                   [str(word) for word in action.choices or ()], action.nargs != 0)
            for action in parser._actions if action.option_strings]


def described(parser):
    """The Command of the whole, whose name is "", and one for each subcommand."""
    (commands,) = (action for action in parser._actions if hasattr(action, "add_parser"))
    found = [Command("", "", options_of(parser), list(commands.choices))]
    for name, own in commands.choices.items():
        words = [str(word) for action in own._actions if not action.option_strings
                 for word in action.choices or ()]
        found.append(Command(name, first_sentence(own.description), options_of(own), words))
    return found


def bash(commands):
    """For each command: its options, the words of its arguments, and of the option before."""
    cases = []
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        values = "".join(f"\n            {'|'.join(option.names)}) words={' '.join(option.words)!r} ;;"
                         for option in command.options if option.words)
        values += "".join(f"\n            {'|'.join(option.names)}) ;;"
                          for option in command.options if option.takes and not option.words)
        cases.append(f"""    {command.name or "''"})
        case $before in{values}
            *) options='{names}' words={' '.join(command.words)!r} ;;
        esac ;;""")
    return f"""# bash completion of npuprof {version()}; made by: npuprof completion bash
_npuprof() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command= options= words= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command=${{COMP_WORDS[i]}}; break; }}
    done
    case $command in
{chr(10).join(cases)}
    esac
    if [[ $word == -* ]]; then
        words=$options
    elif [[ -z $words ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -F _npuprof npuprof
"""


def zsh_spec(option):
    """One option for _arguments."""
    value = f":value:({' '.join(option.words)})" if option.words else ":value:_files" if option.takes else ""
    for name in option.names:
        yield f"'*{name}[{option.help.replace(':', ' ')}]{value}'"


def zsh(commands):
    cases = []
    for command in commands[1:]:
        specs = [spec for option in command.options for spec in zsh_spec(option)]
        words = f"'*:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"
        cases.append(f"    {command.name}) _arguments {' '.join([*specs, words])} ;;")
    names = " ".join(f"'{command.name}:{command.help}'" for command in commands[1:])
    top = " ".join(spec for option in commands[0].options for spec in zsh_spec(option))
    return f"""#compdef npuprof
# zsh completion of npuprof {version()}; made by: npuprof completion zsh
_npuprof() {{
    local context state state_descr line curcontext=$curcontext
    typeset -A opt_args
    local -a commands=({names})
    _arguments -C {top} '1: :->command' '*:: :->rest'
    case $state in
    command) _describe command commands ;;
    rest) case $words[1] in
{chr(10).join(cases)}
    esac ;;
    esac
}}
if [ "$funcstack[1]" = _npuprof ]; then _npuprof "$@"; else compdef _npuprof npuprof; fi
"""


def fish(commands):
    lines = [f"# fish completion of npuprof {version()}; made by: npuprof completion fish"]
    for command in commands:
        where = f"-n '__fish_seen_subcommand_from {command.name}'" if command.name \
            else "-n __fish_use_subcommand"
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                             for name in option.names)
            value = f" -x -a '{' '.join(option.words)}'" if option.words else " -r" * option.takes
            lines.append(f"complete -c npuprof {where} {names}{value} -d '{option.help}'")
        if command.name and command.words:
            lines.append(f"complete -c npuprof {where} -f -a '{' '.join(command.words)}'")
    lines += [f"complete -c npuprof -n __fish_use_subcommand -f -a {command.name} -d '{command.help}'"
              for command in commands[1:]]
    return "\n".join(lines) + "\n"


def man(commands):
    """The manual page, of what --help says."""
    def text(said):
        return said.replace("\\", "\\\\").replace("-", "\\-")
    listed = "".join(f".TP\n.B {text(command.name)}\n{text(command.help)}.\n" for command in commands[1:])
    return f""".TH NPUPROF 1 "" "npuprof {version()}"
.SH NAME
npuprof \\- read, check, compare and record traces of programs that use an NPU
.SH SYNOPSIS
.B npuprof
.I COMMAND
[options] ...
.SH DESCRIPTION
Each command has a manual of its own:
.BR "npuprof COMMAND \\-\\-help" .
A trace may be \\- for standard input, or a pipe.
.SH COMMANDS
{listed}.SH EXIT STATUS
0: all well.
1: the answer is no.
2: wrong usage, or an input or output that cannot be used.
130: interrupted.
141: the reader of the output went away.
"""


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish, "man": man}

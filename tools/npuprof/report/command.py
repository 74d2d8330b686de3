# SPDX-License-Identifier: MIT
"""What to change, what it brings and how sure that is; and every table behind it.

Prints the first screen: what to do first, then the second and third finding, what was not looked at, and what
to record to know more. Six tables follow, 10 rows of each. --table NAME prints one in full, --table all some
rows of each. Times in tables are ns.

Findings come in the order of what they promise times how sure they are; behind them, what is not known yet:
  less latency the median inference, as replay of the trace's dependency graph says: an interval where
               the trace does not say whether a thread works or waits. Where replay cannot say it, its share
               of the time
  of the window    the same of the whole time that is looked at
  now, then    before and after on one scale: # is there in any case, / may be there or not
  sure         at least 90 % of the time that the finding is about is there whatever the errors of the clocks;
               likely: half of it. unknown: it depends on what the trace does not say
  until N is done    it shortens the jobs on the device, but finding N hides that from the latency
  so, too      it comes from the finding above it, and promises nothing of its own
  in flight    submitted, and the host has not noticed the end; on the device: submitted and not done
A PE is a processing element of the device. [peaks], lanes and queue_slots come from the device's
description, --device TOML; ops and bytes are arguments of operator spans.

No finding is an answer. --verdict prints no tables, but all findings in full; --verdict json is for
programs, and calls a finding by its rule. --fail-on RULE makes it a gate. A time range, a record, an
inference, a PE or a thread is chosen below.

Tables of the verdict, of the chosen part, warm-up left out:
  critical_path    what the end had to wait for, by owner; slack: how much longer an owner may take
  whatif       what the usual changes would bring; your own: --what-if
  idle         why the device was idle: class, span, certain part; idle_gaps: the longest gaps
  depth        submissions in flight; depth_time: time at each depth
  queue_length    the same over time, in 100 slices; bandwidth: bytes that lanes moved, of the argument bytes
  latency      from submission to notice: call, queue_wait, dispatch, execute, before_wait, notice
  pe_busy      how busy each PE was; pe_balance: all of them; pe_at_once: time with so many PEs busy
  overlap      transfers and compute in the executions; exposed: transfers that nothing hides, by operator
  op_gaps      from the end of an execution or operator to the start of the next
  communication    collective operations of each device, and what of them compute hides; collectives: each
  shapes       operators by the shape of their tensors, which an argument says
  sequences    operators that follow each other again and again, the most time first
  roofline     operators against the peaks of a PE (needs --device TOML)
  tail         what the slowest inferences do longer, phase by phase
  warm_up      warm-up that is not marked; stalls: at regular times; drift: operators that change
  memory_pools, memory_holders, memory_leaks    peaks, who holds them, tags that only grow
  energy       of counters of energy: the window and each inference, with the error

Tables of all spans, warm-up included:
  names        spans by name: count, total, self (without children), share of self, mean, p50, p90, p99
  call_paths   spans by the names of those around them: total, self, share of self; the page's flame graph
  open         spans without an end, as a crash leaves them: of each thread the innermost first
  threads      spans of each thread, and its busy time (union)
  categories   as names, by category
  pes          device tracks: occupancy (a span is open) and utilisation (an operator runs)
  gaps         the device is idle while the host works
  path         each submission: queue (submit to start), execute, late (done, and the thread does not wait
               yet), wait (to the end of its wait span)
  trust        the clock error and causality violations of each device, and what was lost, by cause

Tables of npuprof_print_*() in C, line for line, without warm-up and unfinished spans:
  summary      count, min, max, mean, percentiles and total of the inference latencies
  inferences   one row for each inference
  executions   one row for each device execution: NPU Total = NPU Run + NPU IoWait. Run is the union of its
               compute spans, or what the device's busy counter says; "-" if a sampled execution has neither
  operators    compute spans of devices by name: mean, count, total, share
  external     each PROF_OPERATOR, an operator of the host; names has their sums
  memory       memory pools: peaks, fragmentation, drops of the allocated bytes, every record

With --csv-dir DIR or --json FILE it writes tables for programs instead, all or those of --table: DIR/NAME.csv
or one document {"npuprof_report":1,"trace":{},"tables":{NAME:{"columns":[{"name","unit"}],"rows":[[]]}}}.
The columns of a table are the same for every trace, and their names end in the unit: _ns, _pct, _bytes, _hz,
_ppm. What is not known is empty in CSV and null in JSON, never 0. Beside the tables above there are `pools`
(peaks of memory pools) and `losses` (by cause).

Several traces, or a folder of them, are a fleet: one trace for each rank, on any number of hosts. Its tables:
  findings     the verdicts of all ranks together: in how many, the median gain, the worst rank
  fleet        all ranks together          left_out     traces that cannot be used, and why
  ranks        latency, device and host time, rate and losses of each, the slowest first; hosts: the same
  stragglers   ranks far above the median rank, and the operator that takes the excess
  skew, steps  from the first rank to the last at the same inference, and who is last
  operators    over all ranks, with the slowest
A rank is called by its metadata "rank", else by its file. --jobs N uses N processes, --dask ADDRESS the
workers of a Dask scheduler, which see the traces and these tools under the same paths; the result is the
same, bit for bit. Of each trace at most some 20 KB are kept.

With --what-if CHANGE it replays the dependency graph of the trace and prints the critical path by owner and
what each change would bring: the median inference, the window and the time in jobs. A gain is an
interval where nothing says whether a thread works or waits.

With --annotate FILE it writes the verdict into a copy of the trace, so that a viewer shows it: the process
"npuprof: what to change" has a track for each finding, for the critical path, and for each device the causes
of its idle times. Analyse the original, not the copy.

With --vela FILE it prints the layers of a network for Arm Ethos-U instead: estimated against measured
cycles. FILE is the NAME_per-layer.csv that the Vela compiler writes with --verbose-performance. A layer is
joined with the device spans of its name; other device spans are runs of the whole network.

With --csv FILE it writes the Neural Engine table instead: operators, and what sparse weights would bring, as
a sheet with live formulas; see below.

A CSV of npuprof has no verdict: it has no kinds, arrows, counters or errors of clocks. There the name makes
a span an inference, an operator or a warm-up; `open`, `path` and `memory` are empty; the NPU Run of an
execution without spans in it is known only if its name is Execution.

A trace of ten million spans takes 15 to 70 s of CPU and up to 1.4 GB after `make tools` (`make bench-tools`
measures it), and about four times as long without. Percentiles are by linear interpolation (type 7), rounded
half up.

Exit code 0; 1: a --fail-on holds, and the last line says which (on stderr if stdout is JSON); 2: the file
cannot be used, or the rule of a --fail-on could not run.
"""

import argparse
import gc
import json
import os
import re
import sys
from itertools import chain

from ..analysis import catalogue, whatif
from ..analysis.catalogue import TABLES
from ..analysis.verdict import as_json, judge
from ..base.files import check_output, write_whole
from ..base.messages import Progress, Refused, bold, coloured
from ..fleet.report import is_fleet, run_fleet
from ..fleet.tables import TABLES as FLEET_TABLES
from ..merging.beside import add_kernel_arguments, kernel_arguments, loaded, only_trace
from ..tables.vela import vela_table
from . import choice, data, first_screen, gate, operator_sheet, screen
from .annotate import write_annotated
from .data_files import write_csv_dir, write_json
from .page import write_page
from .text import NAMES, SHOWN, overview, table_lines, tables

# The tables below the first screen: of the whole trace, and of the time of the verdict; rows of each.
WHOLE, OWN, FEW = ("names", "operators"), ("critical_path", "whatif", "idle", "latency"), 10
ONLY_DATA = [name for name in data.NAMES if name not in NAMES]      # tables that have no text


def add_arguments(parser):
    parser.epilog = operator_sheet.__doc__
    choice.add_arguments(parser)
    parser.add_argument("--verdict", nargs="?", const="text", choices=("text", "json"), metavar="text|json",
                        help="only the verdict, as text (default) or as one JSON document")
    parser.add_argument("--fail-on", action="append", metavar="RULE",
                        help="exit code 1 if this is found: any, sure, likely, a rule by name or number, "
                             "FIGURE>N or FIGURE<N; may be repeated. Refused if the rule cannot run, unless "
                             "a ? follows: tail?")
    known = list(dict.fromkeys([*NAMES, *ONLY_DATA, *TABLES, *FLEET_TABLES]))
    parser.add_argument("trace", metavar="TRACE", nargs="*",
                        help="a .json, .csv or .npuprof file; several, or a folder of them: a fleet. None is "
                             "needed with --ftrace")
    parser.add_argument("--table", action="append", metavar="NAME", choices=["all", *known],
                        help="all: the first rows of each table; else only this one, in full; may be "
                             "repeated: " + ", ".join(known))
    parser.add_argument("--csv", metavar="FILE", help="write the Neural Engine table instead")
    parser.add_argument("--csv-dir", metavar="DIR", help="write each table as DIR/NAME.csv instead")
    parser.add_argument("--json", metavar="FILE", help="write all tables as one JSON document instead")
    parser.add_argument("--jobs", type=positive, metavar="N",
                        help="of a fleet: use so many processes (default: one for each processor)")
    parser.add_argument("--dask", metavar="ADDRESS",
                        help="of a fleet: use the workers of this Dask scheduler, such as tcp://host:8786")
    parser.add_argument("--html", metavar="FILE",
                        help="write one self-contained page: timeline, distributions, bars, curves, sliders")
    parser.add_argument("--annotate", metavar="FILE",
                        help="write a copy of the trace, as JSON, with the verdict in it: tracks for each "
                             "finding, the critical path and the causes of idle times, for any viewer")
    parser.add_argument("--what-if", action="append", metavar="CHANGE",
                        help="what it would bring, by replay; may be repeated. operator:NAME=K, load=K, "
                             "load:NAME=K, host:NAME=K, device=K: these take K times as long; dispatch[=NS], "
                             "notice[=NS]: none is longer than that, or than its 5th percentile; depth=N: N "
                             "submissions in flight; pes[=N]: jobs go to the PE that is free first, of N "
                             "more; + between changes: together")
    parser.add_argument("--vela", metavar="FILE",
                        help="the layers of Vela's per-layer CSV, estimated against measured cycles")
    add_kernel_arguments(parser)
    parser.add_argument("--aim", default="90%", choices=("90%", "80%", "70%"),
                        help="with --csv: what column N says at first (default 90%%)")
    parser.add_argument("--ratio", action="append", default=[], metavar="SHAPE=R90,R80,R70[,OTHERS]",
                        help="with --csv: sparse kernel ratios for weights of SHAPE (default 4,4,4,1)")


def positive(text):
    if not text.isdigit() or not 0 < int(text) <= 4096:
        raise argparse.ArgumentTypeError("not a number from 1 to 4096")
    return int(text)


def run(arguments):
    for output, endings in ((arguments.html, (".html", ".htm")), (arguments.csv, (".csv",)),
                            (arguments.json, (".json",)), (arguments.annotate, (".json", ".json.gz"))):
        if output:
            check_output(output, endings, *arguments.trace, arguments.ftrace)
    if arguments.csv_dir:
        check_folder(arguments.csv_dir, arguments.trace)
    kernel_arguments(arguments)
    changes = [whatif.parse(text) for text in arguments.what_if or ()]
    gates = gate.parse(arguments.fail_on)
    # Why: the search for garbage among millions of objects takes 5 % of the time; rank.py asks for it itself.
    gc.disable()
    if arguments.trace and not arguments.ftrace and is_fleet(arguments.trace):
        return run_fleet(arguments, gates)
    if arguments.jobs or arguments.dask:
        raise Refused(f"{'--jobs' if arguments.jobs else '--dask'}: is for several traces")
    arguments.trace = only_trace(arguments.trace, arguments)
    check_form(arguments)
    trace = loaded(arguments.trace, arguments)
    facts = choice.facts_of(trace, arguments)
    if changes:
        put(facts.trace, whatif.asked(facts, changes), arguments)
        return passed(facts, gates)
    if arguments.vela:
        put(facts.trace, [vela_table(facts.trace, arguments.vela)], arguments)
        return passed(facts, gates)
    if arguments.verdict:
        return only_verdict(facts, arguments.verdict, gates)
    wanted = arguments.table or ()
    if arguments.html:
        write_page(trace, arguments.html, facts)
    if arguments.annotate:
        write_annotated(facts, arguments.annotate)
    if arguments.csv:
        ratios = dict(map(operator_sheet.parse_ratio, arguments.ratio))
        write_whole(arguments.csv, operator_sheet.text(trace, arguments.aim, ratios).encode())
    elif arguments.ratio:
        raise Refused("--ratio is for --csv")
    for name in wanted:
        if name not in data.NAMES and name not in TABLES and name != "all":
            raise Refused(f"--table {name}: is for several traces")
    if arguments.csv_dir or arguments.json:
        every = not wanted or "all" in wanted
        write_data(facts, (*data.NAMES, *TABLES) if every else wanted, arguments)
    elif "all" in wanted:
        print_overview(facts, choice.chosen(arguments))
    elif not (wanted or arguments.csv or arguments.html or arguments.annotate):
        print_first_screen(facts, choice.chosen(arguments))
    else:
        print_tables(facts, wanted)
    return passed(facts, gates)


def check_folder(folder, traces):
    """Refuses a folder in which a table would take the place of a trace."""
    for name in (*data.NAMES, *TABLES, *FLEET_TABLES):
        path = os.path.join(folder, f"{name}.csv")
        if os.path.exists(path):
            check_output(path, (".csv",), *traces)
            if any(os.path.isdir(trace) and os.path.samefile(trace, folder) for trace in traces):
                raise Refused(f"{path}: lies among the traces, write to another folder")


def check_form(arguments):
    """Refuses outputs that what is asked for does not write."""
    forms = [option for option in ("--what-if", "--vela", "--verdict") if given(arguments, option)]
    beside = ["--html", "--csv", "--table", "--annotate"] + ["--csv-dir", "--json"] * ("--verdict" in forms)
    for option in [*forms[1:], *filter(lambda option: given(arguments, option), beside)]:
        if forms:
            raise Refused(f"{option}: not together with {forms[0]}, run it twice")


def given(arguments, option):
    return getattr(arguments, option[2:].replace("-", "_")) is not None


def only_verdict(facts, form, gates):
    verdict = judge(facts)
    if form == "json":
        print(json.dumps(json_of(verdict), ensure_ascii=False))
    else:
        print(*map(of_screen, screen.whole_verdict(verdict)), sep="\n")
    return passed(facts, gates, verdict, sys.stderr if form == "json" else None)


def json_of(verdict):
    """The JSON form: the verdict's figures, and what the first screen says of them."""
    return {**as_json(verdict), "first_screen": first_screen.as_json(verdict)}


def passed(facts, gates, verdict=None, file=None):
    """The exit code: 1 if a gate holds, which the last line says, on stdout or that file."""
    sentence = gate.failed(verdict or judge(facts), gates) if gates else None
    if sentence:
        print(sentence, file=file)
    return 1 if sentence else 0


def put(trace, made, arguments):
    """Prints or writes these tables."""
    if arguments.csv_dir:
        write_csv_dir(made, arguments.csv_dir)
    if arguments.json:
        write_json({"npuprof_report": 1, "trace": data.about(trace)}, made, arguments.json)
    for n, table in enumerate(() if arguments.csv_dir or arguments.json else made):
        sys.stdout.writelines(line + "\n" for line in ("",) * bool(n) + tuple(table_lines(table)))


def write_data(facts, wanted, arguments):
    """Writes the tables for programs; the JSON document has the verdict, too."""
    maker = data.Maker(facts.trace)

    def made():
        yield from (maker.make(name) for name in wanted if name in data.NAMES)
        yield from catalogue.tables(facts, wanted)
    if arguments.csv_dir:
        write_csv_dir(made(), arguments.csv_dir)
    if arguments.json:
        verdict = {} if arguments.table else json_of(judge(facts))
        write_json({**verdict, "npuprof_report": 1, "trace": data.about(facts.trace)}, made(), arguments.json)


def print_first_screen(facts, part):
    """Prints the first screen, then a few tables. part: see print_overview()."""
    print(*map(of_screen, screen.lines(judge(facts))), sep="\n")
    print()
    print_overview(facts, part, WHOLE, OWN, FEW)
    others = [name for name in (*NAMES, *TABLES) if name not in WHOLE + OWN]
    print(*("", *screen.wrapped(f"More tables: --table NAME, or --table all: {', '.join(others)}", "", "  ")),
          sep="\n")


def of_screen(line):
    """A line of the first screen with its colour: what to do stands out."""
    return bold(line) if re.match(r"(?:\d+|\?) ", line) else coloured(line)


def print_overview(facts, part, whole=NAMES, own=tuple(TABLES), rows=SHOWN):
    """Prints the first rows of these tables, without empty ones. part: True: not those of the whole trace."""
    of_trace = titled("Tables of the whole trace", overview(facts.trace, () if part else whole, rows))
    of_window = titled("Tables of the time that the verdict is about, warm-up left out",
                       (table_lines(table, rows) for table in catalogue.tables(facts, own) if table.rows))
    show(chain(of_trace, of_window))


def titled(title, blocks):
    """The blocks after their title, if there are any."""
    for n, block in enumerate(blocks):
        if not n:
            yield [title]
        yield block


def print_tables(facts, wanted):
    """Prints the wanted tables."""
    for name in wanted:
        if name in ONLY_DATA and name not in TABLES:
            raise Refused(f"--table {name}: is for --csv-dir and --json")
    if list(wanted) == ["operators"] and not data.Maker(facts.trace).make("operators").rows:
        print("operators: the trace has none of a device; those of PROF_OPERATOR: --table external",
              file=sys.stderr)
    if any(choice is not None for choice in facts.window.selection) and any(n in NAMES for n in wanted):
        whole = ", ".join(name for name in wanted if name in NAMES)
        print(f"{whole}: of the whole trace; what was selected is for the verdict and the other tables",
              file=sys.stderr)
    old = tables(facts.trace, [name for name in wanted if name in NAMES])
    show(chain(old, map(table_lines, catalogue.tables(facts, wanted))))


def show(blocks):
    """Prints blocks of lines, an empty line between them."""
    bar = Progress("making tables", len(NAMES) + len(TABLES))
    for n, lines in enumerate(blocks):
        bar.at(n)
        if n:
            print()
        sys.stdout.writelines(line + "\n" for line in lines)
    bar.done()

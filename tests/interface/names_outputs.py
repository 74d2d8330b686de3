# SPDX-License-Identifier: MIT
"""What the outputs have: variables of the environment that are read, members of the JSON, columns of the CSV,
of the operators' sheet and of the reports' tables. All by running programs and reading what they write."""
import csv
import json
import pathlib
import re

import helpers
from helpers import ROOT, run, scratch

# Where the keys are a user's or a device's: any.
ANY = {"metadata.npuprof.user", "metadata.npuprof.unused_environment", "findings[].evidence", "trace.user",
       "trace.clock", "trace.lost", "names"}
# What merge copies from its traces.
OF_A_TRACE = r"devices|processes\[\]\.(clock|lost|user|sites|devices|unused_environment)\b"
TRACEPARENT = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"


def environment():
    """The variables that the library asks for, by a program with a getenv() that prints them, and those that
    its table has."""
    source, program = scratch() / "asked.c", scratch() / "asked"
    source.write_text('#define _GNU_SOURCE\n#include <stdlib.h>\n#include <stdio.h>\n'
                      'static char *asked(const char *name) { printf("%s\\n", name); return NULL; }\n'
                      '#define getenv asked\n#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n'
                      'int main(void)\n{\n'
                      '    for (int i = 0; i < NPUPROF_ENV_COUNT_; i++)\n'
                      '        puts(npuprof_env_variables_[i].name);\n'
                      '    for (int i = 0; i < NPUPROF_CAPTURE_TEXTS_; i++)\n'
                      '        puts(npuprof_capture_texts_[i].variable);\n'
                      '    puts(npuprof_env_capture_);\n'
                      '    return npuprof_init(NULL) != NPUPROF_OK;\n}\n')
    run([*helpers.CC, "-std=gnu11", f"-I{ROOT}", source, "-o", program, "-pthread"], code=0)
    done = run([program], code=0, env=helpers.environment())
    return {f"env {name}" for name in done.stdout.split() if re.match(r"NPUPROF_|TRACE", name)}


def paths(value, at=""):
    """The members of a JSON document: where they are. Items of lists are one."""
    if isinstance(value, dict):
        for key, inside in value.items():
            path = f"{at}.*" if at in ANY else f"{at}.{key}" if at else key
            yield path
            yield from paths(inside, path)
    elif isinstance(value, list):
        for item in value:
            yield from paths(item, f"{at}[]")


def sources(*rooms):
    return "".join(path.read_text(encoding="utf-8") for room in rooms
                   for path in sorted((ROOT / "src" / room).rglob("*.h")))


def members_written():
    """The names of members that the writer of JSON has, wherever they are: typed, emitted, and of facts."""
    facts = re.search(r"#define NPUPROF_FACTS_\(X\)(.*?)\n#", sources("read"), re.S)[1]
    written = sources("write")
    found = {*re.findall(r'\\"(\w+)\\":', written), *re.findall(r'X\(\w+, "(\w+)"\)', facts),
             *re.findall(r'npuprof_(?:emit|json_known)_\w+_\([^;",]*, "(\w+)"', written)}
    return found - {"args", "traceEvents"}


def arguments_written():
    """The arguments that the library gives to events: all others came from a program."""
    text = re.sub(r"/\*.*?\*/", "", sources("public", "write", "record", "npu", "firmware"), flags=re.S)
    named = re.findall(r'(?:npuprof_\w+_|PROF_[A-Z]+)\("(\w+)",|\.key = "(\w+)"', text)
    of_values = re.findall(r'(?:return|\?) "(\w+)"', re.search(r"npuprof_npu_key_of_\(.*?\n}", text, re.S)[0])
    named = {name for names in named for name in names if name}
    return named | {*of_values} | {name for name in members_written() if len(name) > 1}


def record_counts():
    """How the counts of a device's records are called: only those that are not 0 are written."""
    listed = re.search(r"keys\[NPUPROF_RECORDS_COUNT\] = \{(.*?)\}", sources("write"), re.S)[1]
    return {f"metadata.npuprof.devices[].clock_sync.records.{name}"
            for name in re.findall(r'"(\w+)"', listed)}


# Automatic spans, spans of warm-up on tracks and devices, what is known of a wider trace.
AUTOMATIC = """#define NPUPROF_AUTO
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
__attribute__((noinline)) int called(int n) { return n + 1; }
int main(int argc, char **argv)
{
    npuprof_start(1);
    { PROF_RECORD_WARM_UP("warm up"); npuprof_span("t", "c", "n", npuprof_now_ns(), npuprof_now_ns(),
                                                   PROF_NO_ARGS); }
    return called(argc) && npuprof_dump(argv[1]) != NPUPROF_OK;
}
"""


def traces():
    """JSON documents of programs that write every kind of event, and of firmware."""
    automatic = scratch() / "automatic.c"
    automatic.write_text(AUTOMATIC)
    for source, *flags in (("golden_kinds.c",), ("queues.c",),
                           (automatic, "-finstrument-functions", "-Wno-missing-prototypes")):
        name = pathlib.Path(source).stem
        out = scratch() / f"interface_{name}.json"
        program = helpers.build(source, f"interface_{name}", *flags)
        run([program, out, scratch() / f"interface_{name}.csv"][:2 + (name == "golden_kinds")], code=0,
            env=helpers.environment(TRACEPARENT=TRACEPARENT))
        yield json.loads(out.read_text())
    for path in sorted((helpers.TESTS / "golden").glob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def trace_json():
    """traceEvents by phase, and the metadata. Arguments are those that the library writes."""
    known, found = arguments_written(), record_counts()
    for document in traces():
        for event in document.pop("traceEvents"):
            args = event.pop("args", {})
            found |= {f"event {event['ph']} {path}" for path in paths(event)}
            found |= {f"event {event['ph']} args.{key}" for key in args if key in known}
        found |= set(paths(document))
    seen = {re.split(r"[ .]", path)[-1].removesuffix("[]") for path in found}
    rare = {f"{name} (in some traces)" for name in members_written() - seen}
    return {f"json {path}" for path in found | {"traceEvents"} | rare}


def columns():
    """The CSV and the operators' sheet, by their first lines."""
    with open(scratch() / "interface_golden_kinds.csv", encoding="utf-8", newline="") as file:
        yield from (f"csv {name}" for name in next(csv.reader(file)))
    program = helpers.build("operators.c", "interface_operators")
    run([program], env=helpers.environment(NPUPROF_OUTPUT_PATH=str(scratch() / "operators.json")))
    helpers.npuprof_py("report", scratch() / "operators.json", "--csv", "sheet.csv")
    with open(scratch() / "sheet.csv", encoding="utf-8", newline="") as file:
        head = next(row for row in csv.reader(file) if row and row[0] == "operator type")
    yield from (f"sheet {name}" for name in head)


def tool(*words):
    """What a command of npuprof.py writes as JSON: the last word is its file."""
    helpers.npuprof_py(*words)
    return json.loads((scratch() / words[-1]).read_text())


def documents():
    """JSON of the tools, of one trace, of two, of a fleet. Columns of tables are the same for every trace."""
    trace = scratch() / "interface_golden_kinds.json"
    folder = scratch() / "fleet"
    folder.mkdir(exist_ok=True)
    for rank in range(2):
        (folder / f"{rank}.json").write_bytes(trace.read_bytes())
    for name, words in {"report": [trace, "--json"], "fleet": [folder, "--json"],
                        "diff": [trace, trace, "--json"]}.items():
        document = tool("diff" if name == "diff" else "report", *words, f"{name}.json")
        for table, inside in document.pop("tables").items():
            yield from (f"{name} table {table}.{column['name']}" for column in inside["columns"])
        yield from (f"{name} json {path}" for path in paths(document))
    merged = tool("merge", trace, folder / "1.json", "-o", "merged.json")["metadata"]["npuprof"]
    yield from (f"merge json metadata.npuprof.{path}" for path in paths(merged)
                if not re.match(OF_A_TRACE, path))


def lines():
    return environment() | trace_json() | {*columns()} | {*documents()}

# npuprof.py gen --json and tools/npuprof_describe.c: the description is that of the header; hostile texts
# SPDX-License-Identifier: MIT

import contextlib
import io
import json
import re
import unittest
from unittest import mock

import helpers
from helpers import ROOT
from npuprof.base.messages import Refused
from npuprof.gen import c_words
from npuprof.gen.command import generate
from npuprof.gen.device import read_device
from npuprof.gen.header import header_of
from npuprof.gen.json_text import json_of
from gen_texts import InDirectory
from test_gen_rings import FED, HEAD, VALUES

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include "ROOT/tools/npuprof_describe.c"

static unsigned char storage[65536];
static npuprof_npu_ring rings[16];
static npuprof_npu_pmu pmus[8];

static char *whole(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    char *text = (char *)malloc(1 << 18);
    if (!f || !text) exit(3);
    *bytes = fread(text, 1, 1 << 18, f);
    fclose(f);
    return text;
}

static int text_differs(const char **a, const char **b)
{
    const int differs = !*a != !*b || (*a && strcmp(*a, *b));
    *a = *b = NULL;
    return differs;
}

/* Compares what the pointers of two descriptions lead to, and clears them: the rest is plain bytes. */
static int ring_differs(npuprof_npu_ring a, npuprof_npu_ring b)
{
    int differs = text_differs(&a.category, &b.category);
    for (int i = 0; i < 4; i++) differs |= text_differs(&a.args[i].name, &b.args[i].name);
    if (a.kind_count != b.kind_count || a.op_count != b.op_count || a.lane_count != b.lane_count) return 2;
    for (unsigned i = 0; i < a.kind_count; i++)
        differs |= a.kinds[i].value != b.kinds[i].value || a.kinds[i].is != b.kinds[i].is;
    for (unsigned i = 0; i < a.op_count; i++)
        differs |= a.ops[i].code != b.ops[i].code || strcmp(a.ops[i].name, b.ops[i].name);
    for (unsigned i = 0; i < a.lane_count; i++)
        differs |= a.lanes[i].value != b.lanes[i].value || strcmp(a.lanes[i].name, b.lanes[i].name);
    if (a.more_arg_count != b.more_arg_count) return 32;
    for (unsigned i = 0; i < a.more_arg_count; i++)
        differs |= memcmp(&a.more_args[i].field, &b.more_args[i].field, sizeof a.more_args[i].field) ||
                   strcmp(a.more_args[i].name, b.more_args[i].name);
    a.more_args = b.more_args = NULL;
    a.kinds = b.kinds = NULL;
    a.ops = b.ops = NULL;
    a.lanes = b.lanes = NULL;
    return differs | 4 * !!memcmp(&a, &b, sizeof a);
}

static int differs(npuprof_npu_desc a, npuprof_npu_desc b)
{
    int result = text_differs(&a.name, &b.name) | ring_differs(a.ring, b.ring);
    if (a.ring_count != b.ring_count || a.pmu_count != b.pmu_count) return 8;
    if (a.requirement_count != b.requirement_count) return 16;
    for (unsigned i = 0; i < a.ring_count; i++) result |= ring_differs(a.rings[i], b.rings[i]);
    for (unsigned i = 0; i < a.pmu_count; i++) {
        npuprof_npu_pmu x = a.pmu[i], y = b.pmu[i];
        result |= text_differs(&x.name, &y.name) | text_differs(&x.unit, &y.unit);
        result |= !!memcmp(&x, &y, sizeof x);
    }
    for (unsigned i = 0; i < a.requirement_count; i++) {
        npuprof_npu_requirement x = a.requirements[i], y = b.requirements[i];
        result |= text_differs(&x.text, &y.text) | !!memcmp(&x, &y, sizeof x);
    }
    memset(&a.ring, 0, sizeof a.ring);
    memset(&b.ring, 0, sizeof b.ring);
    a.rings = b.rings = NULL;
    a.pmu = b.pmu = NULL;
    a.requirements = b.requirements = NULL;
    return result | 32 * !!memcmp(&a, &b, sizeof a);
}

static void compare(const char *name, npuprof_npu_desc expected)
{
    char path[64];
    size_t bytes;
    npuprof_npu_desc got;
    snprintf(path, sizeof path, "%s.json", name);
    char *text = whole(path, &bytes);
    const char *bad = npuprof_describe(&got, text, bytes, storage, sizeof storage);
    printf("%s %d\n", name, bad ? -1 - (int)(bad - text) : differs(got, expected));
    free(text);
}

/* Any text and any storage are refused or taken, without a step outside. */
static void harm(const char *name)
{
    char path[64];
    size_t bytes;
    uint64_t random = 1;
    npuprof_npu_desc got;
    unsigned refused = 0;
    snprintf(path, sizeof path, "%s.json", name);
    char *text = whole(path, &bytes);
    for (int i = 0; i < 4000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t length = i % 2 ? bytes : (size_t)(random >> 33) % bytes, room = (size_t)(random >> 40) % 20000;
        char *copy = (char *)malloc(length + 1);
        unsigned char *to = (unsigned char *)malloc(room + 1);
        memcpy(copy, text, length);
        if (i % 2) copy[(random >> 30) % length] = "0\"{}[]:,\\9a \0-n"[(random >> 20) % 15];
        if (copy[0] == '{') refused += npuprof_describe(&got, copy, length, to, room) != NULL;
        free(copy);
        free(to);
    }
    printf("%s %d\n", name, refused > 2000);
    free(text);
}
"""


def members(kind, name):
    """The members of that type of a struct in npuprof_npu.h."""
    header = re.sub(r"/\*.*?\*/", "", c_words.header(), flags=re.S)
    body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", header, re.S)[1]
    return {re.sub(r"[*\s]|\[.*", "", member) for line in re.findall(rf"^\s*({kind} [^;()]*);", body, re.M)
            for member in line.partition(" ")[2].split(",")}


class Lists(unittest.TestCase):
    def test_each_value_of_an_entry_is_in_the_list(self):
        """Else nobody loads it. The arrays of fields are in a list of their own."""
        fields = members("npuprof_npu_field", "npuprof_npu_ring")
        self.assertEqual(fields - {"key"}, set(c_words.ring_fields()))

    def test_each_member_is_described(self):
        """What the driver sets is left out: memory, and the offset by npuprof_npu_set_stamp_offset()."""
        text = (ROOT / "tools" / "npuprof_describe.c").read_text()
        for name in members(r"(?:bool|u?int\w*|unsigned)", "npuprof_npu_ring") - {"stamp_offset"}:
            self.assertRegex(text, rf"ring_, (\w+, \w+, )?{name}\b")


class Judged(InDirectory):
    def test_without_the_judge_only_the_spelling(self):
        """Where npuprof-judge is not built, it is said once, and what C would refuse is not seen."""
        wrong, errors = HEAD + FED + 'start = "A"\nend = "B"\nduration = "C"', io.StringIO()
        with mock.patch("npuprof.gen.judge.program", return_value=None), contextlib.redirect_stderr(errors):
            generate(wrong, "d.toml")
            generate(wrong, "d.toml")
            with self.assertRaises(Refused):
                generate(HEAD + FED + 'starts = "A"', "d.toml")
        self.assertRegex(errors.getvalue(),
                         r"^note: only the spelling [^\n]* run `make tools` first[^\n]*\n$")
        with self.assertRaises(Refused):
            generate(wrong, "d.toml")


class Described(InDirectory):
    def devices(self):
        """name -> checked device: those of the examples, and some that use each member."""
        found = {file.stem: read_device(str(file), file.read_text())
                 for file in ROOT.glob("examples/*/*.toml")}
        for number, (text, _) in enumerate(VALUES):
            text = HEAD.replace('"dev"', f'"dev{number}"') + text
            found[f"dev{number}"] = read_device("d.toml", text)
        return found

    def told(self, source, *flags):
        lines = self.printed(source, "-std=c11", "-Wno-unused-function", "-Wno-unused-variable",
                             "-Wno-shadow", *flags)
        return dict(line.split() for line in lines)

    def test_json_is_the_header(self):
        source, calls, devices = PROGRAM.replace("ROOT", str(ROOT)), "", self.devices()
        for name, device in devices.items():
            header = header_of(device)
            (self.directory / f"{name}.h").write_text(header)
            (self.directory / f"{name}.json").write_text(json_of(device))
            arguments = ", ".join(word for word in ("rings", "pmu") if f"*{word}" in header)
            source += f'#include "{name}.h"\n'
            calls += f'    compare("{name}", {name}_npu_desc({arguments.replace("pmu", "pmus")}));\n'
        told = self.told(source + "int main(void)\n{\n" + calls + "    return 0;\n}\n")
        self.assertEqual(told, dict.fromkeys(devices, "0"))

    @helpers.thorough
    def test_hostile_texts(self):
        names = ("intel_hws", "dev1", "qaic", "ethosu85")
        for name in names:
            (self.directory / f"{name}.json").write_text(json_of(self.devices()[name]))
        source = PROGRAM.replace("ROOT", str(ROOT)) + "int main(void)\n{\n" + "".join(
            f'    harm("{name}");\n' for name in names) + "    return 0;\n}\n"
        told = self.told(source, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover")
        self.assertEqual(told, dict.fromkeys(names, "1"))

    def test_command(self):
        toml, out = ROOT / "examples" / "devices" / "vip.toml", self.directory / "vip.json"
        self.assertEqual(self.gen(toml, "--json", "-o", out), (0, ""))
        self.assertEqual(json.loads(out.read_text())["pmu"][1]["scale"], 8)
        self.assertEqual(self.gen(toml, "--json", "-o", out, "--check"), (0, ""))
        for arguments in ((toml, "--json", "-o", self.directory / "vip.h"),
                          (ROOT / "examples" / "devices" / "ethosu.svd", "--json", "-o", out)):
            code, said = self.gen(*arguments)
            self.assertEqual(code, 2)
            self.assertTrue(re.fullmatch(r"[^\n]+\n", said), said)

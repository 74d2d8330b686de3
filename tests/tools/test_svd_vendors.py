# npuprof.py gen from CMSIS-SVD: vendors' files, and the command
# SPDX-License-Identifier: MIT

import os
import pathlib
import re
import shutil
import tempfile
import unittest
import xml.etree.ElementTree

import helpers
from helpers import ROOT
from npuprof.gen import svd as svd_files
from npuprof.gen.c_text import c_name
from npuprof.gen.header import generate_svd
from gen_texts import InDirectory
from svd_texts import (COMPILERS, FACTS, SHARED, cluster, compiled, derived, dim, generate, one_field,
                       one_peripheral, peripheral, register, values, vendor, vendors)


class Vendors(unittest.TestCase):
    """Every peripheral of the vendors' files."""

    @helpers.thorough
    def test_every_peripheral_compiles(self):
        compilers = [c for c in COMPILERS if shutil.which(c[0])]
        for missing in [c[0] for c in COMPILERS if not shutil.which(c[0])]:
            print(f"skip headers from SVD with {missing}: not installed")
        self.assertTrue(compilers)
        for name, data in vendors():
            svd = svd_files.Device(data, f"{name}.svd")
            whole = generate_svd(svd)
            with tempfile.TemporaryDirectory() as folder:
                source, macros = [], {}
                for node in svd_files.members_of(svd.root):
                    one = svd_files.own_name(node)
                    header = generate_svd(svd, [one])
                    pathlib.Path(folder, f"{one}.h").write_text(header)
                    source.append(f'#include "{one}.h"\n')
                    found = values(header)
                    self.assertFalse(macros.keys() & found.keys())
                    self.assertGreater(len(found), 2)
                    macros |= found
                self.assertEqual(macros, values(whole), "alone and together a peripheral is the same")
                # Why a division: it is an error in a constant where the value is another.
                source.append("enum all_right {\n" + ",\n".join(
                    f"    right_{i} = 1 / ({macro} == {value}u{'ll' if value >> 32 else ''})"
                    for i, (macro, value) in enumerate(macros.items())) + "\n};\n")
                pathlib.Path(folder, "all.c").write_text("".join(source))
                pathlib.Path(folder, "whole.h").write_text(whole)
                for compiler, language, standard in compilers:
                    for file in ("all.c", "whole.h"):
                        with self.subTest(name=name, compiler=compiler, file=file):
                            self.assertEqual(compiled(compiler, language, standard, folder, file), (0, ""))

    def test_facts(self):
        for name, facts in FACTS.items():
            if (data := vendor(name)) is None:
                print(f"skip values of {name}: its licence forbids a copy here, and {SHARED.name} is not "
                      f"there")
                continue
            found = values(generate(data))
            with self.subTest(name):
                self.assertEqual({fact: found.get(fact) for fact in facts}, facts)

    @helpers.thorough
    def test_every_number_against_another_reader(self):
        """All offsets and masks of all peripherals that are not derived, read by other means."""
        def number(element, tag):
            return int(element.findtext(tag), 0)
        checked = 0
        for name, data in vendors():
            root = xml.etree.ElementTree.fromstring(data)
            found, prefix = values(generate(data)), c_name(root.findtext("name"))
            for peripheral in root.iter("peripheral"):
                path = c_name(prefix, peripheral.findtext("name"))
                self.assertEqual(found[f"{path}_BASE"], number(peripheral, "baseAddress"))
                for register in peripheral.iter("register"):
                    raw = register.findtext("name")
                    steps = [0]
                    if "%s" in raw and "[" not in raw:
                        index = register.findtext("dimIndex")
                        first = int(re.match(r"\d+", index or "0")[0])
                        steps = [i for i in range(number(register, "dim"))]
                        labels = [str(first + i) for i in steps]
                    for i in steps:
                        label = raw.replace("%s", labels[i]) if len(steps) > 1 else raw.replace("[%s]", "")
                        macro = c_name(path, label)
                        shift = i * number(register, "dimIncrement") if i else 0
                        self.assertEqual(found[f"{macro}_OFFSET"], number(register, "addressOffset") + shift,
                                         macro)
                        for field in register.iter("field"):
                            bits = field.findtext("bitRange")
                            if bits is not None:
                                msb, lsb = map(int, bits.strip("[]").split(":"))
                            elif field.find("lsb") is not None:
                                lsb, msb = number(field, "lsb"), number(field, "msb")
                            else:
                                lsb = number(field, "bitOffset")
                                msb = lsb + number(field, "bitWidth") - 1
                            one = f"{macro}_{c_name(field.findtext('name'))}"
                            if "%s" in one or "%s" in field.findtext("name") or (name, msb) == ("e310x", 36):
                                continue
                            self.assertEqual((found[f"{one}_POS"], found[f"{one}_MASK"]),
                                             (lsb, 2**(msb + 1) - 2**lsb), one)
                            checked += 1
        self.assertGreater(checked, 8000)


class Command(InDirectory):
    ROLES = '[device]\nname = "npu"\n{}\n[roles.counter]\nlo = "{}"\nhi = "{}"\n'
    SVD = peripheral(register("LO", 0, "<access>read-only</access>") + register("HI", 4)
                     + register("WO", 8, "<access>write-only</access>")
                     + cluster("CH[%s]", "0x20", register("T[%s]", 0, dim(2, 4)), dim(3, "0x10")))

    def setUp(self):
        super().setUp()
        self.folder = self.directory
        self.svd, self.toml, self.header = (self.folder / name for name in ("d.svd", "d.toml", "d.h"))
        self.svd.write_text(self.SVD)

    def gen(self, *arguments):
        return super().gen(*arguments, "-o", self.header)

    def roles(self, *texts):
        self.toml.write_text(self.ROLES.format(*texts))

    def test_svd_alone(self):
        self.assertEqual(self.gen(self.svd), (0, ""))
        first = self.header.read_bytes()
        self.assertEqual(self.gen(self.svd, "--check"), (0, ""))
        self.svd.write_text(self.SVD + "<!-- -->")
        self.assertEqual(self.gen(self.svd, "--check")[0], 1)
        self.svd.write_text(self.SVD)
        environment = dict(os.environ, PYTHONHASHSEED="7", LC_ALL="C", TZ="Asia/Tokyo")
        helpers.npuprof_py("gen", "d.svd", "-o", "e.h", cwd=self.folder, env=environment)
        self.assertEqual((self.folder / "e.h").read_bytes(), first)
        self.svd.write_text(self.SVD.replace("<name>LO", "<nam>LO"))
        code, output = self.gen(self.svd)
        self.assertEqual((code, output.count("\n")), (2, 1))
        self.assertTrue(output.startswith(f"{self.svd}:4: "), output)
        self.assertEqual(self.header.read_bytes(), first)

    def test_strict(self):
        self.svd = self.folder / "D.XML"
        self.svd.write_text(one_field("[40:31]"))
        code, output = self.gen(self.svd)
        self.assertEqual((code, output.count("\n")), (0, 1))
        self.assertTrue(output.startswith(f"{self.svd}:4: warning: field 'F' with bits 40:31 lies outside"),
                        output)
        self.assertNotIn("_R_F_", self.header.read_text())
        code, output = self.gen(self.svd, "--strict")
        self.assertEqual((code, output.count("\n")), (2, 1))
        self.assertTrue(output.startswith(f"{self.svd}:4: field 'F' with bits 40:31 lies outside"), output)

    def test_roles(self):
        for device, arguments in (('svd = "d.svd"', [self.toml]),
                                  ('svd = "d.svd"\nperipheral = "P"', [self.toml]),
                                  ("", [self.svd, "--roles", self.toml]),
                                  ("", [self.svd, "--roles", self.toml, "--peripheral", "P"])):
            self.roles(device, "LO", "HI")
            self.assertEqual(self.gen(*arguments), (0, ""))
            header = self.header.read_text()
            self.assertIn("desc.counter.lo_offset = NPU_LO_OFFSET;", header)
            self.assertRegex(header, r"from d\.toml, sha256 \w{16} and d\.svd, sha256 \w{16}\.")
            self.assertEqual({k: v for k, v in values(header).items() if "CH" in k},
                             {"NPU_CH_COUNT": 3, "NPU_CH_STRIDE": 16, "NPU_CH_T_OFFSET": 32,
                              "NPU_CH_T_COUNT": 2,
                              "NPU_CH_T_STRIDE": 4})
        self.roles('svd = "d.svd"', "CH[2].T[0]", "CH[2].T[1]")
        self.assertEqual(self.gen(self.toml), (0, ""))
        self.assertIn("hi_offset = NPU_CH_T_OFFSET + 2u * NPU_CH_STRIDE + 1u * NPU_CH_T_STRIDE;",
                      self.header.read_text())
        self.assertIn("NPU_BAR_BYTES 0x48u", self.header.read_text())

    def test_several_peripherals(self):
        more = one_peripheral("", dim(2, "0x100"), "Q[%s]", "0x1000", derived("P"))
        self.svd.write_text(self.SVD.replace("</peripherals>", f"{more}</peripherals>"))
        self.roles('svd = "d.svd"', "P.LO", "Q[1].CH[2].T[1]")
        self.assertEqual(self.gen(self.toml), (0, ""))
        header, found = self.header.read_text(), values(self.header.read_text())
        self.assertIn("hi_offset = NPU_Q_CH_T_OFFSET + 1u * NPU_Q_STRIDE + 2u * NPU_Q_CH_STRIDE + 1u * "
                      "NPU_Q_CH_T_STRIDE;",
                      header)
        self.assertEqual((found["NPU_P_LO_OFFSET"], found["NPU_Q_CH_T_OFFSET"], found["NPU_BAR_BYTES"]),
                         (0, 0xf20, 0xf00 + 0x148))
        (self.folder / "use.c").write_text(f'#include "{ROOT}/npuprof.h"\n#include "{ROOT}/npuprof_npu.h"\n'
                                           f'#include "d.h"\n'
                                           "size_t hi(void);\nsize_t hi(void) { return "
                                           "npu_npu_desc().counter.hi_offset; }\n")
        for compiler, language, standard in COMPILERS:
            if shutil.which(compiler):
                self.assertEqual(compiled(compiler, language, standard, self.folder, "use.c"), (0, ""))

    def test_big_endian(self):
        self.svd.write_text(self.SVD.replace("<peripherals>", "<cpu><endian>big</endian></cpu><peripherals>"))
        for more, big in (("", True), ('endian = "little"', False)):
            self.roles(f'svd = "d.svd"\n{more}', "LO", "HI")
            self.assertEqual(self.gen(self.toml), (0, ""))
            self.assertEqual("big_endian = true" in self.header.read_text(), big)

    def test_refused(self):
        for device, lo, hi, message in (
                ('svd = "e.svd"', "LO", "HI", "d.toml:3: svd = 'e.svd' in [device]"),
                ('svd = "d.svd"\nperipheral = "Q"', "LO", "HI", "no peripheral 'Q'"),
                ('peripheral = "P"\nbar_bytes = 8', "LO", "HI",
                 "d.toml:3: a peripheral is named, but no SVD file"),
                ('svd = "d.svd"', "P.LO", "HI",
                 "d.toml:5: lo in [roles.counter] names register 'P.LO', which does not exist, use one of "
                 "LO, HI, WO"),
                ('svd = "d.svd"', "WO", "HI",
                 "d.toml:5: lo in [roles.counter] names register WO with access wo"),
                ('svd = "d.svd"', "LO", "CH.T",
                 "d.toml:6: hi in [roles.counter] names 'CH.T', but register CH.T lies in CH[0 to 2], "
                 "CH.T[0 to 1]"),
                ('svd = "d.svd"', "LO", "CH[3].T[0]", "write one [index] for each"),
                ('svd = "d.svd"', "LO[0]", "HI", "lies in no array"),
                ('svd = "d.svd"', "CH[1].T[0]", "CH[1].T[0]", "hi_offset equals lo_offset"),
                ('svd = "d.svd"\nbar_bytes = 64', "LO", "HI",
                 "d.svd:7: register CH.T at 0x20 lies outside the BAR")):
            self.roles(device, lo, hi)
            code, output = self.gen(self.toml)
            self.assertEqual((code, output.count("\n")), (2, 1), output)
            self.assertIn(message, output)
        self.roles('svd = "d.svd"', "LO", "HI")
        self.toml.write_text(self.toml.read_text()
                             + '[[register]]\nname = "MORE"\noffset = 4\nwidth = 32\naccess = "ro"\n')
        self.assertIn("d.toml:9: register MORE overlaps register HI", self.gen(self.toml)[1])
        self.svd.write_text(self.SVD.replace("<addressOffset>4<", "<addressOffset>6<"))
        self.roles('svd = "d.svd"', "LO", "HI")
        self.assertIn("d.toml:6: hi in [roles.counter] names register HI at 0x6, which is misaligned",
                      self.gen(self.toml)[1])
        self.assertIn("--roles goes with", self.gen(self.toml, "--roles", self.toml)[1])
        self.assertIn("cannot be read", self.gen(self.folder / "no.svd")[1])

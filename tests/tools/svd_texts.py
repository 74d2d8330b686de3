# SPDX-License-Identifier: MIT
"""Small SVD files for the tests, each with one part of the format, and where the vendors' files are.

Those are in tests/tools/data/svd and, if there, ../shared/svd (NPUPROF_SVD_FOLDER names another folder)."""

import lzma
import os
import pathlib
import re

import helpers
from helpers import ROOT
from npuprof.gen import svd as svd_files
from npuprof.gen.header import generate_svd

DATA = ROOT / "tests" / "tools" / "data" / "svd"
SHARED = pathlib.Path(os.environ.get("NPUPROF_SVD_FOLDER") or ROOT.parent / "shared" / "svd")
VENDORS = ("ARM_Sample", "CMSDK_CM3", "e310x", "esp32c3", "rp2040")
COMPILERS = (("gcc", "c", "c99"), ("clang", "c", "c99"), ("g++", "c++", "c++11"), ("clang++", "c++", "c++11"))
# Register offsets and the like, from the vendors' manuals: RP2040 Datasheet, ESP32-C3 Technical Reference
# Manual, SiFive
# FE310-G002 Manual, Arm Cortex-M System Design Kit Technical Reference Manual (DDI 0479).
FACTS = {
    "rp2040": {
        "RP2040_TIMER_BASE": 0x40054000, "RP2040_TIMER_TIMEHR_OFFSET": 0x08,
        "RP2040_TIMER_TIMELR_OFFSET": 0x0c,
        "RP2040_TIMER_TIMERAWH_OFFSET": 0x24, "RP2040_TIMER_TIMERAWL_OFFSET": 0x28,
        "RP2040_TIMER_PAUSE_OFFSET": 0x30,
        "RP2040_SIO_BASE": 0xd0000000, "RP2040_SIO_CPUID_OFFSET": 0, "RP2040_SIO_FIFO_ST_OFFSET": 0x50,
        "RP2040_SIO_SPINLOCK31_OFFSET": 0x17c, "RP2040_SIO_FIFO_ST_VLD_MASK": 1,
        "RP2040_SIO_FIFO_ST_ROE_POS": 3,
        "RP2040_UART1_BASE": 0x40038000, "RP2040_UART1_UARTFR_OFFSET": 0x18,
        "RP2040_UART0_UARTFR_OFFSET": 0x18,
        "RP2040_PIO1_BASE": 0x50300000, "RP2040_PIO1_SM3_PINCTRL_OFFSET": 0x124,
        "RP2040_PLL_USB_PRIM_POSTDIV1_MASK": 7 << 16,
        "RP2040_RESETS_RESET_RESET": 0x1ffffff, "RP2040_CLOCKS_CLK_REF_CTRL_SRC_XOSC_CLKSRC": 2,
    },
    "esp32c3": {
        "ESP32_C3_SYSTIMER_BASE": 0x60023000, "ESP32_C3_SYSTIMER_UNIT0_OP_OFFSET": 0x4,
        "ESP32_C3_SYSTIMER_UNIT0_VALUE_HI_OFFSET": 0x40, "ESP32_C3_SYSTIMER_UNIT0_VALUE_LO_OFFSET": 0x44,
        "ESP32_C3_SYSTIMER_UNIT0_VALUE_HI_TIMER_UNIT0_VALUE_HI_MASK": 0xfffff,
        "ESP32_C3_TIMG1_BASE": 0x60020000, "ESP32_C3_TIMG1_T0LO_OFFSET": 0x4,
        "ESP32_C3_UART1_BASE": 0x60010000,
        "ESP32_C3_UART1_STATUS_OFFSET": 0x1c, "ESP32_C3_RSA_M_MEM_COUNT": 384, "ESP32_C3_RSA_M_MEM_STRIDE": 1,
    },
    "e310x": {
        "FE310_PRCI_BASE": 0x10008000, "FE310_PRCI_HFROSCCFG_OFFSET": 0, "FE310_PRCI_HFXOSCCFG_OFFSET": 4,
        "FE310_PRCI_PLLCFG_OFFSET": 8, "FE310_PRCI_PLLOUTDIV_OFFSET": 0xc,
        "FE310_PRCI_HFROSCCFG_READY_POS": 31,
        "FE310_CLINT_BASE": 0x02000000, "FE310_CLINT_MTIME_OFFSET": 0xbff8,
        "FE310_CLINT_MTIMEH_OFFSET": 0xbffc,
        "FE310_PLIC_PRIORITY_COUNT": 52, "FE310_PLIC_THRESHOLD_OFFSET": 0x200000,
        "FE310_QSPI1_BASE": 0x10024000,
        "FE310_PWM2_CMP3_OFFSET": 0x2c,
    },
    "CMSDK_CM3": {
        "CMSDK_CM3_TIMER0_BASE": 0x40000000, "CMSDK_CM3_TIMER1_BASE": 0x40001000,
        "CMSDK_CM3_TIMER1_VALUE_OFFSET": 4,
        "CMSDK_CM3_TIMER1_INTCLEAR_OFFSET": 0xc, "CMSDK_CM3_TIMER1_INTSTATUS_OFFSET": 0xc,
        "CMSDK_CM3_UART3_BAUDDIV_OFFSET": 0x10,
    },
    "ARM_Sample": {
        "ARMCM3XXX_TIMER2_BASE": 0x40010200, "ARMCM3XXX_TIMER2_RELOAD_OFFSET": 0x50,
        "ARMCM3XXX_TIMER2_RELOAD_COUNT": 4,
        "ARMCM3XXX_TIMER0_PRESCALE_RD_OFFSET": 0x28, "ARMCM3XXX_TIMER0_PRESCALE_WR_OFFSET": 0x28,
    },
}


def vendor(name):
    """The bytes of a vendor's file, or None. The two without a licence to copy are in ../shared/svd only."""
    if (DATA / f"{name}.svd.xz").exists():
        return lzma.decompress((DATA / f"{name}.svd.xz").read_bytes())
    return (SHARED / f"{name}.svd").read_bytes() if (SHARED / f"{name}.svd").exists() else None


def vendors():
    """(name, bytes) of all that are there."""
    return [(name, data) for name in VENDORS if (data := vendor(name)) is not None]


HERE = "\n<!--#!-->"     # the next element's line is the one that a refusal must name


def device(peripherals, properties="<size>32</size>"):
    """A file with these peripherals."""
    return f"<device>\n<name>dev</name>\n{properties}\n<peripherals>{peripherals}</peripherals>\n</device>"


def one_peripheral(registers="", more="", name="P", base=0x100, attributes=""):
    inside = f"<registers>{registers}</registers>" if registers else ""
    return (f"<peripheral{attributes}><name>{name}</name><baseAddress>{base}</baseAddress>{more}{inside}"
            "</peripheral>")


def peripheral(registers, more="", name="P"):
    """A file with one peripheral."""
    return device(one_peripheral(registers, more, name))


def register(name, offset, more="", attributes=""):
    return (f"<register{attributes}><name>{name}</name><addressOffset>{offset}</addressOffset>{more}"
            "</register>\n")


def cluster(name, offset, registers="", more="", attributes=""):
    return (f"<cluster{attributes}><name>{name}</name>{more}<addressOffset>{offset}</addressOffset>"
            f"{registers}</cluster>")


def field(name, bits, more=""):
    """A field; `bits` is a bitRange, or XML."""
    bits = bits if "<" in bits or not bits else f"<bitRange>{bits}</bitRange>"
    return f"<field><name>{name}</name>{bits}{more}</field>\n"


def with_fields(*fields):
    """A file with one register R with these fields."""
    return peripheral(register("R", 0, f"<fields>{''.join(fields)}</fields>"))


def one_field(bits, more=""):
    """A file with one register R and one field F."""
    return with_fields(field("F", bits, more))


def dim(count, step, index=None):
    index = "" if index is None else f"<dimIndex>{index}</dimIndex>"
    return f"<dim>{count}</dim><dimIncrement>{step}</dimIncrement>{index}"


def states(*pairs, more="", name=""):
    """<enumeratedValues> of (name, value)."""
    inside = "".join(f"<enumeratedValue><name>{n}</name><value>{v}</value></enumeratedValue>"
                     for n, v in pairs)
    return f"<enumeratedValues>{f'<name>{name}</name>' if name else ''}{more}{inside}</enumeratedValues>"


def derived(path):
    return f" derivedFrom='{path}'"


def generate(text, peripherals=(), strict=False):
    data = text if isinstance(text, bytes) else text.encode()
    return generate_svd(svd_files.Device(data, "d.svd", strict), peripherals)


def values(header):
    """Name -> number of each macro."""
    return {name: int(value.rstrip("ul"), 0) for name, value in re.findall(r"#define (\w+) (\w+)$", header,
                                                                           re.M)}


def strip(prefix, found):
    return {name[len(prefix):]: value for name, value in found.items() if name.startswith(prefix)}


def compiled(compiler, language, standard, folder, file):
    """(exit code, messages)"""
    done = helpers.run([compiler, "-x", language, f"-std={standard}", *helpers.WARNINGS, "-fsyntax-only",
                        file], cwd=folder)
    return done.returncode, done.stderr[:2000]


R0 = register("R", 0)
BIT0 = "<bitOffset>0</bitOffset>"

# SPDX-License-Identifier: MIT
"""The checked device of a TOML description, with the registers of an SVD file if it names one."""

import ast
import os
import re
import sys
import tomllib

from ..base.files import read_bytes
from ..base.messages import Refused
from . import svd as svd_files
from .c_text import clashes
from .model import overlaps
from .parts import read_operators, read_record, read_register
from .roles import read_roles
from .schema import DEVICE, PEAKS, ROOT
from .toml_table import Names, Table, line_numbers


def print_warnings(warnings):
    for warning in warnings:
        print(warning, file=sys.stderr)


def read_svd(device, table, path, peripherals, strict):
    """Reads the registers, the size and the byte order of a device from an SVD file."""
    folder = os.path.dirname(table.file)
    if path is None:
        path = os.path.join(folder, device.svd)
    if not os.path.isfile(path):
        table.refuse(f"svd = {device.svd!r} in [device]: {path} is no file, correct it", "svd")
    svd = svd_files.Device(read_bytes(path), path, strict)
    names = peripherals or ([device.peripheral] if device.peripheral is not None else [])
    found = svd.peripherals(names)
    print_warnings(svd.warnings)
    start = min(p.base for p in found)
    alone = len(found) == 1 and not found[0].dims
    if device.bar_bytes is None:
        device.bar_bytes = max(p.base - start + p.bytes + sum((d.count - 1) * d.stride for d in p.dims)
                               for p in found)
    if device.endian is None and svd.big_endian:
        device.endian = "big"
    device.inputs.append((path, svd.data))
    for peripheral in found:
        dims = {id(dim): dim for register in peripheral.registers for dim in register.dims}
        for dim in () if alone else dims.values():
            dim.path = (peripheral.name, *dim.path)
        for register in peripheral.registers:
            register.offset += peripheral.base - start
            if not alone:
                register.name = f"{peripheral.name}.{register.name}"
                register.dims = peripheral.dims + register.dims
            device.registers.append(register)
    for _, second in overlaps(device.registers):
        second.alternate = True      # Why: peripherals in a vendor's file may share addresses.


def parsed(file, text):
    """The root table of a TOML text."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        line = line[1] if line else text.count("\n") + 1
        # Python shows the keys of a table as a tuple; show them as TOML does.
        said = re.sub(r"\(((?:'[^']*'|\"[^\"]*\")(?:, )?)+,?\)",
                      lambda m: "[" + ".".join(ast.literal_eval(m[0])) + "]", str(error))
        raise Refused(f"{file}:{line}: TOML syntax: {said}, correct it there or just before") from None
    except (RecursionError, ValueError):
        raise Refused(f"{file}:1: nested too deeply, or a number too long, write it simpler") from None
    root = Table(file, line_numbers(text), (), value)
    root.read(ROOT)
    return root


def read_device(file, text, svd=None, peripherals=(), strict=False):
    """The checked device of a TOML text. Raises Refused.

    svd, peripherals: replace what the text says about an SVD file."""
    root = parsed(file, text)
    table = root.table("device")
    device = table.read(DEVICE)
    table.identifier(device.name, "device", "name")
    if clashes(device.name):
        table.refuse(f"device name {device.name!r} would clash with npuprof's own names, choose another",
                     "name")
    device.table, device.inputs, device.registers = table, [(file, text.encode())], []
    device.from_svd = svd is not None or device.svd is not None
    if device.from_svd:
        read_svd(device, table, svd, peripherals, strict)
    elif peripherals or device.peripheral is not None:
        table.refuse("a peripheral is named, but no SVD file, add svd", "peripheral")
    device.endian = device.endian or "little"
    read_registers(device, root)
    names, device.records = Names("record"), []
    for sub in root.tables("record"):
        record = read_record(sub, device.endian == "big")
        names.add(sub, record.name, "name")
        device.records.append(record)
    device.operators = read_operators(root.table("operators"))
    read_roles(device, root.table("roles"))
    peaks = root.table("peaks")
    for key, value in vars(peaks.read(PEAKS)).items():
        if type(value) in (int, float) and not 0 < value < 1e30:
            peaks.refuse(f"{key} = {value} in [peaks] is not above 0", key)
    if strict and root.warnings:
        raise Refused(root.warnings[0].replace(": warning: ", ": ", 1))
    print_warnings(root.warnings)
    return device


def read_registers(device, root):
    """Adds the registers of the TOML to those of the SVD file, and checks them all."""
    names = Names("register")
    for sub in root.tables("register"):
        register = read_register(sub)
        names.add(sub, register.name, "name")
        device.registers.append(register)
    if device.registers and device.bar_bytes is None:
        device.table.refuse("[device] has no 'bar_bytes', add a whole number")
    for register in device.registers:
        if register.whole_end > device.bar_bytes:
            register.table.refuse(f"register {register.name} at {register.offset:#x} lies outside the BAR of "
                                  f"{device.bar_bytes:#x} bytes, correct offset or bar_bytes", "offset")
    for first, second in overlaps(device.registers):
        second.table.refuse(f"register {second.name} overlaps register {first.name} "
                            f"on line {first.table.line()}, move one", "offset")

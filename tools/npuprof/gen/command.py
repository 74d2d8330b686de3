# SPDX-License-Identifier: MIT
"""C header from a device description: TOML, CMSIS-SVD, or both.

    gen DEVICE.toml -o HEADER                    from TOML, which may name an SVD file for its registers
    gen DEVICE.svd -o HEADER                     the registers of all peripherals
    gen DEVICE.svd --peripheral NAME -o HEADER   those of one; may be repeated
    gen DEVICE.svd --roles ROLES.toml -o HEADER  the TOML says which register plays which role
    gen DEVICE.toml --json -o FILE.json          the description for tools/npuprof_describe.c, which fills a
                                                 npuprof_npu_desc at run time: a device without a compiler

It refuses a description that cannot be right, with one line (file:line) and exit code 2. It writes offsets,
positions, masks, op codes and, from TOML, a ready <device>_npu_desc(). The same input gives the same bytes;
the header names the hash of its input.

A header can live with some flaws of vendors' SVD files: a field that ends outside its register, registers or
fields that overlap, a size that is no word, a name twice. Such a part is left out, kept or numbered, with a
warning that names the line. --strict refuses it.

With --check nothing is written.
"""

import os

from ..base.files import check_output, read_bytes, write_whole
from ..base.messages import Refused
from . import svd as svd_files
from .device import print_warnings, read_device
from .header import generate_svd, header_of, names_svd
from .json_text import json_of
from .judge import judge
from .manual import MANUAL

HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc")


def add_arguments(parser):
    parser.epilog = MANUAL
    parser.add_argument("device", metavar="DEVICE", help="a .toml or .svd file")
    parser.add_argument("-o", dest="header", metavar="HEADER", required=True, help="the header to write")
    parser.add_argument("--roles", metavar="ROLES.toml",
                        help="with DEVICE.svd: the device's name and the roles of its registers")
    parser.add_argument("--peripheral", metavar="NAME", action="append", default=[],
                        help="only this peripheral of the SVD file; may be repeated; default: all")
    parser.add_argument("--strict", action="store_true", help="refuse what is a warning otherwise")
    parser.add_argument("--json", action="store_true", help="write the description as JSON, no header")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; exit code 1 if HEADER is stale or edited")


def read_text(path):
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"{path}:{line}: byte {error.start} is not UTF-8, save the file as UTF-8") from None


def read_judged(*description, **options):
    """The device of a TOML text, as read_device(), that C would open."""
    device = read_device(*description, **options)
    judge(device)
    return device


def generate(text, file, svd=None, peripherals=(), strict=False):
    """The header for a TOML text, as text. Raises Refused; `file` is the name of the input in refusals."""
    return header_of(read_judged(file, text, svd, peripherals, strict))


def run(arguments):
    is_svd = names_svd(arguments.device)
    endings = (".json",) if arguments.json else HEADERS
    if not arguments.check:
        check_output(arguments.header, endings, arguments.device, arguments.roles)
    if not is_svd and arguments.roles is not None:
        raise Refused(f"{arguments.device}: --roles goes with a .svd file; "
                      "name that one, or add svd to the TOML")
    if is_svd and arguments.roles is None:
        if arguments.json:
            raise Refused(f"{arguments.device}: --json describes roles, add --roles ROLES.toml")
        svd = svd_files.Device(read_bytes(arguments.device), arguments.device, arguments.strict)
        header = generate_svd(svd, arguments.peripheral)
        print_warnings(svd.warnings)
    else:
        toml = arguments.roles if is_svd else arguments.device
        device = read_judged(toml, read_text(toml), arguments.device if is_svd else None,
                             arguments.peripheral, arguments.strict)
        if not arguments.check:
            check_output(arguments.header, endings, *(path for path, _ in device.inputs))
        header = json_of(device) if arguments.json else header_of(device)
    header = header.encode()
    if not arguments.check:
        write_whole(arguments.header, header)
    elif not os.path.exists(arguments.header):
        print(f"{arguments.header}: does not exist, generate it from {arguments.device}")
        return 1
    elif read_bytes(arguments.header) != header:
        print(f"{arguments.header}: stale or edited, generate it again from {arguments.device}")
        return 1
    return 0

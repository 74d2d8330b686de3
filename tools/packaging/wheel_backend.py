# SPDX-License-Identifier: MIT
"""Builds the wheel that `pip install .` installs; pyproject.toml names this file. It needs Python and nothing
else, so no network either. With make and a C compiler the wheel has the C parts, else it does without."""

import base64
import hashlib
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import install  # noqa: E402

DATE = (1980, 1, 1, 0, 0, 0)        # the same files make the same bytes


def described():
    """What pyproject.toml says of the project."""
    return tomllib.loads((install.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def build_tools():
    if shutil.which("make") and shutil.which("cc"):
        subprocess.run(["make", "-s", "-C", install.ROOT, "tools"], stdin=subprocess.DEVNULL)
    else:
        print("npuprof: there is no make or no C compiler", file=sys.stderr)


def about(tag):
    """{path in the folder .dist-info: bytes}, without RECORD."""
    said = described()
    metadata = (f"Metadata-Version: 2.1\nName: npuprof\nVersion: {install.version()}\n"
                f"Summary: {said['description']}\nLicense: {said['license']['text']}\n"
                f"Requires-Python: {said['requires-python']}\nDescription-Content-Type: text/markdown\n\n")
    readme = install.docs("", ("LICENSE", "examples", "tools/queries"))["/README.md"][1]
    scripts = "".join(f"{name} = {place}\n" for name, place in said["scripts"].items())
    pure = str(tag.endswith("any")).lower()
    return {"METADATA": metadata.encode() + readme,
            "WHEEL": (f"Wheel-Version: 1.0\nGenerator: npuprof\nRoot-Is-Purelib: {pure}\n"
                      f"Tag: {tag}\n").encode(),
            "entry_points.txt": f"[console_scripts]\n{scripts}".encode(),
            "LICENSE": (install.ROOT / "LICENSE").read_bytes()}


def write_wheel(folder, files, tag):
    """Writes the wheel with these files {path: (mode, bytes)}; returns its name."""
    base = f"npuprof-{install.version()}"
    files = files | {f"{base}.dist-info/{name}": (0o644, data) for name, data in about(tag).items()}
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, (_, data) in files.items())
    files[f"{base}.dist-info/RECORD"] = 0o644, f"{record}{base}.dist-info/RECORD,,\n".encode()
    with zipfile.ZipFile(pathlib.Path(folder) / f"{base}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (mode, data) in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return f"{base}-{tag}.whl"


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build_tools()
    files = {f"npuprof/{path}": file for path, file in install.package().items()}
    native = any("/built/lib" in name for name in files)
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_") if native else "any"
    data = f"npuprof-{install.version()}.data/data"
    files |= {f"{data}/{path}": file for path, file in install.completions().items()}
    return write_wheel(wheel_directory, files, f"py3-none-{system}")


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build_tools()
    path = f"{install.ROOT / 'tools'}\n".encode()
    return write_wheel(wheel_directory, {"npuprof.pth": (0o644, path)}, "py3-none-any")

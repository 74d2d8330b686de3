# SPDX-License-Identifier: MIT
"""The files of an installation, and where they go. `make install` and pip's wheel take them from here.

    install.py tools PREFIX [PYTHONDIR]    the command, its package with the C parts, completions, manual page
    install.py docs PREFIX DOCDIR [SKIP]   README, reference and examples; a link to what is not there is text
    install.py uninstall PREFIX PYTHONDIR DOCDIR

PYTHONDIR and DOCDIR are below PREFIX. What the C parts lack is said; then the tools do without them."""

import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ("libnpuprof.so", "libnpuprof-columns.so", "libnpuprof-collect.so", "npuprof-convert", "npuprof-top",
         "npuprof-judge", "npuprof_python.so")
PACKAGE = {".py", ".pyi", ".typed", ".toml", ".json", ".js", ".css", ".html"}     # the package
COMPLETIONS = {"bash": "share/bash-completion/completions/npuprof",
               "zsh": "share/zsh/site-functions/_npuprof",
               "fish": "share/fish/vendor_completions.d/npuprof.fish", "man": "share/man/man1/npuprof.1"}
DOCS = ("README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "tools/README.md", "tools/queries", "examples")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
SHARED = {"bin", "include", "lib", "share", "share/doc", "share/man", "share/man/man1", "lib/pkgconfig"}


def version():
    return re.search(r'NPUPROF_VERSION_STRING "(.*)"', (ROOT / "npuprof.h").read_text(encoding="utf-8"))[1]


def package():
    """{path below the folder npuprof/: (mode, bytes)}. The C parts that are built are in built/."""
    files = {}
    for path in sorted((ROOT / "tools/npuprof").rglob("*")):
        if path.suffix in PACKAGE and path.is_file():
            files[path.relative_to(ROOT / "tools/npuprof").as_posix()] = 0o644, path.read_bytes()
    files["built/VERSION"] = 0o644, f"{version()}\n".encode()
    files["built/npuprof_npu.h"] = 0o644, (ROOT / "npuprof_npu.h").read_bytes()
    missing = [name for name in PARTS if not (ROOT / "build" / name).exists()]
    for name in PARTS:
        if name not in missing:
            mode = 0o644 if name.endswith(".so") else 0o755
            files[f"built/{name}"] = mode, (ROOT / "build" / name).read_bytes()
    if missing:
        print(f"npuprof: without {', '.join(missing)}: no C compiler built them, or Python.h was missing; "
              f"{lacks(missing)}", file=sys.stderr)
    return files


def lacks(missing):
    """What does not work without these parts."""
    lost = [text for part, text in (("npuprof-convert", "images cannot be read"),
                                    ("libnpuprof.so", "nothing is recorded from Python"),
                                    ("libnpuprof-columns.so", "reports take longer"),
                                    ("npuprof_python.so", "a span in Python costs ten times as much"))
            if part in missing]
    return "; ".join(lost) or "the rest works"


def completions():
    """{path below the prefix: (mode, bytes)}."""
    files = {}
    for shell, path in COMPLETIONS.items():
        command = [sys.executable, "-X", "utf8", ROOT / "tools/npuprof.py", "completion", shell]
        files[path] = 0o644, subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return files


def tools(python="lib/npuprof"):
    files = {f"{python}/npuprof/{path}": file for path, file in package().items()}
    files["bin/npuprof"] = 0o755, (ROOT / "tools/npuprof.py").read_bytes()
    return files | completions()


def docs(folder, skip=()):
    names = [path for name in DOCS if name not in skip for path in sorted((ROOT / name).rglob("*"))
             or [ROOT / name]]
    present = {path.relative_to(ROOT).as_posix(): path for path in names
               if path.is_file() and "__pycache__" not in path.parts}
    folders = {posixpath.dirname(name) for name in present}
    files = {}

    def link(match, name):
        image, text, target, _ = match.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        return match[0] if target in present or target in folders else text if not image else ""

    for name, path in present.items():
        data = path.read_bytes()
        if path.suffix == ".md":
            data = LINK.sub(lambda match, name=name: link(match, name), data.decode()).encode()
        files[f"{folder}/{name}"] = 0o755 if path.stat().st_mode & 0o100 else 0o644, data
    return files


def write(prefix, files):
    for name, (mode, data) in files.items():
        path = prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        path.chmod(mode)


def uninstall(prefix, python, documents):
    """Removes it, and the folders that it leaves empty."""
    for folder in f"{python}/npuprof", documents:
        shutil.rmtree(prefix / folder, ignore_errors=True)
    for name in "bin/npuprof", *COMPLETIONS.values():
        (prefix / name).unlink(missing_ok=True)
    for name in f"{python}/npuprof", documents, *COMPLETIONS.values(), "lib/cmake/npuprof/x":
        folder = posixpath.dirname(name)
        while folder not in SHARED and folder and not os.path.isdir(prefix / name):
            try:
                (prefix / folder).rmdir()
            except OSError:
                break
            folder = posixpath.dirname(folder)


def main(what, prefix, *words):
    prefix = pathlib.Path(prefix)
    if what == "tools":
        write(prefix, tools(*words))
    elif what == "docs":
        write(prefix, docs(words[0], words[1:]))
    else:
        uninstall(prefix, *words)


if __name__ == "__main__":
    main(*sys.argv[1:])

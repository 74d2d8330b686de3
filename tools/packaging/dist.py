#!/usr/bin/env python3
# make dist: the release archive, its checksum, and the files with which Meson, vcpkg, Conan and Debian
# install it. The same commit gives the same bytes. Everything goes to build/dist/.
# SPDX-License-Identifier: MIT
import email.utils
import gzip
import hashlib
import io
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/packaging"
OUT = ROOT / "build/dist"
# What the archive is needed for, and where it is put then.
PLACES = {"meson": ["npuprof.wrap", "packagefiles/npuprof/meson.build", "packagefiles"],
          "vcpkg": ["npuprof/portfile.cmake", "npuprof/vcpkg.json", "npuprof"],
          "conan": ["conanfile.py", "."]}


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout


def archive(top, date):
    """The files of the commit as a .tar.gz: sorted, without owners, all of one date."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in sorted(git("ls-tree", "-r", "-z", "HEAD").decode().split("\0")):
            if not entry:
                continue
            (mode, _, blob), name = entry.split("\t")[0].split(), entry.split("\t")[1]
            info = tarfile.TarInfo(f"{top}/{name}")
            info.mtime, info.mode = date, int(mode, 8) & 0o777
            data = git("cat-file", "blob", blob)
            if mode == "120000":
                info.type, info.linkname, data = tarfile.SYMTYPE, data.decode(), b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), compresslevel=9, mtime=0)


def main():
    if not (ROOT / ".git").exists():
        sys.exit("make dist: an archive is made of a commit, and this is no git checkout")
    header = git("show", "HEAD:npuprof.h").decode()
    version = re.search(r'define NPUPROF_VERSION_STRING "(.*)"', header)[1]
    date = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    top = f"npuprof-{version}"
    data = archive(top, date)
    words = {"VERSION": version, "SHA256": hashlib.sha256(data).hexdigest(),
             "DATE": email.utils.formatdate(date, localtime=False)}

    def fill(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        target.write_text(re.sub(r"@(\w+)@", lambda m: words[m[1]], text), encoding="utf-8")

    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    (OUT / f"{top}.tar.gz").write_bytes(data)
    (OUT / f"{top}.tar.gz.sha256").write_text(f"{words['SHA256']}  {top}.tar.gz\n")
    for room, (*files, place) in PLACES.items():
        for name in files:
            fill(HERE / room / (Path(name).name + ".in"), OUT / room / name)
        shutil.copy(OUT / f"{top}.tar.gz", OUT / room / place)
    shutil.copytree(HERE / "debian", OUT / "debian", ignore=shutil.ignore_patterns("*.in"))
    fill(HERE / "debian/changelog.in", OUT / "debian/changelog")
    print(f"{OUT.relative_to(ROOT)}/{top}.tar.gz  {len(data)} bytes  {words['SHA256']}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# make dist: the release archive, its checksum, and the files with which Meson, vcpkg, Conan and Debian
# install it. All of it is made of the commit, not of the files in the folder: the same commit gives the same
# bytes. Everything goes to build/dist/.
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
HERE = "tools/packaging/"
OUT = ROOT / "build/dist"
# The files of each way, and the folder that the archive is put into.
PLACES = {"meson": ("packagefiles", "npuprof.wrap"),
          "vcpkg": ("npuprof", "npuprof/portfile.cmake", "npuprof/vcpkg.json"),
          "conan": (".", "conanfile.py")}
LINK = 0o120000


def stop(sentence):
    sys.exit(f"make dist: {sentence}")


def git(*arguments, given=None):
    try:
        done = subprocess.run(["git", "-C", ROOT, *arguments], input=given, capture_output=True)
    except FileNotFoundError:
        stop("git is not installed: an archive is made of a commit")
    if done.returncode:
        stop(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def commit_files():
    """What the commit has: {path: (mode, bytes)}, sorted."""
    entries = [re.fullmatch(r"(\d+) blob (\w+)\t(.*)", entry, re.S).groups()
               for entry in git("ls-tree", "-r", "-z", "HEAD").decode().split("\0") if entry]
    data, at, files = git("cat-file", "--batch", given="\n".join(e[1] for e in entries).encode()), 0, {}
    for mode, _, path in entries:
        line = data.index(b"\n", at)
        end = line + 1 + int(data[at:line].split()[2])
        files[path] = int(mode, 8), data[line + 1:end]
        at = end + 1
    return dict(sorted(files.items()))


def archive(files, top, date):
    """A .tar.gz of the files: without owners, all of one date."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, (mode, data) in files.items():
            info = tarfile.TarInfo(f"{top}/{path}")
            info.mtime, info.mode = date, mode & 0o777
            if mode == LINK:
                info.type, info.linkname, info.mode, data = tarfile.SYMTYPE, data.decode(), 0o777, b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return gzip.compress(out.getvalue(), compresslevel=9, mtime=0)


def date_of_release():
    text = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct").decode()
    if not re.fullmatch(r"\d{1,11}\s*", text):
        stop(f"SOURCE_DATE_EPOCH is no number of seconds: {text}")
    return int(text)


def main():
    if not (ROOT / ".git").exists():
        stop("an archive is made of a commit, and this is no git checkout")
    files, date = commit_files(), date_of_release()
    version = re.search(rb'define NPUPROF_VERSION_STRING "(.*)"', files["npuprof.h"][1])[1].decode()
    top = f"npuprof-{version}"
    if not any(path.startswith(f"tests/image/corpus/release-{version}-") for path in files):
        stop(f"the corpus has no images of this version; run `python3 tests/image/make_corpus.py "
             f"release-{version}=.` and commit them")
    data = archive(files, top, date)
    words = {"VERSION": version, "SHA256": hashlib.sha256(data).hexdigest(),
             "DATE": email.utils.formatdate(date).replace("-0000", "+0000")}

    def write(target, content, mode=0o644):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode & 0o755)

    def fill(source, target):
        """Writes a file of tools/packaging; of a template NAME.in with the words filled in."""
        mode, content = files.get(HERE + source + ".in") or files[HERE + source]
        if HERE + source not in files:
            content = re.sub(r"@(\w+)@", lambda m: words[m[1]], content.decode()).encode()
        write(target, content, mode)

    shutil.rmtree(OUT, ignore_errors=True)
    write(OUT / f"{top}.tar.gz", data)
    write(OUT / f"{top}.tar.gz.sha256", f"{words['SHA256']}  {top}.tar.gz\n".encode())
    for way, (place, *targets) in PLACES.items():
        for target in targets:
            fill(f"{way}/{Path(target).name}", OUT / way / target)
        write(OUT / way / place / f"{top}.tar.gz", data)
    for path in files:
        if path.startswith(HERE + "debian/"):
            name = path.removeprefix(HERE).removesuffix(".in")
            fill(name, OUT / name)
    print(f"{OUT.relative_to(ROOT)}/{top}.tar.gz  {len(data)} bytes  {words['SHA256']}")
    if git("status", "--porcelain"):
        print("It is of the last commit: what is changed and not committed is not in it.")


if __name__ == "__main__":
    main()

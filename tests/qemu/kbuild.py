# SPDX-License-Identifier: MIT
"""Kernel modules for the rigs: the headers of the guest's kernel, from Debian's archive, and what is built
with them."""
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLE = ROOT / "examples" / "kernel"
# module -> (folder of its sources, variables of its Makefile)
MODULES = {"npuprof_demo": (EXAMPLE, ()), "storm": (HERE / "kernel", ("TSC=y",)),
           "toy": (HERE / "scheduler", ())}


def version_of(kernel):
    """6.1.0-56-cloud-amd64, of an unpacked package linux-image."""
    return next(kernel.glob("boot/vmlinuz-*")).name.removeprefix("vmlinuz-")


def fetch_headers(archive, kernel, folder, missing):
    """The folder for KDIR: the headers of exactly that kernel, unpacked. None: the archive has them no more,
    because a newer kernel replaced it."""
    version = version_of(kernel)
    whole = folder / "usr" / "src" / f"linux-headers-{version}"
    if whole.exists():
        return whole
    archive.update()
    arch = version.split("-")[-1]
    shown = archive.apt("apt-cache", "depends", f"linux-headers-{version}:{arch}").stdout
    needed = re.findall(r"Depends: (linux-(?:headers|kbuild|compiler)-[\w.+-]+)", shown)
    if not needed:
        return None
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    for package in (f"linux-headers-{version}", *needed):
        architecture = "all" if package.endswith("-common") else arch
        archive.unpack(f"{package}:{architecture}", part)
    makefile = part / "usr" / "src" / whole.name / "Makefile"
    if not makefile.exists():
        raise missing(f"package linux-headers-{version} cannot be unpacked")
    # Why: the package expects to be installed.
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{folder}/usr/src/"))
    part.rename(folder)
    return whole


def compiler_of(headers):
    """The compiler that the kernel was built with."""
    found = re.search(r"\bgcc-\d+", (headers / ".kernelvariables").read_text())
    return found[0] if found else "gcc"


def build_module(name, headers, folder, missing):
    """Builds a module, if something of it is newer, and returns the path of its .ko."""
    sources, variables = MODULES[name]
    compiler = compiler_of(headers)
    for tool, package in ((compiler, compiler), ("make", "make"), ("objcopy", "binutils")):
        if not shutil.which(tool):
            raise missing(f"package {package} is not installed")
    folder = folder / name
    built = folder / f"{name}.ko"
    inputs = [*sources.iterdir(), EXAMPLE / "npuprof_kernel.h", *ROOT.glob("*.h")]
    newest = max(path.stat().st_mtime for path in inputs)
    if built.exists() and built.stat().st_mtime > newest and (folder / "kernel").read_text() == headers.name:
        return built
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sources, folder)
    done = subprocess.run(["make", "-C", headers, f"M={folder}", f"NPUPROF={ROOT}", f"EXAMPLE={EXAMPLE}",
                           f"CC={compiler}", "W=1", "CONFIG_DEBUG_INFO_BTF_MODULES=",
                           *variables, "modules"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", env=dict(os.environ, LC_ALL="C"))
    if "libelf" in done.stdout and done.returncode:
        raise missing("package libelf1 is not installed")
    said = re.findall(r"^.*\b(?:warning|error|WARNING|ERROR)\b.*$", done.stdout, re.M)
    if done.returncode or said or not built.exists():
        raise AssertionError(f"module {name} does not build cleanly:\n"
                             + ("\n".join(said) or done.stdout[-2000:]))
    (folder / "kernel").write_text(headers.name)
    return built

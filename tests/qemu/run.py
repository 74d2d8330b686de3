#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""npuprof on devices that nobody here wrote: emulated machines that boot Linux and run the C programs beside
this file.

  make qemu                    or  tests/qemu/run.py [--verbose] [--list] [NAME...]

A rig is one boot of a virtual machine: an architecture, a list of emulated devices, kernel modules, and the
guest programs to run. Each program is a list of cases as in tests/check.h and sends its traces over the
console. Here they are tested against the rules of the viewers (`npuprof.py check`), and against what the
machine did (traces.py).

The machines run with -icount: a virtual clock that counts instructions and that an idle guest moves to its
next timer at once. Hours cost seconds, load on the host changes nothing, and a 24 MHz device is exactly that.
Never KVM: its time is the host's.

What is needed is installed by its Debian package name when run as root; else each rig that lacks something is
skipped and the package named. Kernels are downloaded, not installed, into build/qemu, and stay there; so is a
newer QEMU for the rigs of the network card igb, which Debian 12's own does not have. Prints one line a test,
and last `N passed, N failed`, with `, N skipped` if any.
"""
import argparse
import base64
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import jobs
import kbuild
import modules
import traces

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "qemu"
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror".split()
BOOT_SECONDS = 150           # most boots take 2 to 10; the host may be loaded

# command -> package
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "qemu-system-aarch64": "qemu-system-arm", "gcc": "gcc",
         "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu"}
LIBRARIES = {"/usr/aarch64-linux-gnu/lib/libc.a": "libc6-dev-arm64-cross",
             "/usr/lib/x86_64-linux-gnu/libelf.so.1": "libelf1"}        # of the kernel's build

MACHINES = {
    "x86": dict(
        qemu="qemu-system-x86_64", cc="gcc", kernel="cloud-amd64", machine="q35", console="ttyS0",
        flags=["-cpu", "qemu64"],
        # Why hpet: the kernel's guess at the TSC's rate is off by up to a per cent there. Why no_timer_check:
        # on a busy host the timer's first ticks come late, and the kernel complains of it.
        append="nopti clocksource=hpet tsc=unstable random.trust_cpu=off no_timer_check"),
    "arm64": dict(
        qemu="qemu-system-aarch64", cc="aarch64-linux-gnu-gcc", kernel="cloud-arm64", machine="virt",
        console="ttyAMA0",
        flags=["-cpu", "cortex-a57"],
        append=""),
}
APPEND = "panic=-1 quiet loglevel=1 nokaslr nowatchdog mitigations=off lsm=capability cryptomgr.notests"
ICOUNT = "-smp 1 -m 256 -accel tcg -icount shift=3,sleep=off -seed 1 -rtc base=2020-01-01,clock=vm".split()
SHARED = 128 << 20           # bytes of memory that the guest shares with the host, for large files
REAL_TIME = "-smp 2 -m 512 -accel tcg,thread=multi".split()


class Rig:
    def __init__(self, name, machine, devices, programs, modules=(), machine_options="", append="",
                 kernel=None, needs_igb=False, built=(), real_time=False):
        self.name = name
        self.machine = MACHINES[machine]
        self.devices = devices
        self.programs = programs            # lines of /tests in the guest
        self.modules = modules              # in the order in which they are loaded
        self.machine_options = machine_options
        self.append = append
        self.kernel = kernel or self.machine["kernel"]
        self.needs_igb = needs_igb          # a newer QEMU than Debian 12's
        self.built = built                  # modules of kbuild.MODULES, loaded last
        self.real_time = real_time          # two processors, shared memory for large files, no -icount


# Why romfile: else the firmware loads the card's boot ROM, which is in another package.
IGB = ["-netdev hubport,hubid=0,id=n0", "igb,netdev=n0,romfile="]
VFIO = ["uio", "uio_pci_generic", "vfio", "vfio_virqfd", "vfio_iommu_type1", "irqbypass", "vfio_pci_core",
        "vfio_pci"]
WAYS = ["intel-hda,addr=4", "rtl8139,addr=5", "nvme,addr=6,serial=1", "edu,addr=7",
        "pcie-root-port,id=bay,slot=9,addr=8",
        "intel-hda,bus=bay"]
COUNTERS = ["intel-hda", "rtl8139", "rtl8139", "qemu-xhci"]
RIGS = [
    Rig("x86 counters", "x86", COUNTERS, ["hda", "rtl8139", "mfindex"]),
    Rig("x86 hpet", "x86", [], ["hpet"]),
    Rig("x86 igb", "x86", IGB, ["igb"], needs_igb=True),
    Rig("x86 ptp", "x86", IGB, ["ptp"], modules=["dca", "i2c_algo_bit", "igb"], append="iomem=relaxed",
        kernel="amd64",
        needs_igb=True),
    Rig("x86 ways", "x86", ["intel-iommu,intremap=on", *WAYS], ["refusals", "ways"], modules=VFIO,
        append="intel_iommu=on",
        machine_options=",kernel-irqchip=split"),
    Rig("arm64 ways", "arm64", WAYS, ["refusals", "ways"], modules=VFIO,
        machine_options=",iommu=smmuv3,gic-version=3"),
    Rig("arm64 counters", "arm64", COUNTERS, ["hda", "rtl8139", "mfindex"]),
    Rig("x86 ftrace", "x86", [], ["ftrace"]),
    Rig("x86 jobs", "x86", ["edu"], ["scheduler"], modules=["drm", "gpu_sched"], built=["toy"],
        kernel="amd64", real_time=True),
    Rig("x86 jobs and pointers", "x86", ["edu"], ["scheduler"], modules=["drm", "gpu_sched"], built=["toy"],
        kernel="amd64", append="no_hash_pointers", real_time=True),
    Rig("x86 module", "x86", [], ["module"], built=["npuprof_demo", "storm"], real_time=True),
]


class Missing(Exception):
    """A package that is not there; the rig is skipped."""


# ---- What is needed: tools, kernels ----

def run(command, **options):
    return subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          text=True, errors="replace", **options)


def lacking():
    """The packages of what is not installed."""
    packages = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    return packages + [package for path, package in LIBRARIES.items() if not os.path.exists(path)]


def install():
    packages = lacking()
    if not packages or os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    print("installing", *packages, flush=True)
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=500"]
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run([*apt, "update"], env=env)
    done = run([*apt, "install", "-y", "--no-install-recommends", *packages], env=env)
    if done.returncode:
        print("\n".join(done.stdout.splitlines()[-5:]))


def need(tool):
    if not shutil.which(tool):
        raise Missing(f"package {TOOLS[tool]} is not installed")
    return tool


class Archive:
    """Debian's archive by an apt with lists of its own: other architectures and releases, without a change to
    this machine."""

    def __init__(self):
        self.folder = BUILD / "apt"
        self.ready = False

    def apt(self, tool, *arguments):
        settings = {
            "APT::Architecture": "amd64", "APT::Architectures": "amd64,arm64", "APT::Sandbox::User": "",
            "Dir::Etc::sourcelist": self.folder / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null", "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": "/dev/null", "Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": "",
            "Acquire::Languages": "none", "Acquire::Retries": "3",
        }
        return run([tool, "-q", *(f"-o{key}={value}" for key, value in settings.items()), *arguments],
                   cwd=self.folder)

    def update(self):
        if self.ready:
            return
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            raise Missing("apt-get and dpkg-deb are not there, and kernels come from Debian's archive")
        found = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)
        release = self.release = found.group(1) if found else "bookworm"
        key = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
        (self.folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        lines = [f"deb [{key}] http://deb.debian.org/debian {release} main",
                 f"deb [{key}] http://deb.debian.org/debian-security {release}-security main",
                 f"deb [arch=amd64 {key}] http://deb.debian.org/debian {release}-backports main"]
        (self.folder / "sources.list").write_text("\n".join(lines) + "\n")
        done = self.apt("apt-get", "update")
        if done.returncode:
            raise Missing("Debian's archive cannot be read: " + done.stdout.strip().splitlines()[-1])
        self.ready = True

    def download(self, package):
        """The .deb's path."""
        before = set(self.folder.glob("*.deb"))
        done = self.apt("apt-get", "download", package)
        found = set(self.folder.glob("*.deb")) - before
        if done.returncode or len(found) != 1:
            raise Missing(f"package {package} cannot be downloaded: "
                          + (done.stdout.strip().splitlines() or ["?"])[-1])
        return found.pop()

    def unpack(self, package, folder, members=()):
        deb = self.download(package)
        folder.mkdir(parents=True, exist_ok=True)
        fsys = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        tar = ["tar", "-x", "-C", folder, "--wildcards", *members] if members else ["tar", "-x", "-C", folder]
        subprocess.run(tar, stdin=fsys.stdout, stderr=subprocess.DEVNULL, check=False)
        fsys.wait()
        deb.unlink()


ARCHIVE = Archive()
BUILDING = threading.Lock()
MODULES = ["drivers/uio/", "drivers/vfio/", "virt/lib/", "drivers/net/ethernet/intel/igb/", "drivers/dca/",
           "drivers/i2c/algos/i2c-algo-bit.ko", "drivers/gpu/drm/drm.ko", "drivers/gpu/drm/scheduler/"]


def fetch_kernel(flavour):
    """The folder of a kernel's package, unpacked: boot/vmlinuz-* and the modules."""
    folder, wanted = BUILD / f"kernel-{flavour}", "\n".join(MODULES)
    stamp = folder / "modules"                   # what was unpacked
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        ARCHIVE.update()
        arch = flavour.split("-")[-1]
        shown = ARCHIVE.apt("apt-cache", "depends", f"linux-image-{flavour}:{arch}").stdout
        real = re.search(r"Depends: (linux-image-\S+)", shown)
        if not real:
            raise Missing(f"package linux-image-{flavour} is not in Debian's archive")
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        ARCHIVE.unpack(real.group(1).split(":")[0] + f":{arch}", part,
                       ["./boot/vmlinuz-*", *(f"./lib/modules/*/kernel/{m}*" for m in MODULES)])
        (part / "modules").write_text(wanted)
        part.rename(folder)
    return folder


def fetch_headers(flavour):
    """The headers of that kernel. A kernel that the archive has no headers of any more is fetched anew."""
    for _ in range(2):
        kernel = fetch_kernel(flavour)
        headers = kbuild.fetch_headers(ARCHIVE, kernel, BUILD / f"headers-{flavour}", Missing)
        if headers:
            return headers
        shutil.rmtree(kernel)
    raise Missing(f"headers of the kernel {flavour} are not in Debian's archive")


def fetch_qemu():
    """A QEMU with the network card igb, as the beginning of a command: the installed one, or unpacked from
    the backports."""
    installed = run([need("qemu-system-x86_64"), "-device", "help"]).stdout
    if '"igb"' in installed:
        return ["qemu-system-x86_64"]
    folder = BUILD / "qemu"
    if not folder.exists():
        ARCHIVE.update()
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        for package in ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"):
            ARCHIVE.unpack(f"{package}/{ARCHIVE.release}-backports", part)
        part.rename(folder)
    share = folder / "usr" / "share"
    return [folder / "usr/bin/qemu-system-x86_64", "-L", share / "qemu", "-L", share / "seabios"]


def module_paths(kernel, names):
    files = {path.stem.replace("-", "_"): path for path in kernel.rglob("*.ko")}
    # Why "if": some are built into one kernel and not the other
    return [files[name] for name in names if name in files]


# ---- A boot ----

def build(source, compiler):
    """A static program for the guest, or the library's object."""
    program = BUILD / f"{source}-{compiler}"
    inputs = [*HERE.glob("*.[ch]"), HERE.parent / "check.h", *ROOT.glob("*.h"),
              *(ROOT / "examples" / "devices").glob("*.h")]
    if program.exists() and program.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
        return program
    command = [need(compiler), "-std=c11", "-O2", *WARNINGS, HERE / f"{source}.c", "-o", program]
    if source == "library":
        command.append("-c")
    else:
        command += ["-static", "-pthread"] + ([BUILD / f"library-{compiler}", "-lm"]
                                              if source != "init" else [])
    done = run(command)
    if done.returncode:
        if "cannot find -lc" in done.stdout:
            raise Missing("package libc6-dev-arm64-cross is not installed")
        raise AssertionError(f"{source}.c does not compile with {compiler}:\n{done.stdout}")
    return program


def cpio(files):
    """An archive in the kernel's own format: name -> bytes."""
    out = bytearray()

    def add(number, name, mode, data):
        out.extend(b"070701" + b"".join(b"%08X" % v for v in (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0,
                                                              len(name) + 1, 0)))
        out.extend(name.encode() + b"\0")
        out.extend(bytes(-len(out) % 4))
        out.extend(data)
        out.extend(bytes(-len(out) % 4))
    folders = sorted({str(parent) for name in files for parent in pathlib.PurePath(name).parents} - {"."})
    for number, name in enumerate(folders + ["dev"], 1):
        add(number, name, 0o040755, b"")
    for number, (name, data) in enumerate(files.items(), 100):
        add(number, name, 0o100755, data)
    add(0, "TRAILER!!!", 0, b"")
    return bytes(out)


def boot(rig):
    """Runs a rig: (what it printed, the files it sent as name -> bytes)."""
    machine = rig.machine
    kernel = fetch_kernel(rig.kernel)
    qemu = fetch_qemu() if rig.needs_igb else [need(machine["qemu"])]
    with BUILDING:
        build("library", machine["cc"])
        files = {"init": build("init", machine["cc"]).read_bytes()}
        for line in rig.programs:
            name = line.split()[0]
            files[name] = build(name, machine["cc"]).read_bytes()
    files["tests"] = "".join(f"/{line}\n" for line in rig.programs).encode()
    for number, path in enumerate(module_paths(kernel, rig.modules), 10):
        files[f"modules/{number}-{path.name}"] = path.read_bytes()
    for number, name in enumerate(rig.built, 50):
        headers = fetch_headers(rig.kernel)
        with BUILDING:
            module = kbuild.build_module(name, headers, BUILD / "modules", Missing)
        files[f"modules/{number}-{name}.ko"] = module.read_bytes()
    stem = rig.name.replace(" ", "-")
    initrd, shared = BUILD / f"{stem}.cpio", BUILD / f"{stem}.shared"
    initrd.write_bytes(cpio(files))
    timing = ICOUNT
    if rig.real_time:
        with open(shared, "wb") as file:
            file.truncate(SHARED)
        timing = [*REAL_TIME, "-object",
                  f"memory-backend-file,id=shared,share=on,mem-path={shared},size={SHARED}", "-device",
                  "ivshmem-plain,memdev=shared"]
    command = [*qemu, "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
               "-M", machine["machine"] + rig.machine_options, *machine["flags"], *timing,
               *(word for device in rig.devices
                 for word in (device.split() if device.startswith("-") else ["-device", device])),
               "-kernel", next(kernel.glob("boot/vmlinuz-*")), "-initrd", initrd,
               "-append", f"console={machine['console']} {APPEND} {machine['append']} {rig.append}"]
    try:
        done = run(command, timeout=BOOT_SECONDS)
        text = done.stdout
    except subprocess.TimeoutExpired as error:
        text = (error.stdout or b"").decode("utf-8", "replace") + f"\nnot done after {BOOT_SECONDS} s\n"
    text = text.replace("\r", "")
    (BUILD / f"{stem}.log").write_text(text)
    sent = read_shared(shared) if rig.real_time else {}
    for match in re.finditer(r"^FILE (\S+)\n([A-Za-z0-9+/=\n]*)^FILE end$", text, re.M):
        sent[match.group(1)] = base64.b64decode(match.group(2))
    return re.sub(r"^FILE (\S+)\n[A-Za-z0-9+/=\n]*^FILE end$", r"FILE \1", text, flags=re.M), sent


def read_shared(path):
    """The files that the guest put into shared memory: name -> bytes. See guest_store() in guest.h."""
    files = {}
    with open(path, "rb") as shared:
        while match := re.match(rb"FILE (\S+) (\d+)\n", shared.read(512)):
            size = int(match[2])
            files[match[1].decode()] = shared.read(size)
            shared.seek(-size % 512, os.SEEK_CUR)
    path.unlink()
    return files


def check_traces(rig, sent):
    """Lines of the protocol for the files that a rig sent."""
    folder = BUILD / rig.name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in sent.items():
        (folder / name).write_bytes(data)
        if not name.endswith(".json"):
            continue
        checked = run([sys.executable, ROOT / "tools" / "npuprof.py", "check", folder / name])
        wrong = traces.faults_of(name, checked.stdout)
        if wrong or checked.returncode > 1:
            wrong = wrong or checked.stdout
            yield "FAIL", f"{name} keeps the viewers' rules", " ".join(wrong.split())[:500]
        else:
            yield "ok", f"{name} keeps the viewers' rules", ""
    for names, check in traces.checks_for(sent):
        title = f"{names[-1]}: {check.__doc__}"
        try:
            yield "ok", title, check(*[traces.Trace(folder / name) for name in names]) or ""
        except AssertionError as error:
            yield "FAIL", title, " ".join(str(error).split())[:500]


def check_files(sent, folder):
    """The same for what is judged with the tools of the project: modules.py, jobs.py."""
    for check in [*modules.checks_for(sent), *jobs.checks_for(sent)]:
        try:
            yield "ok", check.__doc__, check(folder) or ""
        except AssertionError as error:
            yield "FAIL", check.__doc__, " ".join(str(error).split())[:500]


def run_rig(rig):
    """([(status, name, why)], the guest's output, seconds)"""
    started = time.monotonic()
    try:
        text, sent = boot(rig)
    except Missing as reason:
        return [("skip", rig.name, str(reason))], "", 0.0
    except AssertionError as error:
        return [("FAIL", rig.name, "see below")], str(error), 0.0
    results, program = [], "init"
    for line in text.splitlines():
        if match := re.match(r"INIT run /(.*)", line):
            program = match.group(1)
        if match := re.match(r"(ok|FAIL|skip) ([^:]*)(?:: (.*))?$", line):
            results.append((match.group(1), f"{program}: {match.group(2)}", match.group(3) or ""))
        if (match := re.match(r"INIT exit (\d+)", line)) and match.group(1) not in "01":
            results.append(("FAIL", program, f"exit code {match.group(1)}"))
        if re.match(r"INIT (mount|module|no) ", line):
            results.append(("FAIL", "init", line))
    if "INIT done" not in text:
        results.append(("FAIL", "the machine", "did not get to its end"))
    results += check_traces(rig, sent)
    results += check_files(sent, BUILD / rig.name.replace(" ", "-"))
    return [(status, f"{rig.name}: {name}", why)
            for status, name, why in results], text, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description="runs npuprof in emulated machines; see the head of this "
                                                 "file")
    parser.add_argument("names", nargs="*", help="parts of the names of rigs; all without")
    parser.add_argument("--list", action="store_true", help="names only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verbose", action="store_true",
                        help="also print what the guests printed, and the times")
    options = parser.parse_args()
    rigs = [rig for rig in RIGS if not options.names or any(name in rig.name for name in options.names)]
    if options.list:
        print("\n".join(rig.name for rig in rigs))
        return 0
    BUILD.mkdir(parents=True, exist_ok=True)
    install()
    count = dict.fromkeys(("ok", "FAIL", "skip"), 0)
    # Why not in the boots: they share apt's lists
    for rig in rigs:
        try:
            fetch_kernel(rig.kernel)
            if rig.built:
                fetch_headers(rig.kernel)
            if rig.needs_igb:
                fetch_qemu()
        except Missing:
            pass                                                 # said by the rigs that lack it
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for results, text, seconds in pool.map(run_rig, rigs):
            for status, name, why in results:
                print(f"{status} {name}" + (f": {why}" if why else ""))
                count[status] += 1
            bad = any(status == "FAIL" for status, _, _ in results)
            if options.verbose or bad:
                print("\n".join("    " + line for line in text.splitlines()[-200:]))
            if options.verbose:
                print(f"{results[0][1].split(':')[0]}: {seconds:.1f} s")
            sys.stdout.flush()
    print(f"{count['ok']} passed, {count['FAIL']} failed"
          + (f", {count['skip']} skipped" if count["skip"] else ""))
    return 1 if count["FAIL"] or not count["ok"] + count["skip"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Gets libz3, the Z3 solver's library, and the program `z3` from the pinned `z3-solver` wheel.

    python3 tools/get_z3.py DEST [--system linux|macos] [--machine x86_64|aarch64] [--wheel FILE]

Afterwards DEST holds libz3 under each name that a linker or a loader asks for, `z3`, and a file VERSION.
Builds link the library; tests of builds without it run the program.

What always holds:
- Nothing is unpacked from a wheel whose SHA-256 is not listed below.
- Every file appears in DEST by renaming, VERSION last: builds that run at the same time do not disturb each other.
- Needs Python 3.7 and pip, and nothing else; `build.rs` calls it when DEST does not hold the pinned version.
"""

import argparse
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import zipfile

VERSION = "5.3.2.0"

# (system, machine): wheel platform, SHA-256, oldest glibc that can load it
WHEELS = {
    ("linux", "x86_64"): (
        "manylinux_2_27_x86_64",
        "f17df07300228a383470d4b4e1ad9daf429dc94885996712a1844a8242803935",
        (2, 27),
    ),
    ("linux", "aarch64"): (
        "manylinux_2_38_aarch64",
        "b8add6becdc222090b78d4bd5300b6a212d5ecfb0e3eadb1df008b43ddef8602",
        (2, 38),
    ),
    ("macos", "aarch64"): (
        "macosx_13_0_arm64",
        "ac0c1457a8e7a487470386af5f60d6fef7c10db40004647fcfa7dc6e6ccec190",
        None,
    ),
    ("macos", "x86_64"): (
        "macosx_13_0_x86_64",
        "27f1b0e6333b8b1d57653ef7db34fc9901ed2983b0cb9fb1efd27840e5ea880a",
        None,
    ),
}

# Fixed, so that build scripts which watch these files do not run again after the build that fetched them.
MODIFIED = 1577836800  # 2020-01-01


class Problem(Exception):
    """Something the user has to put right; its text says what."""


def this_system():
    return {"Linux": "linux", "Darwin": "macos"}.get(platform.system(), platform.system().lower())


def this_machine():
    machine = platform.machine().lower()
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(machine, machine)


def check_glibc(needed):
    """Refuses a wheel that this machine's C library cannot load: the linker's message would not say why."""
    try:
        name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
        have = tuple(int(part) for part in version.split(".")[:2])
    except (AttributeError, OSError, ValueError):
        raise Problem("the pinned libz3 needs the GNU C library, which this system does not seem to use")
    if have < needed:
        raise Problem(
            "the pinned libz3 needs glibc %d.%d or newer, this system has %s %s" % (*needed, name, version)
        )


def download(tag, digest, folder):
    """Has pip download the pinned wheel; returns its path."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Problem("pip is missing (`%s -m pip` fails); on Debian and Ubuntu: apt-get install python3-pip"
                      % sys.executable)
    requirements = os.path.join(folder, "requirements.txt")
    with open(requirements, "w", encoding="ascii") as file:
        file.write("z3-solver==%s --hash=sha256:%s\n" % (VERSION, digest))
    # Naming the platform makes the choice of wheel independent of the Python that happens to run this.
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps",
               "--only-binary", ":all:", "--platform", tag, "--require-hashes", "--requirement", requirements,
               "--dest", folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = done.stdout.decode("utf-8", "replace").strip()
    wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
    if done.returncode != 0 or len(wheels) != 1:
        raise Problem("pip could not download z3-solver %s for %s:\n%s" % (VERSION, tag, output))
    return os.path.join(folder, wheels[0])


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def put(folder, name, data):
    """Writes a file under a temporary name and renames it."""
    descriptor, path = tempfile.mkstemp(prefix=".new-", dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.chmod(path, 0o755 if "z3" in name else 0o644)
    os.utime(path, (MODIFIED, MODIFIED))
    os.replace(path, os.path.join(folder, name))


def unpack(wheel, system, dest):
    """Takes libz3, under all its names, out of the wheel."""
    ending = {"linux": ".so", "macos": ".dylib"}[system]
    os.makedirs(dest, exist_ok=True)
    found = 0
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            folder, _, name = entry.rpartition("/")
            if folder == "z3/lib" and name.startswith("libz3.") and ending in name:
                put(dest, name, archive.read(entry))
                found += 1
            elif folder.endswith(".data/data/bin") and name == "z3":
                put(dest, name, archive.read(entry))
    if found == 0:
        raise Problem("%s holds no libz3%s" % (wheel, ending))
    put(dest, "VERSION", (VERSION + "\n").encode("ascii"))


def main():
    parser = argparse.ArgumentParser(description="Gets libz3 %s from the pinned z3-solver wheel." % VERSION)
    parser.add_argument("dest", help="the folder to put libz3 into")
    parser.add_argument("--system", default=this_system(), help="linux or macos (default: this one)")
    parser.add_argument("--machine", default=this_machine(), help="x86_64 or aarch64 (default: this one)")
    parser.add_argument("--wheel", help="a wheel downloaded before, for machines without a network")
    args = parser.parse_args()
    try:
        if (args.system, args.machine) not in WHEELS:
            known = ", ".join("%s on %s" % (system, machine) for system, machine in WHEELS)
            raise Problem("no libz3 is pinned for %s on %s (only for %s)" % (args.system, args.machine, known))
        tag, digest, glibc = WHEELS[args.system, args.machine]
        if glibc and (args.system, args.machine) == (this_system(), this_machine()):
            check_glibc(glibc)
        with tempfile.TemporaryDirectory(prefix="fencepost-z3-") as folder:
            wheel = args.wheel or download(tag, digest, folder)
            actual = sha256(wheel)
            if actual != digest:
                raise Problem("%s has the SHA-256 %s, and not %s" % (wheel, actual, digest))
            unpack(wheel, args.system, args.dest)
    except (Problem, OSError, zipfile.BadZipFile) as problem:
        sys.stderr.write("get_z3.py: %s\n" % problem)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

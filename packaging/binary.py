"""What a built ranktree says of itself: its version, its machine, and the libraries that it needs.

Everything is read from the file by readelf, so that a package promises what this binary needs and not what
the machine that made it has.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

Version = tuple[int, ...]


class Refused(Exception):
    """A package cannot be made, and why."""


@dataclass(frozen=True)
class Machine:
    name: str
    debian: str
    rust_target: str


# By the number in the ELF header.
MACHINES = {
    62: Machine("x86_64", "amd64", "x86_64-unknown-linux-gnu"),
    183: Machine("aarch64", "arm64", "aarch64-unknown-linux-gnu"),
}

# The newest symbol versions that a system with each glibc has, beside those of glibc itself: what Python's
# "manylinux" tags promise (auditwheel's policies).
MANYLINUX = [
    # glibc, libstdc++ (GLIBCXX), its ABI (CXXABI), libgcc (GCC)
    ((2, 17), (3, 4, 19), (1, 3, 7), (4, 8, 0)),
    ((2, 28), (3, 4, 24), (1, 3, 11), (7, 0, 0)),
    ((2, 31), (3, 4, 28), (1, 3, 12), (7, 0, 0)),
    ((2, 34), (3, 4, 29), (1, 3, 13), (7, 0, 0)),
    ((2, 35), (3, 4, 30), (1, 3, 13), (12, 0, 0)),
    ((2, 39), (3, 4, 33), (1, 3, 15), (14, 0, 0)),
]

# The first release of GCC, and so of Debian's libstdc++6, that has each GLIBCXX version.
LIBSTDCXX = [
    ((3, 4, 19), "4.8.1"),
    ((3, 4, 24), "7"),
    ((3, 4, 25), "8"),
    ((3, 4, 26), "9"),
    ((3, 4, 28), "10.2"),
    ((3, 4, 29), "11"),
    ((3, 4, 30), "12"),
    ((3, 4, 32), "13.1"),
    ((3, 4, 33), "14"),
    ((3, 4, 34), "15"),
]

# Libraries that every system has which the tags above promise, with Debian's packages.
LIBRARIES = {
    "libc.so.6": "libc6",
    "libm.so.6": "libc6",
    "libdl.so.2": "libc6",
    "libpthread.so.0": "libc6",
    "librt.so.1": "libc6",
    "ld-linux-x86-64.so.2": "libc6",
    "ld-linux-aarch64.so.1": "libc6",
    "libgcc_s.so.1": "libgcc-s1",
    "libstdc++.so.6": "libstdc++6",
}


@dataclass(frozen=True)
class Binary:
    path: Path
    version: str
    machine: Machine
    libraries: list[str]
    # The newest version that is needed of GLIBC, GLIBCXX, CXXABI and GCC.
    needs: dict[str, Version]

    def wheel_tag(self) -> str:
        """The oldest platform tag whose systems all have what the binary needs."""
        floor = self.needs.get("GLIBC", (0,))
        for glibc, *rest in MANYLINUX:
            has_rest = all(
                self.needs.get(name, (0,)) <= newest
                for name, newest in zip(("GLIBCXX", "CXXABI", "GCC"), rest)
            )
            if has_rest:
                major, minor = max(floor, glibc)[:2]
                return f"manylinux_{major}_{minor}_{self.machine.name}"
        raise Refused(f"{self.path} needs a newer libstdc++ than packaging/binary.py knows: {self.needs}")

    def debian_depends(self) -> str:
        """The packages with these libraries, as Depends of a Debian package."""
        depends = {}
        for library in self.libraries:
            package = LIBRARIES[library]
            if package == "libc6":
                depends[package] = ".".join(map(str, self.needs["GLIBC"]))
            elif package == "libgcc-s1":
                depends[package] = "4.2"
            else:
                needed = self.needs.get("GLIBCXX", (0,))
                gcc = next((gcc for version, gcc in LIBSTDCXX if needed <= version), None)
                if gcc is None:
                    raise Refused(
                        f"{self.path} needs a newer libstdc++ than packaging/binary.py knows: {needed}"
                    )
                depends[package] = gcc
        return ", ".join(f"{package} (>= {version})" for package, version in sorted(depends.items()))


def clean_environment() -> dict[str, str]:
    """The environment without ranktree's settings, which help would show, and with messages in English."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RANKTREE_")}
    return kept | {"LC_ALL": "C"}


def read(path: Path) -> Binary:
    """Reads a binary.

    Raises Refused if it is not a ranktree for Linux on a machine that packages are made for.
    """
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}; `make build` makes it, or set RANKTREE_BIN") from error
    if header[:6] != b"\x7fELF\x02\x01":
        raise Refused(f"{path} is no 64-bit program for Linux")
    machine = MACHINES.get(struct.unpack_from("<H", header, 18)[0])
    if machine is None:
        raise Refused(f"{path} is of a machine that no packages are made for")
    libraries = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", path))
    unknown = [library for library in libraries if library not in LIBRARIES]
    if unknown:
        raise Refused(f"{path} needs {', '.join(unknown)}, which not every system has")
    needs: dict[str, Version] = {}
    for name, version in re.findall(r"Name: ([A-Z]+)_([0-9.]+)", needed_versions(path)):
        number = tuple(int(part) for part in version.split("."))
        needs[name] = max(needs.get(name, number), number)
    said = subprocess.run(
        [path.absolute(), "--version"], capture_output=True, text=True, check=True, env=clean_environment()
    )
    return Binary(path, said.stdout.split()[-1], machine, libraries, needs)


def needed_versions(path: Path) -> str:
    return readelf("-V", path).partition("Version needs section")[2]


def readelf(flag: str, path: Path) -> str:
    said = subprocess.run(
        ["readelf", "-W", flag, path], capture_output=True, text=True, check=True, env=clean_environment()
    )
    return said.stdout


def strip(path: Path, to: Path) -> None:
    """Writes a binary without symbols and line numbers."""
    subprocess.run(["strip", "--strip-all", "-o", to, path], check=True)
    to.chmod(0o755)

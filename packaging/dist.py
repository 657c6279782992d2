#!/usr/bin/env python3
"""Makes the packages of a built ranktree: a tarball, a Debian package, a Python wheel, and their SHA256SUMS.

Of the same binary, commit and tools they have the same bytes every time. docs/releasing.md says more.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import archive
import binary
import debian
import licences
import wheel
from binary import Binary, Refused

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# Where each shell looks, below share/.
COMPLETIONS = {
    "bash": "bash-completion/completions/ranktree",
    "zsh": "zsh/site-functions/_ranktree",
    "fish": "fish/vendor_completions.d/ranktree.fish",
}
# Debian wants somebody to write to. Whoever publishes packages gives themselves.
NOBODY = "The ranktree developers <ranktree@example.invalid>"


def epoch_of_commit() -> int:
    """SOURCE_DATE_EPOCH: the time that all files of all packages get. Without it, that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if said.returncode != 0:
        raise Refused("this is no git repository: set SOURCE_DATE_EPOCH, the time of all files")
    return int(said.stdout)


def lay_out(folder: Path, of: Binary, stripped: Path, third_party: str) -> None:
    """Puts into a folder what /usr/local gets from the tarball."""

    def put(content: str | bytes, path: str, mode: int = 0o644) -> None:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)

    put(stripped.read_bytes(), "bin/ranktree", 0o755)
    put((ROOT / "deploy/ranktree.service").read_bytes(), "lib/systemd/system/ranktree.service")
    documents = "share/doc/ranktree"
    for path in ("LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "deploy/ranktree.example.toml"):
        put((ROOT / path).read_bytes(), f"{documents}/{Path(path).name}")
    put(third_party, f"{documents}/THIRD-PARTY-LICENCES.txt")
    program = of.path.absolute()
    environment = binary.clean_environment()
    for shell, path in COMPLETIONS.items():
        said = subprocess.run(
            [program, "completions", shell], check=True, capture_output=True, env=environment
        )
        put(said.stdout, f"share/{path}")
    pages = folder / "share/man/man1"
    pages.mkdir(parents=True)
    if subprocess.run([program, "man", pages], env=environment).returncode != 0:
        raise Refused(f"{of.path} writes no pages for man: it is older than `ranktree man`, or failed")


def make(path: Path, out: Path, maintainer: str = NOBODY, with_debian: bool = True) -> list[Path]:
    """Makes all packages in the folder `out`, and says where they are. Raises Refused."""
    of = binary.read(path)
    epoch = epoch_of_commit()
    third_party = licences.make(of.machine.rust_target)
    if not third_party.startswith(f"ranktree {of.version} "):
        raise Refused(f"{path} is version {of.version}, and Cargo.toml is of another: build it first")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        stripped = Path(scratch, "ranktree")
        binary.strip(path, stripped)
        name = f"ranktree-{of.version}-linux-{of.machine.name}"
        folder = Path(scratch, name)
        lay_out(folder, of, stripped, third_party)
        tarball = out / f"{name}.tar.gz"
        package = out / f"ranktree_{debian.version(of.version)}_{of.machine.debian}.deb"
        documents = folder / "share/doc/ranktree"
        root = Path(scratch, "root")
        with ThreadPoolExecutor() as pool:
            jobs = [
                pool.submit(archive.tarball, folder, tarball, epoch),
                pool.submit(wheel.build, of, stripped, documents, HERE / "wheel-readme.md", epoch, out),
            ]
            if with_debian:
                shared = folder / "share"
                jobs.append(pool.submit(debian.build, root, of, stripped, shared, maintainer, epoch, package))
            results = [job.result() for job in jobs]
    made = sorted([tarball, results[1]] + ([package] if with_debian else []))
    sums = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in made]
    (out / "SHA256SUMS").write_text("".join(sums))
    return [*made, out / "SHA256SUMS"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, required=True, help="the program; it is copied, and stripped")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "dist", help="the folder for packages [default: dist]"
    )
    parser.add_argument(
        "--maintainer",
        default=os.environ.get("DIST_MAINTAINER") or NOBODY,
        help="who publishes the Debian package: Name <address> [default: DIST_MAINTAINER, or nobody]",
    )
    parser.add_argument("--without-debian", action="store_true", help="make no Debian package")
    arguments = parser.parse_args()
    # A package of an earlier version would be taken for one of this.
    for old in [*arguments.out.glob("ranktree[-_]*"), *arguments.out.glob("SHA256SUMS")]:
        old.unlink()
    try:
        made = make(arguments.binary, arguments.out, arguments.maintainer, not arguments.without_debian)
    except Refused as refused:
        print(f"dist.py: {refused}", file=sys.stderr)
        return 1
    for path in made:
        print(f"{path.stat().st_size / 2**20:8.1f} MiB  {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

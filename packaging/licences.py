#!/usr/bin/env python3
"""Writes the licences of what is linked into ranktree: crates, the C and C++ in them, Rust's own library.

cargo says which crates are linked, and each crate brings its licence: nothing is downloaded, unless cargo
lacks crates that `cargo build` did not need. It stops at a crate that brings none, and at a licence within a
crate that nobody has looked at.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from binary import Refused

ROOT = Path(__file__).resolve().parent.parent

NAMES = re.compile(r"(?i)^(un)?(licen[cs]e|copying|notice|copyright)")
# Sources that are named so.
NO_TEXT = {".rs", ".py", ".c", ".h", ".html"}

# Crates that bring no file. They offer the Apache licence, whose text is the same for all.
APACHE_WITHOUT_FILE = {
    "async-nats",
    "librocksdb-sys",
    "opentelemetry",
    "opentelemetry-proto",
    "opentelemetry_sdk",
}

# Licences of what crates bring from elsewhere. True is linked; what is not linked says why.
BUNDLED: dict[str, dict[str, bool | str]] = {
    "libmimalloc-sys": {"c_src/mimalloc/v2/LICENSE": True, "c_src/mimalloc/v3/LICENSE": True},
    "librocksdb-sys": {
        "rocksdb/LICENSE.Apache": True,
        "rocksdb/LICENSE.leveldb": True,
        "rocksdb/util/xxhash.h": True,
        "rocksdb/COPYING": "the other choice beside Apache-2.0",
        "rocksdb/utilities/transactions/lock/range/range_tree/lib/COPYING.AGPLv3": "not compiled",
        "rocksdb/utilities/transactions/lock/range/range_tree/lib/COPYING.GPLv2": "not compiled",
        "rocksdb/utilities/transactions/lock/range/range_tree/lib/COPYING.APACHEv2": "not compiled",
        "snappy/COPYING": "not compiled: the feature is off",
    },
    "lz4-sys": {
        "liblz4/lib/LICENSE": True,
        "liblz4/LICENSE": "says which file has which licence",
        "liblz4/programs/COPYING": "not compiled",
        "liblz4/contrib/debian/copyright": "not compiled",
        "liblz4/contrib/djgpp/LICENSE": "not compiled",
        "liblz4/examples/COPYING": "not compiled",
        "liblz4/tests/COPYING": "not compiled",
    },
    "opentelemetry-proto": {"src/proto/opentelemetry-proto/LICENSE": True},
    "redis": {"src/cluster_handling/async_connection/LICENSE": True},
    "regex-syntax": {"src/unicode_tables/LICENSE-UNICODE": True},
    "ring": {
        "src/polyfill/once_cell/LICENSE-APACHE": True,
        "src/polyfill/once_cell/LICENSE-MIT": True,
        "third_party/fiat/LICENSE": True,
    },
    "tracing-core": {"src/spin/LICENSE": True},
}

HEAD = """\
ranktree {version} is licensed under MIT or Apache-2.0, at your choice. This file has
the licences of what is linked into its program: {count} crates, the C and C++ that
some of them bring, and Rust's standard library.
"""


@dataclass
class Crate:
    name: str
    version: str
    licence: str
    authors: list[str]
    folder: Path
    texts: dict[str, str] = field(default_factory=dict)


def linked(target: str) -> tuple[str, list[Crate]]:
    """ranktree's version, and all crates that are linked into it, by name."""
    edges = ["--edges", "normal,no-proc-macro", "--target", target]
    tree = cargo("tree", *edges, "--prefix", "none", "--format", "{p}")
    wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))
    own = next(package for package in metadata["packages"] if package["name"] == "ranktree")
    crates = [
        Crate(
            package["name"],
            package["version"],
            package["license"] or "in a file",
            package["authors"],
            Path(package["manifest_path"]).parent,
        )
        for package in metadata["packages"]
        if package is not own and (package["name"], f"v{package['version']}") in wanted
    ]
    if len(crates) + 1 != len(wanted):
        raise Refused(f"cargo tree has {len(wanted)} crates, and cargo metadata {len(crates) + 1} of them")
    return own["version"], sorted(crates, key=lambda crate: (crate.name, crate.version))


def cargo(*arguments: str) -> str:
    for network in (["--offline"], []):
        # `cargo metadata` wants the crates of tests as well, which a build does not download.
        command = ["cargo", *arguments, "--locked", *network]
        said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        if said.returncode == 0:
            break
    else:
        raise Refused(f"cargo {arguments[0]} failed:\n{said.stderr}")
    return said.stdout


def read_texts(crate: Crate) -> None:
    """Fills in the licences of a crate. Raises Refused if it has none, or one that nobody has looked at."""
    looked_at = BUNDLED.get(crate.name, {})
    found = {}
    for path in sorted(crate.folder.rglob("*")):
        name = path.relative_to(crate.folder).as_posix()
        is_licence = NAMES.match(path.name) and path.suffix not in NO_TEXT and path.is_file()
        if is_licence and "/" in name and name not in looked_at:
            raise Refused(
                f"{crate.name} {crate.version} brings {name}, which BUNDLED in packaging/licences.py lacks"
            )
        if is_licence and looked_at.get(name, True) is True:
            found[name] = tidy(path.read_text(errors="replace"))
    for name, is_linked in looked_at.items():
        if not (crate.folder / name).is_file():
            raise Refused(
                f"{crate.name} {crate.version} no longer brings {name}; see BUNDLED in packaging/licences.py"
            )
        if is_linked is True and name not in found:
            found[name] = first_comment((crate.folder / name).read_text(errors="replace"))
    if crate.name in APACHE_WITHOUT_FILE and "Apache-2.0" in crate.licence:
        found["Apache-2.0"] = tidy((ROOT / "LICENSE-APACHE").read_text())
    if not any("/" not in name for name in found):
        raise Refused(
            f"{crate.name} {crate.version} ({crate.licence}) brings no licence; see packaging/licences.py"
        )
    crate.texts = found


def tidy(text: str) -> str:
    """Without what differs between two copies of one text: ends of lines and empty lines around it."""
    return "\n".join(line.rstrip() for line in text.lstrip("\ufeff").splitlines()).strip("\n")


def first_comment(text: str) -> str:
    """The comment that has the licence of a C source."""
    comments = re.findall(r"/\*.*?\*/", text, re.DOTALL)
    return tidy(next(comment for comment in comments if "Redistribution" in comment))


class Words(HTMLParser):
    """The words of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.is_shown = True

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        self.is_shown &= tag not in ("style", "script", "title")

    def handle_endtag(self, tag: str) -> None:
        self.is_shown |= tag in ("style", "script", "title")

    def handle_data(self, data: str) -> None:
        if self.is_shown:
            self.words.append(data)


def standard_library() -> str:
    """The notices of Rust's standard library, as the toolchain brings them."""
    said = subprocess.run(
        ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    folder = Path(said.stdout.strip()) / "share/doc/rust"
    page = folder / "COPYRIGHT-library.html"
    if not page.exists():
        raise Refused(f"Rust's toolchain brings no {page.name}; one that rustup installed does")
    words = Words()
    words.feed(page.read_text())
    return re.sub(r"\n{3,}", "\n\n", tidy("".join(words.words)))


def document(version: str, crates: list[Crate], library: str) -> str:
    """All licences as one text: a list of crates, then each text once, with those that it is of."""
    lines = [HEAD.format(version=version, count=len(crates))]
    lines += [f"  {crate.name} {crate.version}: {crate.licence}" for crate in crates]
    # Many copies of a text differ only in where their lines break.
    owners: dict[str, tuple[str, list[str]]] = {}
    for crate in crates:
        for name, text in crate.texts.items():
            of = f"{crate.name} {crate.version}"
            if "/" in name:
                of += f" ({name})"
            elif name == "Apache-2.0" and crate.authors:
                of += f" (by {', '.join(crate.authors)})"
            _, users = owners.setdefault(" ".join(text.split()), (text, []))
            if of not in users:
                users.append(of)
    rule = "=" * 80
    for text, users in owners.values():
        lines += ["", rule, "Of " + "\n   ".join(users), rule, "", text]
    lines += ["", rule, "Of Rust's standard library", rule, "", library]
    return "\n".join(lines) + "\n"


def make(target: str) -> str:
    """The document for a platform. Raises Refused."""
    version, crates = linked(target)
    for crate in crates:
        read_texts(crate)
    return document(version, crates, standard_library())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--target", default="x86_64-unknown-linux-gnu", help="the platform [default: %(default)s]"
    )
    arguments = parser.parse_args()
    try:
        sys.stdout.write(make(arguments.target))
    except Refused as refused:
        print(f"licences.py: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

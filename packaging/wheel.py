"""The Python wheel: it brings the program, and no Python."""

from __future__ import annotations

import re
from pathlib import Path

from archive import wheel
from binary import Binary

METADATA = """\
Metadata-Version: 2.4
Name: ranktree
Version: {version}
Summary: An exact, durable leaderboard engine: the service and its command line
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
License-File: THIRD-PARTY-LICENCES.txt
Keywords: leaderboard,ranking,games,nats,rocksdb
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Rust
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: ranktree packaging
Root-Is-Purelib: false
Tag: {tag}
"""


def version(of: str) -> str:
    """A version as Python has it: 0.2.0-rc.1 is 0.2.0rc1."""
    return re.sub(r"-(a|b|rc)[a-z]*\.?", r"\1", of)


def build(binary: Binary, stripped: Path, documents: Path, readme: Path, epoch: int, out: Path) -> Path:
    """Makes the wheel in the folder `out`, and says where it is."""
    number = version(binary.version)
    tag = f"py3-none-{binary.wheel_tag()}"
    info = f"ranktree-{number}.dist-info"
    files: dict[str, Path | str] = {
        # What is here is put beside Python's own programs as it is.
        f"ranktree-{number}.data/scripts/ranktree": stripped,
        f"{info}/METADATA": METADATA.format(version=number, readme=readme.read_text()),
        f"{info}/WHEEL": WHEEL.format(tag=tag),
    }
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENCES.txt"):
        files[f"{info}/licenses/{name}"] = documents / name
    to = out / f"ranktree-{number}-{tag}.whl"
    wheel(files, f"{info}/RECORD", to, epoch)
    return to

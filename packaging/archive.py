"""Archives with the same bytes whenever and wherever they are made of the same files."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
import time
import zipfile
from pathlib import Path

# Higher levels take twice the time for one part in a hundred.
LEVEL = 6


def mode_of(path: Path) -> int:
    """What everybody's copy of a file has, whatever the umask of who made it."""
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644


def compress(content: bytes) -> bytes:
    """As `gzip -n`: without a name and without a time."""
    return gzip.compress(content, LEVEL, mtime=0)


def tarball(folder: Path, to: Path, epoch: int) -> None:
    """Packs a folder, sorted by name, as nobody's files, with one time for all."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted([folder, *folder.rglob("*")]):
            entry = tar.gettarinfo(path, path.relative_to(folder.parent).as_posix())
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = epoch
            entry.mode = mode_of(path)
            if path.is_file():
                with path.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
    to.write_bytes(compress(packed.getvalue()))


def wheel(files: dict[str, Path | str], record: str, to: Path, epoch: int) -> None:
    """Packs files by their names, and last the list of them with their hashes, as wheels have it."""
    # The format counts from 1980, in local time.
    date = max(time.gmtime(epoch)[:6], (1980, 1, 1, 0, 0, 0))
    lines = []
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as packed:

        def add(name: str, content: bytes, mode: int) -> None:
            entry = zipfile.ZipInfo(name, date)
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)

        for name, source in sorted(files.items()):
            is_file = isinstance(source, Path)
            content = source.read_bytes() if is_file else source.encode()
            add(name, content, mode_of(source) if is_file else 0o644)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
        add(record, "".join([*lines, f"{record},,\n"]).encode(), 0o644)

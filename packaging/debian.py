"""The Debian package."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from email.utils import formatdate
from pathlib import Path

from archive import compress, mode_of
from binary import Binary, Refused

HERE = Path(__file__).resolve().parent
CONTROL = """\
Package: ranktree
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kib}
Depends: {depends}, adduser, init-system-helpers (>= 1.52)
Recommends: ca-certificates
Suggests: nats-server
Section: database
Priority: optional
Description: exact, durable leaderboard engine
 ranktree takes scores in over HTTP or from NATS JetStream, keeps them in
 RocksDB, and answers what rank a member or a score has from a counted tree
 in memory: exactly, without sampling.
 .
 The package runs it as a service of the user ranktree, on this machine's
 loopback address until it is configured otherwise.
"""
COPYRIGHT = """\
ranktree is licensed under either of the MIT licence, which follows, and the
Apache licence 2.0, which is in /usr/share/common-licenses/Apache-2.0, at your
choice. THIRD-PARTY-LICENCES.txt beside this file has the licences of what is
linked into the program.

"""
CHANGES = """\
ranktree ({version}) unstable; urgency=medium

  * See changelog.gz.

 -- {maintainer}  {date}
"""


def version(of: str) -> str:
    """A version as Debian has it: one before a release sorts before it by its `~`."""
    return of.replace("-", "~") + "-1"


def service(unit: str) -> str:
    """The unit that the repository ships, for a program in /usr/bin and a user that the package makes.

    The user is one of the machine's own so that commands on stopped data, and backups, can be run as it.
    """
    head, found, rest = unit.partition("\n[Unit]\n")
    changes = [
        ("/usr/local/bin/", "/usr/bin/"),
        ("DynamicUser=yes\nUser=ranktree\n", "User=ranktree\nGroup=ranktree\n"),
    ]
    for old, new in changes:
        if old not in rest:
            raise Refused(
                f"deploy/ranktree.service has no {old!r} any more, which packaging/debian.py replaces"
            )
        rest = rest.replace(old, new)
    if not found or "/usr/local" in rest or "DynamicUser" in rest:
        raise Refused("deploy/ranktree.service has changed; see packaging/debian.py")
    # What the head says is how to install it by hand.
    return (
        "# Settings: /etc/ranktree/ranktree.toml. Data: /var/lib/ranktree. Commands on data of the stopped\n"
        "# service run as its user: runuser -u ranktree -- ranktree verify --data-dir /var/lib/ranktree\n"
        + found
        + rest
    )


def build(
    root: Path, binary: Binary, stripped: Path, shared: Path, maintainer: str, epoch: int, to: Path
) -> None:
    """Makes the package in a folder `root`, which is to be empty.

    `shared` is what the tarball has below share/: completions, pages for man, documents.
    """
    number = version(binary.version)

    def put(content: bytes | str, path: str, mode: int = 0o644) -> None:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)

    documents = "usr/share/doc/ranktree"
    shutil.copytree(shared, root / "usr/share")
    put(stripped.read_bytes(), "usr/bin/ranktree", 0o755)
    unit = HERE.parent / "deploy/ranktree.service"
    put(service(unit.read_text()), "usr/lib/systemd/system/ranktree.service")
    # May come to hold tokens.
    put((HERE / "debian/ranktree.toml").read_bytes(), "etc/ranktree/ranktree.toml", 0o640)
    # Debian's names for what the tarball has under others.
    zsh = root / "usr/share/zsh"
    (zsh / "site-functions").rename(zsh / "vendor-completions")
    for page in sorted((root / "usr/share/man/man1").iterdir()):
        put(compress(page.read_bytes()), f"usr/share/man/man1/{page.name}.gz")
        page.unlink()
    (root / documents / "LICENSE-APACHE").unlink()
    licence = root / documents / "LICENSE-MIT"
    put(COPYRIGHT + licence.read_text(), f"{documents}/copyright")
    licence.unlink()
    changes = root / documents / "CHANGELOG.md"
    put(compress(changes.read_bytes()), f"{documents}/changelog.gz")
    changes.unlink()
    said = CHANGES.format(version=number, maintainer=maintainer, date=formatdate(epoch))
    put(compress(said.encode()), f"{documents}/changelog.Debian.gz")

    files = sorted(path for path in root.rglob("*") if path.is_file())
    sums = [
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n"
        for path in files
        if not path.is_relative_to(root / "etc")
    ]
    put("".join(sums), "DEBIAN/md5sums")
    put("/etc/ranktree/ranktree.toml\n", "DEBIAN/conffiles")
    for script in ("postinst", "prerm", "postrm"):
        put((HERE / "debian" / script).read_bytes(), f"DEBIAN/{script}", 0o755)
    control = CONTROL.format(
        version=number,
        architecture=binary.machine.debian,
        maintainer=maintainer,
        kib=sum(path.stat().st_size + 1023 for path in files) // 1024,
        depends=binary.debian_depends(),
    )
    put(control, "DEBIAN/control")
    for path in root.rglob("*"):
        if path.name != "ranktree.toml":
            path.chmod(mode_of(path))
    root.chmod(0o755)

    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
    # gzip, because xz takes ten times as long for a quarter less.
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z6", "--build", root, to]
    try:
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise Refused("dpkg-deb is not here: `apt-get install dpkg`, or --without-debian") from error

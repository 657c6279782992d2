#!/usr/bin/env python3
"""Makes the packages of a built ranktree twice, compares them, installs each, and starts the service from it.

    RANKTREE_BIN=bin/ranktree packaging/test_dist.py [-v] [Class.test ...]

Nothing is installed on this machine: the tarball and the wheel go into folders that are deleted, and the
Debian package into a copy of the machine's root (debian/try.sh), where that is possible.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import binary
import debian
import licences
import wheel
from binary import Binary, Refused

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def has(program: str) -> bool:
    """Whether a program is here that not every machine has. Where CI is set, none may be missed silently,
    unless TESTS_WITHOUT names it."""
    is_here = shutil.which(program) is not None
    excused = not os.environ.get("CI") or program in os.environ.get("TESTS_WITHOUT", "").split()
    if not is_here and not excused:
        raise SystemExit(f"{program} is not here, and CI is set: install it, or name it in TESTS_WITHOUT")
    return is_here


HAS_DPKG = has("dpkg-deb")
SCRATCH = Path(tempfile.mkdtemp(prefix="ranktree-dist-"))
OUT = SCRATCH / "out"


def program() -> Path:
    given = os.environ.get("RANKTREE_BIN", "bin/ranktree")
    return (ROOT / given).resolve()


def run(*command: object, **options: object) -> str:
    """Runs a program to its end and says what it wrote. What it complains of is the test's failure."""
    words = [str(word) for word in command]
    options.setdefault("env", binary.clean_environment())
    said = subprocess.run(words, capture_output=True, text=True, **options)
    if said.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {said.returncode}\n{said.stdout}{said.stderr}")
    return said.stdout


def made(pattern: str) -> Path:
    found = list(OUT.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


@contextmanager
def serving(executable: Path, data: Path) -> Iterator[str]:
    """The service, on a free port of this machine; stopped in order afterwards."""
    command = [executable, "serve", "--listen", "127.0.0.1:0", "--data-dir", data]
    log = data.with_suffix(".log")
    with log.open("w") as errors:
        service = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=binary.clean_environment()
        )
    try:
        line = service.stdout.readline()
        assert line.startswith("listening on "), f"{line}{log.read_text()}"
        yield line.split()[-1]
        service.terminate()
        assert service.wait() == 0, log.read_text()
    finally:
        service.kill()
        service.wait()
        service.stdout.close()


def is_ready(url: str) -> bool:
    with urllib.request.urlopen(f"{url}/readyz") as answer:
        return answer.status == 200


def unit_errors(unit: str, executable: Path) -> list[str]:
    """What systemd has against a unit, with the program where it is here. Nothing where systemd is not."""
    if not has("systemd-analyze"):
        return []
    path = SCRATCH / "ranktree.service"
    path.write_text(
        re.sub(r"=\S*/bin/ranktree ", f"={executable} ", unit).replace("User=ranktree", "User=root")
    )
    command = ["systemd-analyze", "verify", "--man=no", path]
    said = subprocess.run(command, capture_output=True, text=True, env=binary.clean_environment())
    return [line for line in said.stderr.splitlines() if path.name in line]


def setUpModule() -> None:
    # Twice, side by side: in other time zones, with other permissions, from another place.
    copy = SCRATCH / "elsewhere/copy-of-it"
    copy.parent.mkdir()
    shutil.copy(program(), copy)
    makers = []
    for path, out, zone, umask in (
        (program(), OUT, "UTC", 0o022),
        (copy, SCRATCH / "again", "Asia/Tokyo", 0o077),
    ):
        command = [sys.executable, "-B", HERE / "dist.py", "--binary", path, "--out", out]
        command += [] if HAS_DPKG else ["--without-debian"]
        environment = os.environ | {"TZ": zone}
        makers.append(
            subprocess.Popen(command, env=environment, umask=umask, cwd=out.parent, stdout=subprocess.DEVNULL)
        )
    # Both end before one that failed is told of.
    assert [maker.wait() for maker in makers] == [0, 0], "the packages were not made"


def tearDownModule() -> None:
    shutil.rmtree(SCRATCH)


class AllPackages(unittest.TestCase):
    def test_two_runs_make_the_same_bytes(self) -> None:
        names = sorted(path.name for path in OUT.iterdir())
        self.assertEqual(len(names), 4 if HAS_DPKG else 3)
        self.assertEqual(names, sorted(path.name for path in (SCRATCH / "again").iterdir()))
        for name in names:
            same = (OUT / name).read_bytes() == (SCRATCH / "again" / name).read_bytes()
            self.assertTrue(same, f"{name} is another one the second time")

    def test_checksums_are_those_of_the_packages(self) -> None:
        said = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=OUT)
        self.assertEqual(said.count(": OK"), 3 if HAS_DPKG else 2)

    def test_no_package_has_a_path_of_who_made_it(self) -> None:
        text = run("tar", "-xOzf", made("*.tar.gz"), "--exclude=*/bin/ranktree", errors="replace")
        for path in (ROOT, Path.home() / ".cargo", SCRATCH):
            self.assertNotIn(f"{path}/", text)


class Tarball(unittest.TestCase):
    local = SCRATCH / "local"

    @classmethod
    def setUpClass(cls) -> None:
        cls.local.mkdir()
        run("tar", "-xzf", made("*.tar.gz"), "-C", cls.local, "--strip-components=1")

    def test_it_is_unpacked_and_serves(self) -> None:
        with serving(self.local / "bin/ranktree", SCRATCH / "of-tarball") as url:
            self.assertTrue(is_ready(url))

    def test_its_files_are_sorted_and_nobodys(self) -> None:
        listed = run("tar", "-tvzf", made("*.tar.gz"), "--numeric-owner").splitlines()
        self.assertEqual({line.split()[1] for line in listed}, {"0/0"})
        self.assertEqual({line.split()[0] for line in listed}, {"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"})
        self.assertEqual(len({tuple(line.split()[3:5]) for line in listed}), 1, "one time for all")
        names = [line.split()[5].rstrip("/").split("/") for line in listed]
        self.assertEqual(names, sorted(names))

    def test_it_has_what_a_service_needs(self) -> None:
        sections = run("readelf", "-SW", self.local / "bin/ranktree")
        self.assertNotIn(".debug_info", sections)
        self.assertNotIn(".symtab", sections)
        unit = (self.local / "lib/systemd/system/ranktree.service").read_text()
        self.assertEqual(unit_errors(unit, self.local / "bin/ranktree"), [])
        run(
            "sh",
            "-c",
            'command -v bash >/dev/null || exit 0; exec bash -n "$1"',
            "sh",
            self.completions("bash"),
        )
        example = (self.local / "share/doc/ranktree/ranktree.example.toml").read_text()
        self.assertEqual(example, run(program(), "config", "example"))

    def completions(self, shell: str) -> Path:
        found = [path for path in self.local.glob("share/*/*/*ranktree*") if shell in str(path)]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_each_command_has_a_page(self) -> None:
        pages = {page.stem for page in (self.local / "share/man/man1").iterdir()}
        commands = re.findall(r"^  ([a-z]+) ", run(program(), "--help").split("Commands:")[1], re.MULTILINE)
        self.assertGreater(len(commands), 10)
        self.assertEqual({f"ranktree-{name}" for name in commands if name != "help"} - pages, set())
        serve = (self.local / "share/man/man1/ranktree-serve.1").read_text()
        self.assertIn("RANKTREE_DATA_DIR", serve)
        if has("groff"):
            for page in sorted((self.local / "share/man/man1").iterdir()):
                command = ["groff", "-man", "-Tutf8", "-ww", "-z", page]
                said = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual((said.returncode, said.stderr), (0, ""), page.name)


@unittest.skipUnless(HAS_DPKG, "dpkg-deb is not here: no Debian package was made")
class DebianPackage(unittest.TestCase):
    root = SCRATCH / "root"

    @classmethod
    def setUpClass(cls) -> None:
        run("dpkg-deb", "--raw-extract", made("*.deb"), cls.root)

    def test_its_files_are_what_it_says(self) -> None:
        info = run("dpkg-deb", "--info", made("*.deb"))
        for line in ("Package: ranktree", "Depends: libc6 (>= ", "postinst", "conffiles"):
            self.assertIn(line, info)
        run("md5sum", "--check", "--strict", "--quiet", "DEBIAN/md5sums", cwd=self.root)
        conffiles = (self.root / "DEBIAN/conffiles").read_text().split()
        self.assertEqual(conffiles, ["/etc/ranktree/ranktree.toml"])
        self.assertEqual((self.root / conffiles[0][1:]).stat().st_mode & 0o777, 0o640)
        run(
            self.root / "usr/bin/ranktree",
            "config",
            "check",
            "--config",
            self.root / conffiles[0][1:],
            cwd=SCRATCH,
        )
        self.assertFalse((self.root / "var").exists(), "systemd makes the data directory")
        self.assertEqual(
            list(self.root.rglob("*ranktree-serve.1.gz"))[0].parent, self.root / "usr/share/man/man1"
        )

    def test_its_scripts_are_valid_and_none_deletes_data(self) -> None:
        for name in ("postinst", "prerm", "postrm"):
            script = self.root / "DEBIAN" / name
            self.assertEqual(script.stat().st_mode & 0o777, 0o755)
            run("sh", "-n", script)
            deletes = re.findall(
                r"^\s*(?:rm|deluser|userdel|chown|chmod)\b.*", script.read_text(), re.MULTILINE
            )
            self.assertEqual(deletes, [], name)

    def test_its_unit_is_valid(self) -> None:
        unit = (self.root / "usr/lib/systemd/system/ranktree.service").read_text()
        self.assertIn("ExecStart=/usr/bin/ranktree serve", unit)
        self.assertIn("\nUser=ranktree\nGroup=ranktree\nStateDirectory=ranktree\n", unit)
        self.assertEqual(unit_errors(unit, self.root / "usr/bin/ranktree"), [])
        # Nothing else is different from the unit that the repository ships.
        shipped = set((ROOT / "deploy/ranktree.service").read_text().partition("[Unit]")[2].splitlines())
        self.assertEqual(len(set(unit.partition("[Unit]")[2].splitlines()) - shipped), 3)

    def test_it_is_installed_upgraded_removed_and_purged(self) -> None:
        control = self.root / "DEBIAN/control"
        control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1.later", control.read_text()))
        later = SCRATCH / "later.deb"
        run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", self.root, later)
        command = ["sh", str(HERE / "debian/try.sh"), str(made("*.deb")), str(later)]
        said = subprocess.run(command, capture_output=True, text=True)
        if said.returncode == 77:
            print(f"The Debian package was NOT installed: {said.stderr.strip()}", file=sys.stderr)
            self.skipTest("it cannot be installed here")
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("installed, upgraded, removed and purged", said.stdout)


class PythonWheel(unittest.TestCase):
    def test_it_is_installed_by_pip_and_serves(self) -> None:
        folder = SCRATCH / "venv"
        run(sys.executable, "-m", "venv", folder)
        pip = [folder / "bin/python", "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "install", "--no-index", "--no-deps", made("*.whl"))
        with serving(folder / "bin/ranktree", SCRATCH / "of-wheel") as url:
            self.assertTrue(is_ready(url))
        self.assertIn(
            f"\nVersion: {wheel.version(binary.read(program()).version)}\n", run(*pip, "show", "ranktree")
        )
        run(*pip, "uninstall", "--yes", "ranktree")
        self.assertFalse((folder / "bin/ranktree").exists())


class Rules(unittest.TestCase):
    """What packages promise, and what none is made of."""

    def setUp(self) -> None:
        self.binary = binary.read(program())

    def of(self, **needs: tuple[int, ...]) -> Binary:
        return replace(self.binary, needs=needs)

    def test_the_wheels_tag_is_the_oldest_system_that_has_all(self) -> None:
        for needs, expect in (
            ({"GLIBC": (2, 12)}, "manylinux_2_17"),
            ({"GLIBC": (2, 30)}, "manylinux_2_30"),
            ({"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}, "manylinux_2_34"),
            ({"GLIBC": (2, 34), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}, "manylinux_2_35"),
            ({"GLIBC": (2, 17), "GLIBCXX": (3, 4, 19), "CXXABI": (1, 3, 8)}, "manylinux_2_28"),
            ({"GLIBC": (2, 41), "GLIBCXX": (3, 4, 33), "GCC": (14, 0, 0)}, "manylinux_2_41"),
        ):
            tag = self.of(**needs).wheel_tag()
            self.assertEqual(tag, f"{expect}_{self.binary.machine.name}", needs)
        with self.assertRaises(Refused):
            self.of(GLIBC=(2, 40), GLIBCXX=(3, 4, 99)).wheel_tag()

    def test_versions_before_a_release_sort_before_it(self) -> None:
        self.assertEqual([debian.version(of) for of in ("0.2.0", "0.2.0-rc.1")], ["0.2.0-1", "0.2.0~rc.1-1"])
        of = ("0.2.0", "0.2.0-rc.1", "0.2.0-alpha.2")
        self.assertEqual([wheel.version(one) for one in of], ["0.2.0", "0.2.0rc1", "0.2.0a2"])

    def test_depends_are_those_that_debian_computes(self) -> None:
        ours = self.binary.debian_depends()
        self.assertRegex(ours, r"^libc6 \(>= 2\.\d+\)")
        if not has("dpkg-shlibdeps"):
            self.skipTest("dpkg-shlibdeps is not here to compare with")
        folder = SCRATCH / "source"
        (folder / "debian").mkdir(parents=True)
        (folder / "debian/control").write_text("Source: ranktree\n\nPackage: ranktree\nArchitecture: any\n")
        said = run("dpkg-shlibdeps", "-O", program(), cwd=folder)
        self.assertEqual(said.strip(), f"shlibs:Depends={ours}")

    def test_what_is_no_program_for_linux_is_refused(self) -> None:
        for path in (SCRATCH / "nothing", HERE / "dist.py"):
            with self.assertRaises(Refused):
                binary.read(path)

    def test_licences_are_of_all_that_is_linked(self) -> None:
        text = licences.make(self.binary.machine.rust_target)
        for words in (
            "Of librocksdb-sys",
            "(rocksdb/LICENSE.leveldb)",
            "Copyright (c) 2011 The LevelDB Authors",
            "xxHash - Extremely Fast Hash algorithm",
            "LZ4 Library\nCopyright (c) 2011-",
            "(c_src/mimalloc/v2/LICENSE)",
            "  axum ",
            "  tokio ",
            "Copyright notices for The Rust Standard Library",
        ):
            self.assertIn(words, text)
        # RocksDB is linked under the Apache licence, and neither proc macros nor tests are linked.
        for words in ("GNU GENERAL PUBLIC", "GNU AFFERO", "\n  serde_derive ", "\n  proptest "):
            self.assertNotIn(words, text)

    def test_a_crate_without_a_licence_is_refused(self) -> None:
        folder = SCRATCH / "crate"
        (folder / "src").mkdir(parents=True)
        (folder / "src/license.rs").write_text("// a source\n")
        crate = licences.Crate("some-crate", "1.0.0", "MIT", [], folder)
        with self.assertRaisesRegex(Refused, r"some-crate 1\.0\.0 \(MIT\) brings no licence"):
            licences.read_texts(crate)
        (folder / "LICENSE").write_text("Free.\r\n")
        licences.read_texts(crate)
        self.assertEqual(crate.texts, {"LICENSE": "Free."})
        (folder / "bundled").mkdir()
        (folder / "bundled/COPYING").write_text("Free too.")
        with self.assertRaisesRegex(Refused, "brings bundled/COPYING, which BUNDLED"):
            licences.read_texts(crate)


if __name__ == "__main__":
    if "--help" in sys.argv or "-h" in sys.argv:
        print(__doc__)
        sys.exit()
    unittest.main()
